//! The loop of the control thread: proposals in, images out, and who has applied what.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tackboard_logic::metadata::{Command, Image};
use tackboard_schema::CoreId;
use tokio::sync::watch;

use crate::bridge::{CoreSender, PartitionFault, ProposalResult, ToControl, ToCore};

use super::quorum::MetadataQuorum;
use super::start::{ControlEvent, ShutdownReport};
use super::status::Status;

/// Proposals that are made durable with one sync.
const PROPOSALS_PER_SYNC_MAX: usize = 256;
/// A core whose inbox was full is tried again after this long.
const REDELIVERY_PAUSE: Duration = Duration::from_millis(5);

/// What the handle asks for.
#[derive(Debug)]
pub(super) enum Request {
    /// Drain the cores, answer, and end.
    Shutdown {
        deadline: Instant,
        answer: flume::Sender<ShutdownReport>,
    },
}

/// A decided proposal whose proposer waits until every core acts on it.
#[derive(Debug)]
struct Waiting {
    core: CoreId,
    call: u64,
    version: u64,
    result: ProposalResult,
}

/// What is known of one core.
#[derive(Debug)]
struct Core {
    sender: CoreSender,
    /// Messages that its full inbox did not take: one answer for each of its open calls, and a shutdown.
    undelivered: VecDeque<ToCore>,
    /// The newest image, if it was not sent yet.
    image: Option<Arc<Image>>,
    /// It has an image that it has not reported. Another one waits until it has, or a core that takes long to open
    /// logs would have as many to report as there were changes meanwhile.
    is_applying: bool,
    /// The version that it acts on.
    applied: u64,
    drained: Option<bool>,
    gone: bool,
}

impl Core {
    fn has_more_to_send(&self) -> bool {
        !self.undelivered.is_empty() || (self.image.is_some() && !self.is_applying)
    }

    fn deliver(&mut self) {
        while self.has_more_to_send() && !self.gone {
            let image = self.image.take_if(|_| !self.is_applying);
            let message = match image {
                Some(image) => ToCore::Image(image),
                None => match self.undelivered.pop_front() {
                    Some(message) => message,
                    None => return,
                },
            };
            self.is_applying |= matches!(message, ToCore::Image(_));
            let Err(undelivered) = self.sender.send(message) else {
                continue;
            };
            if undelivered.closed {
                self.gone = true;
                self.undelivered.clear();
                self.image = None;
                return;
            }
            match undelivered.message {
                ToCore::Image(image) => {
                    self.is_applying = false;
                    self.image = Some(image);
                }
                message => self.undelivered.push_front(message),
            }
            return;
        }
    }
}

#[derive(Debug)]
struct Shutdown {
    deadline: Instant,
    answer: flume::Sender<ShutdownReport>,
}

/// The state of the control thread.
#[derive(Debug)]
pub(super) struct Service<Q> {
    quorum: Q,
    images: watch::Receiver<Arc<Image>>,
    cores: Vec<Core>,
    inbox: flume::Receiver<ToControl>,
    requests: flume::Receiver<Request>,
    events: flume::Sender<ControlEvent>,
    status: Arc<Status>,
    waiting: VecDeque<Waiting>,
    faults: Vec<PartitionFault>,
    /// Every core has applied an image.
    cores_are_ready: bool,
    shutdown: Option<Shutdown>,
}

/// The ends of the channels that the service works with.
#[derive(Debug)]
pub(super) struct Channels {
    pub(super) cores: Vec<CoreSender>,
    pub(super) inbox: flume::Receiver<ToControl>,
    pub(super) requests: flume::Receiver<Request>,
    pub(super) events: flume::Sender<ControlEvent>,
}

/// Why the loop woke.
enum Wake {
    Message(ToControl),
    Request(Request),
    /// The metadata changed without a proposal of ours.
    Image,
    /// A full inbox may have room now, or the deadline of the shutdown has come.
    Timer,
    /// The handle has gone, or every core.
    Closed,
}

impl<Q: MetadataQuorum> Service<Q> {
    pub(super) fn new(quorum: Q, channels: Channels, status: Arc<Status>) -> Self {
        let core = |sender| Core {
            sender,
            undelivered: VecDeque::new(),
            image: None,
            is_applying: false,
            applied: 0,
            drained: None,
            gone: false,
        };
        Self {
            images: quorum.watch(),
            quorum,
            cores: channels.cores.into_iter().map(core).collect(),
            inbox: channels.inbox,
            requests: channels.requests,
            events: channels.events,
            status,
            waiting: VecDeque::new(),
            faults: Vec::new(),
            cores_are_ready: false,
            shutdown: None,
        }
    }

    /// Runs until a shutdown is over, or the handle has gone.
    pub(super) async fn run(mut self) {
        self.publish();
        loop {
            match self.wake().await {
                Wake::Message(message) => self.take(message).await,
                Wake::Request(Request::Shutdown { deadline, answer }) => {
                    self.begin_shutdown(Shutdown { deadline, answer });
                }
                Wake::Image => self.publish(),
                Wake::Timer => {}
                Wake::Closed => return,
            }
            self.redeliver();
            self.answer_waiting();
            if self.finish_shutdown() {
                return;
            }
        }
    }

    async fn wake(&mut self) -> Wake {
        let timer = self.timer();
        let sleep = async {
            match timer {
                Some(at) => tokio::time::sleep_until(at.into()).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            request = self.requests.recv_async() => request.map_or(Wake::Closed, Wake::Request),
            message = self.inbox.recv_async() => message.map_or(Wake::Closed, Wake::Message),
            changed = self.images.changed() => changed.map_or(Wake::Closed, |()| Wake::Image),
            () = sleep => Wake::Timer,
        }
    }

    /// When to wake without a message. None almost always: an idle broker does not tick.
    fn timer(&self) -> Option<Instant> {
        let full = self.cores.iter().any(Core::has_more_to_send);
        let redelivery = full.then(|| Instant::now() + REDELIVERY_PAUSE);
        let deadline = self.shutdown.as_ref().map(|shutdown| shutdown.deadline);
        redelivery.into_iter().chain(deadline).min()
    }

    async fn take(&mut self, message: ToControl) {
        let mut proposals = Vec::new();
        let mut next = Some(message);
        while let Some(message) = next {
            match message {
                ToControl::Propose {
                    core,
                    call,
                    command,
                } => proposals.push((core, call, command)),
                ToControl::ImageApplied {
                    core,
                    version,
                    faults,
                } => {
                    self.image_applied(core, version, faults);
                }
                ToControl::Drained { core, clean } => {
                    if let Some(core) = self.cores.get_mut(usize::from(core.0)) {
                        core.drained = Some(clean);
                    }
                }
                ToControl::Fatal { core, reason } => self.fatal(core, &reason),
            }
            let room = proposals.len() < PROPOSALS_PER_SYNC_MAX;
            next = room.then(|| self.inbox.try_recv().ok()).flatten();
        }
        if !proposals.is_empty() {
            self.decide(proposals).await;
        }
    }

    async fn decide(&mut self, proposals: Vec<(CoreId, u64, Command)>) {
        let mut askers = Vec::with_capacity(proposals.len());
        let mut commands = Vec::with_capacity(proposals.len());
        for (core, call, command) in proposals {
            askers.push((core, call));
            commands.push(command);
        }
        let results = self.quorum.propose(commands).await;
        self.publish();
        if let Some(reason) = self.quorum.failure() {
            self.status.set_failure(reason);
            let reason = reason.to_owned();
            self.tell(ControlEvent::MetadataFailed { reason });
        }
        let version = self.images.borrow().version;
        for ((core, call), result) in askers.into_iter().zip(results) {
            // Also a refusal waits: what it speaks of ("exists already") must be visible to its proposer.
            self.waiting.push_back(Waiting {
                core,
                call,
                version,
                result,
            });
        }
    }

    /// Sends the newest image to every core that has not got it.
    fn publish(&mut self) {
        let image = self.images.borrow_and_update().clone();
        self.status
            .set_metadata(image.version, image.topics().len());
        for core in &mut self.cores {
            core.image = Some(image.clone());
        }
        self.redeliver();
    }

    fn image_applied(&mut self, core: CoreId, version: u64, faults: Vec<PartitionFault>) {
        for fault in &faults {
            tracing::error!(partition = %fault.partition, core = core.0, reason = %fault.reason, "partition is not served as it should be");
        }
        self.faults.extend(faults);
        let Some(entry) = self.cores.get_mut(usize::from(core.0)) else {
            return;
        };
        entry.applied = entry.applied.max(version);
        entry.is_applying = false;
        if !self.cores_are_ready && self.applied_by_all() > 0 {
            self.cores_are_ready = true;
            let faults = std::mem::take(&mut self.faults);
            self.tell(ControlEvent::Ready { faults });
        }
    }

    fn applied_by_all(&self) -> u64 {
        self.cores
            .iter()
            .filter(|core| !core.gone)
            .map(|core| core.applied)
            .min()
            .unwrap_or(u64::MAX)
    }

    fn answer_waiting(&mut self) {
        let applied = self.applied_by_all();
        while self
            .waiting
            .front()
            .is_some_and(|first| first.version <= applied)
        {
            let Some(Waiting {
                core, call, result, ..
            }) = self.waiting.pop_front()
            else {
                return;
            };
            if let Some(core) = self.cores.get_mut(usize::from(core.0)) {
                core.undelivered
                    .push_back(ToCore::ProposalDone { call, result });
            }
        }
        self.redeliver();
    }

    /// Hands every core what it has not got yet, as far as its inbox takes it.
    fn redeliver(&mut self) {
        let mut lost = Vec::new();
        for (index, core) in self.cores.iter_mut().enumerate() {
            let was_gone = core.gone;
            core.deliver();
            lost.extend((core.gone && !was_gone).then_some(index));
        }
        for index in lost {
            if self.shutdown.is_none() {
                self.fatal(CoreId(index as u16), "its thread has ended");
            }
        }
    }

    fn fatal(&mut self, core: CoreId, reason: &str) {
        let reason = format!("core {core}: {reason}");
        self.status.set_failure(&reason);
        self.tell(ControlEvent::Fatal { reason });
    }

    fn tell(&self, event: ControlEvent) {
        // The receiver lives in the handle; once that has gone there is nobody to tell.
        let _ = self.events.try_send(event);
    }

    fn begin_shutdown(&mut self, shutdown: Shutdown) {
        if self.shutdown.is_some() {
            return;
        }
        self.status.set_stopping();
        for core in &mut self.cores {
            core.undelivered.push_back(ToCore::Shutdown {
                deadline: shutdown.deadline,
            });
        }
        self.shutdown = Some(shutdown);
    }

    /// Reports and returns true once all cores have drained or the deadline has passed.
    fn finish_shutdown(&mut self) -> bool {
        let Some(shutdown) = &self.shutdown else {
            return false;
        };
        let open: Vec<CoreId> = (0..)
            .zip(&self.cores)
            .filter(|(_, core)| core.drained.is_none() && !core.gone)
            .map(|(index, _)| CoreId(index))
            .collect();
        if !open.is_empty() && Instant::now() < shutdown.deadline {
            return false;
        }
        let report = ShutdownReport {
            clean: self.cores.iter().all(|core| core.drained == Some(true)),
            not_drained: open,
        };
        let _ = shutdown.answer.send(report);
        true
    }
}
