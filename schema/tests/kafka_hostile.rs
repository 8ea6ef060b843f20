//! Bytes that are no messages: refused with the place of the fault, without a panic, in memory that their length bounds.

mod kafka_messages;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::fmt::Debug;

use bytes::Bytes;
use kafka_messages::{Extent, Invent, Inventor, for_every_api};
use tackboard_schema::kafka::{self, *};
use tackboard_schema::{DecodeError, DecodeErrorKind, TopicId};

/// Bytes of memory that a decoded message may take for each byte of its frame. An empty string takes 1 byte in a frame
/// and 32 in memory.
const MEMORY_PER_BYTE: usize = 32;

/// And for any message: the words of a fault.
const MEMORY_FOR_WORDS: usize = 1024;

/// Counts the bytes that this thread holds, and the most that it did.
struct Counting;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static HELD_MAX: Cell<isize> = const { Cell::new(0) };
}

fn count(bytes: isize) {
    let held = HELD.get() + bytes;
    HELD.set(held);
    HELD_MAX.set(HELD_MAX.get().max(held));
}

// SAFETY: everything is the system's; what is counted is nobody's concern.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What `run` gives, and the most memory that it held at once.
fn held_by<T>(run: impl FnOnce() -> T) -> (T, usize) {
    let before = HELD.get();
    HELD_MAX.set(before);
    let given = run();
    (given, (HELD_MAX.get() - before) as usize)
}

/// Reads a frame within the bound on memory.
fn read<T>(
    frame: &[u8],
    read: impl FnOnce(Bytes) -> Result<T, DecodeError>,
) -> Result<T, DecodeError> {
    let bytes = Bytes::copy_from_slice(frame);
    let (given, held) = held_by(|| read(bytes));
    let bound = frame.len() * MEMORY_PER_BYTE + MEMORY_FOR_WORDS;
    assert!(held <= bound, "{held} bytes for a frame of {}", frame.len());
    given
}

fn read_request<R: kafka::Request>(frame: &[u8]) -> Result<R, DecodeError> {
    read(frame, |frame| match RequestFrame::open(frame) {
        Ok(request) if request.api == R::API => request.body(),
        Ok(_) | Err(RequestFault::UnknownApi { .. } | RequestFault::UnsupportedVersion { .. }) => {
            Err(DecodeError::new(
                DecodeErrorKind::Invalid,
                "another request",
                0,
            ))
        }
        Err(RequestFault::Malformed(fault)) => Err(fault),
    })
}

/// An honest frame, every part of it, and what changes make of it.
fn disturb<T: PartialEq + Debug>(
    frame: &[u8],
    message: &T,
    random: &mut Inventor,
    decode: impl Fn(&[u8]) -> Result<T, DecodeError>,
) {
    assert_eq!(decode(frame).as_ref(), Ok(message));
    for length in 0..frame.len() {
        let fault = decode(&frame[..length]).expect_err("a part was taken for the whole");
        assert!(fault.at_byte <= length, "{fault}");
    }
    let mut below = |bound: usize| (random.next() % bound as u64) as usize;
    for _ in 0..50 {
        let mut changed = frame.to_vec();
        for _ in 0..=below(3) {
            let at = below(changed.len());
            let with: &[u8] = match below(5) {
                0 => &[0xff; 4],
                1 => &[0x7f, 0xff, 0xff, 0xff],
                2 => &[0xff, 0xff, 0xff, 0xff, 0x0f],
                3 => &[0; 3],
                _ => &[below(256) as u8],
            };
            let end = (at + with.len()).min(changed.len());
            changed[at..end].copy_from_slice(&with[..end - at]);
        }
        let _ = decode(&changed);
    }
    // Behind an honest header, anything.
    for length in [1, 20, 400] {
        let header = frame.len().min(12);
        let mut bytes = frame[..header].to_vec();
        bytes.extend((0..length).map(|_| below(256) as u8));
        let _ = decode(&bytes);
        bytes[header..].iter_mut().for_each(|byte| *byte &= 3);
        let _ = decode(&bytes);
    }
}

fn requests<R: kafka::Request + Invent + PartialEq + Debug>(row: &ApiRow) {
    for version in row.served.iter() {
        for (seed, extent) in
            (0..).zip([Extent::Least, Extent::Most, Extent::Random, Extent::Random])
        {
            let mut by = Inventor::new(version, extent, seed);
            let request: R = by.value();
            let mut frame = Vec::new();
            encode_request(&mut frame, version, 1, None, &request).unwrap();
            let frame = &frame[LENGTH_PREFIX_BYTES..];
            disturb(frame, &request, &mut by, read_request::<R>);
            // Clients send more than they say, and Kafka looks at none of it.
            let more = read_request::<R>(&[frame, &[1, 0, 0]].concat());
            assert_eq!(more.as_ref(), Ok(&request));
        }
    }
}

fn responses<R: kafka::Response + Invent + PartialEq + Debug>(row: &ApiRow) {
    for version in row.served.iter() {
        for (seed, extent) in
            (0..).zip([Extent::Least, Extent::Most, Extent::Random, Extent::Random])
        {
            let mut by = Inventor::new(version, extent, seed);
            let response: R = by.value();
            let mut frame = Vec::new();
            encode_response(&mut frame, version, 1, &response).unwrap();
            let frame = &frame[LENGTH_PREFIX_BYTES..];
            let decode = |frame: &[u8]| read(frame, |frame| decode_response::<R>(frame, version));
            disturb(frame, &response, &mut by, decode);
            let more = decode(&[frame, &[0]].concat()).expect_err("more was taken for the whole");
            assert_eq!(more.at_byte, frame.len(), "{more}");
        }
    }
}

macro_rules! checks {
    ($($name:ident, $request:ident, $response:ident;)*) => {
        const APIS: &[(ApiKey, fn(&ApiRow), fn(&ApiRow))] =
            &[$((ApiKey::$name, requests::<$request>, responses::<$response>),)*];
    };
}

for_every_api!(checks);

#[test]
fn no_request_that_is_cut_or_changed_does_harm() {
    for (key, requests, _) in APIS {
        requests(key.row());
    }
}

#[test]
fn no_response_that_is_cut_or_changed_does_harm() {
    for (key, _, responses) in APIS {
        responses(key.row());
    }
}

#[test]
fn twenty_bytes_that_claim_two_billion_topics_are_refused_at_once() {
    let frame = b"\x00\x03\x00\x04\x00\x00\x00\x07\x00\x06client\x77\x35\x94\x00";
    assert_eq!(frame.len(), 20);
    let fault = read_request::<MetadataRequest>(frame).unwrap_err();
    assert_eq!(
        fault.to_string(),
        "an array has more elements than there are bytes for at byte 20 \
         (topics: 2000000000 elements, 0 bytes left)"
    );
    // The same in a flexible version.
    let frame = b"\x00\x03\x00\x09\x00\x00\x00\x07\x00\x06client\0\x81\xa8\xd6\xb9\x07";
    let fault = read_request::<MetadataRequest>(frame).unwrap_err();
    assert!(
        fault.to_string().contains("topics: 2000000000 elements"),
        "{fault}"
    );
}

/// `frame` with its last bytes replaced.
fn ending_in(mut frame: Vec<u8>, end: &[u8]) -> Vec<u8> {
    let at = frame.len() - end.len();
    frame[at..].copy_from_slice(end);
    frame.split_off(LENGTH_PREFIX_BYTES)
}

#[test]
fn a_fault_names_field_and_byte() {
    let partition = ProduceRequestPartition::default;
    let topic = |partitions| ProduceRequestTopic {
        name: "t".into(),
        partition_data: vec![partition(); partitions],
    };
    let request = ProduceRequest {
        topic_data: vec![topic(0), topic(2)],
        ..ProduceRequest::default()
    };
    let mut frame = Vec::new();
    encode_request(&mut frame, 3, 1, None, &request).unwrap();
    let frame = ending_in(frame, &5_i32.to_be_bytes());
    let fault = read_request::<ProduceRequest>(&frame).unwrap_err();
    assert_eq!(
        fault.to_string(),
        format!(
            "a message ends early at byte {} \
             (topic_data[1].partition_data[1].records: 5 bytes wanted, 0 left)",
            frame.len()
        )
    );
    assert_eq!(fault.kind, DecodeErrorKind::Truncated);
}

#[test]
fn what_no_field_can_be_is_refused_by_its_name() {
    let heartbeat = |version: i16| {
        let mut frame = Vec::new();
        encode_request(&mut frame, version, 1, None, &HeartbeatRequest::default()).unwrap();
        frame
    };
    let fault = |frame: &[u8]| {
        read_request::<HeartbeatRequest>(frame)
            .unwrap_err()
            .to_string()
    };
    // The member id is the last field of version 0.
    let found = fault(&ending_in(heartbeat(0), &[0xff, 0xff]));
    assert_eq!(
        found,
        "null where there must be a value at byte 16 (member_id)"
    );
    let found = fault(&ending_in(heartbeat(0), &[0xff, 0xfe]));
    assert_eq!(found, "a length is negative at byte 16 (member_id: -2)");
    let mut frame = ending_in(heartbeat(0), &[0, 2]);
    frame.extend(b"a\xff");
    assert_eq!(
        fault(&frame),
        "a string is not UTF-8 at byte 19 (member_id)"
    );
    // Tagged fields end version 4.
    let mut frame = ending_in(heartbeat(4), &[1]);
    frame.extend([9, 3, 0]);
    assert_eq!(
        fault(&frame),
        "a message ends early at byte 21 (tag 9: 3 bytes wanted, 1 left)"
    );
    let mut frame = ending_in(heartbeat(4), &[0xff]);
    frame.extend([0xff, 0xff, 0xff, 0x1f]);
    assert!(fault(&frame).starts_with("a varint has more than 32 bits at byte 18"));
}

#[test]
fn unknown_tags_are_passed_over_and_known_ones_are_read_whole() {
    let mut frame = Vec::new();
    encode_request(&mut frame, 12, 1, None, &FetchRequest::default()).unwrap();
    // Tag 0 is the cluster's id.
    let read = |tags: &[u8]| {
        let mut frame = frame[LENGTH_PREFIX_BYTES..frame.len() - 1].to_vec();
        frame.extend(tags);
        read_request::<FetchRequest>(&frame).map(|request| request.cluster_id)
    };
    assert_eq!(read(&[0]), Ok(None));
    assert_eq!(read(&[1, 0, 2, 2, b'c']), Ok(Some("c".into())));
    assert_eq!(
        read(&[2, 0, 2, 2, b'c', 77, 3, 1, 2, 3]),
        Ok(Some("c".into()))
    );
    assert_eq!(read(&[1, 77, 0]), Ok(None));
    assert!(
        read(&[1, 0, 3, 2, b'c', 0])
            .unwrap_err()
            .to_string()
            .contains("no field")
    );
    // The string would reach beyond its tag.
    assert!(read(&[2, 0, 2, 3, b'c', 77, 0]).is_err());
}

#[test]
fn the_elements_of_a_request_are_bounded_together() {
    let topic = |partitions| FetchRequestForgottenTopic {
        partitions: vec![0; partitions],
        ..FetchRequestForgottenTopic::default()
    };
    let read = |partitions| {
        let request = FetchRequest {
            forgotten_topics_data: vec![topic(partitions), topic(REQUEST_ELEMENTS_MAX / 2)],
            ..FetchRequest::default()
        };
        let mut frame = Vec::new();
        encode_request(&mut frame, 11, 1, None, &request).unwrap();
        read_request::<FetchRequest>(&frame[LENGTH_PREFIX_BYTES..]).map(drop)
    };
    assert_eq!(read(REQUEST_ELEMENTS_MAX / 2 - 2), Ok(()));
    let fault = read(REQUEST_ELEMENTS_MAX / 2 - 1).unwrap_err();
    assert_eq!(fault.kind, DecodeErrorKind::TooLarge);
    assert!(
        fault
            .to_string()
            .contains("forgotten_topics_data[1].partitions"),
        "{fault}"
    );
}

#[test]
fn messages_of_the_smallest_elements_stay_within_the_bound_on_memory() {
    const COUNT: usize = 100_000;
    fn reads<R: kafka::Request>(version: i16, request: R) {
        let mut frame = Vec::new();
        encode_request(&mut frame, version, 1, None, &request).unwrap();
        assert!(read_request::<R>(&frame[LENGTH_PREFIX_BYTES..]).is_ok());
    }
    reads(
        1,
        DeleteTopicsRequest {
            topic_names: vec![Str::default(); COUNT],
            ..Default::default()
        },
    );
    reads(
        4,
        DeleteTopicsRequest {
            topic_names: vec![Str::default(); COUNT],
            ..Default::default()
        },
    );
    reads(
        0,
        MetadataRequest {
            topics: Some(vec![Default::default(); COUNT]),
            ..Default::default()
        },
    );
    reads(
        9,
        MetadataRequest {
            topics: Some(vec![Default::default(); COUNT]),
            ..Default::default()
        },
    );
    reads(
        12,
        FetchRequest {
            topics: vec![Default::default(); COUNT],
            ..Default::default()
        },
    );
    reads(
        5,
        LeaveGroupRequest {
            members: vec![Default::default(); COUNT],
            ..Default::default()
        },
    );
    reads(
        8,
        OffsetFetchRequest {
            groups: vec![Default::default(); COUNT],
            ..Default::default()
        },
    );
    reads(
        6,
        DeleteTopicsRequest {
            topics: vec![
                DeleteTopicsRequestTopic {
                    topic_id: TopicId([1; 16]),
                    name: None
                };
                COUNT
            ],
            ..Default::default()
        },
    );
}
