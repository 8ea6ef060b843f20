//! Our messages are Kafka's: held against the crate `kafka-protocol`, which has its code from Kafka's own definitions.
//!
//! Of every API, in every version that is served, messages are made up and written by us. The crate must read them to
//! the same fields with the same values, and write them in the same bytes; and what it wrote we must read to what we
//! began with. Fields that a version doesn't have are compared too: both give them the default.
//!
//! `KAFKA_SEED` and `KAFKA_MESSAGES` (of each kind) choose other messages than those of every run.

mod kafka_messages;
mod kafka_tree;

use std::fmt::Debug;

use bytes::{Bytes, BytesMut};
use kafka_messages::{Extent, Invent, Inventor, for_every_api};
use kafka_protocol::{
    messages as oracle,
    protocol::{Decodable, Encodable, HeaderVersion},
};
use kafka_tree::assert_within;
use tackboard_schema::kafka::{self, *};

/// Random messages of each API, version and direction.
const MESSAGES: u64 = 30;

/// Messages of a version: the least, the most, and random ones.
fn messages<T: Invent>(version: i16) -> impl Iterator<Item = T> {
    let number = |variable: &str, default| match std::env::var(variable) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{variable}={text}")),
        Err(_) => default,
    };
    let (seed, count) = (number("KAFKA_SEED", 1), number("KAFKA_MESSAGES", MESSAGES));
    let random = move |message| (Extent::Random, (seed << 32) + message);
    [(Extent::Least, 0), (Extent::Most, 0)]
        .into_iter()
        .chain((0..count).map(random))
        .map(move |(extent, seed)| Inventor::new(version, extent, seed).value())
}

/// The oracle reads `bytes`, whole, to what `ours` is, and writes them the same.
fn assert_agreed<O: Decodable + Encodable + Debug>(bytes: &[u8], version: i16, ours: &impl Debug) {
    let mut rest = Bytes::copy_from_slice(bytes);
    let read = O::decode(&mut rest, version)
        .unwrap_or_else(|fault| panic!("version {version}: {fault}: {ours:?}"));
    assert!(rest.is_empty(), "version {version}: {ours:?}");
    assert_within(&format!("{ours:?}"), &format!("{read:?}"));
    let mut again = BytesMut::new();
    read.encode(&mut again, version).unwrap();
    assert_eq!(&again[..], bytes, "version {version}: {ours:?}");
}

/// What a connection carries before a frame.
fn without_length(frame: &[u8]) -> Bytes {
    let (length, frame) = frame.split_first_chunk().unwrap();
    assert_eq!(u32::from_be_bytes(*length) as usize, frame.len());
    Bytes::copy_from_slice(frame)
}

fn requests<R, O>(row: &ApiRow)
where
    R: kafka::Request + Invent + PartialEq + Debug,
    O: Decodable + Encodable + HeaderVersion + Debug,
{
    for version in row.served.iter() {
        for (index, request) in messages::<R>(version).enumerate() {
            let client_id = (index % 2 == 0).then_some(Str::from_static("client"));
            let mut frame = Vec::new();
            let gaps = encode_request(&mut frame, version, 7, client_id.as_ref(), &request);
            assert_eq!(gaps, Ok(Vec::new()));
            let frame = without_length(&frame);

            let mut rest = frame.clone();
            let header =
                oracle::RequestHeader::decode(&mut rest, O::header_version(version)).unwrap();
            assert_eq!(
                (header.request_api_key, header.request_api_version),
                (row.key.code(), version)
            );
            assert_eq!(header.correlation_id, 7);
            assert_eq!(header.client_id.as_deref(), client_id.as_deref());
            assert_agreed::<O>(&rest, version, &request);

            let opened = RequestFrame::open(frame).unwrap();
            assert_eq!((opened.api, opened.version), (row.key, version));
            assert_eq!((opened.correlation_id, &opened.client_id), (7, &client_id));
            assert_eq!(opened.body::<R>(), Ok(request));
        }
    }
}

fn responses<R, O>(row: &ApiRow)
where
    R: kafka::Response + Invent + PartialEq + Debug,
    O: Decodable + Encodable + HeaderVersion + Debug,
{
    for version in row.served.iter() {
        for response in messages::<R>(version) {
            let mut frame = Vec::new();
            let gaps = encode_response(&mut frame, version, -9, &response);
            assert_eq!(gaps, Ok(Vec::new()));
            let frame = without_length(&frame);

            let mut rest = frame.clone();
            let header =
                oracle::ResponseHeader::decode(&mut rest, O::header_version(version)).unwrap();
            assert_eq!(header.correlation_id, -9);
            assert_agreed::<O>(&rest, version, &response);

            assert_eq!(response_correlation_id(&frame), Ok(-9));
            assert_eq!(decode_response::<R>(frame, version), Ok(response));
        }
    }
}

macro_rules! checks {
    ($($name:ident, $request:ident, $response:ident;)*) => {
        const APIS: &[(ApiKey, fn(&ApiRow), fn(&ApiRow))] = &[$((
            ApiKey::$name,
            requests::<$request, oracle::$request>,
            responses::<$response, oracle::$response>,
        ),)*];
    };
}

for_every_api!(checks);

#[test]
fn every_request_is_kafkas_in_every_version() {
    assert_eq!(APIS.len(), API_TABLE.len());
    for (key, requests, _) in APIS {
        requests(key.row());
    }
}

#[test]
fn every_response_is_kafkas_in_every_version() {
    for (key, _, responses) in APIS {
        responses(key.row());
    }
}

#[test]
fn the_table_agrees_on_flexible_versions_and_headers() {
    for row in &API_TABLE {
        let key = oracle::ApiKey::try_from(row.key.code()).unwrap();
        assert_eq!(format!("{key:?}"), row.name);
        for version in row.served.iter() {
            let flexible = i16::from(row.is_flexible(version));
            assert_eq!(key.request_header_version(version), 1 + flexible, "{row:?}");
        }
    }
}
