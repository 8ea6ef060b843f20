//! `tackboard consume --group`: events as lines, read as a member of a group.
//!
//! An event counts as read once its line was written to stdout; what was printed is committed at the end, and from time
//! to time before.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tackboard_client::{
    Admin, ConsumerConfig, GroupConfig, GroupConsumer, NamedPartition, Offset, OffsetQuery,
    OffsetReset, PartitionIndex, RebalanceListener, Records, Start,
};

use super::arguments::ConsumeArguments;
use super::consume::{POLL_TIMEOUT, write_record};
use super::failure::Failure;
use super::interrupt::EXIT_INTERRUPTED;
use super::output::stdout;
use super::topic::client_config;
use crate::signals::Signals;

/// A member whose process was killed is out after so long.
const SESSION_TIMEOUT: Duration = Duration::from_secs(10);

/// Longest that leaving the group takes; the session's end does it otherwise.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

pub(super) fn run(arguments: &ConsumeArguments, group: &str) -> Result<(), Failure> {
    let is_interrupted = until_interrupted()?;
    let offset_reset = match arguments.from {
        Start::Earliest => OffsetReset::Earliest,
        Start::Latest => OffsetReset::Latest,
        Start::Offset(_) | Start::Timestamp(_) => {
            return Err(Failure::Usage(format!(
                "with --group, --from is earliest or latest: it holds where the group has committed nothing\n\
                 to begin elsewhere: tackboard group reset-offsets {group} --topic {}",
                arguments.topic
            )));
        }
    };
    let ends = match arguments.follow || arguments.count.is_some() {
        true => None,
        false => Some(ends(arguments)?),
    };
    // An unknown topic is told at once, rather than waited for.
    let mut admin = Admin::connect(&arguments.client.broker, client_config())?;
    admin.describe_topic(&arguments.topic)?;
    drop(admin);
    if arguments.count == Some(0) {
        return Ok(());
    }
    let config = GroupConfig {
        consumer: ConsumerConfig {
            client: client_config(),
            offset_reset,
            ..ConsumerConfig::default()
        },
        session_timeout: SESSION_TIMEOUT,
        ..GroupConfig::new(group)
    };
    let mut consumer = GroupConsumer::connect(&arguments.client.broker, config)?;
    let is_assigned = Arc::new(AtomicBool::new(false));
    consumer.set_listener(Assigned(is_assigned.clone()));
    consumer.subscribe(&[&arguments.topic])?;
    let reader = Reader {
        arguments,
        ends,
        is_assigned,
        is_interrupted,
        printed: 0,
    };
    reader.read(consumer)
}

/// Becomes true with the first SIGINT or SIGTERM. The second ends the process. Called before any other thread starts.
fn until_interrupted() -> Result<Arc<AtomicBool>, Failure> {
    let failed =
        |error: std::io::Error| Failure::failed(format!("cannot wait for signals: {error}"));
    let signals = Signals::block().map_err(failed)?;
    let flag = Arc::new(AtomicBool::new(false));
    let shared = flag.clone();
    let wait = move || {
        signals.wait();
        shared.store(true, Ordering::Relaxed);
        signals.wait();
        std::process::exit(EXIT_INTERRUPTED.into());
    };
    let thread = std::thread::Builder::new().name("signals".to_owned());
    thread.spawn(wait).map_err(failed)?;
    Ok(flag)
}

/// Where the partitions end at the start.
fn ends(arguments: &ConsumeArguments) -> Result<BTreeMap<PartitionIndex, Offset>, Failure> {
    let mut admin = Admin::connect(&arguments.client.broker, client_config())?;
    let topic = arguments.topic.as_str();
    let partitions = admin.describe_topic(topic)?.partitions;
    let queries: Vec<_> = (partitions.iter())
        .map(|partition| (topic, partition.partition, OffsetQuery::Latest))
        .collect();
    let ends = admin.list_offsets(&queries)?.into_iter();
    Ok(ends
        .filter_map(|end| Some((end.partition, end.offset?)))
        .collect())
}

/// Notes whether the group has given the member its share, be it none. In a rebalance it has none yet.
struct Assigned(Arc<AtomicBool>);

impl RebalanceListener for Assigned {
    fn assigned(&mut self, _: &mut GroupConsumer, _: &[NamedPartition]) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn revoked(&mut self, consumer: &mut GroupConsumer, partitions: &[NamedPartition]) {
        // Who keeps some has its share still.
        let keeps_none = (consumer.assignment().iter()).all(|one| partitions.contains(one));
        if keeps_none {
            self.0.store(false, Ordering::Relaxed);
        }
    }

    fn lost(&mut self, _: &mut GroupConsumer, _: &[NamedPartition]) {
        self.0.store(false, Ordering::Relaxed);
    }
}

struct Reader<'a> {
    arguments: &'a ConsumeArguments,
    /// Where to stop; `None`: a count or a signal does.
    ends: Option<BTreeMap<PartitionIndex, Offset>>,
    is_assigned: Arc<AtomicBool>,
    is_interrupted: Arc<AtomicBool>,
    printed: u64,
}

impl Reader<'_> {
    fn read(mut self, mut consumer: GroupConsumer) -> Result<(), Failure> {
        let mut printed = BTreeMap::new();
        loop {
            let records = consumer.poll(POLL_TIMEOUT)?;
            self.print(&records, &mut printed)?;
            if Some(self.printed) == self.arguments.count {
                // What was polled and not printed is somebody else's to read. What went to another member was committed
                // when it went.
                let own = consumer.assignment();
                let printed = printed.into_iter();
                let printed: Vec<_> = printed.filter(|(one, _)| own.contains(one)).collect();
                return Ok(consumer.commit_offsets(&printed)?);
            }
            if self.is_interrupted.load(Ordering::Relaxed) {
                consumer.close(CLOSE_TIMEOUT)?;
                return Err(Failure::Reported(EXIT_INTERRUPTED));
            }
            if self.reached_the_end(&consumer)? {
                return Ok(consumer.close(CLOSE_TIMEOUT)?);
            }
        }
    }

    /// Prints up to the count, and notes where each partition is to be read on.
    fn print(
        &mut self,
        records: &Records,
        printed: &mut BTreeMap<NamedPartition, Offset>,
    ) -> Result<(), Failure> {
        let mut out = stdout();
        for record in records {
            let record = record?;
            write_record(&mut out, &record, self.arguments.client.json)?;
            let partition = NamedPartition {
                topic: record.topic.clone(),
                partition: record.partition,
            };
            printed.insert(partition, Offset(record.offset.0 + 1));
            self.printed += 1;
            if Some(self.printed) == self.arguments.count {
                break;
            }
        }
        // What is waited for next must not wait in our buffer, and what is committed must have been seen.
        out.flush()?;
        Ok(())
    }

    fn reached_the_end(&self, consumer: &GroupConsumer) -> Result<bool, Failure> {
        let Some(ends) = &self.ends else {
            return Ok(false);
        };
        if !self.is_assigned.load(Ordering::Relaxed) {
            return Ok(false);
        }
        for partition in consumer.assignment() {
            let position = consumer.position(&partition.topic, partition.partition)?;
            let end = ends.get(&partition.partition).copied().unwrap_or(Offset(0));
            if position.is_none_or(|position| position < end) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
