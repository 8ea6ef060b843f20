//! The native protocol as a driver speaks it: one produce frame, encoded once, and its answers.

use std::net::{SocketAddr, TcpStream};

use anyhow::{Context, Result, bail, ensure};
use tackboard_schema::{
    Acks, CorrelationId, ErrorCode, Offset, PartitionIndex,
    frame::{self, ApiKey, Kind, Parsed},
    native::{
        self, FetchEntryHead, FetchRequestHead, HeadBuilder, ProduceEntryHead, ProduceRequestHead,
        read_head,
    },
    record_batch::BatchIterator,
};

use crate::{
    drive::{Lane, Reading, Replies},
    workload::{Pace, Workload, record_batch},
};

/// Longest frame that a driver sends or takes.
pub const FRAME_BYTES_MAX: u32 = 16 << 20;
/// How long a broker may wait for acks before it refuses.
const ACKS_WAIT_MS: u32 = 30_000;
/// What a fetch asks for.
pub const FETCH_BYTES: u32 = 1 << 20;
/// The topic that every workload writes to.
pub const TOPIC: &str = "perf";

/// Writes a whole frame over what `out` holds. Answers come in the order of the requests, so that nothing hangs on the
/// correlation id.
pub fn write_frame(out: &mut Vec<u8>, kind: Kind, api: ApiKey, head: &[u8], body: &[u8]) {
    out.clear();
    frame::encode_head(out, kind, api, CorrelationId(1), head, body.len());
    out.extend_from_slice(body);
    out.extend_from_slice(frame::padding(body.len()));
}

/// A produce request of one batch, at the durability of its topic.
fn produce_frame(partition: PartitionIndex, workload: &Workload) -> Vec<u8> {
    let batch = record_batch(workload);
    let request = ProduceRequestHead {
        acks: Some(Acks::All),
        durability: None,
        timeout_ms: ACKS_WAIT_MS,
    };
    let entry = ProduceEntryHead {
        topic: TOPIC,
        partition,
        byte_length: u32::try_from(batch.len()).expect("a batch is shorter than 4 GiB"),
    };
    let mut heads = HeadBuilder::new();
    let head = heads.produce_request(&request, &[entry]);
    let mut bytes = Vec::new();
    write_frame(&mut bytes, Kind::Request, ApiKey::Produce, head, &batch);
    bytes
}

/// A connection for each lane to a reference server, which takes any topic.
///
/// # Errors
/// When it can't be reached.
pub fn reference_lanes(address: SocketAddr, workload: &Workload) -> Result<Vec<Lane>> {
    let lanes = 0..workload.connections as i32;
    lanes
        .map(|index| lane(address, PartitionIndex(index), workload))
        .collect()
}

/// A connection that writes to, and reads from, this partition.
///
/// # Errors
/// When the server can't be reached.
pub fn lane(address: SocketAddr, partition: PartitionIndex, workload: &Workload) -> Result<Lane> {
    let stream =
        TcpStream::connect(address).with_context(|| format!("no connection to {address}"))?;
    Ok(Lane {
        stream,
        request: produce_frame(partition, workload),
        replies: Box::new(ProduceReplies),
        reading: Some(Box::new(Fetches::new(partition, workload.pace))),
    })
}

/// Fetches from the start of a log as far as the workload wants, and again.
struct Fetches {
    partition: PartitionIndex,
    next: Offset,
    /// Bytes that were taken since the start, and how many are wanted.
    taken: u64,
    wanted: u64,
    heads: HeadBuilder,
    request: Vec<u8>,
}

impl Fetches {
    fn new(partition: PartitionIndex, pace: Pace) -> Self {
        Fetches {
            partition,
            next: Offset(0),
            taken: 0,
            wanted: match pace {
                Pace::Read { read_bytes, .. } => read_bytes,
                Pace::InFlight(_) | Pace::EventsPerSecond(_) => u64::MAX,
            },
            heads: HeadBuilder::new(),
            request: Vec::new(),
        }
    }
}

impl Reading for Fetches {
    fn request(&mut self) -> &[u8] {
        let request = FetchRequestHead {
            wait_ms_max: ACKS_WAIT_MS,
            bytes_min: 0,
            bytes_max: FETCH_BYTES,
        };
        let entry = FetchEntryHead {
            topic: TOPIC,
            partition: self.partition,
            fetch_offset: self.next,
            bytes_max: FETCH_BYTES,
        };
        let head = self.heads.fetch_request(&request, &[entry]);
        write_frame(&mut self.request, Kind::Request, ApiKey::Fetch, head, &[]);
        &self.request
    }

    fn take(&mut self, bytes: &[u8]) -> Result<Option<(usize, u64)>> {
        let Parsed::Frame(frame, length) = frame::parse(bytes, FRAME_BYTES_MAX)? else {
            return Ok(None);
        };
        expect(ApiKey::Fetch, frame.prefix.api_key)?;
        let answer = read_head::<native::FetchResponse<'_>>(frame.head)?;
        let results = answer.results().unwrap_or_default();
        ensure!(results.len() == 1, "one partition was asked for");
        let result = results.get(0);
        expect_success([answer.error_code(), result.error_code()])?;
        let body = frame.body.get(..result.byte_length() as usize);
        let (mut events, mut end) = (0, self.next);
        for batch in BatchIterator::new(body.context("a body is cut short")?) {
            let header = *batch?.header();
            events += u64::try_from(header.record_count)?;
            end = header.next_offset();
        }
        self.taken += u64::from(result.byte_length());
        // At the end of what was written, or of what is to be read, from the start again.
        (self.next, self.taken) =
            match end.0 >= result.high_watermark() || self.taken >= self.wanted {
                true => (Offset(0), 0),
                false => (end, self.taken),
            };
        Ok(Some((length, events)))
    }
}

/// Answers to produce requests of one entry each.
struct ProduceReplies;

impl Replies for ProduceReplies {
    fn take(&mut self, bytes: &[u8]) -> Result<(usize, u64)> {
        let (mut used, mut count) = (0, 0);
        while let Parsed::Frame(frame, length) = frame::parse(&bytes[used..], FRAME_BYTES_MAX)? {
            expect(ApiKey::Produce, frame.prefix.api_key)?;
            let answer = read_head::<native::ProduceResponse<'_>>(frame.head)?;
            let results = answer.results().unwrap_or_default();
            expect_success([answer.error_code()])?;
            expect_success(results.iter().map(|result| result.error_code()))?;
            used += length;
            count += 1;
        }
        Ok((used, count))
    }
}

fn expect(api: ApiKey, api_key: u16) -> Result<()> {
    match ApiKey::from_key(api_key) == Some(api) {
        true => Ok(()),
        false => bail!(
            "an answer with API key {api_key} where {} was due",
            api.key()
        ),
    }
}

fn expect_success(codes: impl IntoIterator<Item = i16>) -> Result<()> {
    for code in codes {
        ensure!(
            code == ErrorCode::None.code(),
            "the server refused: {:?}",
            ErrorCode::from_code(code)
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tackboard_schema::TimestampMs;

    fn workload() -> Workload {
        Workload {
            name: "test",
            event_bytes: 100,
            events_a_batch: 10,
            connections: 1,
            pace: Pace::InFlight(1),
        }
    }

    #[test]
    fn a_frame_is_one_that_a_broker_takes() {
        let bytes = produce_frame(PartitionIndex(3), &workload());
        let Parsed::Frame(frame, length) = frame::parse(&bytes, FRAME_BYTES_MAX).unwrap() else {
            panic!("the frame is whole");
        };
        assert_eq!(length, bytes.len());
        let head = read_head::<native::ProduceRequest<'_>>(frame.head).unwrap();
        let entry = head.entries().get(0);
        assert_eq!((entry.topic(), entry.partition()), (TOPIC, 3));
        let body = &frame.body[..entry.byte_length() as usize];
        let batch = tackboard_schema::record_batch::check_batch(body, FRAME_BYTES_MAX).unwrap();
        assert_eq!(batch.header().record_count, 10);
    }

    #[test]
    fn a_refusal_is_an_error_and_half_an_answer_is_waited_for() {
        let mut heads = HeadBuilder::new();
        let result = |error_code| native::ProduceResultHead {
            error_code,
            message: None,
            topic: TOPIC,
            partition: PartitionIndex(0),
            base_offset: tackboard_schema::Offset(0),
            log_append_time: TimestampMs(-1),
            log_start_offset: tackboard_schema::Offset(0),
        };
        let mut answer = |code| {
            let head = heads.produce_response(&[result(code)]);
            let mut bytes = Vec::new();
            write_frame(&mut bytes, Kind::Response, ApiKey::Produce, head, &[]);
            bytes
        };
        let good = answer(ErrorCode::None).repeat(2);
        assert_eq!(ProduceReplies.take(&good).unwrap(), (good.len(), 2));
        assert_eq!(
            ProduceReplies.take(&good[..good.len() - 1]).unwrap(),
            (good.len() / 2, 1)
        );
        assert!(
            ProduceReplies
                .take(&answer(ErrorCode::StorageFull))
                .is_err()
        );
    }
}
