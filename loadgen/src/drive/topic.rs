//! Topics as a stage needs them: made, measured, removed. Calls are repeated while the broker is away.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use tackboard_client::{
    Acks, Admin, ClientConfig, Durability, Error, ErrorCode, NewTopic, OffsetQuery, PartitionIndex,
    Protocol,
};

use super::spec::Topic;
use crate::machine::interrupt::Interrupt;

/// Longest time that one call waits, so that an interruption is noticed.
const CALL_TIMEOUT: Duration = Duration::from_secs(2);

/// Longest time until the broker is reached for the first time: an address that was mistyped should not take a minute.
const FIRST_CONTACT_MAX: Duration = Duration::from_secs(5);

/// Our own default of `durability.interval`, for brokers that call it `flush.ms`.
const FLUSH_MS: &str = "100";

/// Time between two tries.
const PAUSE: Duration = Duration::from_millis(200);

/// Asks a broker about topics.
pub struct Topics<'a> {
    brokers: Vec<String>,
    protocol: Protocol,
    give_up: Duration,
    interrupt: &'a Interrupt,
    admin: Option<Admin>,
    /// When the broker was last seen to do something, if ever.
    moved_at: Option<Instant>,
}

impl<'a> Topics<'a> {
    /// Asks one of these brokers, for so long if it does not answer.
    pub fn new(
        brokers: Vec<String>,
        protocol: Protocol,
        give_up: Duration,
        interrupt: &'a Interrupt,
    ) -> Self {
        Self {
            brokers,
            protocol,
            give_up,
            interrupt,
            admin: None,
            moved_at: None,
        }
    }

    /// The broker did something at this time, as others saw: patience counts from there.
    pub fn moved(&mut self, at: Instant) {
        self.moved_at = self.moved_at.max(Some(at));
    }

    /// Makes a topic with a fresh name, or with this name unless it exists. It gets the durability, if one is wanted,
    /// where requests can't ask for it.
    pub fn make(
        &mut self,
        name: Option<&str>,
        partitions: i32,
        durability: Option<Durability>,
    ) -> Result<Topic> {
        let is_temporary = name.is_none();
        let name = name.map_or_else(fresh_name, |name| Ok(name.to_owned()))?;
        let durability = durability.filter(|_| self.protocol == Protocol::Kafka);
        let (is_ours, durability_setting) = self.create(&name, partitions, durability)?;
        let mut topic = Topic {
            partitions: self.partition_count(&name, is_ours)?,
            name,
            start_offsets: Vec::new(),
            is_ours,
            is_temporary,
            durability_setting: durability_setting.map(|(key, value)| format!("{key}={value}")),
        };
        topic.start_offsets = self.ends(&topic)?;
        Ok(topic)
    }

    /// Creates a topic. Whether it was there already, and the setting that gives it the durability: each broker is
    /// offered what it may know, ours first.
    fn create(
        &mut self,
        name: &str,
        partitions: i32,
        durability: Option<Durability>,
    ) -> Result<(bool, Option<DurabilitySetting>)> {
        let ways = match durability {
            None => vec![None],
            Some(durability) => vec![Some(ours(durability)), kafkas(durability)],
        };
        let created = self.call(false, |admin| {
            let mut refused = None;
            for way in &ways {
                let mut new = NewTopic::new(name).partitions(partitions);
                new.configs.extend(way.clone());
                match admin.create_topic(&new) {
                    Ok(_) => return Ok((true, way.clone())),
                    Err(error) => match error.code() {
                        Some(ErrorCode::TopicAlreadyExists) => return Ok((false, None)),
                        Some(ErrorCode::InvalidConfig) => refused = Some(error),
                        _ => return Err(error),
                    },
                }
            }
            Err(refused.expect("there is at least one way, and each that failed was refused"))
        })?;
        Ok(created)
    }

    /// How many partitions a topic has. One that was just created may not be known to all at once.
    fn partition_count(&mut self, name: &str, is_ours: bool) -> Result<i32> {
        let address = self.brokers.first().map(String::as_str);
        let address: Arc<str> = address.unwrap_or_default().into();
        self.call(is_ours, |admin| {
            let cluster = admin.describe_cluster(Some(&[name]))?;
            let topic = cluster.topics.first();
            match topic.filter(|topic| topic.error.is_none()) {
                Some(topic) => Ok(topic.partitions.len() as i32),
                None => Err(Error::UnknownTopic {
                    topic: name.into(),
                    address: address.clone(),
                }),
            }
        })
    }

    /// A topic that must exist; reading begins at its first event.
    pub fn existing(&mut self, name: &str) -> Result<Topic> {
        let mut topic = Topic {
            name: name.to_owned(),
            partitions: self.partition_count(name, false)?,
            start_offsets: Vec::new(),
            is_ours: false,
            is_temporary: false,
            durability_setting: None,
        };
        topic.start_offsets = self.offsets(&topic, OffsetQuery::Earliest)?;
        Ok(topic)
    }

    /// Refuses a count of acks that the topic's replicas can't give.
    pub fn check_acks(&mut self, topic: &Topic, acks: Option<Acks>) -> Result<()> {
        let Some(Acks::Count(count)) = acks else {
            return Ok(());
        };
        let cluster = self.call(true, |admin| admin.describe_cluster(Some(&[&topic.name])))?;
        let mut topics = cluster.topics.iter();
        match topics.find_map(|topic| topic.too_few_replicas(acks)) {
            Some(fewest) => bail!(
                "--acks {count}: topic {} has {fewest} in-sync replicas; lower --acks, or add replicas",
                topic.name
            ),
            None => Ok(()),
        }
    }

    /// Where each partition ends now.
    pub fn ends(&mut self, topic: &Topic) -> Result<Vec<i64>> {
        self.offsets(topic, OffsetQuery::Latest)
    }

    fn offsets(&mut self, topic: &Topic, query: OffsetQuery) -> Result<Vec<i64>> {
        let queries = (0..topic.partitions)
            .map(|index| (&*topic.name, PartitionIndex(index), query))
            .collect::<Vec<_>>();
        let listed = self.call(true, |admin| admin.list_offsets(&queries))?;
        let mut offsets = vec![0; topic.partitions as usize];
        for listed in listed {
            if let (Some(offset), Some(slot)) =
                (listed.offset, offsets.get_mut(listed.partition.0 as usize))
            {
                *slot = offset.0;
            }
        }
        Ok(offsets)
    }

    /// Removes a topic; not worth waiting for.
    pub fn remove(&mut self, topic: &Topic) -> Result<()> {
        self.give_up = CALL_TIMEOUT;
        self.call(true, |admin| match admin.delete_topic(&topic.name) {
            Err(error) if error.code() == Some(ErrorCode::UnknownTopicOrPartition) => Ok(()),
            other => other,
        })
    }

    /// Calls until it works, or until it makes no sense to. What the broker refuses is not asked again, unless the topic
    /// is known to exist and it may just have been started.
    fn call<T>(
        &mut self,
        exists: bool,
        mut ask: impl FnMut(&mut Admin) -> tackboard_client::Result<T>,
    ) -> Result<T> {
        let give_up_at = self.give_up_at(Instant::now());
        loop {
            let answer = self.admin().and_then(&mut ask);
            let error = match answer {
                Ok(answer) => {
                    self.moved(Instant::now());
                    return Ok(answer);
                }
                Err(error) => error,
            };
            let is_refusal = error
                .code()
                .is_some_and(|code| !code.retriable() && !exists);
            if is_refusal || matches!(error, Error::Setting { .. }) || Instant::now() >= give_up_at
            {
                return Err(error.into());
            }
            if self.interrupt.raised() {
                bail!("interrupted while waiting for the broker: {error}");
            }
            self.admin = None;
            std::thread::sleep(PAUSE);
        }
    }

    /// When a call that begins now is no longer repeated. Who has waited in vain for as long as may be, be it somebody
    /// else, doesn't begin anew.
    fn give_up_at(&self, now: Instant) -> Instant {
        match self.moved_at {
            Some(moved_at) => moved_at + self.give_up,
            None => now + self.give_up.min(FIRST_CONTACT_MAX),
        }
    }

    fn admin(&mut self) -> tackboard_client::Result<&mut Admin> {
        if self.admin.is_none() {
            let config = ClientConfig {
                client_id: "tackboard-loadgen".into(),
                protocol: self.protocol,
                call_timeout: CALL_TIMEOUT,
                ..ClientConfig::default()
            };
            self.admin = Some(Admin::connect(&self.brokers, config)?);
        }
        Ok(self.admin.as_mut().expect("it was just made"))
    }
}

/// A setting of a topic.
type DurabilitySetting = (String, String);

/// The setting of ours.
fn ours(durability: Durability) -> DurabilitySetting {
    ("tackboard.durability".into(), durability.to_string())
}

/// What comes nearest in Apache Kafka, which by itself acknowledges what the page cache holds and leaves it there.
fn kafkas(durability: Durability) -> Option<DurabilitySetting> {
    match durability {
        Durability::Written => None,
        Durability::Interval => Some(("flush.ms".into(), FLUSH_MS.into())),
        Durability::Fsync => Some(("flush.messages".into(), "1".into())),
    }
}

fn fresh_name() -> Result<String> {
    let mut random = [0; 6];
    getrandom::fill(&mut random).map_err(|error| std::io::Error::other(error.to_string()))?;
    Ok(format!(
        "loadgen-{}",
        random
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect::<String>()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_counts_from_the_last_time_that_anything_moved() {
        let interrupt = Interrupt::default();
        let patience = Duration::from_secs(60);
        let mut topics = Topics::new(Vec::new(), Protocol::Native, patience, &interrupt);
        let start = Instant::now();
        assert_eq!(topics.give_up_at(start), start + FIRST_CONTACT_MAX);
        topics.moved(start);
        let later = start + patience * 2;
        assert_eq!(topics.give_up_at(later), start + patience, "is over");
        topics.moved(later);
        topics.moved(start);
        assert_eq!(topics.give_up_at(later), later + patience);
    }
}
