//! What a request and its answer cost in `schema`: frames, heads, batches.

use std::hint::black_box;

use tackboard_schema::frame::{ApiKey, Kind, Parsed, encode_head, padding, parse};
use tackboard_schema::native::{
    FetchEntryHead, FetchRequest, FetchRequestHead, FetchResultHead, HeadBuilder, ProduceEntryHead,
    ProduceRequest, ProduceRequestHead, ProduceResultHead, read_head,
};
use tackboard_schema::record_batch::{BatchBuilder, BatchHeader, Compression, check_batch, stamp};
use tackboard_schema::{
    CorrelationId, ErrorCode, LeaderEpoch, Offset, PartitionIndex, ProducerEpoch, ProducerId,
    TimestampMs,
};

mod counted;
use counted::Counter;

const FRAME_BYTES_MAX: u32 = 16 << 20;
const BATCH_BYTES_MAX: u32 = 1 << 20;
const BATCH_BYTES: usize = 16 << 10;
const EVENT_BYTES: usize = 100;
const TOPIC: &str = "orders";

/// Events of 100 bytes, as many as keep within 16 KiB.
fn batch() -> Vec<u8> {
    let mut builder = BatchBuilder::new(TimestampMs(1));
    let value = [7; EVENT_BYTES];
    while builder.size_after(TimestampMs(1), None, Some(&value), &[]) <= BATCH_BYTES {
        let appended = builder.append(TimestampMs(1), None, Some(&value), &[]);
        appended.expect("far below the format's bound");
    }
    let producer = Some((ProducerId(1), ProducerEpoch(0), 0));
    builder.finish(producer, Compression::None)
}

fn produce_request() -> Vec<u8> {
    let body = batch();
    let request = ProduceRequestHead {
        acks: None,
        durability: None,
        timeout_ms: 30_000,
    };
    let entry = ProduceEntryHead {
        topic: TOPIC,
        partition: PartitionIndex(3),
        byte_length: body.len() as u32,
    };
    let mut heads = HeadBuilder::new();
    let head = heads.produce_request(&request, &[entry]);
    request_frame(ApiKey::Produce, head, &body)
}

fn fetch_request() -> Vec<u8> {
    let request = FetchRequestHead {
        wait_ms_max: 500,
        bytes_min: 1,
        bytes_max: 1 << 20,
    };
    let entry = FetchEntryHead {
        topic: TOPIC,
        partition: PartitionIndex(3),
        fetch_offset: Offset(1_000_000),
        bytes_max: 1 << 20,
    };
    let mut heads = HeadBuilder::new();
    let head = heads.fetch_request(&request, &[entry]);
    request_frame(ApiKey::Fetch, head, &[])
}

fn request_frame(api: ApiKey, head: &[u8], body: &[u8]) -> Vec<u8> {
    let (mut frame, id) = (Vec::new(), CorrelationId(9));
    encode_head(&mut frame, Kind::Request, api, id, head, body.len());
    frame.extend_from_slice(body);
    frame.extend_from_slice(padding(body.len()));
    frame
}

fn parse_produce_request(counter: &mut Counter) {
    let bytes = produce_request();
    counter.repeat(|| {
        let parsed = parse(black_box(&bytes), FRAME_BYTES_MAX).expect("framing holds");
        let Parsed::Frame(frame, _) = parsed else {
            unreachable!("the whole frame is there");
        };
        let head = read_head::<ProduceRequest<'_>>(frame.head).expect("a sound head");
        let entry = head.entries().get(0);
        black_box((head.timeout_ms(), entry.topic(), entry.byte_length()));
    });
}

fn parse_fetch_request(counter: &mut Counter) {
    let bytes = fetch_request();
    counter.repeat(|| {
        let parsed = parse(black_box(&bytes), FRAME_BYTES_MAX).expect("framing holds");
        let Parsed::Frame(frame, _) = parsed else {
            unreachable!("the whole frame is there");
        };
        let head = read_head::<FetchRequest<'_>>(frame.head).expect("a sound head");
        let entry = head.entries().get(0);
        black_box((head.bytes_min(), entry.topic(), entry.fetch_offset()));
    });
}

fn read_batch_header(counter: &mut Counter) {
    let batch = batch();
    counter.repeat(|| {
        black_box(BatchHeader::read(black_box(&batch)).expect("a sound header"));
    });
}

fn check_batch_16k(counter: &mut Counter) {
    let batch = batch();
    counter.repeat(|| {
        black_box(check_batch(black_box(&batch), BATCH_BYTES_MAX).expect("a sound batch"));
    });
}

fn stamp_batch(counter: &mut Counter) {
    let mut batch = batch();
    counter.repeat(|| stamp(black_box(&mut batch), Offset(1_000_000), LeaderEpoch(7)));
}

fn encode_produce_answer(counter: &mut Counter) {
    let result = ProduceResultHead {
        error_code: ErrorCode::None,
        message: None,
        topic: TOPIC,
        partition: PartitionIndex(3),
        base_offset: Offset(1_000_000),
        log_append_time: TimestampMs(-1),
        log_start_offset: Offset(0),
    };
    let (mut heads, mut out) = (HeadBuilder::new(), Vec::new());
    let (kind, api, id) = (Kind::Response, ApiKey::Produce, CorrelationId(9));
    counter.repeat(|| {
        out.clear();
        let head = heads.produce_response(black_box(&[result]));
        encode_head(&mut out, kind, api, id, head, 0);
    });
}

fn encode_fetch_answer(counter: &mut Counter) {
    let result = FetchResultHead {
        error_code: ErrorCode::None,
        message: None,
        topic: TOPIC,
        partition: PartitionIndex(3),
        high_watermark: Offset(1_000_000),
        log_start_offset: Offset(0),
        byte_length: BATCH_BYTES as u32,
    };
    let (mut heads, mut out) = (HeadBuilder::new(), Vec::new());
    let (kind, api, id) = (Kind::Response, ApiKey::Fetch, CorrelationId(9));
    counter.repeat(|| {
        out.clear();
        let head = heads.fetch_response(black_box(&[result]));
        encode_head(&mut out, kind, api, id, head, BATCH_BYTES);
    });
}

fn main() {
    counted::main(&[
        ("schema: parse a produce request", parse_produce_request),
        ("schema: parse a fetch request", parse_fetch_request),
        ("schema: read a batch header", read_batch_header),
        ("schema: check a batch of 16 KiB", check_batch_16k),
        ("schema: stamp a batch", stamp_batch),
        ("schema: encode a produce answer", encode_produce_answer),
        ("schema: encode a fetch answer", encode_fetch_answer),
    ]);
}
