//! One batch on its way: its bytes, its place in the producer's sequence, and what is known of its fate.

use bytes::{Bytes, BytesMut};
use tackboard_schema::record_batch::BatchHeader;
use tackboard_schema::{Offset, ProducerEpoch, ProducerId};

use crate::error::{Error, Result};
use crate::protocol::time::Now;

/// Names a batch among all that one producer ever makes. Given out in the order in which batches are begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BatchId(pub u64);

/// A producer id with its epoch: what a broker tells producers apart by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) id: ProducerId,
    pub(crate) epoch: ProducerEpoch,
}

/// The place of a batch in the sequence of an identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) identity: Identity,
    pub(crate) base_sequence: i32,
}

#[derive(Clone, Debug)]
pub(crate) enum BatchState {
    /// To be sent when its turn comes.
    Waiting,
    /// Sent; an answer is awaited.
    InFlight,
    /// Sent in vain; to be sent again once nothing of its partition is in flight.
    Refused,
    /// Nothing more will happen to it.
    Done(Result<Option<Offset>>),
}

/// A batch that takes no more records.
#[derive(Clone, Debug)]
pub(crate) struct Batch {
    pub(crate) id: BatchId,
    pub(crate) bytes: Bytes,
    pub(crate) record_count: u32,
    /// What it takes of the producer's buffer, in bytes.
    pub(crate) buffered_bytes: usize,
    pub(crate) created: Now,
    pub(crate) state: BatchState,
    /// Set when it is first sent, and kept for every repetition.
    pub(crate) stamp: Option<Stamp>,
    /// Some transmission of it was never answered, or answered so that it may have been appended.
    pub(crate) maybe_appended: bool,
    pub(crate) last_fault: Option<Box<Error>>,
}

impl Batch {
    pub(crate) fn is_done(&self) -> bool {
        matches!(self.state, BatchState::Done(_))
    }

    /// Writes a stamp into the header, and the checksum that follows from it.
    pub(crate) fn stamp(&mut self, stamp: Stamp) {
        let mut bytes = match std::mem::take(&mut self.bytes).try_into_mut() {
            Ok(bytes) => bytes,
            // An earlier transmission still holds the bytes.
            Err(shared) => BytesMut::from(&shared[..]),
        };
        write_stamp(&mut bytes, stamp);
        self.bytes = bytes.freeze();
        self.stamp = Some(stamp);
    }
}

/// The sequence number `count` records further on. Kafka's rule: after 2^31 - 1 comes 0.
pub(crate) fn sequence_after(sequence: i32, count: u32) -> i32 {
    ((i64::from(sequence) + i64::from(count)) & i64::from(i32::MAX)) as i32
}

/// Where the checksum lies, and what it covers; part of the format's definition.
const CRC_AT: usize = 17;
const CRC_COVERS_FROM: usize = 21;

fn write_stamp(batch: &mut [u8], stamp: Stamp) {
    let mut header = BatchHeader::read(batch).expect("the batch was made by our own builder");
    header.producer_id = stamp.identity.id;
    header.producer_epoch = stamp.identity.epoch;
    header.base_sequence = stamp.base_sequence;
    let bytes = header.to_bytes();
    batch[..bytes.len()].copy_from_slice(&bytes);
    let crc = crc32c::crc32c(&batch[CRC_COVERS_FROM..]);
    batch[CRC_AT..CRC_COVERS_FROM].copy_from_slice(&crc.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use tackboard_schema::TimestampMs;
    use tackboard_schema::record_batch::{BatchBuilder, Compression, check_batch};

    #[test]
    fn sequences_wrap_to_zero() {
        assert_eq!(sequence_after(0, 5), 5);
        assert_eq!(sequence_after(i32::MAX, 1), 0);
        assert_eq!(sequence_after(i32::MAX - 1, 5), 3);
    }

    #[test]
    fn a_stamped_batch_is_what_the_builder_would_have_made() {
        let mut builder = BatchBuilder::new(TimestampMs(5));
        let stamp = Stamp {
            identity: Identity {
                id: ProducerId(77),
                epoch: ProducerEpoch(3),
            },
            base_sequence: 40,
        };
        let mut make = |producer| {
            builder
                .append(TimestampMs(6), None, Some(b"value"), &[])
                .unwrap();
            builder.finish(producer, Compression::None)
        };
        let mut stamped = make(None);
        write_stamp(&mut stamped, stamp);
        assert_eq!(stamped, make(Some((ProducerId(77), ProducerEpoch(3), 40))));
        assert!(check_batch(&stamped, 1 << 20).is_ok());
    }
}
