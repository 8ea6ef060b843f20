//! The client for threads: sockets of the standard library, calls that wait.

use std::time::Duration;

use crate::*;

/// Topics, offsets and brokers: calls that wait for their answer.
#[derive(Debug)]
pub struct Admin;

impl Admin {
    /// Connects to the first broker that answers.
    pub fn connect<A: AsRef<str>>(brokers: &[A], config: ClientConfig) -> Result<Self> {
        let _ = (brokers.len(), config);
        Err(Error::Closed)
    }
    /// What the broker said of itself when the connection began.
    pub fn broker(&self) -> &protocol::Welcome {
        unreachable!("no connection was made")
    }
    /// Creates a topic.
    pub fn create_topic(&mut self, _topic: &NewTopic) -> Result<CreatedTopic> {
        Err(Error::Closed)
    }
    /// Deletes a topic.
    pub fn delete_topic(&mut self, _name: &str) -> Result<()> {
        Err(Error::Closed)
    }
    /// A topic's settings, partitions and positions.
    pub fn describe_topic(&mut self, _name: &str) -> Result<TopicDescription> {
        Err(Error::Closed)
    }
    /// All topics, by name.
    pub fn list_topics(&mut self) -> Result<Vec<TopicSummary>> {
        Err(Error::Closed)
    }
    /// The brokers and these topics, or all.
    pub fn describe_cluster(&mut self, _topics: Option<&[&str]>) -> Result<ClusterDescription> {
        Err(Error::Closed)
    }
    /// Offsets by position or by time, in the order asked for.
    pub fn list_offsets(
        &mut self,
        _queries: &[(&str, PartitionIndex, OffsetQuery)],
    ) -> Result<Vec<ListedOffset>> {
        Err(Error::Closed)
    }
}

/// Sends records. Share it between threads by reference.
#[derive(Debug)]
pub struct Producer;

impl Producer {
    /// Connects to the first broker that answers.
    pub fn connect<A: AsRef<str>>(brokers: &[A], config: ProducerConfig) -> Result<Self> {
        let _ = (brokers.len(), config);
        Err(Error::Closed)
    }
    /// The same, and `report` is told of every batch, in order per partition, on a thread of the client.
    pub fn connect_with_reports<A: AsRef<str>>(
        brokers: &[A],
        config: ProducerConfig,
        report: impl FnMut(BatchReport) + Send + 'static,
    ) -> Result<Self> {
        let _ = (brokers.len(), config, report);
        Err(Error::Closed)
    }
    /// Puts a record into its batch; waits while the buffer is full. What becomes of it is told by `flush`.
    pub fn send(&self, _topic: &str, _record: ProducerRecord<'_>) -> Result<()> {
        Err(Error::Closed)
    }
    /// The same, with a handle on what becomes of it.
    pub fn send_tracked(&self, _topic: &str, _record: ProducerRecord<'_>) -> Result<Delivery> {
        Err(Error::Closed)
    }
    /// The same, and `callback` is called with what became of it, on a thread of the client.
    pub fn send_with(
        &self,
        _topic: &str,
        _record: ProducerRecord<'_>,
        _callback: impl FnOnce(Result<RecordPosition>) + Send + 'static,
    ) -> Result<()> {
        Err(Error::Closed)
    }
    /// How many partitions a topic has.
    pub fn partition_count(&self, _topic: &str) -> Result<usize> {
        Err(Error::Closed)
    }
    /// Waits until everything sent before has been delivered or has failed; the first failure since the last flush.
    pub fn flush(&self) -> Result<()> {
        Err(Error::Closed)
    }
    /// Flushes and ends the connections.
    pub fn close(self) -> Result<()> {
        Err(Error::Closed)
    }
}

/// A handle on one record.
#[derive(Debug)]
pub struct Delivery;

impl Delivery {
    /// Waits until the record is delivered or has failed.
    pub fn wait(&self) -> Result<RecordPosition> {
        Err(Error::Closed)
    }
    /// What became of it, if that is known.
    pub fn try_get(&self) -> Option<Result<RecordPosition>> {
        None
    }
}

/// Reads records.
#[derive(Debug)]
pub struct Consumer;

impl Consumer {
    /// Connects to the first broker that answers.
    pub fn connect<A: AsRef<str>>(brokers: &[A], config: ConsumerConfig) -> Result<Self> {
        let _ = (brokers.len(), config);
        Err(Error::Closed)
    }
    /// Reads exactly these partitions from now on, each from its start.
    pub fn assign(&mut self, _partitions: &[(&str, PartitionIndex, Start)]) -> Result<()> {
        Err(Error::Closed)
    }
    /// Reads all partitions of a topic from now on.
    pub fn assign_topic(&mut self, _topic: &str, _start: Start) -> Result<()> {
        Err(Error::Closed)
    }
    /// The next records; none when `timeout` passes without any.
    pub fn poll(&mut self, _timeout: Duration) -> Result<Records> {
        Err(Error::Closed)
    }
    /// Goes on from another place.
    pub fn seek(&mut self, _topic: &str, _partition: PartitionIndex, _start: Start) -> Result<()> {
        Err(Error::Closed)
    }
    /// Hands out nothing of this partition until `resume`.
    pub fn pause(&mut self, _topic: &str, _partition: PartitionIndex) -> Result<()> {
        Err(Error::Closed)
    }
    /// Undoes `pause`.
    pub fn resume(&mut self, _topic: &str, _partition: PartitionIndex) -> Result<()> {
        Err(Error::Closed)
    }
    /// The offset of the next record that `poll` will return; `None` until the start was found out.
    pub fn position(&self, _topic: &str, _partition: PartitionIndex) -> Result<Option<Offset>> {
        Err(Error::Closed)
    }
    /// The end of what may be read, as of the last answer; `None` until there was one.
    pub fn high_watermark(
        &self,
        _topic: &str,
        _partition: PartitionIndex,
    ) -> Result<Option<Offset>> {
        Err(Error::Closed)
    }
}
