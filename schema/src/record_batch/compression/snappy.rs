//! Snappy as Kafka clients send it: in the framing of its Java library, or bare.
//!
//! The framing is 16 bytes (`82 53 4e 41 50 50 59 00`, then two big-endian versions, both 1), then blocks: a
//! big-endian length of 32 bits and so many bytes of bare snappy. Framed streams may follow one another. It
//! is not the framing that snappy itself specifies, which Kafka never used.
//!
//! Source: snappy-java, `SnappyOutputStream` and `SnappyInputStream`.

use super::too_large;
use crate::DecodeError;

const MAGIC: [u8; 8] = *b"\x82SNAPPY\0";
const VERSIONS: [u8; 8] = [0, 0, 0, 1, 0, 0, 0, 1];
const FRAMING_LENGTH: usize = MAGIC.len() + VERSIONS.len();

/// How much goes into one block, as in the Java library.
const BLOCK_LENGTH: usize = 32 * 1024;

pub(super) fn compress(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&VERSIONS);
    let mut encoder = snap::raw::Encoder::new();
    for block in bytes.chunks(BLOCK_LENGTH) {
        let length_at = out.len();
        let block_at = length_at + 4;
        out.resize(block_at + snap::raw::max_compress_len(block.len()), 0);
        let length = encoder
            .compress(block, &mut out[block_at..])
            .expect("a block has room for its worst case");
        out[length_at..block_at].copy_from_slice(&(length as u32).to_be_bytes());
        out.truncate(block_at + length);
    }
}

pub(super) fn decompress(
    bytes: &[u8],
    bytes_max: usize,
    out: &mut Vec<u8>,
) -> Result<(), DecodeError> {
    let mut output = Output {
        bytes_max,
        start: out.len(),
        out,
    };
    if !bytes.starts_with(&MAGIC) {
        return output.block(bytes, 0);
    }
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        if rest.starts_with(&MAGIC) {
            at += framing(rest, at)?;
            continue;
        }
        let Some(length) = rest.first_chunk::<4>() else {
            return Err(DecodeError::truncated("length of a snappy block", at));
        };
        let length = u32::from_be_bytes(*length) as usize;
        let Some(block) = rest[4..].get(..length) else {
            let error = DecodeError::truncated("snappy block", at);
            return Err(error.with_detail(format_args!(
                "{length} bytes wanted, {} left",
                rest.len() - 4
            )));
        };
        output.block(block, at + 4)?;
        at += 4 + length;
    }
    Ok(())
}

/// The versions are for readers to ignore unless the second is newer than what they know.
fn framing(bytes: &[u8], at: usize) -> Result<usize, DecodeError> {
    let Some(framing) = bytes.first_chunk::<FRAMING_LENGTH>() else {
        return Err(DecodeError::truncated("framing of a snappy block", at));
    };
    let compatible = u32::from_be_bytes([framing[12], framing[13], framing[14], framing[15]]);
    if compatible > 1 {
        let error =
            DecodeError::invalid("framing of a snappy block is of a newer version", at + 12);
        return Err(error.with_detail(format_args!("found {compatible}")));
    }
    Ok(FRAMING_LENGTH)
}

struct Output<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
    bytes_max: usize,
}

impl Output<'_> {
    /// Appends a bare block, after its own word on its length was held against what is still allowed.
    fn block(&mut self, block: &[u8], at: usize) -> Result<(), DecodeError> {
        let fault =
            |error: snap::Error| DecodeError::corrupt("snappy block", at).with_detail(error);
        let length = snap::raw::decompress_len(block).map_err(fault)?;
        let end = self.out.len();
        let left = self.bytes_max - (end - self.start);
        if length > left {
            return Err(too_large(self.bytes_max).shifted(at));
        }
        self.out.resize(end + length, 0);
        let mut decoder = snap::raw::Decoder::new();
        decoder
            .decompress(block, &mut self.out[end..])
            .map_err(fault)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_bare_and_concatenated_streams() {
        let text = b"snappy snappy snappy snappy".repeat(4000);
        let bare = snap::raw::Encoder::new().compress_vec(&text).unwrap();
        let mut out = Vec::new();
        decompress(&bare, text.len(), &mut out).unwrap();
        assert_eq!(out, text);

        let mut framed = Vec::new();
        compress(&text, &mut framed);
        assert!(framed.starts_with(&MAGIC));
        let twice = framed.repeat(2);
        out.clear();
        decompress(&twice, 2 * text.len(), &mut out).unwrap();
        assert_eq!(out, text.repeat(2));
        assert!(decompress(&twice, 2 * text.len() - 1, &mut Vec::new()).is_err());
    }

    #[test]
    fn lengths_that_lie_are_refused() {
        let mut framed = Vec::new();
        compress(b"text", &mut framed);
        for (at, value) in [(16, 0xff), (19, 0xff), (15, 2)] {
            let mut bad = framed.clone();
            bad[at] = value;
            assert!(
                decompress(&bad, 1000, &mut Vec::new()).is_err(),
                "{value} at {at}"
            );
        }
        // A bare block that claims 4 GiB.
        let error =
            decompress(&[0xff, 0xff, 0xff, 0xff, 0x0f, 0], 1000, &mut Vec::new()).unwrap_err();
        assert_eq!(error.kind, crate::DecodeErrorKind::TooLarge);
    }
}
