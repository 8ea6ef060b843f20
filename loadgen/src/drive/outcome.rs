//! What a load core hands back.

use crate::measure::latency::Latency;
use crate::measure::process::ThreadUse;
use crate::verdict::acked::AckedLog;
use crate::verdict::checker::PartitionChecker;

/// Latencies since the last snapshot.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// From due to acknowledged.
    pub produce: Latency,
    /// From due to read.
    pub end_to_end: Latency,
    /// From due to handed over, in open loop.
    pub lag: Latency,
}

impl Snapshot {
    /// Adds another core's, or a later one's.
    pub fn add(&mut self, other: &Snapshot) {
        self.produce.add(&other.produce);
        self.end_to_end.add(&other.end_to_end);
        self.lag.add(&other.lag);
    }

    /// Takes what there is and leaves nothing.
    pub fn take(&mut self) -> Self {
        let taken = self.clone();
        self.produce.clear();
        self.end_to_end.clear();
        self.lag.clear();
        taken
    }
}

/// A span of time in which something happened, ns of the monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The first time.
    pub first_ns: u64,
    /// The last time.
    pub last_ns: u64,
}

impl Default for Span {
    fn default() -> Self {
        Self {
            first_ns: u64::MAX,
            last_ns: 0,
        }
    }
}

impl Span {
    /// Notes that something happened.
    pub fn note(&mut self, at_ns: u64) {
        self.first_ns = self.first_ns.min(at_ns);
        self.last_ns = self.last_ns.max(at_ns);
    }

    /// The span that covers both.
    pub fn cover(&mut self, other: Span) {
        self.first_ns = self.first_ns.min(other.first_ns);
        self.last_ns = self.last_ns.max(other.last_ns);
    }

    /// Its length in seconds; zero if nothing happened.
    pub fn seconds(&self) -> f64 {
        self.last_ns.saturating_sub(self.first_ns) as f64 / 1e9
    }
}

/// One producer's end.
#[derive(Debug, Default)]
pub struct ProducerOutcome {
    /// Its number.
    pub producer: u32,
    /// What it sent and what was acknowledged, by partition.
    pub logs: Vec<AckedLog>,
    /// Events in the figures that were acknowledged.
    pub events: u64,
    /// Bytes of their keys and values.
    pub bytes: u64,
    /// From the first of them being due to the last being acknowledged.
    pub span: Span,
    /// Times that an event had to wait because the buffer was full, in open loop.
    pub held_back: u64,
    /// Events that were due were never handed over: the stage had been over for long.
    pub is_cut: bool,
    /// Connections that it lost and made again.
    pub reconnects: u64,
    /// The last failure that it went on after, or ended with.
    pub fault: Option<String>,
    /// It gave up.
    pub gave_up: bool,
}

/// One consumer's end.
#[derive(Debug, Default)]
pub struct ConsumerOutcome {
    /// What it read, by its partitions.
    pub partitions: Vec<PartitionChecker>,
    /// Events in the figures that were read.
    pub events: u64,
    /// Bytes of their keys and values.
    pub bytes: u64,
    /// From the first to the last of them being read.
    pub span: Span,
    /// Connections that it lost and made again.
    pub reconnects: u64,
    /// The last failure that it went on after, or ended with.
    pub fault: Option<String>,
    /// It gave up.
    pub gave_up: bool,
}

/// Everything that a load core has to say at the end of a stage.
#[derive(Debug, Default)]
pub struct CoreOutcome {
    /// Its producers.
    pub producers: Vec<ProducerOutcome>,
    /// Its consumers.
    pub consumers: Vec<ConsumerOutcome>,
    /// CPU seconds of its thread during the stage.
    pub cpu_seconds: f64,
    /// How its thread spent the time since the first event was due; none if the stage ended before.
    pub thread_use: Option<ThreadUse>,
}

/// What a load core sends to the main thread.
#[derive(Debug)]
pub enum CoreMessage {
    /// Latencies since the last snapshot; answers a request, or the end of a stage.
    Snapshot(Box<Snapshot>),
    /// The stage is over on this core.
    Done(Box<CoreOutcome>),
}
