//! Records as a consumer gets them: fetched batches, shared by reference, read record by record in place.
//!
//! Owns: the bytes of what one `poll` returned, and the walk over them.
//! Not here: positions (`protocol::consumer`), checksums (looked at before a batch gets here).

use std::sync::Arc;

use bytes::Bytes;
use tackboard_schema::record_batch::{
    BatchIterator, BatchView, Compression, HEADER_LENGTH, HeaderIterator, LENGTH_AND_OFFSET_LENGTH,
    RecordIterator, compression,
};
use tackboard_schema::{DecodeError, Offset, PartitionIndex, TimestampMs};

use crate::error::{Error, Result};

/// Where a consumer begins in a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// At exactly this offset.
    Offset(Offset),
    /// At the first record there is.
    Earliest,
    /// At the end: only what is produced from now on.
    Latest,
    /// At the first record whose timestamp is at or after this one; at the end if there is none.
    Timestamp(TimestampMs),
}

/// One record of a partition, borrowed from the [`Records`] it came with.
#[derive(Clone, Debug)]
pub struct ConsumerRecord<'a> {
    /// The topic.
    pub topic: &'a Arc<str>,
    /// The partition.
    pub partition: PartitionIndex,
    /// Its offset.
    pub offset: Offset,
    /// When it happened, as its producer said, or when it was appended, as the topic is set.
    pub timestamp: TimestampMs,
    /// Its key, if it has one.
    pub key: Option<&'a [u8]>,
    /// Its value; absent is a tombstone.
    pub value: Option<&'a [u8]>,
    headers: HeaderIterator<'a>,
}

impl<'a> ConsumerRecord<'a> {
    /// Its headers, in order; a name may occur more than once.
    pub fn headers(&self) -> HeaderIterator<'a> {
        self.headers.clone()
    }
}

/// What one `poll` returned: records of some partitions, each partition's in the order of its log.
///
/// Holds the fetched bytes; nothing is copied, and nothing is taken apart before it is iterated over.
#[derive(Clone, Debug, Default)]
pub struct Records {
    chunks: Vec<Chunk>,
}

/// Batches that follow each other in one partition, their checksums verified.
#[derive(Clone, Debug)]
pub struct Chunk {
    /// The topic.
    pub topic: Arc<str>,
    /// The partition.
    pub partition: PartitionIndex,
    /// Whole batches.
    pub batches: Bytes,
    /// Records below it are in the first batch but were not asked for.
    pub first_offset: Offset,
    /// The position after the last of them.
    pub next_offset: Offset,
}

impl Records {
    /// Makes what `ConsumerMachine::poll` handed out readable: compressed batches are decompressed, each to at most
    /// `bytes_max` bytes, and as many of them as become `total_bytes_max` bytes together, to the next whole one. Returns
    /// also what is left, which `ConsumerMachine::give_back` takes.
    ///
    /// # Errors
    /// [`Error::CorruptBatch`] when a batch cannot be decompressed, or not within the bound. It is told once nothing lies
    /// before it; what is left begins with that batch.
    pub fn open(
        chunks: Vec<Chunk>,
        bytes_max: usize,
        total_bytes_max: usize,
    ) -> (Result<Self>, Vec<Chunk>) {
        let mut opened = Self::default();
        let mut left = Vec::new();
        let mut fault = None;
        for chunk in chunks {
            let room = total_bytes_max.saturating_sub(opened.bytes());
            if room == 0 || fault.is_some() {
                left.push(chunk);
                continue;
            }
            let Opened { part, rest, cause } = open_part(chunk, bytes_max, room);
            fault = cause;
            opened.chunks.extend(part);
            left.extend(rest);
        }
        match fault {
            Some(fault) if opened.is_empty() => (Err(fault), left),
            _ => (Ok(opened), left),
        }
    }

    /// Whether there is no batch at all.
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// The bytes of the batches.
    pub fn bytes(&self) -> usize {
        self.chunks.iter().map(|chunk| chunk.batches.len()).sum()
    }

    /// The records, partition by partition. An error means that the rest of that stretch cannot be read.
    pub fn iter(&self) -> RecordsIterator<'_> {
        RecordsIterator {
            chunks: self.chunks.iter(),
            current: None,
        }
    }

    /// The stretches of batches, for callers that read batches themselves. Compressed ones are decompressed already.
    pub fn chunks(&self) -> &[Chunk] {
        &self.chunks
    }
}

impl<'a> IntoIterator for &'a Records {
    type Item = Result<ConsumerRecord<'a>>;
    type IntoIter = RecordsIterator<'a>;

    fn into_iter(self) -> RecordsIterator<'a> {
        self.iter()
    }
}

/// Walks over [`Records`].
#[derive(Clone, Debug)]
pub struct RecordsIterator<'a> {
    chunks: std::slice::Iter<'a, Chunk>,
    current: Option<ChunkIterator<'a>>,
}

#[derive(Clone, Debug)]
struct ChunkIterator<'a> {
    chunk: &'a Chunk,
    batches: BatchIterator<'a>,
    records: Option<RecordIterator<'a>>,
}

impl<'a> Iterator for RecordsIterator<'a> {
    type Item = Result<ConsumerRecord<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(current) = &mut self.current
                && let Some(item) = current.next()
            {
                if item.is_err() {
                    self.current = None;
                }
                return Some(item);
            }
            let chunk = self.chunks.next()?;
            self.current = Some(ChunkIterator {
                chunk,
                batches: BatchIterator::new(&chunk.batches),
                records: None,
            });
        }
    }
}

impl<'a> ChunkIterator<'a> {
    fn next(&mut self) -> Option<Result<ConsumerRecord<'a>>> {
        loop {
            match self.records.as_mut().and_then(Iterator::next) {
                Some(Ok(record)) if record.offset < self.chunk.first_offset => {}
                Some(Ok(record)) => {
                    let headers = record.headers();
                    return Some(Ok(ConsumerRecord {
                        topic: &self.chunk.topic,
                        partition: self.chunk.partition,
                        offset: record.offset,
                        timestamp: record.timestamp,
                        key: record.key,
                        value: record.value,
                        headers,
                    }));
                }
                Some(Err(cause)) => {
                    return Some(Err(corrupt(self.chunk, self.chunk.first_offset, cause)));
                }
                None => match self.batches.next()? {
                    // Markers are for brokers.
                    Ok(batch) if batch.header().attributes.is_control() => self.records = None,
                    Ok(batch) => self.records = Some(batch.records()),
                    Err(cause) => {
                        return Some(Err(corrupt(self.chunk, self.chunk.first_offset, cause)));
                    }
                },
            }
        }
    }
}

fn corrupt(chunk: &Chunk, offset: Offset, cause: DecodeError) -> Error {
    Error::CorruptBatch {
        topic: chunk.topic.clone(),
        partition: chunk.partition,
        offset,
        cause,
    }
}

/// What became of one chunk.
struct Opened {
    /// Its first batches.
    part: Option<Chunk>,
    /// The others.
    rest: Option<Chunk>,
    /// Why the first of the others cannot be opened.
    cause: Option<Error>,
}

/// Opens batches of a chunk until they are `room` bytes; one without compressed batches is kept as it is.
fn open_part(chunk: Chunk, bytes_max: usize, room: usize) -> Opened {
    if BatchIterator::new(&chunk.batches).all(is_plain) {
        return Opened {
            part: Some(chunk),
            rest: None,
            cause: None,
        };
    }
    let mut open = Vec::new();
    let mut taken = 0;
    let mut cause = None;
    let mut rest_offset = chunk.first_offset;
    for batch in BatchIterator::new(&chunk.batches) {
        let start = open.len();
        let base_offset = (batch.as_ref()).map_or(rest_offset, |batch| batch.header().base_offset);
        rest_offset = rest_offset.max(base_offset);
        if start >= room {
            break;
        }
        let appended = batch.and_then(|batch| {
            open_batch(&batch, bytes_max, &mut open)?;
            Ok(batch.bytes().len())
        });
        match appended {
            Ok(length) => taken += length,
            Err(error) => {
                open.truncate(start);
                cause = Some(corrupt(&chunk, rest_offset, error));
                break;
            }
        }
    }
    let is_whole = taken == chunk.batches.len();
    let rest = (!is_whole).then(|| Chunk {
        topic: chunk.topic.clone(),
        partition: chunk.partition,
        batches: chunk.batches.slice(taken..),
        first_offset: rest_offset,
        next_offset: chunk.next_offset,
    });
    let next_offset = match is_whole {
        true => chunk.next_offset,
        false => rest_offset,
    };
    let part = (!open.is_empty()).then(|| Chunk {
        batches: open.into(),
        next_offset,
        ..chunk
    });
    Opened { part, rest, cause }
}

fn is_plain(batch: Result<BatchView<'_>, DecodeError>) -> bool {
    batch.is_ok_and(|batch| batch.header().attributes.compression_id() == 0)
}

/// Appends the batch as one that is not compressed. Its checksum is not computed anew: it was verified, and these bytes
/// go to nobody but the caller.
fn open_batch(
    batch: &BatchView<'_>,
    bytes_max: usize,
    out: &mut Vec<u8>,
) -> Result<(), DecodeError> {
    let codec = batch.header().compression()?;
    if codec == Compression::None {
        out.extend_from_slice(batch.bytes());
        return Ok(());
    }
    let start = out.len();
    out.resize(start + HEADER_LENGTH, 0);
    compression::decompress(codec, batch.payload(), bytes_max, out)
        .map_err(|error| error.shifted(HEADER_LENGTH))?;
    let mut header = *batch.header();
    header.attributes.0 &= !0b111;
    header.batch_length = (out.len() - start - LENGTH_AND_OFFSET_LENGTH) as u32;
    out[start..start + HEADER_LENGTH].copy_from_slice(&header.to_bytes());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tackboard_schema::LeaderEpoch;
    use tackboard_schema::record_batch::{BatchBuilder, stamp};

    fn batch(base_offset: i64, values: &[&str], compression: Compression) -> Vec<u8> {
        let mut builder = BatchBuilder::new(TimestampMs(1000));
        for value in values {
            let headers: [(&str, Option<&[u8]>); 1] = [("h", None)];
            builder
                .append(
                    TimestampMs(1001),
                    Some(b"k"),
                    Some(value.as_bytes()),
                    &headers,
                )
                .unwrap();
        }
        let mut bytes = builder.finish(None, compression);
        stamp(&mut bytes, Offset(base_offset), LeaderEpoch(0));
        bytes
    }

    fn chunk(batches: Vec<u8>, first_offset: i64) -> Chunk {
        Chunk {
            topic: "t".into(),
            partition: PartitionIndex(2),
            batches: batches.into(),
            first_offset: Offset(first_offset),
            next_offset: Offset(0),
        }
    }

    #[test]
    fn skips_what_was_not_asked_for_and_undoes_compression() {
        let long = "x".repeat(500);
        for codec in Compression::ALL {
            let mut bytes = batch(10, &["a", "b", "c", &long], codec);
            bytes.extend(batch(14, &["d", &long], Compression::None));
            let (records, left) = Records::open(vec![chunk(bytes, 12)], 1 << 20, 1 << 20);
            let records = records.unwrap();
            assert!(left.is_empty());
            let found: Vec<_> = records.iter().map(|record| record.unwrap()).collect();
            assert_eq!(
                found
                    .iter()
                    .map(|record| record.offset.0)
                    .collect::<Vec<_>>(),
                [12, 13, 14, 15]
            );
            assert_eq!(found[0].value, Some(&b"c"[..]));
            assert_eq!(found[3].value, Some(long.as_bytes()));
            assert_eq!(
                (found[3].timestamp, found[3].headers().count()),
                (TimestampMs(1001), 1)
            );
        }
    }

    #[test]
    fn what_is_opened_at_a_time_is_bounded_however_small_it_came() {
        let long = "x".repeat(100_000);
        let mut bytes = Vec::new();
        for base_offset in 0..10 {
            bytes.extend(batch(base_offset, &[&long], Compression::Zstd));
        }
        let mut left = vec![chunk(bytes, 0)];
        let mut offsets = Vec::new();
        while !left.is_empty() {
            let (records, rest) = Records::open(left, 1 << 20, 150_000);
            let records = records.unwrap();
            assert!(records.bytes() < 210_000, "{}", records.bytes());
            let here: Vec<_> = (records.iter())
                .map(|record| record.unwrap().offset.0)
                .collect();
            if let [rest] = &rest[..] {
                let next = Offset(here.last().unwrap() + 1);
                assert_eq!(
                    (rest.first_offset, records.chunks()[0].next_offset),
                    (next, next)
                );
            }
            offsets.extend(here);
            left = rest;
        }
        assert_eq!(offsets, (0..10).collect::<Vec<_>>());
    }

    #[test]
    fn batches_before_one_that_cannot_be_opened_are_returned_before_it_is_told() {
        let mut bytes = batch(0, &["a"], Compression::Zstd);
        bytes.extend(batch(1, &[&"x".repeat(100_000)], Compression::Zstd));
        bytes.extend(batch(2, &["c"], Compression::Zstd));
        let (records, left) = Records::open(vec![chunk(bytes, 0)], 1_000, 1 << 20);
        let offsets: Vec<_> = (records.unwrap().iter())
            .map(|record| record.unwrap().offset.0)
            .collect();
        assert_eq!(offsets, [0]);
        for _ in 0..2 {
            let (records, again) = Records::open(left.clone(), 1_000, 1 << 20);
            let told = matches!(records, Err(Error::CorruptBatch { offset, .. }) if offset.0 == 1);
            assert!(told, "{records:?}");
            assert_eq!(again[0].first_offset, Offset(1));
        }
    }

    #[test]
    fn a_block_beyond_the_bound_is_refused() {
        let bytes = batch(0, &[&"x".repeat(100_000)], Compression::Zstd);
        if bytes.len() < 100_000 {
            let (records, _) = Records::open(vec![chunk(bytes, 0)], 1000, 1 << 20);
            assert!(records.is_err());
        }
    }
}
