//! A batch as a client made it.

use tackboard_schema::record_batch::{BatchBuilder, BatchHeader, Compression};
use tackboard_schema::{ProducerEpoch, ProducerId, TimestampMs};

/// Who sent a batch, if idempotently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Producer id.
    pub id: i64,
    /// Its epoch.
    pub epoch: i16,
    /// Sequence of the batch's first record.
    pub sequence: i32,
}

/// One batch. Its values tell it from every other in the run.
#[derive(Debug)]
pub struct Batch {
    /// Unique in a run.
    pub id: u64,
    /// As sent: neither base offset nor leader epoch mean anything.
    pub bytes: Vec<u8>,
    /// The header of these bytes.
    pub header: BatchHeader,
    /// One of each record.
    pub timestamps: Vec<i64>,
    /// Who sent it.
    pub stamp: Option<Stamp>,
}

impl Batch {
    /// A batch of one record for each timestamp, each with a value of 12 to `12 + filler` bytes.
    pub fn build(
        builder: &mut BatchBuilder,
        id: u64,
        timestamps: Vec<i64>,
        filler: usize,
        stamp: Option<Stamp>,
    ) -> Self {
        builder.reset(TimestampMs(timestamps[0]));
        // Never zeros: a sector of zeros is one that was never written.
        let mut value = vec![id as u8 | 1; 12 + filler];
        value[..8].copy_from_slice(&id.to_le_bytes());
        for (index, timestamp) in (0_u32..).zip(&timestamps) {
            value[8..12].copy_from_slice(&index.to_le_bytes());
            let appended = builder.append(TimestampMs(*timestamp), None, Some(&value), &[]);
            appended.expect("the batch is short");
        }
        let producer = stamp.map(|stamp| {
            (
                ProducerId(stamp.id),
                ProducerEpoch(stamp.epoch),
                stamp.sequence,
            )
        });
        let bytes = builder.finish(producer, Compression::None);
        let header = BatchHeader::read(&bytes).expect("the batch was just built");
        Self {
            id,
            bytes,
            header,
            timestamps,
            stamp,
        }
    }

    /// A batch that somebody else has built.
    pub fn of(id: u64, bytes: Vec<u8>, timestamps: Vec<i64>) -> Self {
        let header = BatchHeader::read(&bytes).expect("the batch was just built");
        Self {
            id,
            bytes,
            header,
            timestamps,
            stamp: None,
        }
    }

    /// How many records it has.
    pub fn count(&self) -> i64 {
        self.timestamps.len() as i64
    }
}
