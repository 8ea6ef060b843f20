//! Records as callers give them to a producer, and where they ended up.

use std::sync::Arc;

use tackboard_schema::{Offset, PartitionIndex, TimestampMs};

use crate::error::Error;

/// A header of a record: a name and a value, which may be absent.
pub type Header<'a> = (&'a str, Option<&'a [u8]>);

/// A record to be produced. Borrows everything: the bytes are copied into a batch right away.
///
/// ```
/// use tackboard_client::ProducerRecord;
/// let record = ProducerRecord::new(b"departed").key(b"N14228");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProducerRecord<'a> {
    /// Decides the partition, unless that is explicit. Absent: the record goes where there is room.
    pub key: Option<&'a [u8]>,
    /// The event itself. Absent is a tombstone.
    pub value: Option<&'a [u8]>,
    /// When the event happened. Absent: the time of sending.
    pub timestamp: Option<TimestampMs>,
    /// Further names and values.
    pub headers: &'a [Header<'a>],
    /// The partition, where the caller decides it.
    pub partition: Option<PartitionIndex>,
}

impl<'a> ProducerRecord<'a> {
    /// A record with this value, without a key.
    #[must_use]
    pub fn new<V: AsRef<[u8]> + ?Sized>(value: &'a V) -> Self {
        Self {
            value: Some(value.as_ref()),
            ..Self::default()
        }
    }

    /// The same record with this key.
    #[must_use]
    pub fn key<K: AsRef<[u8]> + ?Sized>(mut self, key: &'a K) -> Self {
        self.key = Some(key.as_ref());
        self
    }

    /// The same record at this time, in milliseconds since the Unix epoch.
    #[must_use]
    pub fn timestamp(mut self, timestamp: TimestampMs) -> Self {
        self.timestamp = Some(timestamp);
        self
    }

    /// The same record with these headers.
    #[must_use]
    pub fn headers(mut self, headers: &'a [Header<'a>]) -> Self {
        self.headers = headers;
        self
    }

    /// The same record for exactly this partition.
    #[must_use]
    pub fn partition(mut self, partition: PartitionIndex) -> Self {
        self.partition = Some(partition);
        self
    }
}

/// Where a record was appended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordPosition {
    /// The topic.
    pub topic: Arc<str>,
    /// The partition.
    pub partition: PartitionIndex,
    /// Its offset. Absent with acks 0, and in the rare case that a repeated request was appended so long ago that the
    /// broker no longer knows where.
    pub offset: Option<Offset>,
}

/// What became of one batch: of `record_count` records that were sent to one partition one after the other.
///
/// Reports of one partition come in the order of sending.
#[derive(Clone, Debug)]
pub struct BatchReport {
    /// The topic.
    pub topic: Arc<str>,
    /// The partition.
    pub partition: PartitionIndex,
    /// How many records, in the order of sending.
    pub record_count: u32,
    /// The bytes of the batch, after compression.
    pub batch_bytes: usize,
    /// The offset of the first record (absent: see [`RecordPosition::offset`]), or why they failed.
    pub outcome: Result<Option<Offset>, Error>,
}
