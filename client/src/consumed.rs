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
    /// `bytes_max` bytes.
    ///
    /// # Errors
    /// [`Error::CorruptBatch`] when a batch cannot be decompressed, or not within the bound.
    pub fn open(chunks: Vec<Chunk>, bytes_max: usize) -> Result<Self> {
        let open = |chunk: Chunk| match open_chunk(&chunk.batches, bytes_max) {
            Ok(None) => Ok(chunk),
            Ok(Some(batches)) => Ok(Chunk { batches, ..chunk }),
            Err(cause) => Err(corrupt(&chunk, chunk.first_offset, cause)),
        };
        let chunks = chunks.into_iter().map(open).collect::<Result<_>>()?;
        Ok(Self { chunks })
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

/// The same batches without compression, or `None` if there is none to undo.
fn open_chunk(batches: &[u8], bytes_max: usize) -> Result<Option<Bytes>, DecodeError> {
    let is_plain = |batch: Result<BatchView<'_>, DecodeError>| {
        batch.is_ok_and(|batch| batch.header().attributes.compression_id() == 0)
    };
    if BatchIterator::new(batches).all(is_plain) {
        return Ok(None);
    }
    let mut open = Vec::with_capacity(batches.len() * 3);
    for batch in BatchIterator::new(batches) {
        open_batch(&batch?, bytes_max, &mut open)?;
    }
    Ok(Some(open.into()))
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
            let records = Records::open(vec![chunk(bytes, 12)], 1 << 20).unwrap();
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
    fn a_block_beyond_the_bound_is_refused() {
        let bytes = batch(0, &[&"x".repeat(100_000)], Compression::Zstd);
        if bytes.len() < 100_000 {
            assert!(Records::open(vec![chunk(bytes, 0)], 1000).is_err());
        }
    }
}
