//! The one timer of a load core: wakes each task when its time has come.
//!
//! glommio's timers are costly when there are many and leak when they are polled again, so a core has one task that sleeps
//! until the next of all deadlines, each sleep a timer of its own that is awaited to its end.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tackboard_runtime::{Notify, Progress};

use crate::measure::clock::monotonic_ns;

/// Shortest sleep: events that fall due within it are sent together, up to this much late. Every sleep costs the CPU that a
/// broker beside it could use, so shorter ones make its latency longer where they share one.
const SLEEP_NS_MIN: u64 = 400_000;

/// Longest sleep: a deadline that is set while the core sleeps is met this late at most.
const SLEEP_NS_MAX: u64 = 2_000_000;

/// When one task wants to run again, and how it is woken.
#[derive(Default)]
pub struct Alarm {
    at_ns: Cell<u64>,
    wake: Notify,
}

impl Alarm {
    /// Wakes the task now.
    pub fn ring(&self) {
        self.wake.notify();
    }

    /// Sleeps until [`Alarm::ring`], or until this time of the monotonic clock if one is given.
    pub async fn sleep(&self, until_ns: Option<u64>) {
        self.at_ns.set(until_ns.unwrap_or(u64::MAX));
        self.wake.wait().await;
        self.at_ns.set(u64::MAX);
    }
}

/// All alarms of a core.
#[derive(Default)]
pub struct Alarms {
    alarms: RefCell<Vec<Rc<Alarm>>>,
    stopped: Cell<bool>,
}

impl Alarms {
    /// A new alarm.
    pub fn add(&self) -> Rc<Alarm> {
        let alarm = Rc::new(Alarm {
            at_ns: Cell::new(u64::MAX),
            wake: Notify::new(),
        });
        self.alarms.borrow_mut().push(alarm.clone());
        alarm
    }

    /// Ends [`Alarms::run`] after its next sleep.
    pub fn stop(&self) {
        self.stopped.set(true);
    }

    /// Rings alarms whose time has come and calls `every_turn` after each sleep, until [`Alarms::stop`].
    pub async fn run(&self, progress: Arc<Progress>, mut every_turn: impl FnMut(u64)) {
        while !self.stopped.get() {
            let now_ns = monotonic_ns();
            let next_ns = self
                .alarms
                .borrow()
                .iter()
                .map(|alarm| alarm.at_ns.get())
                .min()
                .unwrap_or(u64::MAX);
            let sleep_ns = next_ns
                .saturating_sub(now_ns)
                .clamp(SLEEP_NS_MIN, SLEEP_NS_MAX);
            glommio::timer::sleep(Duration::from_nanos(sleep_ns)).await;
            progress.turn();
            let now_ns = monotonic_ns();
            for alarm in self
                .alarms
                .borrow()
                .iter()
                .filter(|alarm| alarm.at_ns.get() <= now_ns)
            {
                alarm.ring();
            }
            every_turn(now_ns);
        }
    }
}
