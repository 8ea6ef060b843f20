//! A road on which what consumers read is not what the broker holds: checksums hold, contents don't.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Mutex;

use bytes::Bytes;
use tackboard_schema::frame::{ApiKey, Parsed, parse};
use tackboard_schema::kafka::{
    self, LENGTH_PREFIX_BYTES, Records, RequestFrame, decode_response, response_correlation_id,
};
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

/// The whole batches of a partition that lie at a place in a frame.
fn batches(partition: i32, bytes: &[u8], at: Range<usize>) -> Vec<(i32, Range<usize>)> {
    let mut parts = Vec::new();
    let (begin, mut start) = (at.start, at.start);
    let mut batches = BatchIterator::new(&bytes[at]);
    while let Some(Ok(_)) = batches.next() {
        let next = begin + batches.position();
        parts.push((partition, start..next));
        start = next;
    }
    parts
}

/// The same road for clients of Kafka.
#[derive(Default)]
pub struct KafkaDamaged {
    damaged: Damaged,
    /// Connection and id of each request for batches, with the version that its answer is in.
    fetches: Mutex<BTreeMap<(u64, i32), i16>>,
}

impl Road for KafkaDamaged {
    fn kafka_request(&self, connection: u64, bytes: &[u8]) {
        let frame = Bytes::copy_from_slice(&bytes[LENGTH_PREFIX_BYTES..]);
        let request = RequestFrame::open(frame).expect("a client sends what is served");
        if request.api == kafka::ApiKey::Fetch {
            let id = (connection, request.correlation_id);
            self.fetches.lock().unwrap().insert(id, request.version);
        }
    }

    fn answer(&self, connection: u64, bytes: &mut [u8]) {
        let frame = Bytes::copy_from_slice(&bytes[LENGTH_PREFIX_BYTES..]);
        let id = (connection, response_correlation_id(&frame).unwrap());
        let Some(version) = self.fetches.lock().unwrap().remove(&id) else {
            return;
        };
        let answer: kafka::FetchResponse = decode_response(frame.clone(), version).unwrap();
        let partitions = answer.responses.iter().flat_map(|topic| &topic.partitions);
        for partition in partitions {
            let records = partition.records.as_ref().and_then(Records::bytes);
            let Some(records) = records.filter(|records| !records.is_empty()) else {
                continue;
            };
            let at = place(&frame, records);
            let at = at.start + LENGTH_PREFIX_BYTES..at.end + LENGTH_PREFIX_BYTES;
            for (partition, batch) in batches(partition.partition_index, bytes, at) {
                self.damaged.damage(partition, &mut bytes[batch]);
            }
        }
    }
}

/// A road on which damage is done.
pub trait Damaging: Road {
    /// Partition, first offset and kind of all damage.
    fn done(&self) -> BTreeSet<(i32, i64, Damage)>;
}

impl Damaging for Damaged {
    fn done(&self) -> BTreeSet<(i32, i64, Damage)> {
        self.state.lock().unwrap().done.clone()
    }
}

impl Damaging for KafkaDamaged {
    fn done(&self) -> BTreeSet<(i32, i64, Damage)> {
        self.damaged.done()
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
                parts.extend(batches(result.partition(), bytes, at..end));
                at = end;
            }
        }
        for (partition, batch) in parts {
            self.damage(partition, &mut bytes[batch]);
        }
    }
}
