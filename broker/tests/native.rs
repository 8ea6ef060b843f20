//! The whole broker through its native door, with bare frames.

mod support;

use std::{
    io::Write as _,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use support::{Raw, batch, broker, fetched, folder, produced};
use tackboard_broker::{disk::flusher::Flusher, embedded::Handle};
use tackboard_logic::request::{
    calls::{FETCH_CALLS_MAX, FETCH_CALLS_PER_CONNECTION_MAX, FETCH_CALLS_RESERVED},
    entries::EntryRoom,
};
use tackboard_schema::{
    Acks, CorrelationId, ErrorCode, Offset, PartitionIndex,
    frame::{self, ApiKey, Kind},
    native::{
        CreateTopicRequest, CreateTopicRequestArgs, DeleteTopicRequest, DeleteTopicRequestArgs,
        ErrorResponse, FetchEntryHead, FetchRequestHead, FetchResponse, HeadBuilder,
        ListOffsetsEntry, ListOffsetsEntryArgs, ListOffsetsRequest, ListOffsetsRequestArgs,
        MetadataRequest, MetadataRequestArgs, ProduceEntryHead, ProduceRequestHead, read_head,
    },
};

#[test]
fn what_is_produced_comes_back_and_survives_restarts() {
    let data = folder();
    let handle = broker(data.path(), "[0]", &[]);
    let mut client = Raw::connect(handle.native_address());
    assert_eq!(client.create_topic("t", 1), 0);
    assert_eq!(
        client.create_topic("t", 1),
        ErrorCode::TopicAlreadyExists.code()
    );
    assert_eq!(client.produce("t", 0, &batch(1000, &[b"a", b"b"])), Ok(0));
    assert_eq!(client.produce("t", 0, &batch(2000, &[b"c"])), Ok(2));
    let expected = vec![(0, b"a".to_vec()), (1, b"b".to_vec()), (2, b"c".to_vec())];
    assert_eq!(client.fetch("t", 0, 0), Ok(expected.clone()));
    assert_eq!(client.fetch("t", 0, 2), Ok(expected[2..].to_vec()));
    assert_eq!(client.fetch("t", 0, 3), Ok(vec![]));
    assert_eq!(
        client.fetch("t", 0, 4),
        Err(ErrorCode::OffsetOutOfRange.code())
    );
    assert_eq!(client.list_offset("t", 0, -1), (3, -1));
    assert_eq!(client.list_offset("t", 0, -2), (0, -1));
    assert_eq!(client.list_offset("t", 0, 1500), (2, 2000));
    assert_eq!(client.list_offset("t", 0, 2500).0, -1);
    drop(client);
    assert!(handle.shutdown(), "a clean shutdown");

    for cores in ["[0]", "[0, 1]", "[1]"] {
        let handle = broker(data.path(), cores, &[]);
        let mut client = Raw::connect(handle.native_address());
        assert_eq!(
            client.fetch("t", 0, 0),
            Ok(expected.clone()),
            "cores {cores}"
        );
        assert_eq!(client.list_offset("t", 0, 1500), (2, 2000));
        drop(client);
        assert!(handle.shutdown());
    }
}

#[test]
fn any_core_serves_the_partitions_of_all() {
    let data = folder();
    let handle = broker(data.path(), "[0, 1]", &[]);
    for (index, address) in handle.core_addresses().to_vec().into_iter().enumerate() {
        let topic = format!("t{index}");
        let mut client = Raw::connect(address);
        assert_eq!(client.create_topic(&topic, 6), 0);
        for partition in 0..6 {
            let value = format!("value {partition}");
            assert_eq!(
                client.produce(&topic, partition, &batch(1, &[value.as_bytes()])),
                Ok(0)
            );
        }
        let entries: Vec<_> = (0..6)
            .map(|partition| (topic.as_str(), partition, 0))
            .collect();
        client.send_fetch(1000, &entries);
        let answers = fetched(&client.receive().expect("an answer"));
        // A part that waits is hurried by the first that has something, so some may still be empty: ask again.
        for (partition, answer) in answers.into_iter().enumerate() {
            let mut got = answer.expect("no error");
            if got.is_empty() {
                got = client.fetch(&topic, partition as i32, 0).expect("no error");
            }
            assert_eq!(got, vec![(0, format!("value {partition}").into_bytes())]);
        }
    }
    assert!(handle.shutdown());
}

#[test]
fn a_fetch_waits_for_what_is_produced_later_and_blocks_nobody() {
    let data = folder();
    let handle = broker(data.path(), "[0, 1]", &[]);
    let mut client = Raw::connect(handle.native_address());
    client.create_topic("t", 2);
    let parked = client.send_fetch(15_000, &[("t", 0, 0), ("t", 1, 0)]);
    let produce = client.send_produce("t", 1, &batch(1, &[b"late"]));
    let (mut first, mut second) = (client.receive().unwrap(), client.receive().unwrap());
    if first.id == parked {
        std::mem::swap(&mut first, &mut second);
    }
    assert_eq!((first.id, produced(&first)), (produce, Ok(0)));
    assert_eq!(second.id, parked);
    assert_eq!(
        fetched(&second),
        vec![Ok(vec![]), Ok(vec![(0, b"late".to_vec())])]
    );
    assert!(handle.shutdown());
}

#[test]
fn fetches_parked_at_the_wrong_core_leave_room_for_those_of_others() {
    let data = folder();
    let handle = broker(data.path(), "[0, 1]", &[]);
    let core = handle.core_addresses()[0];
    let mut owner = Raw::connect(core);
    owner.create_topic("t", 2);
    // Two partitions on two cores: each fetch of both has one part at the core that was not asked.
    let both = [("t", 0, 0), ("t", 1, 0)];
    let greedy_count = (FETCH_CALLS_MAX - FETCH_CALLS_RESERVED) / FETCH_CALLS_PER_CONNECTION_MAX;
    let mut greedy: Vec<_> = (0..greedy_count).map(|_| Raw::connect(core)).collect();
    let over_budget = Err(ErrorCode::OverBudget.code());
    for client in &mut greedy {
        for _ in 0..FETCH_CALLS_PER_CONNECTION_MAX {
            client.send_fetch(60_000, &both);
        }
        let refused = client.send_fetch(60_000, &both);
        let answer = client.receive().expect("an answer");
        assert_eq!(answer.id, refused, "all before it are parked");
        let head = read_head::<FetchResponse<'_>>(&answer.head).expect("its head");
        let texts: Vec<_> = (head.results().expect("results").iter())
            .filter_map(|result| result.message())
            .collect();
        assert!(
            matches!(texts[..], [text] if text.contains("64") && !text.contains("appended")),
            "{texts:?}"
        );
        let results = fetched(&answer);
        assert!(results.contains(&Ok(vec![])), "the core's own part");
        assert!(results.contains(&over_budget));
    }
    assert_eq!(owner.fetch("t", 0, 0), Ok(vec![]));
    assert_eq!(owner.fetch("t", 1, 0), Ok(vec![]));
    // Two more in one connection: the first is served from what is kept, the second is not.
    owner.send_fetch(60_000, &both);
    let second = owner.send_fetch(60_000, &both);
    let answer = owner.receive().expect("an answer");
    assert_eq!(answer.id, second);
    assert!(fetched(&answer).contains(&over_budget));
    // What is given up is there again.
    drop(greedy);
    let served = (0..1_000).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        owner.send_fetch(0, &both);
        let answer = owner.receive().expect("an answer");
        !fetched(&answer).contains(&over_budget)
    });
    assert!(served);
    assert!(handle.shutdown());
}

#[test]
fn fetches_of_many_entries_leave_room_for_those_of_others() {
    let data = folder();
    let handle = broker(data.path(), "[0]", &[]);
    let address = handle.native_address();
    let mut client = Raw::connect(address);
    client.create_topic("t", 1);
    let one = [("t", 0, 0)];
    let many = vec![("t", 0, 0); 10_000];
    let room = EntryRoom::new(handle.config().memory.per_core.sockets);
    let mut greedy = Vec::new();
    let refused = loop {
        let mut connection = Raw::connect(address);
        let parked = connection.send_fetch(60_000, &many);
        let behind = connection.send_fetch(0, &one);
        let answer = connection.receive().expect("an answer");
        if answer.id == parked {
            break answer;
        }
        assert_eq!(answer.id, behind, "the one before it waits");
        greedy.push(connection);
        assert!(greedy.len() * many.len() <= room.entries_max());
    };
    assert!(!greedy.is_empty());
    let error = read_head::<ErrorResponse<'_>>(&refused.head).expect("its head");
    assert_eq!(error.error_code(), ErrorCode::OverBudget.code());
    assert!(error.message().is_some_and(|text| text.contains("10000")));
    assert_eq!(client.fetch("t", 0, 0), Ok(vec![]), "few are served");
    // What is answered makes room again.
    assert_eq!(client.produce("t", 0, &batch(1, &[b"v"])), Ok(0));
    for connection in &mut greedy {
        assert_eq!(fetched(&connection.receive().expect("all")).len(), 10_000);
    }
    client.send_fetch(0, &many);
    assert_eq!(fetched(&client.receive().expect("all")).len(), 10_000);
    assert!(handle.shutdown());
}

#[test]
fn a_connection_that_always_has_more_to_read_keeps_nobody_waiting() {
    let data = folder();
    let handle = broker(data.path(), "[0]", &[]);
    let address = handle.native_address();
    let mut client = Raw::connect(address);
    client.create_topic("t", 1);
    // Dear to take in and cheap to answer, so that there is always more to read.
    let mut heads = HeadBuilder::new();
    let head = heads.build(|builder| {
        let name = builder.create_string("t");
        let topics = Some(builder.create_vector(&vec![name; 10_000]));
        MetadataRequest::create(builder, &MetadataRequestArgs { topics })
    });
    let head = head.to_vec();
    const REQUESTS: usize = 600;
    let mut greedy = Raw::connect(address);
    let mut writer = greedy.stream().try_clone().expect("a second handle");
    let mut request = Vec::new();
    let id = CorrelationId(1);
    frame::encode_head(&mut request, Kind::Request, ApiKey::Metadata, id, &head, 0);
    let flood = std::thread::spawn(move || {
        (0..REQUESTS).for_each(|_| writer.write_all(&request).expect("the broker reads"));
    });
    let answered = Arc::new(AtomicUsize::new(0));
    let count = answered.clone();
    let read = std::thread::spawn(move || {
        for _ in 0..REQUESTS {
            greedy.receive().expect("an answer");
            count.fetch_add(1, Ordering::Relaxed);
        }
    });
    let mut longest = 0;
    while answered.load(Ordering::Relaxed) < REQUESTS {
        let before = answered.load(Ordering::Relaxed);
        assert_eq!(client.fetch("t", 0, 0), Ok(vec![]));
        longest = longest.max(answered.load(Ordering::Relaxed) - before);
    }
    flood.join().expect("all sent");
    read.join().expect("all answered");
    assert!(
        longest < 128,
        "{longest} requests went before another client's"
    );
    drop(client);
    assert!(handle.shutdown());
}

#[test]
fn the_parts_of_a_fetch_together_keep_within_one_frame() {
    let data = folder();
    let frame_bytes_max = 1_200 << 10;
    let set = format!("native.frame_bytes_max={frame_bytes_max}");
    let handle = broker(data.path(), "[0, 1]", &[&set]);
    let mut client = Raw::connect(handle.native_address());
    client.create_topic("t", 2);
    let value = vec![7; 900_000];
    for partition in 0..2 {
        assert_eq!(client.produce("t", partition, &batch(1, &[&value])), Ok(0));
    }
    // Each core brings its first batch, though it is larger than its share.
    client.send_fetch(0, &[("t", 0, 0), ("t", 1, 0)]);
    let answer = client.receive().expect("an answer");
    assert!(answer.head.len() + answer.body.len() < frame_bytes_max);
    let expected = vec![(0, value)];
    assert_eq!(fetched(&answer), [Ok(expected.clone()), Ok(vec![])]);
    assert_eq!(client.fetch("t", 1, 0), Ok(expected));
    assert!(handle.shutdown());
}

/// The first partition of `topic` whose core is not the one that `address` belongs to.
fn partition_elsewhere(handle: &Handle, topic: &str, address: SocketAddr) -> i32 {
    let mut client = Raw::connect(address);
    let before = lent(handle);
    let other = |partition: &i32| {
        client.fetch(topic, *partition, 0).expect("no error");
        lent(handle) > before
    };
    (0..2).find(other).expect("two partitions on two cores")
}

fn lent(handle: &Handle) -> u64 {
    let metrics = support::metrics(handle);
    let total = |name: &str| -> u64 {
        let lines = metrics.lines().filter(|line| line.starts_with(name));
        lines
            .map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap())
            .sum()
    };
    assert_eq!(total("tackboard_cross_core_bytes_copied_total"), 0);
    total("tackboard_cross_core_bytes_lent_total")
}

#[test]
fn batches_of_another_core_are_sent_from_where_they_lie() {
    let data = folder();
    let values: Vec<Vec<u8>> = (0..24).map(|value| vec![value; 300_000]).collect();
    let expected: Vec<_> = (0..).zip(values.iter().cloned()).collect();
    let handle = broker(data.path(), "[0, 1]", &[]);
    let address = handle.core_addresses()[0];
    let mut client = Raw::connect(address);
    client.create_topic("t", 2);
    for partition in 0..2 {
        for value in &values {
            client
                .produce("t", partition, &batch(1, &[value]))
                .expect("appended");
        }
    }
    drop(client);
    let read_all = |handle: &Handle, partition| {
        let mut client = Raw::connect(handle.core_addresses()[0]);
        let mut got = Vec::new();
        while got.len() < values.len() {
            got.extend(
                client
                    .fetch("t", partition, got.len() as i64)
                    .expect("no error"),
            );
        }
        got
    };
    let partition = partition_elsewhere(&handle, "t", address);
    // From the tail cache.
    assert!(read_all(&handle, partition) == expected);
    // Clients that go, or never read, while they are being sent another core's bytes.
    let greedy: Vec<_> = (0..8)
        .map(|index| {
            let mut client = Raw::connect(address);
            for _ in 0..4 {
                client.send_fetch(0, &[("t", partition, 0)]);
            }
            (index % 2 == 0).then_some(client)
        })
        .collect();
    assert!(read_all(&handle, partition) == expected);
    assert!(handle.shutdown(), "bytes that nobody takes come back");
    drop(greedy);
    // From the disk.
    let handle = broker(data.path(), "[0, 1]", &[]);
    let before = lent(&handle);
    assert!(read_all(&handle, partition) == expected);
    assert!(lent(&handle) >= before + 24 * 300_000);
    assert!(handle.shutdown());
}

#[test]
fn clients_that_take_nothing_do_not_hold_up_the_shutdown_of_either_core() {
    let data = folder();
    // More than the kernel keeps of what nobody reads.
    const FETCHES: usize = 40;
    let handle = broker(data.path(), "[0, 1]", &["shutdown.deadline=2 s"]);
    let address = handle.core_addresses()[0];
    let mut client = Raw::connect(address);
    client.create_topic("t", 2);
    for partition in 0..2 {
        let event = vec![7; 900_000];
        client
            .produce("t", partition, &batch(1, &[&event]))
            .expect("appended");
    }
    let elsewhere = partition_elsewhere(&handle, "t", address);
    // Requests are unread where answers are: a client that is not done asking has a reader, one that is done has none.
    let greedy: Vec<_> = [false, true]
        .into_iter()
        .flat_map(|is_done| [0, 1].map(|partition| (is_done, partition)))
        .map(|(is_done, partition)| {
            let mut client = Raw::connect(address);
            for _ in 0..FETCHES {
                client.send_fetch(0, &[("t", partition, 0)]);
            }
            if is_done {
                let done = client.stream().shutdown(std::net::Shutdown::Write);
                done.expect("a connection");
            }
            client
        })
        .collect();
    let before = lent(&handle);
    support::eventually("the others' bytes are on the way", || {
        client.fetch("t", elsewhere, 0).expect("no error");
        lent(&handle) > before + 10 * 900_000
    });
    assert!(handle.shutdown(), "everything was written and given back");
    drop(greedy);
}

#[test]
fn a_fetch_outside_the_log_is_told_what_the_log_holds() {
    let data = folder();
    let handle = broker(data.path(), "[0, 1]", &[]);
    let mut client = Raw::connect(handle.core_addresses()[0]);
    client.create_topic("t", 2);
    for partition in 0..2 {
        client
            .produce("t", partition, &batch(1, &[b"tack", b"board"]))
            .expect("appended");
        // One of the two belongs to the other core.
        client.send_fetch(0, &[("t", partition, 7)]);
        let answer = client.receive().expect("an answer");
        let head = read_head::<FetchResponse<'_>>(&answer.head).expect("its head");
        let result = head.results().expect("results").get(0);
        assert_eq!(result.error_code(), ErrorCode::OffsetOutOfRange.code());
        assert_eq!((result.log_start_offset(), result.high_watermark()), (0, 2));
    }
    assert!(handle.shutdown());
}

#[test]
fn very_many_dirty_logs_are_synced_at_once_where_the_device_obeys() {
    const PARTITIONS: i32 = 300;
    let data = folder();
    let handle = broker(data.path(), "[0]", &["memory.total=512 MiB"]);
    let mut client = Raw::connect(handle.native_address());
    assert_eq!(client.create_topic("t", PARTITIONS), 0);
    for round in 0..3 {
        for partition in 0..PARTITIONS {
            client.send_produce("t", partition, &batch(1, &[b"tack"]));
        }
        for _ in 0..PARTITIONS {
            let answer = client.receive().expect("an answer");
            assert_eq!(produced(&answer), Ok(round));
        }
    }
    let logs = data.path().join("p");
    let obeys = Flusher::start(&logs, &data.path().join("lock"), 1).is_ok();
    let syncs = support::metrics(&handle)
        .lines()
        .filter(|line| line.starts_with("tackboard_disk_file_system_syncs_total"))
        .map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap())
        .sum::<u64>();
    assert_eq!(syncs > 0, obeys);
    assert!(handle.shutdown());
}

#[test]
fn a_parked_fetch_does_not_hold_up_the_shutdown() {
    let data = folder();
    let handle = broker(data.path(), "[0]", &[]);
    let mut client = Raw::connect(handle.native_address());
    client.create_topic("t", 1);
    client.send_fetch(60_000, &[("t", 0, 0)]);
    let waiting = std::thread::spawn(move || client.receive().map(|answer| fetched(&answer)));
    std::thread::sleep(std::time::Duration::from_millis(100));
    assert!(handle.shutdown());
    // Its reader gives up long before the fetch would, or the shutdown's deadline.
    assert_eq!(waiting.join().unwrap(), Some(vec![Ok(vec![])]));
}

#[test]
fn bad_requests_are_answered_and_the_connection_goes_on() {
    let data = folder();
    let handle = broker(data.path(), "[0]", &[]);
    let mut client = Raw::connect(handle.native_address());
    client.create_topic("t", 1);
    let mut flipped = batch(1, &[b"value"]);
    *flipped.last_mut().unwrap() ^= 1;
    let refused = |outcome: Result<i64, (i16, String)>| outcome.unwrap_err().0;
    assert_eq!(
        refused(client.produce("t", 0, &flipped)),
        ErrorCode::CorruptMessage.code()
    );
    assert_eq!(
        refused(client.produce("t", 0, b"")),
        ErrorCode::InvalidRequest.code()
    );
    let cut = &batch(1, &[b"value"])[..40];
    assert_eq!(
        refused(client.produce("t", 0, cut)),
        ErrorCode::CorruptMessage.code()
    );
    let good = batch(1, &[b"value"]);
    let unknown = ErrorCode::UnknownTopicOrPartition.code();
    assert_eq!(refused(client.produce("t", 7, &good)), unknown);
    assert_eq!(refused(client.produce("t", -1, &good)), unknown);
    assert_eq!(refused(client.produce("nowhere", 0, &good)), unknown);
    assert_eq!(client.fetch("nowhere", 0, 0), Err(unknown));
    // A good batch followed by a bad one: neither is appended.
    let both = [good.clone(), flipped].concat();
    assert_eq!(
        refused(client.produce("t", 0, &both)),
        ErrorCode::CorruptMessage.code()
    );
    for head in [&b""[..], b"\0\0\0\0", &[0xff; 64]] {
        let id = client.send(ApiKey::Produce, head, &[]);
        let answer = client.receive().expect("an answer");
        assert_eq!((answer.id, answer.api), (id, ApiKey::Error.key()));
        let error = read_head::<ErrorResponse<'_>>(&answer.head).expect("an error");
        assert_eq!(error.error_code(), ErrorCode::InvalidRequest.code());
    }
    assert_eq!(client.produce("t", 0, &good), Ok(0));
    assert!(handle.shutdown());
}

/// What is refused before it reaches a log: a batch that is damaged, and a partition that is not there. On each core.
fn send_refused(client: &mut Raw, acks: Option<Acks>) -> Vec<u64> {
    let mut flipped = batch(1, &[b"value"]);
    *flipped.last_mut().unwrap() ^= 1;
    [(0, &flipped), (1, &flipped), (2, &batch(1, &[b"value"]))]
        .map(|(partition, bytes)| client.send_produce_with(acks, "t", partition, bytes))
        .to_vec()
}

#[test]
fn who_is_told_of_a_refusal_depends_on_the_acks_that_count() {
    // What is asked for, the broker's default and floor, and whether there is an answer.
    for (asked, default, floor, is_answered) in [
        (Some(Acks::Count(0)), "1", "1", true),
        (Some(Acks::Count(0)), "1", "0", false),
        (None, "0", "0", false),
        (None, "1", "0", true),
    ] {
        let data = folder();
        let sets = [
            format!("acks.default={default}"),
            format!("acks.min={floor}"),
        ];
        let handle = broker(data.path(), "[0, 1]", &[&sets[0], &sets[1]]);
        let mut client = Raw::connect(handle.native_address());
        client.create_topic("t", 2);
        let mut expected = send_refused(&mut client, asked);
        if !is_answered {
            expected.clear();
        }
        let mut told = Vec::new();
        // Answered in any case, and after whatever the others are answered with.
        let last = client.send_produce_with(Some(Acks::All), "t", 0, &batch(1, &[b"value"]));
        let other = client.send_produce_with(Some(Acks::All), "t", 1, &batch(1, &[b"value"]));
        while told.len() < expected.len() + 2 {
            told.push(client.receive().expect("an answer").id);
        }
        expected.extend([last, other]);
        told.sort_unstable();
        assert_eq!(
            told, expected,
            "{asked:?}, default {default}, floor {floor}"
        );
        drop(client);
        assert!(handle.shutdown());
    }
}

#[test]
fn lost_framing_ends_the_connection_and_nothing_else() {
    let data = folder();
    let handle = broker(data.path(), "[0]", &[]);
    let mut witness = Raw::connect(handle.native_address());
    witness.create_topic("t", 1);
    for garbage in [
        &[0xff; 64][..],
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        &[0; 64],
    ] {
        let mut client = Raw::connect(handle.native_address());
        client.stream().write_all(garbage).unwrap();
        assert!(client.receive().is_none(), "the broker hangs up");
    }
    assert_eq!(witness.produce("t", 0, &batch(1, &[b"value"])), Ok(0));
    assert!(handle.shutdown());
}

/// A well-formed head for each API, with the body that it speaks of.
fn heads(batch: &[u8]) -> Vec<(ApiKey, Vec<u8>, Vec<u8>)> {
    let mut builder = HeadBuilder::new();
    let bare = |api: ApiKey, head: &[u8]| (api, head.to_vec(), Vec::new());
    let partition = PartitionIndex(0);
    let produce = ProduceRequestHead {
        acks: None,
        durability: None,
        timeout_ms: 1_000,
    };
    let entry = ProduceEntryHead {
        topic: "t",
        partition,
        byte_length: batch.len() as u32,
    };
    let produce = builder.produce_request(&produce, &[entry]).to_vec();
    let fetch = FetchRequestHead {
        wait_ms_max: 10,
        bytes_min: 1,
        bytes_max: 1 << 20,
    };
    let entry = FetchEntryHead {
        topic: "t",
        partition,
        fetch_offset: Offset(0),
        bytes_max: 1 << 20,
    };
    let fetch = bare(ApiKey::Fetch, builder.fetch_request(&fetch, &[entry]));
    let create = builder.build(|builder| {
        let args = CreateTopicRequestArgs {
            name: Some(builder.create_string("u")),
            partitions: 1,
            ..Default::default()
        };
        CreateTopicRequest::create(builder, &args)
    });
    let create = bare(ApiKey::CreateTopic, create);
    let delete = builder.build(|builder| {
        let name = Some(builder.create_string("u"));
        DeleteTopicRequest::create(builder, &DeleteTopicRequestArgs { name })
    });
    let delete = bare(ApiKey::DeleteTopic, delete);
    let list = builder.build(|builder| {
        let args = ListOffsetsEntryArgs {
            topic: Some(builder.create_string("t")),
            partition: 0,
            timestamp_ms: 500,
        };
        let entry = ListOffsetsEntry::create(builder, &args);
        let entries = Some(builder.create_vector(&[entry]));
        ListOffsetsRequest::create(builder, &ListOffsetsRequestArgs { entries })
    });
    let list = bare(ApiKey::ListOffsets, list);
    let produce = (ApiKey::Produce, produce, batch.to_vec());
    // The head of a deletion is that of a description, too.
    let describe = (ApiKey::DescribeTopic, delete.1.clone(), Vec::new());
    vec![produce, fetch, create, delete, list, describe]
}

#[test]
fn no_head_disturbs_anybody_else() {
    let data = folder();
    // A head may ask for many partitions.
    let few = "storage.partitions_per_core_max=20";
    let handle = broker(data.path(), "[0, 1]", &[few]);
    let mut witness = Raw::connect(handle.native_address());
    witness.create_topic("t", 1);
    witness.create_topic("witness", 2);
    let bytes = batch(1_000, &[b"value"]);
    let heads = heads(&bytes);
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut below = |bound: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random % bound as u64) as usize
    };
    for round in 0..60 {
        let mut client = Raw::connect(handle.native_address());
        for _ in 0..50 {
            let (api, head, body) = &heads[below(heads.len())];
            let mut head = head.clone();
            for _ in 0..=below(3) {
                let at = below(head.len());
                head[at] = match below(3) {
                    0 => [0, 1, 0x7f, 0x80, 0xff][below(5)],
                    1 => head[at] ^ (1 << below(8)),
                    _ => below(256) as u8,
                };
            }
            client.send(*api, &head, body);
        }
        // Some are answered, some wait, and the client leaves.
        drop(client);
        let outcome = witness.produce("witness", round % 2, &bytes);
        assert_eq!(outcome, Ok(i64::from(round / 2)));
    }
    assert!(handle.shutdown());
}

#[test]
fn pipelined_produces_to_one_partition_are_answered_in_order() {
    let data = folder();
    let handle = broker(data.path(), "[0, 1]", &[]);
    let mut client = Raw::connect(handle.native_address());
    client.create_topic("t", 2);
    for partition in 0..2 {
        let ids: Vec<u64> = (0..200_u32)
            .map(|index| client.send_produce("t", partition, &batch(1, &[&index.to_be_bytes()])))
            .collect();
        for (index, id) in ids.into_iter().enumerate() {
            let answer = client.receive().expect("an answer");
            assert_eq!((answer.id, produced(&answer)), (id, Ok(index as i64)));
        }
        let records = client.fetch("t", partition, 0).expect("no error");
        let values: Vec<_> = (0..200_i64)
            .map(|index| (index, (index as u32).to_be_bytes().to_vec()))
            .collect();
        assert_eq!(records, values);
    }
    assert!(handle.shutdown());
}

#[test]
fn a_second_broker_on_the_folder_or_the_port_is_refused_by_name() {
    use tackboard_broker::{
        config::{Sources, load},
        embedded::start,
    };
    let data = folder();
    let handle = broker(data.path(), "[0]", &[]);
    let try_start = |data: &std::path::Path, native: String| {
        let sets = vec![
            format!("native.bind={native}"),
            "native.core_bind=127.0.0.1:0".into(),
            "kafka.bind=127.0.0.1:0".into(),
            "http.bind=off".into(),
            "cores=[0]".into(),
            "memory.total=128 MiB".into(),
        ];
        let sources = Sources {
            data_dir: Some(data.to_owned()),
            sets,
            ..Sources::default()
        };
        start(load(&sources).expect("a configuration"))
            .map(drop)
            .unwrap_err()
            .to_string()
    };
    let same_folder = try_start(data.path(), "127.0.0.1:0".into());
    let process = std::process::id().to_string();
    assert!(
        same_folder.contains("in use") && same_folder.contains(&process),
        "{same_folder}"
    );
    let other = folder();
    let same_port = try_start(other.path(), handle.native_address().to_string());
    assert!(
        same_port.contains("native.bind") && same_port.contains("another process"),
        "{same_port}"
    );
    assert!(handle.shutdown());
}
