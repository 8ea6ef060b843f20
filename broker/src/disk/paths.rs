//! Where things lie in the data folder. `docs/storage-format.md` describes the same layout.

use std::path::{Path, PathBuf};

use tackboard_schema::{Offset, TopicPartition};

/// Names inside one data folder.
#[derive(Clone, Debug)]
pub struct DataPaths {
    root: PathBuf,
}

impl DataPaths {
    /// The layout under `root`.
    pub fn new(root: &Path) -> Self {
        DataPaths {
            root: root.to_owned(),
        }
    }

    /// The data folder itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// One of the two copies of the superblock.
    pub fn superblock(&self, copy: char) -> PathBuf {
        self.root.join(format!("superblock.{copy}"))
    }

    /// The file whose lock says that a broker uses the folder.
    pub fn lock(&self) -> PathBuf {
        self.root.join("lock")
    }

    /// Folder of the cores' ledgers.
    pub fn ledgers(&self) -> PathBuf {
        self.root.join("ledger")
    }

    /// One copy of a core's ledger, named by the broker epoch that writes it.
    pub fn ledger(&self, generation: u64, core: usize, copy: char) -> PathBuf {
        let name = Self::ledger_name(generation, core);
        self.ledgers().join(format!("{name}.{copy}"))
    }

    /// The name of a core's ledger, without its copy's letter.
    pub fn ledger_name(generation: u64, core: usize) -> String {
        format!("{generation:016}-{core}")
    }

    /// Folder of the metadata log.
    pub fn metadata(&self) -> PathBuf {
        self.root.join("meta")
    }

    /// Folder of all logs.
    pub fn logs(&self) -> PathBuf {
        self.root.join("p")
    }

    /// Folder of one partition's log.
    pub fn log(&self, partition: TopicPartition) -> PathBuf {
        self.logs()
            .join(format!("{}-{}", partition.topic, partition.partition))
    }

    /// Where deleted logs wait before they are removed.
    pub fn trash(&self) -> PathBuf {
        self.root.join("trash")
    }
}

/// The files of one segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentPart {
    /// Record batches.
    Log,
    /// Offset and time index of a sealed segment.
    Index,
    /// Producer snapshot at the segment's end.
    Producers,
    /// Index and producers as of a place in the active segment.
    Checkpoint,
}

impl SegmentPart {
    fn extension(self) -> &'static str {
        match self {
            SegmentPart::Log => "log",
            SegmentPart::Index => "idx",
            SegmentPart::Producers => "pst",
            SegmentPart::Checkpoint => "ckp",
        }
    }
}

/// The path of a segment's file: its base offset in 20 digits, as in Kafka.
pub fn segment_path(log: &Path, base: Offset, part: SegmentPart) -> PathBuf {
    log.join(format!("{:020}.{}", base.0, part.extension()))
}

/// Reads a file name that [`segment_path`] made.
pub fn parse_segment_name(name: &str) -> Option<(Offset, SegmentPart)> {
    let (digits, extension) = name.split_once('.')?;
    if digits.len() != 20 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let part = match extension {
        "log" => SegmentPart::Log,
        "idx" => SegmentPart::Index,
        "pst" => SegmentPart::Producers,
        "ckp" => SegmentPart::Checkpoint,
        _ => return None,
    };
    Some((Offset(digits.parse().ok()?), part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segment_names_round_trip_and_others_are_left_alone() {
        let path = segment_path(Path::new("x"), Offset(42), SegmentPart::Index);
        let name = path.file_name().unwrap().to_str().unwrap();
        assert_eq!(name, "00000000000000000042.idx");
        assert_eq!(
            parse_segment_name(name),
            Some((Offset(42), SegmentPart::Index))
        );
        for other in [
            "42.log",
            "00000000000000000042.tmp",
            "x",
            "+0000000000000000042.log",
        ] {
            assert_eq!(parse_segment_name(other), None, "{other}");
        }
        assert_eq!(parse_segment_name("99999999999999999999.log"), None);
    }
}
