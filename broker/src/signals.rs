//! SIGINT and SIGTERM, waited for by a plain thread instead of interrupting whatever runs.

use std::io;
use std::mem;
use std::ptr;

/// The signals are blocked in this thread and in every thread that it starts from now on.
#[derive(Debug)]
pub struct Signals {
    set: libc::sigset_t,
}

impl Signals {
    /// Blocks them. Call it before any other thread exists: a thread that was started earlier would still
    /// be interrupted, and the process ended.
    ///
    /// # Errors
    /// What the system said.
    pub fn block() -> io::Result<Self> {
        // SAFETY: a sigset_t is plain bits; sigemptyset initialises it before it is read.
        let mut set: libc::sigset_t = unsafe { mem::zeroed() };
        // SAFETY: `set` is valid during the calls, and both signals exist.
        let error = unsafe {
            libc::sigemptyset(&mut set);
            libc::sigaddset(&mut set, libc::SIGINT);
            libc::sigaddset(&mut set, libc::SIGTERM);
            libc::pthread_sigmask(libc::SIG_BLOCK, &set, ptr::null_mut())
        };
        if error != 0 {
            return Err(io::Error::from_raw_os_error(error));
        }
        Ok(Self { set })
    }

    /// Waits for the next of them; its name.
    pub fn wait(&self) -> &'static str {
        let mut signal = 0;
        loop {
            // SAFETY: both pointers are valid during the call.
            if unsafe { libc::sigwait(&self.set, &mut signal) } == 0 {
                return if signal == libc::SIGINT {
                    "SIGINT"
                } else {
                    "SIGTERM"
                };
            }
        }
    }
}
