//! A load core: one pinned executor that runs its share of each stage's producers and consumers.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use glommio::spawn_local;
use tackboard_runtime::{
    Core, CoreHandle, CoreSettings, InboxReceiver, InboxSender, Watchdog, inbox,
};

use super::alarm::Alarms;
use super::order::{CoreCounters, StageOrder};
use super::outcome::{CoreMessage, CoreOutcome};
use super::producer::CoreShare;
use super::{consumer, producer};
use crate::measure::process::{ThreadMark, thread_cpu_seconds};

/// Longest time that a load core takes to start.
const START_MAX: Duration = Duration::from_secs(2);

/// How often a core that does not start is started anew.
const START_TRIES: u32 = 5;

/// How often a busy core looks at its sockets. All tasks of a load core give way by themselves, so this is seldom needed;
/// a short time would make wrong sleeps more likely.
const PREEMPT: Duration = Duration::from_millis(20);

/// What the main thread asks a load core for.
enum Command {
    /// Run a stage.
    Stage(Arc<StageOrder>, Arc<CoreCounters>),
}

/// All load cores of this process. They end when this is dropped.
pub struct LoadCores {
    commands: Vec<InboxSender<Command>>,
    messages: flume::Receiver<CoreMessage>,
    handles: Vec<CoreHandle<()>>,
    _watchdog: Watchdog,
}

impl LoadCores {
    /// Starts one executor pinned to each of these CPUs.
    pub fn start(cpus: &[usize]) -> Result<Self> {
        let watchdog = Watchdog::start();
        let (to_main, messages) = flume::unbounded();
        let (mut commands, mut handles) = (Vec::new(), Vec::new());
        for (number, &cpu) in cpus.iter().enumerate() {
            let (sender, handle) = start_core(number as u32, cpu, &watchdog, &to_main)
                .with_context(|| format!("load core on CPU {cpu}"))?;
            commands.push(sender);
            handles.push(handle);
        }
        Ok(Self {
            commands,
            messages,
            handles,
            _watchdog: watchdog,
        })
    }

    /// How many there are.
    pub fn count(&self) -> u32 {
        self.commands.len() as u32
    }

    /// Has every core begin a stage; returns their counters.
    pub fn begin(&self, order: &Arc<StageOrder>) -> Result<Vec<Arc<CoreCounters>>> {
        let counters = self
            .commands
            .iter()
            .map(|_| Arc::<CoreCounters>::default())
            .collect::<Vec<_>>();
        for (command, counters) in self.commands.iter().zip(&counters) {
            let stage = Command::Stage(order.clone(), counters.clone());
            command
                .send(stage)
                .map_err(|_| anyhow!("a load core has ended"))?;
        }
        Ok(counters)
    }

    /// What the cores report; closed if a core failed.
    pub fn messages(&self) -> &flume::Receiver<CoreMessage> {
        &self.messages
    }

    /// Ends all cores, and says why one could not run.
    pub fn stop(mut self) -> Result<()> {
        self.commands.clear();
        for handle in self.handles.drain(..) {
            handle.join()?;
        }
        Ok(())
    }
}

/// Starts one core and waits until it runs.
///
/// An executor whose thread loses its CPU at the wrong moment of its start goes to sleep before its first task ran, and
/// nothing wakes it, for whoever would has not run either. It is left asleep, and another one started in its place.
fn start_core(
    number: u32,
    cpu: usize,
    watchdog: &Watchdog,
    to_main: &flume::Sender<CoreMessage>,
) -> Result<(InboxSender<Command>, CoreHandle<()>)> {
    for _ in 0..START_TRIES {
        let (sender, receiver) = inbox(4);
        let (started, is_started) = flume::bounded(1);
        let to_main = to_main.clone();
        let settings = CoreSettings {
            preempt: PREEMPT,
            ..CoreSettings::pinned(cpu, format!("load-{number}"))
        };
        let handle = tackboard_runtime::spawn(settings, watchdog, move |core| async move {
            let _ = started.send(());
            run(number, core, receiver, to_main).await;
        })?;
        match is_started.recv_timeout(START_MAX) {
            Ok(()) => return Ok((sender, handle)),
            Err(flume::RecvTimeoutError::Timeout) => {}
            // It ended, and says why when it is joined.
            Err(flume::RecvTimeoutError::Disconnected) => handle.join()?,
        }
    }
    bail!(
        "it did not start within {} s, {START_TRIES} times",
        START_MAX.as_secs()
    )
}

async fn run(
    number: u32,
    core: Core,
    commands: InboxReceiver<Command>,
    to_main: flume::Sender<CoreMessage>,
) {
    while let Some(Command::Stage(order, counters)) = commands.next().await {
        let outcome = stage(number, &core, order, counters, &to_main).await;
        if to_main.send(CoreMessage::Done(Box::new(outcome))).is_err() {
            return;
        }
    }
}

async fn stage(
    number: u32,
    core: &Core,
    order: Arc<StageOrder>,
    counters: Arc<CoreCounters>,
    to_main: &flume::Sender<CoreMessage>,
) -> CoreOutcome {
    let cpu_before = thread_cpu_seconds();
    let alarms = Rc::new(Alarms::default());
    let share = Rc::new(CoreShare {
        snapshot: RefCell::default(),
        counters,
        progress: core.progress.clone(),
    });
    core.progress.set_deadlines(true);

    let outcome = Rc::new(RefCell::new(CoreOutcome::default()));
    let running = Rc::new(Cell::new(0));
    // Producers and consumers are shared out over the cores in turn.
    for producer in (0..order.expected.producers)
        .filter(|&producer| order.sends && order.is_on(producer, number))
    {
        let (order, share, alarm, outcome) =
            (order.clone(), share.clone(), alarms.add(), outcome.clone());
        let task = async move {
            let ended = producer::run(producer, order, share, alarm).await;
            outcome.borrow_mut().producers.push(ended);
        };
        start(task, &running, &alarms);
    }
    for consumer in
        (0..order.consumers).filter(|&consumer| order.reads && order.is_on(consumer, number))
    {
        let (order, share, alarm, outcome) =
            (order.clone(), share.clone(), alarms.add(), outcome.clone());
        let task = async move {
            let ended = consumer::run(consumer, order, share, alarm).await;
            outcome.borrow_mut().consumers.push(ended);
        };
        start(task, &running, &alarms);
    }
    if running.get() == 0 {
        alarms.stop();
    }
    let mut snapshots_sent = 0;
    let mut since_due = None;
    alarms
        .run(core.progress.clone(), |now_ns| {
            if since_due.is_none() && now_ns >= order.start_ns {
                since_due = Some(ThreadMark::now());
            }
            let wanted = order.control.snapshots.load(Ordering::Acquire);
            if wanted != snapshots_sent {
                snapshots_sent = wanted;
                send_snapshot(&share, to_main);
            }
        })
        .await;
    send_snapshot(&share, to_main);
    core.progress.set_deadlines(false);
    let mut outcome = outcome.take();
    outcome.cpu_seconds = thread_cpu_seconds() - cpu_before;
    outcome.thread_use = since_due.map(|mark| mark.since());
    outcome
}

/// Starts a task; the last one to end stops the alarms, and with them the stage on this core.
fn start(task: impl Future<Output = ()> + 'static, running: &Rc<Cell<u32>>, alarms: &Rc<Alarms>) {
    running.set(running.get() + 1);
    let (running, alarms) = (running.clone(), alarms.clone());
    spawn_local(async move {
        task.await;
        running.set(running.get() - 1);
        if running.get() == 0 {
            alarms.stop();
        }
    })
    .detach();
}

fn send_snapshot(share: &CoreShare, to_main: &flume::Sender<CoreMessage>) {
    let snapshot = share.snapshot.borrow_mut().take();
    // Whoever does not listen any more needs no snapshot.
    let _ = to_main.send(CoreMessage::Snapshot(Box::new(snapshot)));
}
