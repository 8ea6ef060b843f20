//! What is fuzzed: one function per kind of bytes that come from outside.
//!
//! Each takes any bytes, must neither panic nor hang nor allocate beyond its bound, and asserts what holds of
//! bytes that were accepted. `fuzz/` runs them under libFuzzer, `../corpus_replay.rs` in every `cargo test`.
//!
//! Mutants rarely have a right checksum, so targets behind one look at the bytes twice: as they are, and with
//! the checksum made right.

use bytes::Bytes;
use tackboard_schema::consumer_protocol::{Assignment, Subscription};
use tackboard_schema::frame::{self, Kind, Parsed};
use tackboard_schema::kafka::*;
use tackboard_schema::native::{self, read_head};
use tackboard_schema::record_batch::{
    BatchHeader, BatchIterator, BatchView, Compression, HEADER_LENGTH, check_batch,
    check_stored_batch, compression,
};
use tackboard_schema::storage::ledger::{LedgerBlock, LedgerHeader, LedgerScan, choose};
use tackboard_schema::storage::producer_snapshot::ProducerSnapshot;
use tackboard_schema::storage::superblock::{self, Superblock};
use tackboard_schema::storage::{BLOCK_LENGTH, Stored, checkpoint as checkpoints, index};
use tackboard_schema::{Offset, TimestampMs};

include!("../kafka_messages/every_api.rs");

/// A function to be fed any bytes.
pub type Target = fn(&[u8]);

/// Every target by its name, which is also that of its corpus.
pub const TARGETS: [(&str, Target); 12] = [
    ("frame", frame),
    ("head", head),
    ("batch", batch),
    ("records", records),
    ("compression", decompress),
    ("superblock", superblock),
    ("ledger", ledger),
    ("index", segment_index),
    ("producer_snapshot", producer_snapshot),
    ("checkpoint", checkpoint),
    ("kafka", kafka),
    ("consumer_protocol", consumer_protocol),
];

const FRAME_BYTES_MAX: u32 = 1 << 20;
const BATCH_BYTES_MAX: u32 = 1 << 20;
const RECORDS_BYTES_MAX: usize = 1 << 20;

/// A frame that is accepted is made again from its parts.
pub fn frame(bytes: &[u8]) {
    let mut at = 0;
    while let Ok(Parsed::Frame(found, consumed)) = frame::parse(&bytes[at..], FRAME_BYTES_MAX) {
        assert_eq!(consumed, found.prefix.total_length as usize);
        let api_key = frame::ApiKey::from_key(found.prefix.api_key);
        if let (Some(api_key), frame::PROTOCOL_VERSION) = (api_key, found.prefix.version) {
            let mut again = Vec::new();
            let (kind, correlation_id) = (found.prefix.kind, found.prefix.correlation_id);
            assert!(matches!(kind, Kind::Request | Kind::Response));
            frame::encode_head(
                &mut again,
                kind,
                api_key,
                correlation_id,
                found.head,
                found.body.len(),
            );
            let covered = frame::PREFIX_LENGTH + found.head.len();
            assert_eq!(&again[..covered], &bytes[at..at + covered]);
        }
        at += consumed;
    }
    if let Ok(Parsed::NeedMore(length)) = frame::parse(&bytes[at..], FRAME_BYTES_MAX) {
        assert!(length > bytes.len() - at && length <= FRAME_BYTES_MAX as usize);
    }
}

/// Reads a head as one certain table and shows all of it.
type HeadReader = fn(&[u8]) -> Option<String>;

/// The first byte picks the table. A head that is accepted is read in full.
pub fn head(bytes: &[u8]) {
    macro_rules! tables {
        ($($table:ident),* $(,)?) => {
            [$(|bytes: &[u8]| read_head::<native::$table<'_>>(bytes).ok().map(|head| format!("{head:?}")),)*]
        };
    }
    let readers: [HeadReader; 45] = tables![
        ErrorResponse,
        HelloRequest,
        HelloResponse,
        MetadataRequest,
        MetadataResponse,
        CreateTopicRequest,
        CreateTopicResponse,
        DeleteTopicRequest,
        DeleteTopicResponse,
        DescribeTopicRequest,
        DescribeTopicResponse,
        InitProducerRequest,
        InitProducerResponse,
        ProduceRequest,
        ProduceResponse,
        FetchRequest,
        FetchResponse,
        ListOffsetsRequest,
        ListOffsetsResponse,
        FindCoordinatorRequest,
        FindCoordinatorResponse,
        JoinGroupRequest,
        JoinGroupResponse,
        SyncGroupRequest,
        SyncGroupResponse,
        HeartbeatRequest,
        HeartbeatResponse,
        LeaveGroupRequest,
        LeaveGroupResponse,
        OffsetCommitRequest,
        OffsetCommitResponse,
        OffsetFetchRequest,
        OffsetFetchResponse,
        ListGroupsRequest,
        ListGroupsResponse,
        DescribeGroupsRequest,
        DescribeGroupsResponse,
        DeleteGroupsRequest,
        DeleteGroupsResponse,
        DeleteOffsetsRequest,
        DeleteOffsetsResponse,
        CreatePartitionsRequest,
        CreatePartitionsResponse,
        AlterTopicRequest,
        AlterTopicResponse,
    ];
    let Some((table, head)) = bytes.split_first() else {
        return;
    };
    let text = readers[usize::from(*table) % readers.len()](head);
    // Every byte can be shown through the bound of sixteen times at most, escaped and with its field's name.
    assert!(text.is_none_or(|text| text.len() <= 1000 + head.len() * 16 * 32));
}

/// Batches, as they lie in a body or a log.
pub fn batch(bytes: &[u8]) {
    batch_as_it_is(bytes);
    batch_as_it_is(&with_batch_checksum(bytes));
}

fn batch_as_it_is(bytes: &[u8]) {
    let mut iterator = BatchIterator::new(bytes);
    for view in iterator.by_ref().flatten() {
        assert_eq!(
            BatchHeader::read(&view.header().to_bytes()).as_ref(),
            Ok(view.header())
        );
        assert!(view.bytes().len() >= HEADER_LENGTH);
        read_records(&view);
    }
    assert!(iterator.position() <= bytes.len());
    if let Ok(checked) = check_batch(bytes, BATCH_BYTES_MAX) {
        assert!(check_stored_batch(bytes, BATCH_BYTES_MAX).is_ok());
        assert_eq!(checked.bytes(), &bytes[..checked.header().total_length()]);
        assert!(checked.header().record_count > 0);
    }
}

/// Records behind a header that is right: the first byte counts them, the second picks the codec.
pub fn records(bytes: &[u8]) {
    let [count, codec, payload @ ..] = bytes else {
        return;
    };
    let mut batch = vec![0; HEADER_LENGTH];
    batch.extend_from_slice(payload);
    let batch_length = batch.len() as u32 - 12;
    batch[8..12].copy_from_slice(&batch_length.to_be_bytes());
    batch[16] = 2;
    batch[22] = codec % 5;
    batch[23..27].copy_from_slice(&i32::from(*count).to_be_bytes());
    batch[57..61].copy_from_slice(&(i32::from(*count) + 1).to_be_bytes());
    read_records(&BatchView::first(&batch).expect("the header is right"));
}

fn read_records(view: &BatchView<'_>) {
    let mut buffer = Vec::new();
    let Ok(records) = view.records_decompressed(&mut buffer, RECORDS_BYTES_MAX) else {
        return;
    };
    let mut previous = None;
    let mut failed = false;
    for record in records {
        assert!(!failed, "nothing follows an error");
        let Ok(record) = record else {
            failed = true;
            continue;
        };
        assert!(
            previous.is_none_or(
                |previous| previous < record.offset || record.offset == Offset(i64::MAX)
            )
        );
        assert!(record.offset <= view.header().last_offset());
        assert_eq!(record.headers().size_hint().0, record.headers().count());
        previous = Some(record.offset);
    }
}

/// The first byte picks the codec.
pub fn decompress(bytes: &[u8]) {
    let Some((codec, block)) = bytes.split_first() else {
        return;
    };
    let codec = Compression::ALL[usize::from(*codec) % Compression::ALL.len()];
    let mut out = Vec::new();
    let result = compression::decompress(codec, block, RECORDS_BYTES_MAX, &mut out);
    assert!(out.len() <= RECORDS_BYTES_MAX + 1);
    if result.is_ok() {
        let mut block = Vec::new();
        compression::compress(codec, &out, &mut block);
        let mut again = Vec::new();
        compression::decompress(codec, &block, RECORDS_BYTES_MAX, &mut again)
            .expect("our own block is read");
        assert!(again == out);
    }
}

/// Two copies, one after the other.
pub fn superblock(bytes: &[u8]) {
    let (a, b) = bytes.split_at(bytes.len().min(BLOCK_LENGTH));
    superblock::read([Some(a), Some(b)]);
    let fixed = [with_envelope_checksum(a), with_envelope_checksum(b)];
    let copies = [
        Superblock::read_copy(Some(&fixed[0])),
        Superblock::read_copy(Some(&fixed[1])),
    ];
    for copy in &copies {
        if let Stored::Present(superblock) = copy {
            assert_eq!(&Superblock::read_copy(Some(&superblock.encode())), copy);
        }
    }
    if let Stored::Present(settled) = superblock::read([Some(&fixed[0]), Some(&fixed[1])]) {
        let found = |copy: &Stored<Superblock>| matches!(copy, Stored::Present(copy) if copy.sequence == settled.sequence);
        assert!(copies.iter().any(found));
    }
}

/// A header and blocks, as in the file; the generation is the header's, or 1.
pub fn ledger(bytes: &[u8]) {
    ledger_as_it_is(bytes);
    let mut fixed = with_envelope_checksum(&bytes[..bytes.len().min(BLOCK_LENGTH)]);
    for block in bytes
        .get(BLOCK_LENGTH..)
        .unwrap_or_default()
        .chunks(BLOCK_LENGTH)
    {
        let start = fixed.len();
        fixed.extend_from_slice(block);
        if block.len() == BLOCK_LENGTH {
            let crc = crc32c::crc32c(&block[4..]);
            fixed[start..start + 4].copy_from_slice(&crc.to_le_bytes());
        }
    }
    ledger_as_it_is(&fixed);
}

fn ledger_as_it_is(bytes: &[u8]) {
    let header = LedgerHeader::read(Some(bytes));
    choose([header.clone(), Stored::Empty]);
    let generation = match header {
        Stored::Present(header) => header.generation,
        _ => 1,
    };
    let mut scan = LedgerScan::new(generation);
    for block in bytes
        .get(BLOCK_LENGTH..)
        .unwrap_or_default()
        .chunks(BLOCK_LENGTH)
    {
        let Ok(found) = scan.block(block) else { break };
        if let Some(found) = found {
            read_block(&found);
        }
    }
    assert!(scan.block_count() as usize <= bytes.len() / BLOCK_LENGTH);
}

/// Every record that is read is written as it was.
fn read_block(block: &LedgerBlock<'_>) {
    let mut again = Vec::new();
    block.records().for_each(|record| record.encode(&mut again));
    assert_eq!(again, block.payload());
}

/// The index of a segment.
pub fn segment_index(bytes: &[u8]) {
    index_as_it_is(bytes);
    let mut fixed = bytes.to_vec();
    if let Some((summary, entries)) = fixed.split_at_mut_checked(index::SUMMARY_LENGTH) {
        let count = entries.len() / index::ENTRY_LENGTH;
        summary[36..40].copy_from_slice(&(count as u32).to_le_bytes());
        let crc = crc32c::crc32c(&entries[..count * index::ENTRY_LENGTH]);
        summary[88..92].copy_from_slice(&crc.to_le_bytes());
        let summary = with_envelope_checksum(summary);
        fixed[..index::SUMMARY_LENGTH].copy_from_slice(&summary);
    }
    index_as_it_is(&fixed);
}

fn index_as_it_is(bytes: &[u8]) {
    let summary = index::decode_summary(bytes);
    let Ok((found, entries)) = index::decode(bytes) else {
        return;
    };
    assert!(summary.is_ok_and(|(summary, length)| summary == found && length <= bytes.len()));
    let listed: Vec<_> = entries.iter().collect();
    let again = index::encode(&found, &listed).expect("what was read can be written");
    assert!(
        index::decode(&again)
            .is_ok_and(|(summary, entries)| summary == found && entries.iter().eq(listed.clone()))
    );
    for entry in &listed {
        assert_eq!(entries.at_or_below(entry.offset), Some(*entry));
        let before = entries.before_time(entry.max_timestamp_before);
        assert!(
            before.is_none_or(|before| before.max_timestamp_before < entry.max_timestamp_before)
        );
        let after = TimestampMs(entry.max_timestamp_before.0.saturating_add(1));
        if after > entry.max_timestamp_before {
            assert!(
                entries
                    .before_time(after)
                    .is_some_and(|found| found.offset >= entry.offset)
            );
        }
    }
}

/// The snapshot of a partition's producers.
pub fn producer_snapshot(bytes: &[u8]) {
    for bytes in [bytes, &with_envelope_checksum(bytes)] {
        if let Ok(snapshot) = ProducerSnapshot::decode(bytes) {
            assert_eq!(snapshot.encode(), bytes);
        }
    }
}

/// As it is, and with both parts made right: what is accepted is made again from its parts.
pub fn checkpoint(bytes: &[u8]) {
    checkpoint_as_it_is(bytes);
    let Ok((summary, length)) = index::decode_summary(bytes) else {
        return;
    };
    let Some((index, producers)) = bytes.split_at_checked(length) else {
        return;
    };
    let mut producers = producers.to_vec();
    if let Some(place) = producers.get_mut(16..48) {
        place[..16].copy_from_slice(&summary.partition.topic.0);
        place[16..20].copy_from_slice(&summary.partition.partition.0.to_le_bytes());
        place[24..32].copy_from_slice(&summary.next_offset.0.to_le_bytes());
    }
    checkpoint_as_it_is(&[index, &with_envelope_checksum(&producers)].concat());
}

fn checkpoint_as_it_is(bytes: &[u8]) {
    if let Ok(found) = checkpoints::decode(bytes) {
        let entries: Vec<_> = found.entries.iter().collect();
        let producers = found.producers.encode();
        let again = checkpoints::encode(&found.summary, &entries, &producers).unwrap();
        assert_eq!(again.len(), bytes.len());
        assert_eq!(
            again[index::SUMMARY_LENGTH..],
            bytes[index::SUMMARY_LENGTH..]
        );
    }
}

fn with_envelope_checksum(bytes: &[u8]) -> Vec<u8> {
    let mut fixed = bytes.to_vec();
    if fixed.len() >= 16 {
        let crc = crc32c::crc32c_append(crc32c::crc32c(&fixed[..12]), &fixed[16..]);
        fixed[12..16].copy_from_slice(&crc.to_le_bytes());
    }
    fixed
}

/// The first batch is made to end where the bytes do.
fn with_batch_checksum(bytes: &[u8]) -> Vec<u8> {
    let mut fixed = bytes.to_vec();
    if fixed.len() >= HEADER_LENGTH {
        let length = fixed.len() as u32 - 12;
        fixed[8..12].copy_from_slice(&length.to_be_bytes());
        fixed[16] = 2;
        let crc = crc32c::crc32c(&fixed[21..]);
        fixed[17..21].copy_from_slice(&crc.to_be_bytes());
    }
    fixed
}

/// Reads a message of one API in one version; one that is read is written to what reads the same.
type KafkaReader = fn(&[u8], i16);

fn kafka_request<R: Request + PartialEq + std::fmt::Debug>(body: &[u8], version: i16) {
    let mut frame = Vec::new();
    encode_request(&mut frame, version, 1, None, &R::default()).expect("defaults can be written");
    let header = LENGTH_PREFIX_BYTES + 10 + usize::from(R::API.row().is_flexible(version));
    let read = |frame: Vec<u8>| {
        let frame = Bytes::from(frame).slice(LENGTH_PREFIX_BYTES..);
        RequestFrame::open(frame)
            .expect("an honest header")
            .body::<R>()
    };
    let Ok(request) = read([&frame[..header], body].concat()) else {
        return;
    };
    let mut again = Vec::new();
    encode_request(&mut again, version, 1, None, &request).expect("it was read");
    assert_eq!(read(again).as_ref(), Ok(&request));
}

fn kafka_response<R: Response + PartialEq + std::fmt::Debug>(body: &[u8], version: i16) {
    let frame = [&1_i32.to_be_bytes(), body].concat();
    let Ok(response) = decode_response::<R>(frame.into(), version) else {
        return;
    };
    let mut again = Vec::new();
    encode_response(&mut again, version, 1, &response).expect("it was read");
    let again = Bytes::from(again).slice(LENGTH_PREFIX_BYTES..);
    assert_eq!(decode_response::<R>(again, version).as_ref(), Ok(&response));
}

macro_rules! kafka_readers {
    ($($name:ident, $request:ident, $response:ident;)*) => {
        const KAFKA_READERS: &[(ApiKey, KafkaReader, KafkaReader)] =
            &[$((ApiKey::$name, kafka_request::<$request>, kafka_response::<$response>),)*];
    };
}

for_every_api!(kafka_readers);

/// Three bytes pick API, version, and request or response.
pub fn kafka(bytes: &[u8]) {
    let _ = RequestFrame::open(Bytes::copy_from_slice(bytes));
    let [api, version, is_response, body @ ..] = bytes else {
        return;
    };
    let (api, request, response) = KAFKA_READERS[usize::from(*api) % KAFKA_READERS.len()];
    let served = api.row().served;
    let version = served.min + i16::from(*version) % (served.max - served.min + 1);
    match is_response % 2 {
        0 => request(body, version),
        _ => response(body, version),
    }
}

/// What members of a group tell each other. What is read is written and read again, to the same.
pub fn consumer_protocol(bytes: &[u8]) {
    if let Ok(subscription) = Subscription::decode(bytes) {
        // Names and numbers take at least two bytes each where they are read.
        assert!(subscription.topics.len() <= bytes.len() / 2);
        let again = Subscription::decode(&subscription.encode());
        assert_eq!(again, Ok(subscription));
    }
    if let Ok(assignment) = Assignment::decode(bytes) {
        assert!(assignment.partitions.len() <= bytes.len() / 4);
        let again = Assignment::decode(&assignment.encode());
        assert_eq!(again, Ok(assignment));
    }
}
