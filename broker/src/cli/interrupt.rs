//! SIGINT and SIGTERM while input is read: the input ends there, and what was read of it is still sent.
//!
//! The signals are blocked in every thread, and one thread waits for them. It tells the reader by closing a pipe that
//! the reader polls beside its input, since a read that waits for a person can be ended in no other way.
//!
//! Not here: what is said about it (`produce`).

use std::fs::File;
use std::io::{self, PipeReader, Read};
use std::os::fd::{AsRawFd as _, RawFd};
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use crate::signals::Signals;

/// Exit code of a command that a signal ended before it was done, as shells report it for SIGINT.
pub(super) const EXIT_INTERRUPTED: u8 = 130;

/// Time after a signal before it is said what is waited for.
const QUIET: Duration = Duration::from_secs(1);

/// Tells whether a signal came.
pub(super) struct Interrupt {
    state: Arc<State>,
    /// Ends when the first signal comes.
    ended: PipeReader,
}

#[derive(Default)]
struct State {
    /// From here on the first signal ends the input; before, it ends the process.
    is_reading: AtomicBool,
    signal: OnceLock<&'static str>,
}

impl Interrupt {
    /// Blocks the signals and begins to wait for them. Call it before any other thread starts.
    ///
    /// A signal before [`Self::input`], and the second one after it, ends the process at once; `last_words` says what
    /// became of the events that were sent.
    pub(super) fn install(
        last_words: impl FnOnce() -> String + Send + 'static,
    ) -> io::Result<Self> {
        let signals = Signals::block()?;
        let (ended, end) = io::pipe()?;
        let state = Arc::new(State::default());
        let shared = state.clone();
        let wait = move || {
            let first = signals.wait();
            let _ = shared.signal.set(first);
            if shared.is_reading.load(Ordering::SeqCst) {
                drop(end);
                // Mostly everything is acknowledged by then, and the process has ended.
                thread::sleep(QUIET);
                eprintln!("{first}: waiting for acknowledgements; once more ends at once");
                signals.wait();
            }
            eprintln!("{first}: {}", last_words());
            process::exit(EXIT_INTERRUPTED.into());
        };
        thread::Builder::new()
            .name("signals".to_owned())
            .spawn(wait)?;
        Ok(Self { state, ended })
    }

    /// The same input, which also ends when a signal comes.
    pub(super) fn input(&self, input: File) -> io::Result<UntilInterrupted> {
        let ended = self.ended.try_clone()?;
        self.state.is_reading.store(true, Ordering::SeqCst);
        Ok(UntilInterrupted { input, ended })
    }

    /// The name of the signal that came.
    pub(super) fn signal(&self) -> Option<&'static str> {
        self.state.signal.get().copied()
    }
}

/// Reads from a file, pipe or terminal until it ends or a signal comes.
pub(super) struct UntilInterrupted {
    input: File,
    ended: PipeReader,
}

impl Read for UntilInterrupted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if wait_for_either(self.input.as_raw_fd(), self.ended.as_raw_fd())? {
            self.input.read(buffer)
        } else {
            Ok(0)
        }
    }
}

/// Waits until `input` has something (its end counts), or `ended` has come to its end. True for the input alone.
fn wait_for_either(input: RawFd, ended: RawFd) -> io::Result<bool> {
    let wanted = |fd| libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    };
    let mut fds = [wanted(input), wanted(ended)];
    loop {
        // SAFETY: the array has as many entries as are named and is alive during the call.
        let count = unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, -1) };
        if count >= 0 {
            return Ok(fds[1].revents == 0);
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_is_read_until_the_pipe_beside_it_is_closed() {
        let (reader, mut writer) = io::pipe().expect("pipe");
        let (ended, end) = io::pipe().expect("pipe");
        let mut input = UntilInterrupted {
            input: File::from(std::os::fd::OwnedFd::from(reader)),
            ended,
        };
        let mut buffer = [0; 8];
        io::Write::write_all(&mut writer, b"one").expect("write");
        assert_eq!(input.read(&mut buffer).expect("read"), 3);
        io::Write::write_all(&mut writer, b"two").expect("write");
        drop(end);
        assert_eq!(input.read(&mut buffer).expect("read"), 0);
    }
}
