//! Keeps executors awake that have work, and names those that are stuck.
//!
//! glommio can park an executor while a task of it is runnable: its scheduler answers "nothing ran" both when there was
//! nothing to run and when the preempt timer fired before anything ran, and the caller sleeps on both. A message to the
//! core's inbox does not help (the inbox task may be the runnable one), nor does a readable socket. What helps is a wake
//! from another thread, so one plain thread watches each core's counters and wakes a core that has work and stands still.
//!
//! A blind kick every millisecond costs 17 % of a CPU for two idle cores, so it is gated; see [`KickGate::decide`].

use std::{
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::Waker,
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

/// Period of the watchdog while any core has connections or work.
pub const TICK: Duration = Duration::from_millis(1);
/// Period while no core has any.
pub const TICK_IDLE: Duration = Duration::from_millis(10);
/// A socket that moved bytes this recently may have work in the kernel that no counter shows.
pub const SOCKET_RECENT: Duration = Duration::from_millis(100);
/// Kick period of a core that has connections or armed deadlines but neither work nor recent traffic.
pub const KICK_CONNECTED: Duration = Duration::from_millis(10);
/// Kick period of a core with nothing at all: an accept may be what is stuck.
pub const KICK_IDLE: Duration = Duration::from_millis(250);
/// A core with work that stands still for longer is reported as stuck.
pub const STUCK_AFTER: Duration = Duration::from_secs(1);

/// One core's counters: written by that core alone (the waker and `retired` apart), read by the watchdog.
#[repr(align(128))]
#[derive(Default)]
pub struct Progress {
    turns: AtomicU64,
    work_started: AtomicU64,
    work_done: AtomicU64,
    socket_events: AtomicU64,
    connections: AtomicU64,
    deadlines: AtomicU64,
    kicks_sent: AtomicU64,
    kicks_seen: AtomicU64,
    stuck_seconds: AtomicU64,
    thread_id: AtomicU64,
    retired: AtomicBool,
    waker: OnceLock<Waker>,
}

/// A plain load and store: there is one writer.
fn bump(counter: &AtomicU64, by: u64) {
    counter.store(
        counter.load(Ordering::Relaxed).wrapping_add(by),
        Ordering::Relaxed,
    );
}

impl Progress {
    /// Something of the core's own ran: a message, a frame, a completion.
    pub fn turn(&self) {
        bump(&self.turns, 1);
    }

    /// Work is in flight that must end by itself (a disk operation, a message, an unanswered request).
    /// Parked fetches do not count.
    pub fn work_started(&self) {
        bump(&self.work_started, 1);
    }

    /// The counterpart of [`Progress::work_started`].
    pub fn work_done(&self) {
        bump(&self.work_done, 1);
        self.turn();
    }

    /// A socket of this core moved bytes.
    pub fn socket_moved(&self) {
        bump(&self.socket_events, 1);
        self.turn();
    }

    /// The number of open connections.
    pub fn set_connections(&self, count: usize) {
        self.connections.store(count as u64, Ordering::Relaxed);
    }

    /// Whether a deadline is armed that a task will have to meet.
    pub fn set_deadlines(&self, armed: bool) {
        self.deadlines.store(u64::from(armed), Ordering::Relaxed);
    }

    /// How often the watchdog woke this core.
    pub fn kicks(&self) -> u64 {
        self.kicks_sent.load(Ordering::Relaxed)
    }

    /// Whole seconds since this core last moved while it had work; 0 when all is well.
    pub fn stuck_seconds(&self) -> u64 {
        self.stuck_seconds.load(Ordering::Relaxed)
    }

    pub(crate) fn thread_started(&self) {
        // SAFETY: no arguments, no memory effects.
        let id = unsafe { libc::gettid() };
        self.thread_id.store(id as u64, Ordering::Relaxed);
    }

    /// CPU time of the core's thread, by the kernel's clock for it (its id is made from the thread's; see
    /// clock_getcpuclockid(3)).
    pub(crate) fn cpu_time(&self) -> std::io::Result<Duration> {
        let thread = self.thread_id.load(Ordering::Relaxed) as i32;
        if thread == 0 {
            return Err(std::io::ErrorKind::NotFound.into());
        }
        const PER_THREAD_SCHEDULED: i32 = 6;
        let mut time = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: the pointer is to a timespec; an id that is no thread's answers EINVAL.
        let done =
            unsafe { libc::clock_gettime((!thread << 3) | PER_THREAD_SCHEDULED, &raw mut time) };
        if done == 0 {
            Ok(Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
        } else {
            Err(std::io::Error::last_os_error())
        }
    }

    pub(crate) fn install_waker(&self, waker: &Waker) {
        // Polled again after each kick: the waker of a task stays the same, so the first one serves.
        let _ = self.waker.set(waker.clone());
    }

    pub(crate) fn kick_arrived(&self) {
        bump(&self.kicks_seen, 1);
    }

    /// The core's main function returned: its waker must not be used any more.
    pub(crate) fn retire(&self) {
        self.retired.store(true, Ordering::Release);
    }

    fn kick(&self) {
        if self.retired.load(Ordering::Acquire) {
            return;
        }
        if let Some(waker) = self.waker.get() {
            bump(&self.kicks_sent, 1);
            waker.wake_by_ref();
        }
    }

    fn sample(&self) -> Sample {
        let done = self.work_done.load(Ordering::Relaxed);
        Sample {
            turns: self.turns.load(Ordering::Relaxed),
            working: self.work_started.load(Ordering::Relaxed) != done,
            socket_events: self.socket_events.load(Ordering::Relaxed),
            connected: self.connections.load(Ordering::Relaxed) > 0
                || self.deadlines.load(Ordering::Relaxed) > 0,
        }
    }
}

/// What the watchdog saw of a core at one tick.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sample {
    turns: u64,
    working: bool,
    socket_events: u64,
    connected: bool,
}

/// Decides, tick by tick, whether one core is kicked. Pure: time comes in.
struct KickGate {
    last: Sample,
    moved_at: Duration,
    socket_at: Option<Duration>,
    kicked_at: Duration,
    reported: bool,
}

/// The outcome of one tick.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
struct Verdict {
    kick: bool,
    /// How long the core has stood still with work, past [`STUCK_AFTER`].
    stuck: Duration,
    /// Set once for each time the core is found stuck.
    stuck_for: Option<Duration>,
    busy: bool,
}

impl KickGate {
    fn new(now: Duration) -> Self {
        KickGate {
            last: Sample::default(),
            moved_at: now,
            socket_at: None,
            kicked_at: now,
            reported: false,
        }
    }

    /// 1. The core moved since the last tick: no kick.
    /// 2. It stands still and has work, or one of its sockets moved bytes within [`SOCKET_RECENT`]: kick.
    /// 3. It has connections or armed deadlines: kick every [`KICK_CONNECTED`].
    /// 4. Otherwise every [`KICK_IDLE`].
    fn decide(&mut self, now: Duration, sample: Sample) -> Verdict {
        if sample.socket_events != self.last.socket_events {
            self.socket_at = Some(now);
        }
        let moved = sample.turns != self.last.turns;
        self.last = sample;
        let recent = self.socket_at.is_some_and(|at| now - at < SOCKET_RECENT);
        let busy = sample.working || recent || sample.connected;
        if moved {
            self.moved_at = now;
            self.reported = false;
            return Verdict {
                kick: false,
                stuck: Duration::ZERO,
                stuck_for: None,
                busy,
            };
        }
        let period = if sample.working || recent {
            Duration::ZERO
        } else if sample.connected {
            KICK_CONNECTED
        } else {
            KICK_IDLE
        };
        let kick = now - self.kicked_at >= period;
        if kick {
            self.kicked_at = now;
        }
        let still_for = now - self.moved_at;
        let stuck = sample.working && still_for >= STUCK_AFTER;
        let unreported = stuck && !self.reported;
        self.reported |= stuck;
        Verdict {
            kick,
            stuck: if stuck { still_for } else { Duration::ZERO },
            stuck_for: unreported.then_some(still_for),
            busy,
        }
    }
}

struct Watched {
    name: String,
    progress: Arc<Progress>,
}

/// The plain thread that watches all cores of a process part (broker or load generator).
pub struct Watchdog {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    // Taken by the watchdog thread and at start-up only, never on an executor.
    cores: Mutex<Vec<Watched>>,
    stop: AtomicBool,
}

impl Watchdog {
    /// Starts the thread. Cores register themselves as they start.
    pub fn start() -> Watchdog {
        let shared = Arc::new(Shared::default());
        let watched = shared.clone();
        let thread = thread::Builder::new()
            .name("watchdog".into())
            .spawn(move || watch(&watched))
            .expect("a thread for the watchdog");
        Watchdog {
            shared,
            thread: Some(thread),
        }
    }

    /// A registry without a thread: nothing is ever kicked. Only for measuring what the kick is good for.
    pub fn disabled() -> Watchdog {
        Watchdog {
            shared: Arc::default(),
            thread: None,
        }
    }

    /// For showing the counters.
    pub fn observer(&self) -> Observer {
        Observer(self.shared.clone())
    }

    /// Adds a core; [`crate::spawn`] does it.
    pub fn register(&self, name: &str) -> Arc<Progress> {
        let progress = Arc::new(Progress::default());
        self.shared
            .cores
            .lock()
            .expect("no holder panics")
            .push(Watched {
                name: name.to_owned(),
                progress: progress.clone(),
            });
        progress
    }
}

/// Reads the counters of all cores of a watchdog, in the order in which they were started.
pub struct Observer(Arc<Shared>);

impl Observer {
    /// The cores so far.
    pub fn cores(&self) -> Vec<Arc<Progress>> {
        let cores = self.0.cores.lock().expect("no holder panics");
        cores.iter().map(|core| core.progress.clone()).collect()
    }
}

impl Drop for Watchdog {
    /// Ends the thread. To be dropped after the cores were joined.
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

fn watch(shared: &Shared) {
    let started = Instant::now();
    let mut gates: Vec<KickGate> = Vec::new();
    while !shared.stop.load(Ordering::Acquire) {
        let now = started.elapsed();
        let mut busy = false;
        {
            let cores = shared.cores.lock().expect("no holder panics");
            gates.resize_with(cores.len(), || KickGate::new(now));
            for (core, gate) in cores.iter().zip(&mut gates) {
                let verdict = gate.decide(now, core.progress.sample());
                busy |= verdict.busy;
                let seconds = verdict.stuck.as_secs();
                core.progress
                    .stuck_seconds
                    .store(seconds, Ordering::Relaxed);
                if verdict.kick {
                    core.progress.kick();
                }
                if let Some(still_for) = verdict.stuck_for {
                    tracing::warn!(
                        core = %core.name,
                        still_ms = still_for.as_millis() as u64,
                        "core has work and does not move"
                    );
                }
            }
        }
        thread::park_timeout(if busy { TICK } else { TICK_IDLE });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn kicks(mut sample: impl FnMut(u32) -> Sample, ticks: u32) -> u32 {
        let mut gate = KickGate::new(Duration::ZERO);
        (1..=ticks)
            .filter(|tick| gate.decide(MS * *tick, sample(*tick)).kick)
            .count() as u32
    }

    #[test]
    fn a_core_that_moves_is_left_alone() {
        let moving = |tick| Sample {
            turns: u64::from(tick),
            working: true,
            connected: true,
            ..Sample::default()
        };
        assert_eq!(kicks(moving, 1000), 0);
    }

    #[test]
    fn a_core_with_work_that_stands_still_is_kicked_every_tick() {
        let still = |_| Sample {
            working: true,
            ..Sample::default()
        };
        assert_eq!(kicks(still, 100), 100);
    }

    #[test]
    fn recent_socket_traffic_counts_as_work_for_a_while() {
        let moved_once = |_| Sample {
            socket_events: 1,
            ..Sample::default()
        };
        let total = kicks(moved_once, 300);
        assert!((95..=105).contains(&total), "{total}");
    }

    #[test]
    fn connections_without_work_cost_a_kick_every_ten_milliseconds() {
        let connected = |_| Sample {
            connected: true,
            ..Sample::default()
        };
        assert_eq!(kicks(connected, 1000), 100);
        assert_eq!(kicks(|_| Sample::default(), 1000), 4);
    }

    #[test]
    fn a_stuck_core_is_reported_once() {
        let mut gate = KickGate::new(Duration::ZERO);
        let still = Sample {
            working: true,
            ..Sample::default()
        };
        let reports = (1..5000)
            .filter_map(|tick| gate.decide(MS * tick, still).stuck_for)
            .count();
        assert_eq!(reports, 1);
    }
}
