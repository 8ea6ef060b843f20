//! Record batches made by clients that we did not write: read them, and make the same.
//!
//! `golden/README.md` tells how the files were made.

use std::path::Path;

use tackboard_schema::record_batch::{
    Attributes, BatchBuilder, BatchIterator, BatchView, Compression, Record, check_batch,
    check_stored_batch,
};
use tackboard_schema::{Offset, ProducerEpoch, ProducerId, TimestampMs};

const BATCH_BYTES_MAX: u32 = 1 << 20;
const TIME: i64 = 1_700_000_000_000;

/// A header of a record, as the tests write it down.
type Header = (&'static str, Option<&'static [u8]>);

/// A record, as the tests write it down.
struct Expected {
    timestamp: i64,
    key: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
    headers: Vec<Header>,
}

fn golden(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name)
        .with_extension("bin");
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The records of `MakeGolden.corners`.
fn corners() -> Vec<Expected> {
    let expected = |timestamp, key: Option<&str>, value: Option<&str>, headers| Expected {
        timestamp,
        key: key.map(|text| text.as_bytes().to_vec()),
        value: value.map(|text| text.as_bytes().to_vec()),
        headers,
    };
    let headers: Vec<Header> = vec![
        ("a", Some(b"1")),
        ("a", None),
        ("ä", Some(b"")),
        ("", Some(b"empty name")),
    ];
    vec![
        expected(TIME, Some("key"), Some("value"), vec![]),
        expected(TIME + 1, None, Some("no key"), vec![]),
        expected(TIME - 70_000, Some("no value"), None, vec![]),
        expected(TIME + 90_000_000_000, Some(""), Some(""), headers),
        expected(
            TIME + 3,
            Some(&"k".repeat(64)),
            Some(&"v".repeat(300)),
            vec![],
        ),
    ]
}

/// The records of `MakeGolden.many` and of `make_golden.py`.
fn many() -> Vec<Expected> {
    let record = |i: i64| Expected {
        timestamp: TIME + i,
        key: Some(format!("key-{}", i % 7).into_bytes()),
        value: Some(format!("{{\"number\":{i},\"square\":{}}}", i * i).into_bytes()),
        headers: vec![],
    };
    (0..2000).map(record).collect()
}

fn assert_same(records: &[Record<'_>], expected: &[Expected], timestamps: bool) {
    assert_eq!(records.len(), expected.len());
    for (index, (record, expected)) in records.iter().zip(expected).enumerate() {
        assert_eq!(record.offset, Offset(index as i64));
        assert_eq!(record.key, expected.key.as_deref());
        assert_eq!(record.value, expected.value.as_deref());
        let headers: Vec<_> = record
            .headers()
            .map(|header| (header.key, header.value))
            .collect();
        let wanted: Vec<_> = expected
            .headers
            .iter()
            .map(|(name, value)| (name.as_bytes(), *value))
            .collect();
        assert_eq!(headers, wanted);
        if timestamps {
            assert_eq!(record.timestamp, TimestampMs(expected.timestamp));
        }
    }
}

fn built(expected: &[Expected], producer: Option<(ProducerId, ProducerEpoch, i32)>) -> Vec<u8> {
    let mut builder = BatchBuilder::new(TimestampMs(expected[0].timestamp));
    for record in expected {
        let (timestamp, key, value) = (
            TimestampMs(record.timestamp),
            record.key.as_deref(),
            record.value.as_deref(),
        );
        let size = builder.size_after(timestamp, key, value, &record.headers);
        builder
            .append(timestamp, key, value, &record.headers)
            .unwrap();
        assert_eq!(builder.size(), size);
    }
    builder.finish(producer, Compression::None)
}

#[test]
fn our_builder_makes_the_bytes_that_the_java_client_makes() {
    assert_eq!(built(&corners(), None), golden("java-plain"));
    let producer = (ProducerId(4_000_000_007), ProducerEpoch(3), 2_147_483_646);
    assert_eq!(built(&corners(), Some(producer)), golden("java-idempotent"));
}

#[test]
fn plain_batches_read_as_they_were_meant() {
    for name in ["java-plain", "java-idempotent"] {
        let bytes = golden(name);
        let batch = check_batch(&bytes, BATCH_BYTES_MAX).unwrap();
        assert_eq!(batch.bytes().len(), bytes.len());
        assert_eq!(
            batch.header().max_timestamp,
            TimestampMs(TIME + 90_000_000_000)
        );
        let records: Vec<_> = batch.view().records().map(Result::unwrap).collect();
        assert_same(&records, &corners(), true);
    }
    let bytes = golden("java-idempotent");
    let header = *check_batch(&bytes, BATCH_BYTES_MAX).unwrap().header();
    assert_eq!(
        (header.producer_id, header.producer_epoch),
        (ProducerId(4_000_000_007), ProducerEpoch(3))
    );
    assert_eq!(
        (header.base_sequence, header.last_sequence()),
        (i32::MAX - 1, 2),
        "sequences wrap to 0"
    );
}

#[test]
fn a_batch_stamped_at_append_gives_that_time_for_every_record() {
    let bytes = golden("java-append-time");
    assert!(
        check_batch(&bytes, BATCH_BYTES_MAX).is_err(),
        "the bit is for brokers to set"
    );
    let batch = check_stored_batch(&bytes, BATCH_BYTES_MAX).unwrap();
    let records: Vec<_> = batch.view().records().map(Result::unwrap).collect();
    assert_same(&records, &corners(), false);
    assert!(
        records
            .iter()
            .all(|record| record.timestamp == TimestampMs(TIME + 5000))
    );
}

#[test]
fn compressed_batches_of_both_clients_read_as_they_were_meant() {
    let mut buffer = Vec::new();
    for client in ["java", "kafka-python"] {
        for codec in [
            Compression::Gzip,
            Compression::Snappy,
            Compression::Lz4,
            Compression::Zstd,
        ] {
            let bytes = golden(&format!("{client}-{codec}"));
            let batch = check_batch(&bytes, BATCH_BYTES_MAX).unwrap();
            assert_eq!(batch.header().compression(), Ok(codec));
            assert!(
                batch.view().records().next().unwrap().is_err(),
                "compressed records are not read as plain ones"
            );
            let records = batch
                .view()
                .records_decompressed(&mut buffer, 1 << 20)
                .unwrap();
            let records: Vec<_> = records.map(Result::unwrap).collect();
            assert_same(&records, &many(), true);
            let error = batch
                .view()
                .records_decompressed(&mut buffer, 50_000)
                .unwrap_err();
            assert_eq!(error.what, "decompressed records are larger than allowed");
        }
    }
}

#[test]
fn the_marker_of_a_transaction_is_refused_from_clients_and_read_from_disk() {
    let bytes = golden("java-marker");
    let error = check_batch(&bytes, BATCH_BYTES_MAX).unwrap_err();
    assert_eq!(error.what, "control batches come from brokers only");
    let batch = check_stored_batch(&bytes, BATCH_BYTES_MAX).unwrap();
    assert_eq!(batch.header().attributes, Attributes(0b11_0000));
    let records: Vec<_> = batch.view().records().map(Result::unwrap).collect();
    assert_eq!(records[0].offset, Offset(41));
    assert_eq!(records[0].key, Some(&[0, 0, 0, 1][..]), "version 0, commit");
}

#[test]
fn batches_are_walked_over_one_after_the_other() {
    let names = ["java-plain", "java-zstd", "java-marker", "kafka-python-lz4"];
    let batches: Vec<_> = names.map(golden).to_vec();
    let bytes = batches.concat();
    for cut in [
        bytes.len(),
        bytes.len() - 1,
        batches[0].len() + 60,
        batches[0].len(),
        60,
        0,
    ] {
        let mut iterator = BatchIterator::new(&bytes[..cut]);
        let found: Vec<&[u8]> = iterator
            .by_ref()
            .map(|batch| batch.unwrap().bytes())
            .collect();
        let whole = found.iter().map(|batch| batch.len()).sum::<usize>();
        assert_eq!(iterator.position(), whole);
        assert_eq!(found.concat(), &bytes[..whole]);
        let expected = batches.iter().scan(0, |end, batch| {
            *end += batch.len();
            Some(*end)
        });
        assert_eq!(found.len(), expected.filter(|end| *end <= cut).count());
    }
}

#[test]
fn what_we_compress_we_read() {
    let expected = many();
    let mut buffer = Vec::new();
    for codec in Compression::ALL {
        let mut builder = BatchBuilder::new(TimestampMs(TIME));
        for record in &expected {
            builder
                .append(
                    TimestampMs(record.timestamp),
                    record.key.as_deref(),
                    record.value.as_deref(),
                    &[],
                )
                .unwrap();
        }
        let bytes = builder.finish(None, codec);
        assert!(builder.is_empty());
        let batch = check_batch(&bytes, BATCH_BYTES_MAX).unwrap();
        assert_eq!(batch.header().compression(), Ok(codec));
        let view = BatchView::first(&bytes).unwrap();
        let records = view.records_decompressed(&mut buffer, 1 << 20).unwrap();
        assert_same(
            &records.map(Result::unwrap).collect::<Vec<_>>(),
            &expected,
            true,
        );
    }
}
