//! The glommio clients against a broker behind real sockets.
#![cfg(feature = "glommio")]

mod support;

use std::future::Future;
use std::time::{Duration, Instant};

use support::Broker;
use support::server::Server;
use tackboard_client::glommio::{Consumer, Producer};
use tackboard_client::{
    ConsumerConfig, Error, Offset, PartitionIndex, ProducerConfig, ProducerRecord, Start,
};
use tackboard_runtime::{Core, CoreSettings, Watchdog, spawn};

fn on_core<F, Fut>(main: F)
where
    F: FnOnce(Core) -> Fut + Send + 'static,
    Fut: Future<Output = ()> + 'static,
{
    let watchdog = Watchdog::start();
    let settings = CoreSettings {
        cpu: None,
        io_memory_bytes: 1 << 20,
        ring_depth: 128,
        ..CoreSettings::pinned(0, "test")
    };
    spawn(settings, &watchdog, main).unwrap().join().unwrap();
}

fn start(topics: &[(&str, usize)]) -> (Server, [String; 1]) {
    let server = Server::start(Broker::new(topics));
    let address = server.address.to_string();
    (server, [address])
}

#[test]
fn what_goes_in_comes_out_although_connections_are_cut() {
    const COUNT: usize = 20_000;
    let (server, brokers) = start(&[("t", 4)]);
    let cutter = server.clone();
    on_core(move |core| async move {
        let mut config = ProducerConfig {
            batch_bytes: 2048,
            linger: Duration::from_millis(1),
            ..Default::default()
        };
        config.client.backoff = Duration::from_millis(2);
        let producer = Producer::connect(&brokers, config, Some(core.progress.clone()))
            .await
            .unwrap();
        let topic = producer.topic("t").await.unwrap();
        assert_eq!(producer.partition_count(topic), 4);
        for index in 0..COUNT {
            producer
                .send(topic, &ProducerRecord::new(&format!("{index}")))
                .await
                .unwrap();
            if index % 1000 == 500 {
                glommio::timer::sleep(Duration::from_millis(3)).await;
                cutter.cut();
            }
        }
        producer.flush().await.unwrap();
        let mut reports = Vec::new();
        producer.take_reports(&mut reports);
        let reported: u32 = reports.iter().map(|(_, report)| report.record_count).sum();
        assert_eq!(reported as usize, COUNT);
        producer.close().await.unwrap();
        assert!(matches!(
            producer.send(topic, &ProducerRecord::new("late")).await,
            Err(Error::Closed)
        ));

        let consumer = Consumer::connect(&brokers, ConsumerConfig::default(), None)
            .await
            .unwrap();
        let count = consumer.partition_count("t").await.unwrap() as i32;
        let all: Vec<_> = (0..count)
            .map(|index| ("t", PartitionIndex(index), Start::Earliest))
            .collect();
        consumer.assign(&all);
        let mut values: Vec<usize> = Vec::new();
        let deadline = Instant::now() + Duration::from_secs(20);
        while values.len() < COUNT && Instant::now() < deadline {
            for record in &consumer.poll(Duration::from_millis(200)).await.unwrap() {
                let value = record.unwrap().value.unwrap().to_vec();
                values.push(String::from_utf8(value).unwrap().parse().unwrap());
            }
        }
        values.sort_unstable();
        assert!(values.iter().copied().eq(0..COUNT), "each once");
        let started = Instant::now();
        assert!(
            consumer
                .poll(Duration::from_millis(50))
                .await
                .unwrap()
                .is_empty()
        );
        assert!(
            started.elapsed() < Duration::from_secs(2),
            "a poll ends in time"
        );
        let positions = (0..count).map(|index| {
            consumer
                .position("t", PartitionIndex(index))
                .unwrap()
                .unwrap()
                .0
        });
        assert_eq!(positions.sum::<i64>(), COUNT as i64);
        consumer.close().await;
    });
}

#[test]
fn nobody_there_and_no_such_topic() {
    let free = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .to_string();
    let (_server, brokers) = start(&[("t", 1)]);
    on_core(move |_| async move {
        let fault = Producer::connect(&[&free], ProducerConfig::default(), None)
            .await
            .unwrap_err();
        assert!(
            fault
                .to_string()
                .starts_with(&format!("no broker answers at {free}")),
            "{fault}"
        );
        let producer = Producer::connect(&brokers, ProducerConfig::default(), None)
            .await
            .unwrap();
        assert!(matches!(
            producer.topic("nope").await,
            Err(Error::UnknownTopic { .. })
        ));
        let topic = producer.topic("t").await.unwrap();
        producer
            .send(topic, &ProducerRecord::new("v"))
            .await
            .unwrap();
        let mut reports = Vec::new();
        producer.reports(&mut reports).await.unwrap();
        assert_eq!(*reports[0].1.outcome.as_ref().unwrap(), Some(Offset(0)));
        producer.close().await.unwrap();
    });
}
