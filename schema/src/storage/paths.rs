//! Names of a partition's files: the base offset in 20 digits, as Kafka writes it, and what the file is.

use crate::Offset;

/// Extension of the file of record batches.
pub const LOG_EXTENSION: &str = "log";

/// Extension of a sealed segment's index.
pub const INDEX_EXTENSION: &str = "idx";

/// Extension of a producer snapshot.
pub const SNAPSHOT_EXTENSION: &str = "pst";

/// Extension of an active segment's checkpoint.
pub const CHECKPOINT_EXTENSION: &str = "ckp";

const BASE_DIGITS: usize = 20;

/// `00000000000000000042.log` for base offset 42 and extension `log`.
pub fn segment_file_name(base_offset: Offset, extension: &str) -> String {
    format!("{:020}.{extension}", base_offset.0)
}

/// The base offset and the extension of a name that [`segment_file_name`] made; `None` for any other name.
pub fn parse_segment_file_name(name: &str) -> Option<(Offset, &str)> {
    let (digits, extension) = name.split_once('.')?;
    let all_digits =
        digits.len() == BASE_DIGITS && digits.bytes().all(|byte| byte.is_ascii_digit());
    if !all_digits || extension.is_empty() {
        return None;
    }
    Some((Offset(digits.parse().ok()?), extension))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_as_written() {
        for base in [0, 42, i64::MAX] {
            let name = segment_file_name(Offset(base), LOG_EXTENSION);
            assert_eq!(
                parse_segment_file_name(&name),
                Some((Offset(base), LOG_EXTENSION))
            );
        }
        assert_eq!(
            segment_file_name(Offset(42), "idx"),
            "00000000000000000042.idx"
        );
        for name in [
            "",
            "42.log",
            "0000000000000000004x.log",
            "00000000000000000042",
            "99999999999999999999.log",
        ] {
            assert_eq!(parse_segment_file_name(name), None, "{name}");
        }
    }
}
