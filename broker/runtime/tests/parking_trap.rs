//! An executor that has work must not stay asleep.
//!
//! glommio parks an executor although a task of it is runnable when the preempt timer fires between two of its checks,
//! which happens whenever the thread loses its CPU for a moment. Here a hostile thread on the same CPU makes it lose the
//! CPU all the time: a task that burns and yields and a mailbox server share the executor, and a plain thread asks the
//! server again and again. Without the watchdog it hangs within seconds, most of the time; the race is not
//! deterministic, so that leg only reports.
//!
//! `PARKING_TRAP_SECONDS` sets how long each leg lasts; CI runs a minute.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use tackboard_runtime::{CoreSettings, Watchdog, inbox, spawn};

/// A wrong sleep lasts until something else wakes the executor: for seconds, or for ever. Contention alone delays an
/// answer by some scheduling rounds.
const HANG: Duration = Duration::from_secs(2);
const CPU: usize = 0;

#[derive(Debug)]
struct Asked {
    asked_at: Instant,
    answer: flume::Sender<Instant>,
}

/// Asks for `lasting`, and returns the longest wait for an answer and how many came.
fn longest_wait(watchdog: &Watchdog, lasting: Duration) -> (Duration, u64) {
    let stop = Arc::new(AtomicBool::new(false));
    let (to_core, messages) = inbox::<Asked>(16);
    let stopped = stop.clone();
    let mut settings = CoreSettings::pinned(CPU, "trapped");
    settings.ring_depth = 64;
    settings.io_memory_bytes = 1 << 20;
    let core = spawn(settings, watchdog, move |core| async move {
        let progress = core.progress.clone();
        glommio::spawn_local(async move {
            while let Some(message) = messages.next().await {
                progress.work_started();
                let _ = message.answer.send(message.asked_at);
                progress.work_done();
            }
        })
        .detach();
        while !stopped.load(Ordering::Relaxed) {
            // Work in flight, which is what the watchdog goes by.
            core.progress.work_started();
            let until = Instant::now() + Duration::from_micros(300);
            while Instant::now() < until {
                std::hint::spin_loop();
            }
            core.progress.turn();
            glommio::executor().yield_task_queue_now().await;
        }
    })
    .expect("an executor starts");
    let hostile = hostile_thread(stop.clone());
    let (mut longest, mut count) = (Duration::ZERO, 0);
    let started = Instant::now();
    while started.elapsed() < lasting {
        let (answer, answered) = flume::bounded(1);
        let asked_at = Instant::now();
        to_core
            .send(Asked { asked_at, answer })
            .expect("one message at a time fits");
        // A hang is measured, and ended by the next foreign wake: ours, with the next message.
        let _ = answered.recv_timeout(HANG * 5);
        longest = longest.max(asked_at.elapsed());
        count += 1;
        thread::sleep(Duration::from_millis(1));
    }
    stop.store(true, Ordering::Relaxed);
    drop(to_core);
    hostile.join().expect("the hostile thread ends");
    core.join().expect("the executor ends");
    (longest, count)
}

/// Takes the executor's CPU away again and again.
fn hostile_thread(stop: Arc<AtomicBool>) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        // SAFETY: the set is plain data, initialised before its pointer is passed.
        unsafe {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            libc::CPU_SET(CPU, &mut set);
            libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set);
        }
        while !stop.load(Ordering::Relaxed) {
            let until = Instant::now() + Duration::from_millis(2);
            while Instant::now() < until {
                std::hint::spin_loop();
            }
            thread::sleep(Duration::from_micros(100));
        }
    })
}

#[test]
fn an_executor_with_work_does_not_stay_asleep() {
    let seconds = std::env::var("PARKING_TRAP_SECONDS").ok();
    let seconds = seconds.map_or(5, |text| text.parse().expect("a number of seconds"));
    let lasting = Duration::from_secs(seconds);
    let watchdog = Watchdog::start();
    let (longest, count) = longest_wait(&watchdog, lasting);
    eprintln!("watchdog on: {count} answers in {seconds} s, longest wait {longest:?}");
    assert!(
        longest < HANG,
        "the executor slept for {longest:?} with work to do"
    );
    assert!(count > 0);
}

/// Reports only: whether the race is met is up to the scheduler. Runs when asked for by `PARKING_TRAP_UNGUARDED`, since
/// an executor that hangs for good would end the test run with it.
#[test]
fn without_the_watchdog_the_longest_sleep_is_reported() {
    if std::env::var_os("PARKING_TRAP_UNGUARDED").is_none() {
        eprintln!("not measured; set PARKING_TRAP_UNGUARDED to do it");
        return;
    }
    let (longest, count) = longest_wait(&Watchdog::disabled(), Duration::from_secs(10));
    eprintln!("watchdog off: {count} answers, longest wait {longest:?}");
}
