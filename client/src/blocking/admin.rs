//! Administration from a thread: one connection, one call at a time, no threads of its own.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tackboard_schema::PartitionIndex;
use tackboard_schema::frame::ApiKey;
use tackboard_schema::native::HeadBuilder;

use super::ambient::seed;
use super::dial::dial;
use crate::admin::{
    ClusterDescription, CreatedTopic, ListedOffset, NewTopic, OffsetQuery, TopicDescription,
    TopicSummary,
};
use crate::config::ClientConfig;
use crate::error::{Error, Result};
use crate::protocol::calls::{
    self, Attempts, Call, CreateTopic, DeleteTopic, DescribeCluster, DescribeTopic, ListOffsets,
};
use crate::protocol::connection::{Connection, Request};
use crate::protocol::messages::{self, Context, Welcome};
use crate::protocol::{FrameReader, InFrame, Now, Random};
use crate::system::{disconnected, end_of_stream};

/// Topics, offsets and brokers: calls that wait for their answer.
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

    /// A topic's settings, partitions and positions.
    ///
    /// # Errors
    /// [`Error::UnknownTopic`].
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
        self.call(&ListOffsets(queries))
    }

    fn now(&self) -> Now {
        Now(self.started.elapsed())
    }

    fn call<C: Call>(&mut self, call: &C) -> Result<C::Output> {
        let mut attempts = Attempts::new(&self.config, self.now());
        loop {
            let fault = match self.attempt(call, &attempts) {
                Ok(output) => return Ok(output),
                Err(fault) => calls::named(fault, call.topic()),
            };
            let now = self.now();
            let pause = attempts.again::<C>(fault, now, &mut self.random)?;
            std::thread::sleep(pause);
        }
    }

    fn attempt<C: Call>(&mut self, call: &C, attempts: &Attempts) -> Result<C::Output> {
        let mut session = match self.session.take() {
            Some(session) => session,
            None => {
                let (session, welcome) = Session::open_any(&self.brokers, &self.config)?;
                self.welcome = welcome;
                session
            }
        };
        let left = attempts
            .deadline()
            .since(self.now())
            .min(self.config.request_timeout);
        let mut heads = HeadBuilder::new();
        let head = call.encode(&mut heads);
        // A session that failed half way is not used again.
        let frame = session.exchange(C::API, head, left)?;
        let context = calls::context(call, &session.address);
        self.session = Some(session);
        call.read(&context, &frame)
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
        let connection = Connection::new(address.clone(), Now::default());
        let reader = FrameReader::new(config.frame_bytes_max);
        let mut session = Self {
            address: address.clone(),
            stream,
            connection,
            reader,
        };
        let mut heads = HeadBuilder::new();
        let head = messages::hello_request(&mut heads, &config.client_id);
        let frame = session.exchange(ApiKey::Hello, head, config.connect_timeout)?;
        let welcome = messages::read_hello(&Context::new(ApiKey::Hello, address), &frame)?;
        Ok((session, welcome))
    }

    /// Sends one request and waits for its answer.
    fn exchange(&mut self, api: ApiKey, head: &[u8], timeout: Duration) -> Result<InFrame> {
        let deadline = Instant::now() + timeout;
        self.connection.send(
            Request {
                api,
                head,
                body: &[],
            },
            Some(()),
            Now::default(),
        );
        let mut output = VecDeque::new();
        self.connection.take_output(&mut output);
        for bytes in output {
            self.stream
                .write_all(&bytes)
                .map_err(|error| disconnected(&self.address, &error))?;
        }
        loop {
            match self.reader.next_frame() {
                Ok(Some(frame))
                    if self
                        .connection
                        .answered(frame.prefix.correlation_id)
                        .is_some() =>
                {
                    return Ok(frame);
                }
                Ok(Some(_)) => continue,
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
                let what = format!("{} at {}", messages::api_name(api), self.address).into();
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
