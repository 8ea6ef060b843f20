//! The hash by which Kafka's Java client finds the partition of a key.
//!
//! Keys must land in the same partition whichever client wrote them, so this is Kafka's variant exactly: 32 bits,
//! this seed, the tail read as little-endian bytes, the result masked to be positive.

const SEED: u32 = 0x9747_b28c;
const MULTIPLIER: u32 = 0x5bd1_e995;
const ROTATION: u32 = 24;

/// The hash of a key. Java shows the same bits as a signed number.
pub fn murmur2(key: &[u8]) -> u32 {
    // Kafka's length is an `int`; its low 32 bits are what counts.
    let mut hash = SEED ^ key.len() as u32;
    let words = key.chunks_exact(4);
    let tail = words.remainder();
    for word in words {
        let mut mixed =
            u32::from_le_bytes([word[0], word[1], word[2], word[3]]).wrapping_mul(MULTIPLIER);
        mixed = (mixed ^ (mixed >> ROTATION)).wrapping_mul(MULTIPLIER);
        hash = hash.wrapping_mul(MULTIPLIER) ^ mixed;
    }
    if !tail.is_empty() {
        let tail = tail
            .iter()
            .rev()
            .fold(0, |word, byte| word << 8 | u32::from(*byte));
        hash = (hash ^ tail).wrapping_mul(MULTIPLIER);
    }
    hash = (hash ^ (hash >> 13)).wrapping_mul(MULTIPLIER);
    hash ^ (hash >> 15)
}

/// The partition of a key among `partition_count`, which is above 0: Kafka's default.
pub fn partition_of_key(key: &[u8], partition_count: u32) -> u32 {
    (murmur2(key) & 0x7fff_ffff) % partition_count
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From the tests of Kafka's own client (`UtilsTest.testMurmur2`).
    #[test]
    fn kafkas_own_vectors() {
        let vectors: [(&str, i32); 6] = [
            ("21", -973_932_308),
            ("foobar", -790_332_482),
            ("a-little-bit-long-string", -985_981_536),
            ("a-little-bit-longer-string", -1_486_304_829),
            (
                "lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8",
                -58_897_971,
            ),
            ("abc", 479_470_107),
        ];
        for (key, hash) in vectors {
            assert_eq!(murmur2(key.as_bytes()) as i32, hash, "{key}");
        }
    }

    #[test]
    fn partitions_are_in_range() {
        for length in 0..40 {
            let key = vec![0xf1; length];
            assert!(partition_of_key(&key, 7) < 7);
            assert_eq!(partition_of_key(&key, 1), 0);
        }
    }
}
