//! The blocking clients against a broker behind real sockets.
#![cfg(feature = "blocking")]

mod support;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use support::server::Server;
use support::{Broker, Fault};
use tackboard_client::{
    Admin, ClientConfig, Compression, Consumer, ConsumerConfig, Error, ErrorCode, NewTopic, Offset,
    OffsetQuery, OffsetReset, PartitionIndex, Producer, ProducerConfig, ProducerRecord, Start,
    TimestampMs,
};

const POLL: Duration = Duration::from_millis(200);

fn start(topics: &[(&str, usize)]) -> (Server, [String; 1]) {
    let server = Server::start(Broker::new(topics));
    let address = server.address.to_string();
    (server, [address])
}

fn read(consumer: &mut Consumer, count: usize) -> Vec<(i32, i64, String)> {
    let mut found = Vec::new();
    let deadline = Instant::now() + Duration::from_secs(20);
    while found.len() < count {
        assert!(
            Instant::now() < deadline,
            "{} of {count} records in time",
            found.len()
        );
        for record in &consumer.poll(POLL).unwrap() {
            let record = record.unwrap();
            let value = String::from_utf8(record.value.unwrap().to_vec()).unwrap();
            found.push((record.partition.0, record.offset.0, value));
        }
    }
    found
}

#[test]
fn what_goes_in_comes_out_with_every_codec() {
    for compression in Compression::ALL {
        let (_server, brokers) = start(&[("t", 3)]);
        let producer = Producer::connect(
            &brokers,
            ProducerConfig {
                compression,
                ..Default::default()
            },
        )
        .unwrap();
        for index in 0..5000 {
            let (key, value) = (
                format!("k{}", index % 50),
                format!("value {index} {}", "x".repeat(index % 90)),
            );
            producer
                .send("t", ProducerRecord::new(&value).key(&key))
                .unwrap();
        }
        producer.close().unwrap();

        let mut consumer = Consumer::connect(&brokers, ConsumerConfig::default()).unwrap();
        consumer.assign_topic("t", Start::Earliest).unwrap();
        let found = read(&mut consumer, 5000);
        assert!(consumer.poll(Duration::from_millis(50)).unwrap().is_empty());
        let mut by_partition: BTreeMap<i32, Vec<usize>> = BTreeMap::new();
        for (partition, offset, value) in &found {
            let order = by_partition.entry(*partition).or_default();
            assert_eq!(*offset, order.len() as i64, "offsets have no holes");
            order.push(value.split(' ').nth(1).unwrap().parse().unwrap());
        }
        assert!(
            by_partition.values().all(|order| order.is_sorted()),
            "order of sending within a partition"
        );
        assert_eq!(
            consumer.position("t", PartitionIndex(0)).unwrap(),
            Some(Offset(by_partition[&0].len() as i64))
        );
        assert_eq!(
            consumer.high_watermark("t", PartitionIndex(0)).unwrap(),
            consumer.position("t", PartitionIndex(0)).unwrap()
        );
    }
}

#[test]
fn connections_that_are_cut_cost_nothing() {
    let (server, brokers) = start(&[("t", 4)]);
    let mut config = ProducerConfig {
        batch_bytes: 2048,
        linger: Duration::from_millis(1),
        ..Default::default()
    };
    config.client.backoff = Duration::from_millis(2);
    let reported = Arc::new(Mutex::new(0));
    let count = reported.clone();
    let report = move |report: tackboard_client::BatchReport| {
        report.outcome.unwrap();
        *count.lock().unwrap() += report.record_count;
    };
    let producer = Producer::connect_with_reports(&brokers, config, report).unwrap();
    let is_done = Arc::new(Mutex::new(false));
    let (cutter, stop) = (server.clone(), is_done.clone());
    let cutting = std::thread::spawn(move || {
        while !*stop.lock().unwrap() {
            std::thread::sleep(Duration::from_millis(15));
            cutter.cut();
        }
    });
    for index in 0..20_000 {
        producer
            .send("t", ProducerRecord::new(&format!("{index}")))
            .unwrap();
        if index % 500 == 0 {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    *is_done.lock().unwrap() = true;
    cutting.join().unwrap();
    producer.flush().unwrap();
    assert_eq!(
        *reported.lock().unwrap(),
        20_000,
        "a flush waits for callbacks too"
    );
    producer.close().unwrap();

    let broker = server.broker.lock().unwrap();
    let mut values: Vec<usize> = Vec::new();
    for partition in &broker.topics["t"] {
        let log = partition
            .values()
            .into_iter()
            .map(|(_, value)| String::from_utf8(value).unwrap().parse().unwrap());
        let log: Vec<usize> = log.collect();
        assert!(log.is_sorted());
        values.extend(log);
    }
    values.sort_unstable();
    assert!(values.iter().copied().eq(0..20_000), "each once");
}

#[test]
fn handles_and_callbacks_tell_where_records_went() {
    let (_server, brokers) = start(&[("t", 1)]);
    let producer = Producer::connect(&brokers, ProducerConfig::default()).unwrap();
    let handles: Vec<_> = (0..10)
        .map(|_| {
            producer
                .send_tracked("t", ProducerRecord::new("v"))
                .unwrap()
        })
        .collect();
    let told = Arc::new(Mutex::new(None));
    let told_too = told.clone();
    producer
        .send_with("t", ProducerRecord::new("w"), move |outcome| {
            *told_too.lock().unwrap() = Some(outcome)
        })
        .unwrap();
    for (index, handle) in handles.iter().enumerate() {
        assert_eq!(handle.wait().unwrap().offset, Some(Offset(index as i64)));
    }
    producer.close().unwrap();
    let told = told.lock().unwrap().take().unwrap().unwrap();
    assert_eq!(
        (told.offset, told.partition),
        (Some(Offset(10)), PartitionIndex(0))
    );
}

#[test]
fn acks_0_is_sent_and_forgotten() {
    let (server, brokers) = start(&[("t", 2)]);
    let acks = Some("0".parse().unwrap());
    // Far more than the bound of what may be on its way at once.
    let producer = Producer::connect(
        &brokers,
        ProducerConfig {
            acks,
            ..Default::default()
        },
    )
    .unwrap();
    let value = "x".repeat(10_000);
    for _ in 0..3000 {
        producer.send("t", ProducerRecord::new(&value)).unwrap();
    }
    producer.flush().unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    let count = || {
        server.broker.lock().unwrap().topics["t"]
            .iter()
            .map(|partition| partition.next_offset().0)
            .sum::<i64>()
    };
    while count() < 3000 {
        assert!(Instant::now() < deadline, "{} of 3000", count());
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn starts_seeks_and_pauses() {
    let (_server, brokers) = start(&[("t", 2)]);
    let producer = Producer::connect(
        &brokers,
        ProducerConfig {
            batch_bytes: 1024,
            ..Default::default()
        },
    )
    .unwrap();
    for index in 0..1000 {
        let record = ProducerRecord::new("0123456789").timestamp(TimestampMs(1000 + index));
        producer
            .send("t", record.partition(PartitionIndex(0)))
            .unwrap();
    }
    producer.close().unwrap();
    let p0 = PartitionIndex(0);
    let mut consumer = Consumer::connect(&brokers, ConsumerConfig::default()).unwrap();
    let mut first = |start| {
        consumer.assign(&[("t", p0, start)]).unwrap();
        read(&mut consumer, 1)[0].1
    };
    assert_eq!(first(Start::Earliest), 0);
    assert_eq!(first(Start::Offset(Offset(777))), 777);
    assert_eq!(first(Start::Timestamp(TimestampMs(1500))), 500);
    assert_eq!(first(Start::Timestamp(TimestampMs(0))), 0);

    for start in [Start::Latest, Start::Timestamp(TimestampMs(5000))] {
        consumer.assign(&[("t", p0, start)]).unwrap();
        assert!(
            consumer
                .poll(Duration::from_millis(100))
                .unwrap()
                .is_empty()
        );
        assert_eq!(consumer.position("t", p0).unwrap(), Some(Offset(1000)));
    }

    consumer.seek("t", p0, Start::Offset(Offset(990))).unwrap();
    consumer.pause("t", p0).unwrap();
    assert!(consumer.poll(Duration::from_millis(50)).unwrap().is_empty());
    consumer.resume("t", p0).unwrap();
    assert_eq!(read(&mut consumer, 10)[0].1, 990);

    let not_assigned = consumer
        .seek("t", PartitionIndex(1), Start::Earliest)
        .unwrap_err();
    assert!(matches!(not_assigned, Error::NotAssigned { .. }));
}

#[test]
fn positions_outside_the_log() {
    let (_server, brokers) = start(&[("t", 1)]);
    let producer = Producer::connect(&brokers, ProducerConfig::default()).unwrap();
    (0..10).for_each(|_| producer.send("t", ProducerRecord::new("v")).unwrap());
    producer.close().unwrap();
    let outside = [("t", PartitionIndex(0), Start::Offset(Offset(5000)))];

    let mut consumer = Consumer::connect(&brokers, ConsumerConfig::default()).unwrap();
    consumer.assign(&outside).unwrap();
    let fault = consumer.poll(Duration::from_secs(10)).unwrap_err();
    assert_eq!(fault.code(), Some(ErrorCode::OffsetOutOfRange));
    assert!(
        fault
            .to_string()
            .contains("offset 5000 of t-0 is outside the log (starts at 0, ends before 10)"),
        "{fault}"
    );

    let config = ConsumerConfig {
        offset_reset: OffsetReset::Earliest,
        ..Default::default()
    };
    let mut consumer = Consumer::connect(&brokers, config).unwrap();
    consumer.assign(&outside).unwrap();
    assert_eq!(read(&mut consumer, 10)[0].1, 0);
}

#[test]
fn damage_is_found_and_named() {
    let (server, brokers) = start(&[("t", 1)]);
    let producer = Producer::connect(
        &brokers,
        ProducerConfig {
            batch_bytes: 1024,
            ..Default::default()
        },
    )
    .unwrap();
    (0..100).for_each(|_| {
        producer
            .send(
                "t",
                ProducerRecord::new("0123456789012345678901234567890123456789"),
            )
            .unwrap()
    });
    producer.close().unwrap();
    let good = {
        let mut broker = server.broker.lock().unwrap();
        let damaged = &mut broker.topics.get_mut("t").unwrap()[0].batches[2];
        *damaged.bytes.last_mut().unwrap() ^= 1;
        damaged.base_offset
    };
    let mut consumer = Consumer::connect(&brokers, ConsumerConfig::default()).unwrap();
    consumer.assign_topic("t", Start::Earliest).unwrap();
    assert_eq!(read(&mut consumer, good.0 as usize).len(), good.0 as usize);
    match consumer.poll(Duration::from_secs(10)).unwrap_err() {
        Error::CorruptBatch { offset, .. } => assert_eq!(offset, good),
        fault => panic!("{fault}"),
    }
}

#[test]
fn errors_say_what_to_do() {
    let free = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .to_string();
    let fault = Producer::connect(&[&free], ProducerConfig::default()).unwrap_err();
    let wanted =
        format!("no broker answers at {free}; is `tackboard serve` running? (connection refused)");
    assert_eq!(fault.to_string(), wanted);
    assert_eq!(
        Admin::connect(&[&free], ClientConfig::default())
            .unwrap_err()
            .to_string(),
        wanted
    );
    assert_eq!(
        Consumer::connect(&[&free], ConsumerConfig::default())
            .unwrap_err()
            .to_string(),
        wanted
    );
    assert!(matches!(
        Producer::connect(&["nonsense"], ProducerConfig::default()),
        Err(Error::Setting { .. })
    ));

    let (server, brokers) = start(&[("t", 1)]);
    let producer = Producer::connect(&brokers, ProducerConfig::default()).unwrap();
    let fault = producer.send("nope", ProducerRecord::new("v")).unwrap_err();
    assert!(
        fault
            .to_string()
            .starts_with("there is no topic nope on the broker at "),
        "{fault}"
    );
    let fault = producer
        .send("t", ProducerRecord::new("v").partition(PartitionIndex(9)))
        .unwrap_err();
    assert!(fault.to_string().contains("no partition 9"), "{fault}");
    let fault = producer
        .send("t", ProducerRecord::new(&vec![0; 2 << 20]))
        .unwrap_err();
    assert!(matches!(fault, Error::RecordTooLarge { .. }), "{fault}");

    server.broker.lock().unwrap().fault =
        Box::new(|_, _, _| Fault::Refuse(ErrorCode::MessageTooLarge));
    producer.send("t", ProducerRecord::new("v")).unwrap();
    let fault = producer.flush().unwrap_err();
    assert_eq!(fault.code(), Some(ErrorCode::MessageTooLarge));
    assert!(fault.to_string().contains("for t-0"), "{fault}");
    // The refusal is told once; the producer goes on.
    server.broker.lock().unwrap().fault = Box::new(|_, _, _| Fault::None);
    producer.send("t", ProducerRecord::new("v")).unwrap();
    producer.flush().unwrap();
}

#[test]
fn a_broker_that_takes_nothing_is_given_up_on() {
    let (server, brokers) = start(&[("t", 1)]);
    let config = ProducerConfig {
        delivery_timeout: Duration::from_millis(300),
        ..Default::default()
    };
    let producer = Producer::connect(&brokers, config).unwrap();
    server.broker.lock().unwrap().fault = Box::new(|_, _, _| Fault::Refuse(ErrorCode::StorageFull));
    producer.send("t", ProducerRecord::new("v")).unwrap();
    let fault = producer.flush().unwrap_err();
    assert!(matches!(fault, Error::NotSent { .. }), "{fault}");
    assert_eq!(fault.code(), Some(ErrorCode::StorageFull));
    assert!(!fault.outcome_unknown());
}

#[test]
fn what_may_have_been_appended_is_sent_again_only_by_a_producer_that_is_known() {
    let codes = [
        ErrorCode::RequestTimedOut,
        ErrorCode::NotEnoughReplicasAfterAppend,
        ErrorCode::StorageFullAfterAppend,
        ErrorCode::KafkaStorageError,
    ];
    for (code, idempotent) in codes
        .into_iter()
        .flat_map(|code| [(code, true), (code, false)])
    {
        let (server, brokers) = start(&[("t", 1)]);
        let config = ProducerConfig {
            idempotent,
            ..Default::default()
        };
        let producer = Producer::connect(&brokers, config).unwrap();
        let mut answered = 0;
        server.broker.lock().unwrap().fault = Box::new(move |_, _, _| {
            answered += 1;
            match answered {
                1 => Fault::AppendAndSay(code),
                _ => Fault::None,
            }
        });
        producer.send("t", ProducerRecord::new("v")).unwrap();
        match producer.flush() {
            Ok(()) => assert!(idempotent, "{code}"),
            Err(fault) => assert!(!idempotent && fault.outcome_unknown(), "{fault}"),
        }
        let values = server.broker.lock().unwrap().topics["t"][0].values();
        assert_eq!(values.len(), 1, "{code}");
    }
}

#[test]
fn administration() {
    let (server, brokers) = start(&[]);
    let mut admin = Admin::connect(&brokers, ClientConfig::default()).unwrap();
    assert_eq!(admin.broker().broker_version, "test");
    assert_eq!(
        admin
            .create_topic(&NewTopic::new("t").partitions(4))
            .unwrap()
            .partitions,
        4
    );
    let again = admin.create_topic(&NewTopic::new("t")).unwrap_err();
    assert_eq!(again.code(), Some(ErrorCode::TopicAlreadyExists));
    // The connection is made anew where that is safe.
    server.cut();
    let topics = admin.list_topics().unwrap();
    assert_eq!((topics.len(), topics[0].partitions.len()), (1, 4));
    let offsets = admin
        .list_offsets(&[("t", PartitionIndex(1), OffsetQuery::Latest)])
        .unwrap();
    assert_eq!(offsets[0].offset, Some(Offset(0)));
    let unknown = admin
        .list_offsets(&[("u", PartitionIndex(0), OffsetQuery::Latest)])
        .unwrap_err();
    assert!(matches!(unknown, Error::UnknownTopic { .. }), "{unknown}");
    admin.delete_topic("t").unwrap();
    assert!(matches!(
        admin.delete_topic("t"),
        Err(Error::UnknownTopic { .. })
    ));
}

#[test]
fn a_core_without_an_answer_is_reached_the_long_way() {
    let (server, brokers) = start(&[("t", 2)]);
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    server.broker.lock().unwrap().core_port = free.local_addr().unwrap().port();
    drop(free);
    let producer = Producer::connect(&brokers, ProducerConfig::default()).unwrap();
    for index in 0..100 {
        producer
            .send("t", ProducerRecord::new(&format!("{index}")))
            .unwrap();
    }
    producer.close().unwrap();
    let mut consumer = Consumer::connect(&brokers, ConsumerConfig::default()).unwrap();
    consumer.assign_topic("t", Start::Earliest).unwrap();
    assert_eq!(read(&mut consumer, 100).len(), 100);
}

#[test]
fn a_consumer_goes_on_where_it_was_when_connections_are_cut() {
    const COUNT: usize = 30_000;
    let (server, brokers) = start(&[("t", 3)]);
    let config = ProducerConfig {
        batch_bytes: 1024,
        ..Default::default()
    };
    let producer = Producer::connect(&brokers, config).unwrap();
    for index in 0..COUNT {
        producer
            .send("t", ProducerRecord::new(&format!("{index}")))
            .unwrap();
    }
    producer.close().unwrap();
    let mut config = ConsumerConfig {
        prefetch_bytes_max: 1 << 14,
        partition_fetch_bytes_max: 1 << 12,
        poll_bytes_max: 1 << 12,
        ..Default::default()
    };
    config.client.backoff = Duration::from_millis(2);
    let mut consumer = Consumer::connect(&brokers, config).unwrap();
    consumer.assign_topic("t", Start::Earliest).unwrap();
    let mut next = [0; 3];
    let mut polls = 0;
    while next.iter().sum::<i64>() < COUNT as i64 {
        for record in &consumer.poll(POLL).unwrap() {
            let record = record.unwrap();
            let next = &mut next[record.partition.0 as usize];
            assert_eq!(record.offset.0, *next, "no record twice, none left out");
            *next += 1;
        }
        polls += 1;
        if polls % 20 == 0 {
            server.cut();
        }
    }
}

#[test]
fn whoever_wants_to_wait_for_ever_may_say_so() {
    let (_server, brokers) = start(&[("t", 1)]);
    let client = ClientConfig {
        connect_timeout: Duration::MAX,
        call_timeout: Duration::MAX,
        ..ClientConfig::default()
    };
    let config = ProducerConfig {
        client: client.clone(),
        ..ProducerConfig::default()
    };
    let producer = Producer::connect(&brokers, config).unwrap();
    let delivery = producer
        .send_tracked("t", ProducerRecord::new("one"))
        .unwrap();
    assert!(delivery.wait_timeout(Duration::MAX).unwrap().is_ok());
    let config = ConsumerConfig {
        client: client.clone(),
        ..ConsumerConfig::default()
    };
    let mut consumer = Consumer::connect(&brokers, config).unwrap();
    consumer.assign_topic("t", Start::Earliest).unwrap();
    assert!(!consumer.poll(Duration::MAX).unwrap().is_empty());
    let mut admin = Admin::connect(&brokers, client).unwrap();
    assert_eq!(admin.list_topics().unwrap().len(), 1);
}
