//! Administration from a thread: one connection, one call at a time, no threads of its own.

use std::collections::{BTreeMap, VecDeque};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tackboard_schema::native::HeadBuilder;
use tackboard_schema::{ErrorCode, Offset, PartitionIndex};

use super::ambient::{deadline_after, seed};
use super::dial::dial;
use crate::admin::{
    ClusterDescription, CreatedTopic, GroupDescription, GroupSummary, ListedOffset, NewTopic,
    OffsetQuery, TopicDescription, TopicSummary,
};
use crate::config::{ClientConfig, Protocol};
use crate::error::{Error, Result};
use crate::protocol::calls::{
    self, AlterTopic, Attempts, Call, CreatePartitions, CreateTopic, DeleteTopic, DescribeCluster,
    DescribeTopic, ListOffsets,
};
use crate::protocol::connection::Connection;
use crate::protocol::group::{CommittedOffset, NamedPartition};
use crate::protocol::group_calls::{
    DeleteGroup, DeleteGroupOffsets, DescribeGroup, GroupOffsets, ListGroups, SetGroupOffsets,
};
use crate::protocol::messages::{self, Context, Welcome};
use crate::protocol::wire::{Pipelining, Question, Wire};
use crate::protocol::{FrameReader, InFrame, Now, Random};
use crate::system::{disconnected, end_of_stream};

/// Offsets in one request; what a broker takes.
const OFFSETS_PER_CALL_MAX: usize = 10_000;

/// Topics, groups, offsets and brokers: calls that wait for their answer.
///
/// ```no_run
/// use tackboard_client::{Admin, ClientConfig, NewTopic};
/// # fn main() -> tackboard_client::Result<()> {
/// let mut admin = Admin::connect(&["127.0.0.1:7400"], ClientConfig::default())?;
/// admin.create_topic(&NewTopic::new("flights").partitions(6))?;
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Admin {
    brokers: Vec<Arc<str>>,
    config: ClientConfig,
    session: Option<Session>,
    welcome: Welcome,
    started: Instant,
    random: Random,
}

/// A connection that was greeted.
#[derive(Debug)]
struct Session {
    address: Arc<str>,
    stream: TcpStream,
    connection: Connection<()>,
    reader: FrameReader,
}

impl Admin {
    /// Connects to the first of `brokers` (`host:port`) that answers.
    ///
    /// # Errors
    /// [`Error::Unreachable`] when none does; what was wrong with the last one otherwise.
    pub fn connect<A: AsRef<str>>(brokers: &[A], config: ClientConfig) -> Result<Self> {
        let brokers: Vec<Arc<str>> = brokers
            .iter()
            .map(|broker| broker.as_ref().into())
            .collect();
        let (session, welcome) = Session::open_any(&brokers, &config)?;
        let random = Random::new(seed()?);
        Ok(Self {
            brokers,
            config,
            session: Some(session),
            welcome,
            started: Instant::now(),
            random,
        })
    }

    /// What the broker said of itself when the connection began.
    pub fn broker(&self) -> &Welcome {
        &self.welcome
    }

    /// Creates a topic.
    ///
    /// # Errors
    /// [`Error::Refused`] with `TOPIC_ALREADY_EXISTS`, `INVALID_TOPIC_EXCEPTION`, `INVALID_PARTITIONS`,
    /// `INVALID_REPLICATION_FACTOR`, `INVALID_CONFIG`, `POLICY_VIOLATION`; [`Error::Disconnected`] leaves open whether
    /// the topic was created.
    pub fn create_topic(&mut self, topic: &NewTopic) -> Result<CreatedTopic> {
        self.call(&CreateTopic(topic))
    }

    /// Deletes a topic with all its records.
    ///
    /// # Errors
    /// [`Error::UnknownTopic`]; [`Error::Disconnected`] leaves open whether the topic was deleted.
    pub fn delete_topic(&mut self, name: &str) -> Result<()> {
        self.call(&DeleteTopic(name))
    }

    /// Gives a topic more partitions, so that it has `count`. They can be used at once. Our own protocol only.
    ///
    /// # Errors
    /// [`Error::UnknownTopic`]; [`Error::Refused`] with `INVALID_PARTITIONS` or `POLICY_VIOLATION`;
    /// [`Error::Disconnected`] leaves open whether the topic has them.
    pub fn create_partitions(&mut self, name: &str, count: i32) -> Result<()> {
        self.call(&CreatePartitions(name, count))
    }

    /// Changes settings of a topic, all or none: each key with its value, or with none for the broker's. They hold at once.
    /// Our own protocol only.
    ///
    /// # Errors
    /// [`Error::UnknownTopic`]; [`Error::Refused`] with `INVALID_CONFIG`.
    pub fn alter_topic(&mut self, name: &str, changes: &[(String, Option<String>)]) -> Result<()> {
        self.call(&AlterTopic(name, changes))
    }

    /// A topic's settings, partitions and positions. Our own protocol only.
    ///
    /// # Errors
    /// [`Error::UnknownTopic`]; on Kafka's protocol [`Error::Refused`] with `UNSUPPORTED_VERSION`.
    pub fn describe_topic(&mut self, name: &str) -> Result<TopicDescription> {
        self.call(&DescribeTopic(name))
    }

    /// All topics, in the order of their names.
    ///
    /// # Errors
    /// [`Error::Refused`], [`Error::Unreachable`].
    pub fn list_topics(&mut self) -> Result<Vec<TopicSummary>> {
        Ok(self.describe_cluster(None)?.topics)
    }

    /// The brokers, and these topics or all. A topic that does not exist has its error in the answer.
    ///
    /// # Errors
    /// [`Error::Refused`], [`Error::Unreachable`].
    pub fn describe_cluster(&mut self, topics: Option<&[&str]>) -> Result<ClusterDescription> {
        self.call(&DescribeCluster(topics))
    }

    /// Offsets by position or by time, in the order asked for.
    ///
    /// # Errors
    /// [`Error::UnknownTopic`] or [`Error::Refused`] for the first partition that cannot be answered for.
    pub fn list_offsets(
        &mut self,
        queries: &[(&str, PartitionIndex, OffsetQuery)],
    ) -> Result<Vec<ListedOffset>> {
        match self.config.protocol {
            Protocol::Native => self.call(&ListOffsets(queries)),
            Protocol::Kafka => self.list_offsets_at_leaders(queries),
        }
    }

    /// Brokers of Kafka's answer for what they lead, and do not pass on what they don't.
    fn list_offsets_at_leaders(
        &mut self,
        queries: &[(&str, PartitionIndex, OffsetQuery)],
    ) -> Result<Vec<ListedOffset>> {
        let mut topics: Vec<&str> = queries.iter().map(|(topic, ..)| *topic).collect();
        topics.sort_unstable();
        topics.dedup();
        let cluster = self.describe_cluster(Some(&topics))?;
        let mut by_leader: BTreeMap<Arc<str>, Vec<usize>> = BTreeMap::new();
        for (index, (topic, partition, _)) in queries.iter().enumerate() {
            let leader = self.leader(&cluster, topic, *partition)?;
            by_leader.entry(leader).or_default().push(index);
        }
        let mut listed = vec![None; queries.len()];
        for (leader, indexes) in by_leader {
            let asked: Vec<_> = indexes.iter().map(|index| queries[*index]).collect();
            let answers = self.call_at(Some(&leader), &ListOffsets(&asked))?;
            for (index, answer) in indexes.into_iter().zip(answers) {
                listed[index] = Some(answer);
            }
        }
        Ok(listed.into_iter().flatten().collect())
    }

    /// Where the leader of a partition is reached.
    fn leader(
        &self,
        cluster: &ClusterDescription,
        topic: &str,
        partition: PartitionIndex,
    ) -> Result<Arc<str>> {
        let found = cluster.topics.iter().find(|found| &*found.name == topic);
        let code = match found.map_or(Some(ErrorCode::UnknownTopicOrPartition), |topic| {
            topic.error
        }) {
            Some(code) => code,
            None => {
                let partitions = found.into_iter().flat_map(|topic| &topic.partitions);
                let mut leaders = partitions
                    .filter(|found| found.partition == partition)
                    .map(|found| found.leader);
                let Some(leader) = leaders.next() else {
                    return Err(Error::UnknownPartition {
                        topic: topic.into(),
                        partition,
                        partition_count: found.map_or(0, |topic| topic.partitions.len()),
                    });
                };
                let mut brokers = cluster.brokers.iter();
                if let Some(broker) = brokers.find(|broker| Some(broker.broker_id) == leader) {
                    return Ok(broker.address.clone());
                }
                ErrorCode::LeaderNotAvailable
            }
        };
        let call = ListOffsets(&[]);
        let context = Context::new(call.question().api(), &self.brokers[0]).topic(topic);
        let refusal = context.refusal(Some(partition), code, None);
        Err(calls::named(Error::Refused(refusal), Some(topic)))
    }

    /// All consumer groups, in the order of their names.
    ///
    /// # Errors
    /// [`Error::Refused`], [`Error::Unreachable`].
    pub fn list_groups(&mut self) -> Result<Vec<GroupSummary>> {
        self.call(&ListGroups)
    }

    /// A group with its members and their shares.
    ///
    /// # Errors
    /// [`Error::Refused`] with `GROUP_ID_NOT_FOUND`.
    pub fn describe_group(&mut self, group: &str) -> Result<GroupDescription> {
        self.call(&DescribeGroup(group))
    }

    /// Everything that a group has committed; nothing for one that there isn't.
    ///
    /// # Errors
    /// [`Error::Refused`], [`Error::Unreachable`].
    pub fn group_offsets(&mut self, group: &str) -> Result<Vec<CommittedOffset>> {
        self.call(&GroupOffsets(group))
    }

    /// Commits offsets for a group that has no members. It is made, if there is none.
    ///
    /// # Errors
    /// [`Error::Refused`], with `UNKNOWN_MEMBER_ID` while the group has members.
    pub fn set_group_offsets(
        &mut self,
        group: &str,
        offsets: &[(NamedPartition, Offset)],
    ) -> Result<()> {
        // A broker takes so many at a time.
        for some in offsets.chunks(OFFSETS_PER_CALL_MAX) {
            self.call(&SetGroupOffsets(group, some))?;
        }
        Ok(())
    }

    /// Forgets what a group has committed for these partitions.
    ///
    /// # Errors
    /// [`Error::Refused`], with `GROUP_SUBSCRIBED_TO_TOPIC` while a member reads the topic, with `GROUP_ID_NOT_FOUND`.
    pub fn delete_group_offsets(
        &mut self,
        group: &str,
        partitions: &[NamedPartition],
    ) -> Result<()> {
        for some in partitions.chunks(OFFSETS_PER_CALL_MAX) {
            self.call(&DeleteGroupOffsets(group, some))?;
        }
        Ok(())
    }

    /// Forgets a group that has no members, with everything that it has committed.
    ///
    /// # Errors
    /// [`Error::Refused`] with `NON_EMPTY_GROUP` or `GROUP_ID_NOT_FOUND`; [`Error::Disconnected`] leaves open whether the
    /// group is gone.
    pub fn delete_group(&mut self, group: &str) -> Result<()> {
        self.call(&DeleteGroup(group))
    }

    fn now(&self) -> Now {
        Now(self.started.elapsed())
    }

    fn call<C: Call>(&mut self, call: &C) -> Result<C::Output> {
        self.call_at(None, call)
    }

    /// Calls the broker at this address, or any.
    fn call_at<C: Call>(&mut self, at: Option<&Arc<str>>, call: &C) -> Result<C::Output> {
        let mut attempts = Attempts::new(&self.config, self.now());
        loop {
            let fault = match self.attempt(at, call, &attempts) {
                Ok(output) => return Ok(output),
                Err(fault) => calls::named(fault, call.topic()),
            };
            let now = self.now();
            let pause = attempts.again::<C>(fault, now, &mut self.random)?;
            std::thread::sleep(pause);
        }
    }

    fn attempt<C: Call>(
        &mut self,
        at: Option<&Arc<str>>,
        call: &C,
        attempts: &Attempts,
    ) -> Result<C::Output> {
        let session = self.session.take();
        let is_there = |session: &Session| at.is_none_or(|at| *at == session.address);
        let mut session = match session.filter(is_there) {
            Some(session) => session,
            None => {
                let brokers = at.map_or(&self.brokers[..], std::slice::from_ref);
                let (session, welcome) = Session::open_any(brokers, &self.config)?;
                self.welcome = welcome;
                session
            }
        };
        let left = attempts
            .deadline()
            .since(self.now())
            .min(self.config.request_timeout);
        // A session that failed half way is not used again.
        let (context, frame) = session.exchange(&call.question(), left)?;
        self.session = Some(session);
        call.read(&calls::about(call, context), &frame)
    }
}

impl Session {
    fn open_any(brokers: &[Arc<str>], config: &ClientConfig) -> Result<(Self, Welcome)> {
        let mut last = None;
        for address in brokers {
            match Self::open(address, config) {
                Ok(opened) => return Ok(opened),
                Err(fault) => last = Some(fault),
            }
        }
        match last {
            Some(fault) => Err(fault),
            None => crate::config::setting("brokers", "(none)", "at least one HOST:PORT"),
        }
    }

    fn open(address: &Arc<str>, config: &ClientConfig) -> Result<(Self, Welcome)> {
        let stream = dial(address, config.connect_timeout)?;
        let wire = Wire::new(config, Pipelining::One);
        let connection = Connection::new(address.clone(), wire, Now::default());
        let reader = FrameReader::new(config.protocol, config.frame_bytes_max);
        let mut session = Self {
            address: address.clone(),
            stream,
            connection,
            reader,
        };
        let question = Question::Hello {
            client_id: &config.client_id,
        };
        let (context, frame) = session.exchange(&question, config.connect_timeout)?;
        let welcome = session.connection.greeted(&context, &frame)?;
        Ok((session, welcome))
    }

    /// Sends one request and waits for its answer.
    fn exchange(
        &mut self,
        question: &Question<'_>,
        timeout: Duration,
    ) -> Result<(Context, InFrame)> {
        let deadline = deadline_after(timeout);
        let mut heads = HeadBuilder::new();
        let sent = (self.connection).send(question, &mut heads, Some(()), Now::default());
        sent.map_err(|(refused, _)| {
            let context = Context::new(question.api(), &self.address);
            Error::Refused(context.refusal(None, refused.code, Some(&refused.message)))
        })?;
        let mut output = VecDeque::new();
        self.connection.take_output(&mut output);
        for bytes in output {
            self.stream
                .write_all(&bytes)
                .map_err(|error| disconnected(&self.address, &error))?;
        }
        loop {
            match self.reader.next_frame() {
                Ok(Some(frame)) => {
                    let answered = frame.answers();
                    match answered.and_then(|id| self.connection.answered(id)) {
                        Some(request) => return Ok((request.context(&self.address), frame)),
                        None => continue,
                    }
                }
                Ok(None) => {}
                Err(fault) => {
                    return Err(Error::Protocol {
                        address: self.address.clone(),
                        what: fault.to_string().into(),
                    });
                }
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let what =
                    format!("{} at {}", messages::api_name(question.api()), self.address).into();
                return Err(Error::TimedOut {
                    what,
                    waited: timeout,
                    last: None,
                });
            }
            let read = self
                .stream
                .set_read_timeout(Some(left))
                .and_then(|()| self.stream.read(self.reader.space()));
            match read {
                Ok(0) => return Err(disconnected(&self.address, &end_of_stream())),
                Ok(count) => self.reader.filled(count),
                Err(error)
                    if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) => {}
                Err(error) => return Err(disconnected(&self.address, &error)),
            }
        }
    }
}
