//! A road on which what consumers read is not what the broker holds: checksums hold, contents don't.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Mutex;

use tackboard_schema::frame::{ApiKey, Parsed, parse};
use tackboard_schema::native::{FetchResponse, read_head};
use tackboard_schema::record_batch::{BatchIterator, BatchView};

use crate::proxy::Road;

/// One batch out of so many offsets is damaged.
const EVERY_OFFSETS: i64 = 20;

/// Where the checksum of a batch lies, and what it covers.
const CRC: Range<usize> = 17..21;

/// What is done to the first two events of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Damage {
    /// A bit of the first one is another.
    Corrupt,
    /// They have changed places.
    Swap,
    /// The second is the first once more, and what it was is gone.
    Repeat,
}

/// Damages answers to fetches: the same events in the same way however often they are read.
#[derive(Default)]
pub struct Damaged {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The damaged batch of each stretch of offsets of a partition, by its first offset.
    batches: BTreeMap<(i32, i64), i64>,
    done: BTreeSet<(i32, i64, Damage)>,
}

impl Damaged {
    /// Partition, first offset and kind of all damage.
    pub fn done(&self) -> BTreeSet<(i32, i64, Damage)> {
        self.state.lock().unwrap().done.clone()
    }

    fn damage(&self, partition: i32, batch: &mut [u8]) {
        let view = BatchView::first(batch).unwrap();
        let first = view.header().base_offset.0;
        let stretch = first / EVERY_OFFSETS;
        let mut state = self.state.lock().unwrap();
        let chosen = *state.batches.entry((partition, stretch)).or_insert(first);
        if chosen != first || view.header().record_count < 2 {
            return;
        }
        let places = view
            .records()
            .take(2)
            .map(|record| place(view.bytes(), record.unwrap().value.unwrap()))
            .collect::<Vec<_>>();
        let (one, two) = (places[0].clone(), places[1].clone());
        assert_eq!(one.len(), two.len(), "events of one size");
        let kinds = [Damage::Corrupt, Damage::Swap, Damage::Repeat];
        let kind = kinds[stretch as usize % kinds.len()];
        match kind {
            Damage::Corrupt => batch[one.end - 1] ^= 0x10,
            Damage::Swap => {
                let first = batch[one.clone()].to_vec();
                batch.copy_within(two.clone(), one.start);
                batch[two].copy_from_slice(&first);
            }
            Damage::Repeat => batch.copy_within(one, two.start),
        }
        let crc = crc32c::crc32c(&batch[CRC.end..]);
        batch[CRC].copy_from_slice(&crc.to_be_bytes());
        state.done.insert((partition, first, kind));
    }
}

/// Where a part of some bytes lies in them.
fn place(whole: &[u8], part: &[u8]) -> Range<usize> {
    let start = part.as_ptr() as usize - whole.as_ptr() as usize;
    start..start + part.len()
}

impl Road for Damaged {
    fn answer(&self, _connection: u64, bytes: &mut [u8]) {
        let mut parts = Vec::new();
        {
            let Ok(Parsed::Frame(frame, _)) = parse(bytes, u32::MAX) else {
                panic!("the broker sends whole frames")
            };
            if frame.prefix.api_key != ApiKey::Fetch.key() {
                return;
            }
            let head = read_head::<FetchResponse<'_>>(frame.head).unwrap();
            let mut at = frame.prefix.body_at();
            for result in head.results().into_iter().flatten() {
                let end = at + result.byte_length() as usize;
                let mut batches = BatchIterator::new(&bytes[at..end]);
                let mut start = at;
                while let Some(Ok(_)) = batches.next() {
                    let next = at + batches.position();
                    parts.push((result.partition(), start..next));
                    start = next;
                }
                at = end;
            }
        }
        for (partition, batch) in parts {
            self.damage(partition, &mut bytes[batch]);
        }
    }
}
