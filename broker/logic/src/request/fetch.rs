//! A fetch as a whole: how its bounds are shared by the cores that serve it, and what of their parts fits one answer.
//!
//! Each core spends its own share of the bytes and parks its own part; none knows what the others have. So with several
//! parts each may bring `bytes_max / parts`, one that has anything answers, and [`Gather`](super::gather::Gather)
//! hurries the others. A part that finds a batch larger than its share brings it nevertheless, or its reader would
//! never get on; the parts together may then exceed the answer, and what does not fit is left for the next fetch.
//!
//! Not here: the bytes within one core's part, which [`Shard`](crate::shard::Shard) spends.

/// Bytes that one entry yields, whatever the request says; a batch is never cut.
pub const ENTRY_BYTES_MAX: u32 = 4 << 20;
/// Longest wait, ms.
pub const WAIT_MS_MAX: u32 = 60_000;
/// Head and framing of an answer, beside its batches: of the frame, and of each entry.
const ANSWER_OVERHEAD: u32 = 16 << 10;
const ENTRY_OVERHEAD: u32 = 512;

/// What a fetch asks for over all its entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Answer with less only after this time, ms.
    pub wait_ms: u32,
    /// Fewer bytes than these are waited on.
    pub bytes_min: u32,
    /// No more than these, unless the first batch alone is larger.
    pub bytes_max: u32,
}

impl Bounds {
    /// What a request of `entry_count` entries asks for, within what the broker does and what its answer's frame holds.
    pub fn within(self, entry_count: usize, frame_bytes_max: u32) -> Self {
        let entries = u32::try_from(entry_count).unwrap_or(u32::MAX);
        let overhead = ENTRY_OVERHEAD
            .saturating_mul(entries)
            .saturating_add(ANSWER_OVERHEAD);
        let room = frame_bytes_max.saturating_sub(overhead);
        let bytes_max = self.bytes_max.min(room);
        Self {
            wait_ms: self.wait_ms.min(WAIT_MS_MAX),
            // More than may be sent is never waited on.
            bytes_min: self.bytes_min.min(bytes_max),
            bytes_max,
        }
    }

    /// What each of `parts` parts is asked for. `failed`: an entry has failed before it reached a log; that is answered
    /// at once, and the others with what there is.
    pub fn share(self, parts: usize, failed: bool) -> Self {
        let wait_ms = match failed {
            true => 0,
            false => self.wait_ms,
        };
        match parts {
            0 | 1 => Self { wait_ms, ..self },
            parts => Self {
                wait_ms,
                bytes_min: self.bytes_min.min(1),
                bytes_max: self.bytes_max / u32::try_from(parts).unwrap_or(u32::MAX),
            },
        }
    }
}

/// The bytes of an entry, as a request and the broker bound them.
pub fn entry_bytes_max(asked: u32) -> u32 {
    asked.clamp(1, ENTRY_BYTES_MAX)
}

/// The room in one answer, given to its entries in their order.
#[derive(Clone, Copy, Debug)]
pub struct AnswerRoom {
    left: u64,
    is_empty: bool,
}

impl AnswerRoom {
    /// An answer that holds `bytes_max` bytes of batches.
    pub fn new(bytes_max: u32) -> Self {
        Self {
            left: u64::from(bytes_max),
            is_empty: true,
        }
    }

    /// Whether the next entry's bytes are sent. The first ones always are.
    pub fn take(&mut self, bytes: u64) -> bool {
        if bytes > self.left && !self.is_empty {
            return false;
        }
        self.left = self.left.saturating_sub(bytes);
        self.is_empty &= bytes == 0;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASKED: Bounds = Bounds {
        wait_ms: 500,
        bytes_min: 1_000,
        bytes_max: 900_000,
    };

    #[test]
    fn one_part_is_asked_for_all_and_several_for_their_shares() {
        assert_eq!(ASKED.share(1, false), ASKED);
        let share = Bounds {
            wait_ms: 500,
            bytes_min: 1,
            bytes_max: 300_000,
        };
        assert_eq!(ASKED.share(3, false), share);
        let patient = Bounds {
            bytes_min: 0,
            ..ASKED
        };
        assert_eq!(patient.share(3, false).bytes_min, 0);
    }

    #[test]
    fn nothing_waits_beside_an_entry_that_has_failed() {
        assert_eq!(ASKED.share(1, true).wait_ms, 0);
        assert_eq!(ASKED.share(4, true).wait_ms, 0);
    }

    #[test]
    fn what_is_asked_for_is_kept_within_the_frame_and_the_broker() {
        let greedy = Bounds {
            wait_ms: u32::MAX,
            bytes_min: u32::MAX,
            bytes_max: u32::MAX,
        };
        let bounds = greedy.within(100, 1 << 20);
        assert_eq!(bounds.wait_ms, WAIT_MS_MAX);
        assert_eq!(bounds.bytes_max, (1 << 20) - (16 << 10) - 100 * 512);
        assert_eq!(bounds.bytes_min, bounds.bytes_max);
        // An answer that its heads fill still brings one batch.
        assert_eq!(greedy.within(100_000, 1 << 20).bytes_max, 0);
        assert_eq!((entry_bytes_max(0), entry_bytes_max(9)), (1, 9));
        assert_eq!(entry_bytes_max(u32::MAX), ENTRY_BYTES_MAX);
    }

    #[test]
    fn an_answer_is_filled_in_order_and_its_first_batches_always_fit() {
        let taken = |bytes_max, lengths: &[u64]| -> Vec<bool> {
            let mut room = AnswerRoom::new(bytes_max);
            lengths.iter().map(|length| room.take(*length)).collect()
        };
        assert_eq!(taken(10, &[4, 6]), [true, true]);
        assert_eq!(taken(10, &[4, 7, 6]), [true, false, true]);
        assert_eq!(taken(10, &[0, 50, 1, 0]), [true, true, false, true]);
    }
}
