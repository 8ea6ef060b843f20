//! Properties of building, checking and reading record batches.

use proptest::collection::vec;
use proptest::prelude::*;
use tackboard_schema::record_batch::{
    BatchBuilder, BatchHeader, BatchView, Compression, HEADER_LENGTH, check_batch,
    check_stored_batch, stamp,
};
use tackboard_schema::{
    DecodeError, DecodeErrorKind, ErrorCode, LeaderEpoch, Offset, ProducerEpoch, ProducerId,
    TimestampMs,
};

const BATCH_BYTES_MAX: u32 = 1 << 20;

/// Timestamp, key, value and headers of one record.
type Fields = (
    i64,
    Option<Vec<u8>>,
    Option<Vec<u8>>,
    Vec<(String, Option<Vec<u8>>)>,
);

/// What an error must say, and the change of a header that causes it.
type Case = (&'static str, fn(&mut BatchHeader));

fn fields() -> impl Strategy<Value = Fields> {
    let bytes = || proptest::option::of(vec(any::<u8>(), 0..200));
    (
        any::<i64>(),
        bytes(),
        bytes(),
        vec((".{0,10}", bytes()), 0..4),
    )
}

fn batch(records: &[Fields], compression: Compression) -> Vec<u8> {
    let mut builder = BatchBuilder::new(TimestampMs(records[0].0));
    for (timestamp, key, value, headers) in records {
        let headers: Vec<_> = headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_deref()))
            .collect();
        let size = builder.size_after(
            TimestampMs(*timestamp),
            key.as_deref(),
            value.as_deref(),
            &headers,
        );
        builder
            .append(
                TimestampMs(*timestamp),
                key.as_deref(),
                value.as_deref(),
                &headers,
            )
            .unwrap();
        assert_eq!(builder.size(), size);
    }
    builder.finish(None, compression)
}

fn small_batch() -> Vec<u8> {
    let record = |i: i64| {
        (
            i,
            Some(b"key".to_vec()),
            Some(vec![b'v'; 20]),
            vec![("h".to_owned(), None)],
        )
    };
    batch(&[record(5), record(3), record(9)], Compression::None)
}

/// Changes a header and makes its checksum right again.
fn with_header(bytes: &[u8], change: impl FnOnce(&mut BatchHeader)) -> Vec<u8> {
    let mut header = BatchHeader::read(bytes).unwrap();
    change(&mut header);
    let mut changed = bytes.to_vec();
    changed[..HEADER_LENGTH].copy_from_slice(&header.to_bytes());
    with_checksum(changed)
}

fn with_checksum(mut bytes: Vec<u8>) -> Vec<u8> {
    let crc = crc32c::crc32c(&bytes[21..]);
    bytes[17..21].copy_from_slice(&crc.to_be_bytes());
    bytes
}

fn refusal(bytes: &[u8]) -> DecodeError {
    check_batch(bytes, BATCH_BYTES_MAX).unwrap_err()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn records_read_as_appended(records in vec(fields(), 1..20), codec in 0_u8..5) {
        let codec = Compression::from_id(codec).unwrap();
        let bytes = batch(&records, codec);
        let checked = check_batch(&bytes, BATCH_BYTES_MAX).unwrap();
        prop_assert_eq!(checked.header().record_count as usize, records.len());
        let newest = records.iter().map(|record| record.0).max().unwrap();
        prop_assert_eq!(checked.header().max_timestamp, TimestampMs(newest));
        let mut buffer = Vec::new();
        let found = checked.view().records_decompressed(&mut buffer, 1 << 20).unwrap();
        let mut count = 0;
        for (record, (timestamp, key, value, headers)) in found.zip(&records) {
            let record = record.unwrap();
            // Deltas wrap around when base and timestamp lie too far apart to subtract.
            if timestamp.checked_sub(records[0].0).is_some() {
                prop_assert_eq!(record.timestamp, TimestampMs(*timestamp));
            }
            prop_assert_eq!(record.key, key.as_deref());
            prop_assert_eq!(record.value, value.as_deref());
            let names: Vec<_> = record.headers().map(|header| (header.key.to_vec(), header.value.map(<[u8]>::to_vec))).collect();
            let wanted: Vec<_> = headers.iter().map(|(name, value)| (name.as_bytes().to_vec(), value.clone())).collect();
            prop_assert_eq!(names, wanted);
            count += 1;
        }
        prop_assert_eq!(count, records.len());
    }

    #[test]
    fn records_with_any_byte_changed_end_without_a_panic(at in HEADER_LENGTH..160, value: u8) {
        let mut bytes = small_batch();
        let at = at.min(bytes.len() - 1);
        bytes[at] = value;
        let bytes = with_checksum(bytes);
        let view = BatchView::first(&bytes).unwrap();
        let records: Vec<_> = view.records().collect();
        prop_assert!(records.len() <= 4);
        let errors = records.iter().filter(|record| record.is_err()).count();
        prop_assert!(errors <= 1);
        prop_assert!(records.iter().rev().skip(1).all(Result::is_ok), "nothing follows an error");
    }
}

#[test]
fn a_flipped_bit_behind_the_checksum_is_noticed() {
    let good = small_batch();
    for bit in 21 * 8..good.len() * 8 {
        let mut bad = good.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        let error = refusal(&bad);
        assert_eq!(error.error_code(), ErrorCode::CorruptMessage, "bit {bit}");
    }
}

#[test]
fn stamping_leaves_the_checksum_right() {
    let mut bytes = small_batch();
    stamp(&mut bytes, Offset(1 << 40), LeaderEpoch(12));
    let batch = check_stored_batch(&bytes, BATCH_BYTES_MAX).unwrap();
    assert_eq!(batch.header().next_offset(), Offset((1 << 40) + 3));
    let offsets: Vec<_> = batch
        .view()
        .records()
        .map(|record| record.unwrap().offset.0 - (1 << 40))
        .collect();
    assert_eq!(offsets, [0, 1, 2]);
}

#[test]
fn cut_and_oversized_batches_are_told_apart() {
    let bytes = small_batch();
    for cut in 0..bytes.len() {
        assert_eq!(
            refusal(&bytes[..cut]).kind,
            DecodeErrorKind::Truncated,
            "cut at {cut}"
        );
    }
    let error = check_batch(&bytes, bytes.len() as u32 - 1).unwrap_err();
    assert_eq!(error.error_code(), ErrorCode::MessageTooLarge);
    assert!(check_batch(&bytes, bytes.len() as u32).is_ok());
}

#[test]
fn what_is_intact_but_against_the_rules_is_refused_by_name() {
    let good = small_batch();
    let cases: [Case; 9] = [
        ("record count disagrees", |header| header.record_count = 2),
        ("record count disagrees", |header| header.record_count = 0),
        ("is negative", |header| header.last_offset_delta = -1),
        ("more records than the batch has room for", |header| {
            (header.record_count, header.last_offset_delta) = (1000, 999);
        }),
        ("control batches", |header| header.attributes.0 |= 1 << 5),
        ("append time", |header| header.attributes.0 |= 1 << 3),
        ("transactions", |header| header.attributes.0 |= 1 << 4),
        ("not known", |header| header.attributes.0 |= 1 << 15),
        ("a producer id needs", |header| {
            header.producer_id = ProducerId(1)
        }),
    ];
    for (what, change) in cases {
        let error = refusal(&with_header(&good, change));
        assert!(error.what.contains(what), "{what}: {error}");
        assert_eq!(error.error_code(), ErrorCode::InvalidRecord);
    }
    let unknown_codec = refusal(&with_header(&good, |header| header.attributes.0 |= 7));
    assert_eq!(
        unknown_codec.error_code(),
        ErrorCode::UnsupportedCompressionType
    );
}

#[test]
fn records_that_disagree_with_their_header_are_errors_of_the_iterator() {
    let good = small_batch();
    // One record fewer than there are: bytes are left over.
    let fewer = with_header(&good, |header| {
        (header.record_count, header.last_offset_delta) = (2, 1)
    });
    let records: Vec<_> = BatchView::first(&fewer).unwrap().records().collect();
    assert_eq!(records.len(), 3);
    assert_eq!(
        records[2].as_ref().unwrap_err().what,
        "bytes after the last record of a batch"
    );
    // One more: they run out.
    let more = with_header(&good, |header| {
        (header.record_count, header.last_offset_delta) = (4, 3)
    });
    let records: Vec<_> = BatchView::first(&more).unwrap().records().collect();
    assert_eq!(records.len(), 4);
    assert_eq!(records[3].as_ref().unwrap_err().at_byte, good.len());
}

#[test]
fn a_thinned_out_batch_is_fine_on_disk() {
    let thinned = with_header(&small_batch(), |header| header.last_offset_delta = 10);
    assert!(check_batch(&thinned, BATCH_BYTES_MAX).is_err());
    let batch = check_stored_batch(&thinned, BATCH_BYTES_MAX).unwrap();
    assert_eq!(batch.header().next_offset(), Offset(11));
}

#[test]
fn a_builder_can_be_used_again() {
    let mut builder = BatchBuilder::new(TimestampMs(1));
    let mut out = b"before".to_vec();
    builder
        .append(TimestampMs(1), None, Some(b"one"), &[])
        .unwrap();
    builder.finish_into(
        Some((ProducerId(1), ProducerEpoch(0), 0)),
        Compression::None,
        &mut out,
    );
    let first_length = out.len();
    builder.reset(TimestampMs(7));
    builder
        .append(TimestampMs(8), None, Some(b"two"), &[])
        .unwrap();
    builder.finish_into(None, Compression::None, &mut out);
    let second = check_batch(&out[first_length..], BATCH_BYTES_MAX).unwrap();
    assert_eq!(
        (
            second.header().base_timestamp,
            second.header().max_timestamp
        ),
        (TimestampMs(7), TimestampMs(8))
    );
    assert!(!second.header().is_idempotent());
    assert!(
        check_batch(&out[6..first_length], BATCH_BYTES_MAX)
            .unwrap()
            .header()
            .is_idempotent()
    );
}
