//! What a run found out, before anybody formats it.

use crate::machine::host::Host;
use crate::measure::latency::Latency;
use crate::measure::process::ThreadUse;
use crate::measure::timeline::Timeline;
use crate::verdict::judge::Verdict;

/// Events that went one way, and the time it took.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Flow {
    /// Events.
    pub events: u64,
    /// Bytes of their keys and values.
    pub bytes: u64,
    /// Seconds from the first to the last.
    pub seconds: f64,
}

impl Flow {
    /// Events a second.
    pub fn events_per_second(&self) -> f64 {
        if self.seconds > 0.0 {
            self.events as f64 / self.seconds
        } else {
            0.0
        }
    }

    /// Bytes a second.
    pub fn bytes_per_second(&self) -> f64 {
        if self.seconds > 0.0 {
            self.bytes as f64 / self.seconds
        } else {
            0.0
        }
    }
}

/// How well the load generator itself kept to its schedule.
#[derive(Clone, Debug, Default)]
pub struct ScheduleReport {
    /// Time from when an event was due to when it was handed to its producer.
    pub lag: Latency,
    /// Events that fell due within the stage.
    pub due: u64,
    /// Events that were handed over.
    pub sent: u64,
    /// Why the schedule was not kept, if it was not: the stage is void.
    pub void: Option<String>,
}

impl ScheduleReport {
    /// Whether the stage says anything about the rate that was asked for.
    pub fn kept(&self) -> bool {
        self.void.is_none()
    }
}

/// What a stage cost.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// What it cost the broker, if that is embedded.
    pub broker: Option<BrokerCost>,
    /// CPU seconds of the load cores.
    pub load_cpu_seconds: f64,
    /// How the busiest load core spent its time since the first event was due.
    pub busiest: Option<ThreadUse>,
}

/// What a stage cost the embedded broker.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BrokerCost {
    /// CPU seconds of its cores.
    pub cpu_seconds: f64,
    /// Times that it had to wait for its disk to make data durable.
    pub syncs: u64,
}

/// A load core that is busy for more of its time than this is what limits a figure.
pub const LOAD_BUSY_MAX: f64 = 0.9;

/// What keeps a load core from doing more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadLimit {
    /// Nothing: it had time to spare.
    None,
    /// It ran all the time.
    LoadCore,
    /// It ran or waited for its CPU all the time: somebody else runs there too.
    SharedCpu,
}

impl LoadLimit {
    /// What a thread's use of its time says.
    pub fn of(thread: ThreadUse) -> Self {
        if thread.busy > LOAD_BUSY_MAX {
            Self::LoadCore
        } else if thread.busy + thread.waiting.unwrap_or(0.0) > LOAD_BUSY_MAX {
            Self::SharedCpu
        } else {
            Self::None
        }
    }
}

/// One stage.
#[derive(Clone, Debug)]
pub struct StageResult {
    /// What it is called on the screen.
    pub title: String,
    /// Its settings, in the order in which they are worth reading.
    pub settings: Vec<String>,
    /// The settings that shape its figures, by name.
    pub plan: Vec<(&'static str, String)>,
    /// What was acknowledged.
    pub produced: Option<Flow>,
    /// What was read.
    pub read: Option<Flow>,
    /// From due to acknowledged.
    pub produce_latency: Latency,
    /// From due to read by a consumer.
    pub end_to_end_latency: Latency,
    /// In open loop: whether the load generator kept up.
    pub schedule: Option<ScheduleReport>,
    /// Rates and tails over time.
    pub timeline: Timeline,
    /// What was lost, duplicated, out of order or changed, if that could be checked.
    pub verdict: Option<Verdict>,
    /// What it cost.
    pub cost: Cost,
    /// Share of the CPU time of this machine, 0 to 1, that its host took meanwhile; none where the system doesn't tell.
    pub stolen_share: Option<f64>,
    /// Connections that were lost and made again.
    pub reconnects: u64,
    /// What ended it early.
    pub cut_short: Option<String>,
    /// What went wrong on the way and was overcome, e.g. lost connections.
    pub notes: Vec<String>,
}

/// Where and on what a run took place.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The machine.
    pub host: Host,
    /// One line about the broker.
    pub broker: String,
    /// File system of an embedded broker's data and how it is written.
    pub storage: Option<String>,
    /// Commit of the checkout, if it runs in one.
    pub commit: Option<String>,
    /// When it began, RFC 3339.
    pub started_at: String,
}

/// A whole run.
#[derive(Clone, Debug)]
pub struct RunResult {
    /// Where it took place.
    pub setting: Setting,
    /// Its stages, in order.
    pub stages: Vec<StageResult>,
    /// The verdict over all stages that were verified.
    pub verdict: Option<Verdict>,
    /// Most memory that the process held at once, the embedded broker included.
    pub memory_bytes_max: Option<u64>,
    /// The run was interrupted.
    pub interrupted: bool,
}

impl StageResult {
    /// Events by which a cost is counted, in millions: those that were sent, or read where none were sent.
    pub fn millions(&self) -> Option<f64> {
        let flow = self.produced.or(self.read)?;
        (flow.events > 0).then_some(flow.events as f64 / 1e6)
    }

    /// Events were made as fast as they were taken: latency is mostly that of the queue which this builds up.
    pub fn is_closed_loop(&self) -> bool {
        self.produced.is_some() && self.schedule.is_none()
    }
}

impl RunResult {
    /// The verdict over all stages; none if nothing was verified.
    pub fn verdict_of(stages: &[StageResult]) -> Option<Verdict> {
        let mut verdicts = stages.iter().filter_map(|stage| stage.verdict.clone());
        let mut whole = verdicts.next()?;
        verdicts.for_each(|verdict| whole.merge(verdict));
        Some(whole)
    }

    /// Connections that were lost and made again in all stages.
    pub fn reconnects(&self) -> u64 {
        self.stages.iter().map(|stage| stage.reconnects).sum()
    }

    /// Whether a stage is void because its schedule was not kept.
    pub fn is_void(&self) -> bool {
        self.stages.iter().any(|stage| {
            stage
                .schedule
                .as_ref()
                .is_some_and(|schedule| !schedule.kept())
        })
    }
}
