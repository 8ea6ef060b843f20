//! Machines on an executor, against a broker behind real sockets.
#![cfg(feature = "glommio")]

mod support;

use std::cell::Cell;
use std::future::Future;
use std::rc::Rc;
use std::time::{Duration, Instant};

use support::Broker;
use support::server::Server;
use tackboard_client::glommio::Pump;
use tackboard_client::protocol::consumer::ConsumerMachine;
use tackboard_client::protocol::producer::{AppendError, ProducerMachine, TopicLookup, TopicSlot};
use tackboard_client::protocol::{Machine, Now};
use tackboard_client::{
    ClientConfig, ConsumerConfig, Error, PartitionIndex, ProducerConfig, ProducerRecord, Start,
    TimestampMs,
};
use tackboard_runtime::{Core, CoreSettings, Watchdog, spawn};

/// Nothing here takes nearly so long.
const PATIENCE: Duration = Duration::from_secs(20);

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

/// A machine's owner: the task that turns its pump.
struct Owner<M> {
    pump: Pump<M>,
    news: Rc<Cell<u64>>,
}

impl<M: Machine + 'static> Owner<M> {
    fn new(machine: M, config: &ClientConfig, core: &Core) -> Self {
        let news = Rc::new(Cell::new(0));
        let count = news.clone();
        let on_news = move || count.set(count.get() + 1);
        Self {
            pump: Pump::new(machine, config, core.progress.clone(), on_news),
            news,
        }
    }

    /// Turns until `look` finds something.
    async fn until<T>(&self, mut look: impl FnMut(&mut M, Now) -> Option<T>) -> T {
        let started = Instant::now();
        loop {
            let found = self.pump.with(&mut look);
            self.pump.turn();
            if let Some(found) = found {
                return found;
            }
            assert!(started.elapsed() < PATIENCE, "it never comes");
            glommio::timer::sleep(Duration::from_millis(1)).await;
        }
    }
}

fn config() -> ProducerConfig {
    let mut config = ProducerConfig {
        batch_bytes: 2048,
        linger: Duration::from_millis(1),
        ..Default::default()
    };
    config.client.backoff = Duration::from_millis(2);
    config
}

fn append(machine: &mut ProducerMachine, topic: TopicSlot, value: &str, now: Now) -> Option<()> {
    match machine.append(topic, &ProducerRecord::new(value), now, TimestampMs(0)) {
        Ok(_) => Some(()),
        Err(AppendError::BufferFull) => None,
        Err(AppendError::Failed(fault)) => panic!("{fault}"),
    }
}

async fn find_topic(owner: &Owner<ProducerMachine>, name: &str) -> Result<TopicSlot, Error> {
    let look = |machine: &mut ProducerMachine, _| match machine.topic(name) {
        TopicLookup::Ready(slot) => Some(Ok(slot)),
        TopicLookup::Pending => None,
        TopicLookup::Failed(fault) => Some(Err(fault)),
    };
    owner.until(look).await
}

async fn read_all(owner: &Owner<ConsumerMachine>, partitions: i32, count: usize) -> Vec<usize> {
    let all: Vec<_> = (0..partitions)
        .map(|index| ("t", PartitionIndex(index), Start::Earliest))
        .collect();
    owner.pump.with(|machine, _| machine.assign(&all));
    let mut values: Vec<usize> = Vec::new();
    while values.len() < count {
        let chunks = owner.until(|machine, now| {
            let chunks = machine.poll(now).expect("nothing is damaged");
            (!chunks.is_empty()).then_some(chunks)
        });
        for chunk in chunks.await {
            for batch in tackboard_schema::record_batch::BatchIterator::new(&chunk.batches) {
                let mut scratch = Vec::new();
                let batch = batch.unwrap();
                for record in batch.records_decompressed(&mut scratch, 1 << 20).unwrap() {
                    let record = record.unwrap();
                    if record.offset >= chunk.first_offset {
                        let text = String::from_utf8(record.value.unwrap().to_vec()).unwrap();
                        values.push(text.parse().unwrap());
                    }
                }
            }
        }
    }
    values
}

#[test]
fn what_goes_in_comes_out_although_connections_are_cut() {
    const COUNT: usize = 20_000;
    let (server, brokers) = start(&[("t", 4)]);
    let cutter = server.clone();
    on_core(move |core| async move {
        let machine = ProducerMachine::new(&brokers, config(), 1).unwrap();
        let owner = Owner::new(machine, &config().client, &core);
        let topic = find_topic(&owner, "t").await.unwrap();
        for index in 0..COUNT {
            let value = index.to_string();
            owner
                .until(|machine, now| append(machine, topic, &value, now))
                .await;
            if index % 1000 == 500 {
                glommio::timer::sleep(Duration::from_millis(3)).await;
                cutter.cut();
            }
        }
        let mark = owner.pump.with(|machine, _| machine.flush());
        let mut reported = 0;
        owner
            .until(|machine, _| {
                while let Some((_, report)) = machine.next_report() {
                    report.outcome.expect("delivered");
                    reported += report.record_count as usize;
                }
                machine.is_flushed(mark).then_some(())
            })
            .await;
        assert_eq!(reported, COUNT);
        assert!(
            owner.pump.reconnects() > 0,
            "it was cut, and is connected again"
        );
        assert!(owner.news.get() > 0, "sockets tell their owner");
        owner.pump.close().await;

        let machine = ConsumerMachine::new(&brokers, ConsumerConfig::default(), 2).unwrap();
        let owner = Owner::new(machine, &ClientConfig::default(), &core);
        let mut values = read_all(&owner, 4, COUNT).await;
        values.sort_unstable();
        assert!(values.iter().copied().eq(0..COUNT), "each once");
        assert_eq!(owner.pump.reconnects(), 0);
        owner.pump.close().await;
    });
}

#[test]
fn what_needs_no_answer_leaves_before_the_end() {
    const COUNT: usize = 2_000;
    let (_server, brokers) = start(&[("t", 1)]);
    on_core(move |core| async move {
        let config = ProducerConfig {
            acks: Some(tackboard_client::Acks::Count(0)),
            idempotent: false,
            ..config()
        };
        let machine = ProducerMachine::new(&brokers, config.clone(), 1).unwrap();
        let owner = Owner::new(machine, &config.client, &core);
        let topic = find_topic(&owner, "t").await.unwrap();
        for index in 0..COUNT {
            let value = index.to_string();
            owner
                .until(|machine, now| append(machine, topic, &value, now))
                .await;
        }
        let mark = owner.pump.with(|machine, _| machine.flush());
        owner
            .until(|machine, _| machine.is_flushed(mark).then_some(()))
            .await;
        owner.pump.close().await;
        let machine = ConsumerMachine::new(&brokers, ConsumerConfig::default(), 2).unwrap();
        let owner = Owner::new(machine, &ClientConfig::default(), &core);
        let values = read_all(&owner, 1, COUNT).await;
        assert!(values.iter().copied().eq(0..COUNT), "in order, each once");
        owner.pump.close().await;
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
    on_core(move |core| async move {
        let machine = ProducerMachine::new(&[&free], config(), 1).unwrap();
        let owner = Owner::new(machine, &config().client, &core);
        let fault = owner.until(|machine, _| machine.unreachable()).await;
        assert!(
            fault
                .to_string()
                .starts_with(&format!("no broker answers at {free}")),
            "{fault}"
        );
        owner.pump.close().await;
        let machine = ProducerMachine::new(&brokers, config(), 1).unwrap();
        let owner = Owner::new(machine, &config().client, &core);
        assert!(matches!(
            find_topic(&owner, "nope").await,
            Err(Error::UnknownTopic { .. })
        ));
        owner.pump.close().await;
    });
}
