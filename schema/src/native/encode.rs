//! Writes heads into one builder that is used again and again, so that a head costs no allocation.
//!
//! [`HeadBuilder::build`] serves every table; the heads of produce and fetch, made for every request, have
//! encoders of their own that take plain values.

use flatbuffers::{FlatBufferBuilder, ForwardsUOffset, Vector, WIPOffset};

use super::generated::tackboard::native as head;
use super::levels::{acks_to_head, durability_to_head};
use crate::{Acks, Durability, ErrorCode, Offset, PartitionIndex, TimestampMs};

/// A builder that has made a longer head than this is not used again, in bytes: it would keep the memory.
const KEPT_BYTES_MAX: usize = 1 << 20;

/// Makes heads, one at a time; each replaces the one before.
#[derive(Default)]
pub struct HeadBuilder {
    builder: FlatBufferBuilder<'static>,
    /// Bytes of the head that is there.
    length: usize,
}

/// One partition's part of a produce request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProduceEntryHead<'a> {
    /// Name of the topic.
    pub topic: &'a str,
    /// The partition.
    pub partition: PartitionIndex,
    /// Its part of the body, whole record batches.
    pub byte_length: u32,
}

/// A produce request, apart from its entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProduceRequestHead {
    /// `None`: the topic's, else the broker's.
    pub acks: Option<Acks>,
    /// `None`: the topic's, else the broker's.
    pub durability: Option<Durability>,
    /// How long to wait for the acks.
    pub timeout_ms: u32,
}

/// What became of one entry of a produce request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProduceResultHead<'a> {
    /// `ErrorCode::None` if the batches were appended.
    pub error_code: ErrorCode,
    /// Said only with an error.
    pub message: Option<&'a str>,
    /// Name of the topic.
    pub topic: &'a str,
    /// The partition.
    pub partition: PartitionIndex,
    /// Offset of the entry's first record, -1 with an error.
    pub base_offset: Offset,
    /// -1 unless the topic stamps the time of append.
    pub log_append_time: TimestampMs,
    /// First offset of the partition, -1 with an error.
    pub log_start_offset: Offset,
}

/// One partition's part of a fetch request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchEntryHead<'a> {
    /// Name of the topic.
    pub topic: &'a str,
    /// The partition.
    pub partition: PartitionIndex,
    /// The first offset wanted.
    pub fetch_offset: Offset,
    /// Bound of this entry's part of the answer.
    pub bytes_max: u32,
}

/// A fetch request, apart from its entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchRequestHead {
    /// How long to wait for `bytes_min`.
    pub wait_ms_max: u32,
    /// Answer as soon as there is so much.
    pub bytes_min: u32,
    /// Bound of the whole answer's body.
    pub bytes_max: u32,
}

/// What one entry of a fetch request yields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchResultHead<'a> {
    /// `ErrorCode::None` if the partition could be read.
    pub error_code: ErrorCode,
    /// Said only with an error.
    pub message: Option<&'a str>,
    /// Name of the topic.
    pub topic: &'a str,
    /// The partition.
    pub partition: PartitionIndex,
    /// Readers see what lies below it; -1 with an error.
    pub high_watermark: Offset,
    /// First offset of the partition, -1 with an error.
    pub log_start_offset: Offset,
    /// This result's part of the body.
    pub byte_length: u32,
}

type Entries<'b, T> = WIPOffset<Vector<'b, ForwardsUOffset<T>>>;

impl HeadBuilder {
    /// A builder that has not grown yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Builds a head with `make`, which returns its root table.
    pub fn build<T>(
        &mut self,
        make: impl FnOnce(&mut FlatBufferBuilder<'static>) -> WIPOffset<T>,
    ) -> &[u8] {
        if self.length > KEPT_BYTES_MAX {
            self.builder = FlatBufferBuilder::new();
        }
        self.builder.reset();
        let root = make(&mut self.builder);
        self.builder.finish_minimal(root);
        let head = self.builder.finished_data();
        self.length = head.len();
        head
    }

    /// Answer to a request that could not be read as its own API.
    pub fn error_response(&mut self, error_code: ErrorCode, message: &str) -> &[u8] {
        self.build(|builder| {
            let message = Some(builder.create_string(message));
            let args = head::ErrorResponseArgs {
                error_code: error_code.code(),
                message,
            };
            head::ErrorResponse::create(builder, &args)
        })
    }

    /// A produce request for these entries, in the order of their parts of the body.
    pub fn produce_request(
        &mut self,
        request: &ProduceRequestHead,
        entries: &[ProduceEntryHead<'_>],
    ) -> &[u8] {
        self.build(|builder| {
            let entries = vector(builder, entries, |builder, entry| {
                let topic = Some(builder.create_shared_string(entry.topic));
                let (partition, byte_length) = (entry.partition.0, entry.byte_length);
                head::ProduceEntry::create(
                    builder,
                    &head::ProduceEntryArgs {
                        topic,
                        partition,
                        byte_length,
                    },
                )
            });
            let (acks_level, acks_count) = acks_to_head(request.acks);
            let args = head::ProduceRequestArgs {
                acks_level,
                acks_count,
                durability: durability_to_head(request.durability),
                timeout_ms: request.timeout_ms,
                entries: Some(entries),
            };
            head::ProduceRequest::create(builder, &args)
        })
    }

    /// The answer to a produce request that was carried out entry by entry.
    pub fn produce_response(&mut self, results: &[ProduceResultHead<'_>]) -> &[u8] {
        self.build(|builder| {
            let results = Some(vector(builder, results, |builder, result| {
                let args = head::ProduceResultArgs {
                    error_code: result.error_code.code(),
                    message: result.message.map(|message| builder.create_string(message)),
                    topic: Some(builder.create_shared_string(result.topic)),
                    partition: result.partition.0,
                    base_offset: result.base_offset.0,
                    log_append_time_ms: result.log_append_time.0,
                    log_start_offset: result.log_start_offset.0,
                };
                head::ProduceResult::create(builder, &args)
            }));
            head::ProduceResponse::create(
                builder,
                &head::ProduceResponseArgs {
                    results,
                    ..Default::default()
                },
            )
        })
    }

    /// A fetch request for these entries.
    pub fn fetch_request(
        &mut self,
        request: &FetchRequestHead,
        entries: &[FetchEntryHead<'_>],
    ) -> &[u8] {
        self.build(|builder| {
            let entries = vector(builder, entries, |builder, entry| {
                let args = head::FetchEntryArgs {
                    topic: Some(builder.create_shared_string(entry.topic)),
                    partition: entry.partition.0,
                    fetch_offset: entry.fetch_offset.0,
                    bytes_max: entry.bytes_max,
                };
                head::FetchEntry::create(builder, &args)
            });
            let args = head::FetchRequestArgs {
                wait_ms_max: request.wait_ms_max,
                bytes_min: request.bytes_min,
                bytes_max: request.bytes_max,
                entries: Some(entries),
            };
            head::FetchRequest::create(builder, &args)
        })
    }

    /// The answer to a fetch request, results in the order of their parts of the body.
    pub fn fetch_response(&mut self, results: &[FetchResultHead<'_>]) -> &[u8] {
        self.build(|builder| {
            let results = Some(vector(builder, results, |builder, result| {
                let args = head::FetchResultArgs {
                    error_code: result.error_code.code(),
                    message: result.message.map(|message| builder.create_string(message)),
                    topic: Some(builder.create_shared_string(result.topic)),
                    partition: result.partition.0,
                    high_watermark: result.high_watermark.0,
                    log_start_offset: result.log_start_offset.0,
                    byte_length: result.byte_length,
                };
                head::FetchResult::create(builder, &args)
            }));
            head::FetchResponse::create(
                builder,
                &head::FetchResponseArgs {
                    results,
                    ..Default::default()
                },
            )
        })
    }
}

/// A vector of tables. One table, by far the most common case, needs no list of offsets on the heap.
fn vector<'b, S, T>(
    builder: &mut FlatBufferBuilder<'b>,
    items: &[S],
    mut make: impl FnMut(&mut FlatBufferBuilder<'b>, &S) -> WIPOffset<T>,
) -> Entries<'b, T> {
    if let [item] = items {
        let table = make(builder, item);
        return builder.create_vector(&[table]);
    }
    let tables: Vec<WIPOffset<T>> = items.iter().map(|item| make(builder, item)).collect();
    builder.create_vector(&tables)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::read_head;

    #[test]
    fn produce_heads_read_back() {
        let mut builder = HeadBuilder::new();
        let request = ProduceRequestHead {
            acks: Some(Acks::All),
            durability: Some(Durability::Fsync),
            timeout_ms: 250,
        };
        let entry = |topic, partition| ProduceEntryHead {
            topic,
            partition: PartitionIndex(partition),
            byte_length: 90,
        };
        for entries in [
            vec![],
            vec![entry("a", 3)],
            vec![entry("a", 3), entry("b", 0), entry("a", 1)],
        ] {
            let bytes = builder.produce_request(&request, &entries);
            let read = read_head::<head::ProduceRequest<'_>>(bytes).unwrap();
            assert_eq!(
                (read.acks_level(), read.durability()),
                (head::AcksLevel::All, head::Durability::Fsync)
            );
            assert_eq!(read.timeout_ms(), 250);
            let found: Vec<_> = read
                .entries()
                .iter()
                .map(|entry| (entry.topic(), entry.partition()))
                .collect();
            let wanted: Vec<_> = entries
                .iter()
                .map(|entry| (entry.topic, entry.partition.0))
                .collect();
            assert_eq!(found, wanted);
        }
    }

    #[test]
    fn a_large_honest_head_keeps_within_the_bounds_of_the_verifier() {
        let mut builder = HeadBuilder::new();
        let result = FetchResultHead {
            error_code: ErrorCode::None,
            message: None,
            topic: "t",
            partition: PartitionIndex(0),
            high_watermark: Offset(-1),
            log_start_offset: Offset(-1),
            byte_length: 0,
        };
        let bytes = builder.fetch_response(&vec![result; 20_000]);
        assert_eq!(
            read_head::<head::FetchResponse<'_>>(bytes)
                .unwrap()
                .results()
                .unwrap()
                .len(),
            20_000
        );
    }

    #[test]
    fn a_large_head_does_not_leave_its_memory_behind() {
        let mut builder = HeadBuilder::new();
        let message = "long".repeat(1 << 20);
        assert!(builder.error_response(ErrorCode::None, &message).len() > message.len());
        builder.error_response(ErrorCode::None, "short");
        let (memory, _) = builder.builder.collapse();
        assert!(memory.len() < message.len(), "{} bytes", memory.len());
    }

    #[test]
    fn a_head_without_a_required_field_is_refused() {
        let mut builder = HeadBuilder::new();
        let bytes = builder
            .error_response(ErrorCode::InvalidRequest, "no topic in it")
            .to_vec();
        let error = read_head::<head::CreateTopicRequest<'_>>(&bytes).unwrap_err();
        assert_eq!(error.what, "head of a frame");
        assert!(read_head::<head::HelloRequest<'_>>(&[]).is_err());
    }
}
