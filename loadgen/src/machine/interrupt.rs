//! Ctrl-C and termination.
//!
//! SIGINT and SIGTERM are blocked before any thread starts, so that every thread inherits it; one thread waits for them.
//! The first one raises a flag that the run looks at, and everything is wound down in order. A second one, unless it is an
//! echo of the first, ends the process at once: the next run removes the folder that stays behind.

use std::mem::MaybeUninit;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Exit code of an interrupted run, as shells expect it.
pub const EXIT_INTERRUPTED: i32 = 130;

/// A signal that comes this soon after the first one belongs to it: who stops a process by name and by its group sends
/// two, `timeout` for one.
const ECHO: Duration = Duration::from_millis(500);

/// Whether the run was told to stop.
#[derive(Clone, Debug, Default)]
pub struct Interrupt {
    raised: Arc<AtomicBool>,
}

impl Interrupt {
    /// Blocks the signals and starts to wait for them. Call before any other thread starts.
    pub fn install() -> std::io::Result<Self> {
        let interrupt = Self::default();
        let signals = block_signals()?;
        let raised = interrupt.raised.clone();
        std::thread::Builder::new()
            .name("signals".into())
            .spawn(move || {
                let mut first_at: Option<Instant> = None;
                loop {
                    let mut signal = 0;
                    // SAFETY: the set is initialised and the call writes one number.
                    if unsafe { libc::sigwait(&signals, &mut signal) } != 0 {
                        return;
                    }
                    match first_at {
                        Some(first) if first.elapsed() < ECHO => {}
                        Some(_) => std::process::exit(EXIT_INTERRUPTED),
                        None => {
                            first_at = Some(Instant::now());
                            raised.store(true, Ordering::SeqCst);
                            eprintln!("\rstopping; once more to stop at once");
                        }
                    }
                }
            })?;
        Ok(interrupt)
    }

    /// Whether a signal came.
    pub fn raised(&self) -> bool {
        self.raised.load(Ordering::Relaxed)
    }
}

fn block_signals() -> std::io::Result<libc::sigset_t> {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the set is emptied before it is used, and the signals exist.
    let result = unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), libc::SIGINT);
        libc::sigaddset(set.as_mut_ptr(), libc::SIGTERM);
        libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), std::ptr::null_mut())
    };
    if result != 0 {
        return Err(std::io::Error::from_raw_os_error(result));
    }
    // SAFETY: sigemptyset initialised it.
    Ok(unsafe { set.assume_init() })
}
