//! The compression codecs of record batches, with a bound on what comes out.
//!
//! What is written is what Kafka's Java client writes: gzip and zstd at their usual levels, LZ4 frames of
//! independent 64 KiB blocks, snappy in the framing of its Java library. What is read is more: several gzip
//! members, snappy without framing, every LZ4 frame and every zstd window up to 128 MiB.
//!
//! Invariant: no output grows beyond `bytes_max`, whatever the input claims. Besides its output a decoder
//! uses a fixed amount of memory: about 12 MiB at most for LZ4; zstd reserves up to a window, but touches no
//! more than it puts out.

mod snappy;

use std::io::{Read, Write};

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

/// What zstd uses unless told otherwise, and so every Kafka client.
const ZSTD_LEVEL: i32 = 3;

/// The largest window a zstd block may ask for, as a power of two: what its highest level uses.
const ZSTD_WINDOW_LOG_MAX: u32 = 27;

/// The first bytes of an LZ4 frame (not of the older kinds of frame that some readers know).
const LZ4_MAGIC: [u8; 4] = 0x184d_2204_u32.to_le_bytes();

/// Appends the compressed form of `bytes` to `out`.
pub fn compress(codec: Compression, bytes: &[u8], out: &mut Vec<u8>) {
    let written = match codec {
        Compression::None => out.write_all(bytes),
        Compression::Gzip => compress_gzip(bytes, out),
        Compression::Snappy => {
            snappy::compress(bytes, out);
            Ok(())
        }
        Compression::Lz4 => compress_lz4(bytes, out),
        Compression::Zstd => compress_zstd(bytes, out),
    };
    // Nothing but memory is written to.
    written.expect("compression into a vector cannot fail");
}

/// Appends the decompressed form of `bytes` to `out`, at most `bytes_max` of it.
///
/// On an error `out` may hold a part of the output.
pub fn decompress(
    codec: Compression,
    bytes: &[u8],
    bytes_max: usize,
    out: &mut Vec<u8>,
) -> Result<(), DecodeError> {
    match codec {
        Compression::None => read_bounded(bytes, bytes_max, out, "uncompressed block"),
        Compression::Gzip => read_bounded(
            flate2::bufread::MultiGzDecoder::new(bytes),
            bytes_max,
            out,
            "gzip block",
        ),
        Compression::Snappy => snappy::decompress(bytes, bytes_max, out),
        Compression::Lz4 => decompress_lz4(bytes, bytes_max, out),
        Compression::Zstd => decompress_zstd(bytes, bytes_max, out),
    }
}

fn compress_gzip(bytes: &[u8], out: &mut Vec<u8>) -> std::io::Result<()> {
    let mut encoder = flate2::write::GzEncoder::new(out, flate2::Compression::default());
    encoder.write_all(bytes)?;
    encoder.finish().map(drop)
}

fn compress_lz4(bytes: &[u8], out: &mut Vec<u8>) -> std::io::Result<()> {
    use lz4_flex::frame::{BlockMode, BlockSize, FrameEncoder, FrameInfo};
    let frame = FrameInfo::new()
        .block_size(BlockSize::Max64KB)
        .block_mode(BlockMode::Independent);
    let mut encoder = FrameEncoder::with_frame_info(frame, out);
    encoder.write_all(bytes)?;
    encoder.finish().map(drop).map_err(std::io::Error::from)
}

fn compress_zstd(bytes: &[u8], out: &mut Vec<u8>) -> std::io::Result<()> {
    let mut encoder = zstd::stream::write::Encoder::new(out, ZSTD_LEVEL)?;
    encoder.set_pledged_src_size(Some(bytes.len() as u64))?;
    encoder.write_all(bytes)?;
    encoder.finish().map(drop)
}

fn decompress_lz4(bytes: &[u8], bytes_max: usize, out: &mut Vec<u8>) -> Result<(), DecodeError> {
    if !bytes.starts_with(&LZ4_MAGIC) {
        return Err(DecodeError::corrupt(
            "lz4 block does not begin as a frame",
            0,
        ));
    }
    // The decoder stops at the end of the frame, so it never meets a second one.
    let mut decoder = lz4_flex::frame::FrameDecoder::new(bytes);
    read_bounded(&mut decoder, bytes_max, out, "lz4 block")?;
    match decoder.into_inner() {
        [] => Ok(()),
        rest => Err(DecodeError::corrupt(
            "bytes after the lz4 frame",
            bytes.len() - rest.len(),
        )),
    }
}

fn decompress_zstd(bytes: &[u8], bytes_max: usize, out: &mut Vec<u8>) -> Result<(), DecodeError> {
    let fault = |error: std::io::Error| DecodeError::corrupt("zstd block", 0).with_detail(error);
    let mut decoder = zstd::stream::read::Decoder::with_buffer(bytes).map_err(fault)?;
    decoder.window_log_max(ZSTD_WINDOW_LOG_MAX).map_err(fault)?;
    read_bounded(decoder, bytes_max, out, "zstd block")
}

/// Reads to the end, but not beyond `bytes_max` and one byte more.
fn read_bounded(
    reader: impl Read,
    bytes_max: usize,
    out: &mut Vec<u8>,
    what: &'static str,
) -> Result<(), DecodeError> {
    let start = out.len();
    let limit = (bytes_max as u64).saturating_add(1);
    let read = reader.take(limit).read_to_end(out);
    read.map_err(|error| DecodeError::corrupt(what, 0).with_detail(error))?;
    if out.len() - start > bytes_max {
        return Err(too_large(bytes_max));
    }
    Ok(())
}

fn too_large(bytes_max: usize) -> DecodeError {
    let error = DecodeError::too_large("decompressed records are larger than allowed", 0);
    error.with_detail(format_args!("{bytes_max} bytes allowed"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn compressed(codec: Compression, bytes: &[u8]) -> Vec<u8> {
        let mut out = b"before".to_vec();
        compress(codec, bytes, &mut out);
        out.split_off(6)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn every_codec_gives_back_what_it_took(pattern in prop::collection::vec(any::<u8>(), 0..300), times in 0_usize..700) {
            let bytes = pattern.repeat(times);
            for codec in Compression::ALL {
                let block = compressed(codec, &bytes);
                let mut out = b"before".to_vec();
                prop_assert_eq!(decompress(codec, &block, bytes.len(), &mut out), Ok(()));
                prop_assert_eq!(&out[6..], &bytes[..]);
            }
        }
    }

    #[test]
    fn bombs_stop_at_the_bound() {
        let bytes = vec![0; 4 << 20];
        for codec in Compression::ALL {
            let block = compressed(codec, &bytes);
            let mut out = Vec::new();
            let error = decompress(codec, &block, 100_000, &mut out).unwrap_err();
            assert_eq!(error.kind, DecodeErrorKind::TooLarge, "{codec}");
            assert!(
                out.capacity() < 1 << 20,
                "{codec} grew to {}",
                out.capacity()
            );
        }
    }

    #[test]
    fn cut_blocks_never_give_the_whole() {
        let bytes = b"a block of text, not long, but long enough ".repeat(20);
        for codec in [
            Compression::Gzip,
            Compression::Snappy,
            Compression::Lz4,
            Compression::Zstd,
        ] {
            let block = compressed(codec, &bytes);
            for cut in 0..block.len() {
                let mut out = Vec::new();
                if decompress(codec, &block[..cut], bytes.len(), &mut out).is_ok() {
                    // The end mark of an LZ4 frame carries no data; its absence goes unnoticed.
                    let only_mark_missing = codec == Compression::Lz4 && out == bytes;
                    assert!(
                        only_mark_missing || out.len() < bytes.len(),
                        "{codec} cut at {cut}"
                    );
                }
            }
        }
    }

    #[test]
    fn codecs_are_found_by_number_and_name() {
        for codec in Compression::ALL {
            assert_eq!(Compression::from_id(codec.id()), Ok(codec));
            assert_eq!(codec.name().parse(), Ok(codec));
        }
        assert_eq!(
            Compression::from_id(5).unwrap_err().kind,
            DecodeErrorKind::UnknownCompression
        );
    }
}
