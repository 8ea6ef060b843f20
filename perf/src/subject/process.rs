//! A server as a child process: started on given CPUs, awaited, ended by its pid.

use std::{
    collections::VecDeque,
    io::{BufRead, BufReader},
    net::{SocketAddr, TcpListener, TcpStream},
    os::unix::process::CommandExt,
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};

use crate::machine::{confine, kill_descendants};

/// How long a server may take to come up.
const START_WAIT_MAX: Duration = Duration::from_secs(60);
/// How long a server may take to end after SIGTERM before it is killed.
const STOP_WAIT_MAX: Duration = Duration::from_secs(40);
/// How many of the last lines that a server printed are kept for an error.
const LINES_KEPT_MAX: usize = 50;

/// A port of loopback that nobody held a moment ago.
///
/// # Errors
/// When no port is free.
pub fn free_port() -> Result<SocketAddr> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?)
}

/// A running server. Dropping it kills it, and what it has started.
pub struct ServerProcess {
    child: Option<Child>,
    /// What it needs beside it; ended once it has gone.
    beside: Option<Box<ServerProcess>>,
}

impl ServerProcess {
    /// Starts `command` on `cpus`, and hands each line that it prints to `is_ready` until that returns something.
    ///
    /// # Errors
    /// When the program can't be started, or ends or falls silent before it was ready.
    pub fn start<T>(
        mut command: Command,
        cpus: Option<&[usize]>,
        mut is_ready: impl FnMut(&str) -> Option<T>,
    ) -> Result<(Self, T)> {
        let name = command.get_program().to_string_lossy().into_owned();
        // Some servers speak on one of the two, some on the other.
        let (output, printing) = std::io::pipe()?;
        command.stdout(printing.try_clone()?).stderr(printing);
        let process = Self::spawn(command, cpus)?;
        let (lines, printed) = mpsc::sync_channel(LINES_KEPT_MAX);
        // Goes on reading after the start, so that the server never waits for a full pipe; ends with the server.
        thread::spawn(move || {
            for line in BufReader::new(output)
                .lines()
                .map_while(std::io::Result::ok)
            {
                // Waits for room while the start goes on, so that no line is missed; fails at once behind it.
                let _ = lines.send(line);
            }
        });
        let deadline = Instant::now() + START_WAIT_MAX;
        let mut seen = VecDeque::new();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok(line) = printed.recv_timeout(left) else {
                let seen: Vec<String> = seen.into();
                bail!("{name} did not come up; it printed\n{}", seen.join("\n"));
            };
            if let Some(ready) = is_ready(&line) {
                return Ok((process, ready));
            }
            if seen.len() == LINES_KEPT_MAX {
                seen.pop_front();
            }
            seen.push_back(line);
        }
    }

    /// Starts a server that says nothing of use, and waits until it takes connections at `address`.
    ///
    /// # Errors
    /// When the program can't be started, ends, or takes no connection in time.
    pub fn start_silent(
        mut command: Command,
        cpus: Option<&[usize]>,
        address: SocketAddr,
    ) -> Result<Self> {
        let name = command.get_program().to_string_lossy().into_owned();
        command.stdout(Stdio::null()).stderr(Stdio::inherit());
        let mut process = Self::spawn(command, cpus)?;
        let deadline = Instant::now() + START_WAIT_MAX;
        while TcpStream::connect(address).is_err() {
            if let Some(status) = process
                .child
                .as_mut()
                .map(Child::try_wait)
                .transpose()?
                .flatten()
            {
                bail!("{name} ended before it took a connection: {status}");
            }
            if Instant::now() > deadline {
                bail!("{name} took no connection at {address} within {START_WAIT_MAX:?}");
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(process)
    }

    fn spawn(mut command: Command, cpus: Option<&[usize]>) -> Result<Self> {
        let cpus = cpus.map(<[usize]>::to_vec);
        command.stdin(Stdio::null());
        // SAFETY: between fork and exec the closure makes system calls on plain data, and allocates nothing.
        unsafe {
            command.pre_exec(move || {
                unblock_signals();
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                cpus.as_deref().map_or(Ok(()), confine)
            });
        }
        let name = command.get_program().to_string_lossy().into_owned();
        let child = command
            .spawn()
            .with_context(|| format!("{name} can't be started"))?;
        Ok(ServerProcess {
            child: Some(child),
            beside: None,
        })
    }

    /// Takes along what it needs beside it, which is ended once the server has gone.
    #[must_use]
    pub fn with_beside(mut self, beside: ServerProcess) -> Self {
        self.beside = Some(Box::new(beside));
        self
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.as_ref().map_or(0, Child::id)
    }

    /// Asks it to end, and kills it when it takes too long.
    ///
    /// # Errors
    /// When it had ended by itself with a failure before.
    pub fn stop(mut self) -> Result<()> {
        let Some(mut child) = self.child.take() else {
            return Ok(());
        };
        if let Some(status) = child.try_wait()? {
            bail!("the server ended by itself: {status}");
        }
        // SAFETY: the child has not been waited for, so its pid is its own.
        unsafe { libc::kill(child.id() as libc::pid_t, libc::SIGTERM) };
        let deadline = Instant::now() + STOP_WAIT_MAX;
        while Instant::now() < deadline {
            if child.try_wait()?.is_some() {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(5));
        }
        kill_descendants(child.id());
        child.kill()?;
        child.wait()?;
        bail!("the server did not end within {STOP_WAIT_MAX:?} and was killed")
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            kill_descendants(child.id());
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The signals that this process waits for on one thread are the child's to handle as it likes.
fn unblock_signals() {
    // SAFETY: the set is plain data, and the calls read and write no more than it.
    unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::{cpu_time, family};

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn no_line_of_a_hasty_start_is_missed_and_the_last_ones_explain_a_failure() {
        let ready = |line: &str| (line == "ready").then_some(());
        let hasty = shell("seq 1000; echo ready; exec sleep 60");
        ServerProcess::start(hasty, None, ready).unwrap();
        let failing = shell("seq 1000; echo 'the reason'");
        let error = ServerProcess::start(failing, None, ready).err().unwrap();
        let told = error.to_string();
        assert!(told.ends_with("1000\nthe reason"), "{told}");
        assert!(told.lines().count() <= 1 + LINES_KEPT_MAX, "{told}");
    }

    #[test]
    fn what_a_server_needs_beside_it_goes_after_it() {
        // The server says so if what it needs has gone before it, when it is asked to end.
        let folder = tempfile::tempdir().unwrap();
        let orphaned = folder.path().join("orphaned");
        let ready = |line: &str| (line == "ready").then_some(());
        let sleeper = shell("echo ready; exec sleep 60");
        let (beside, ()) = ServerProcess::start(sleeper, None, ready).unwrap();
        let needed = beside.pid();
        let script = format!(
            "trap 'kill -0 {needed} || touch {}; exit' TERM; echo ready; while :; do sleep 0.01; done",
            orphaned.display()
        );
        let (server, ()) = ServerProcess::start(shell(&script), None, ready).unwrap();
        server.with_beside(beside).stop().unwrap();
        assert!(cpu_time(needed).is_err(), "{needed} lives on");
        assert!(!orphaned.exists(), "{needed} went first");
    }

    #[test]
    fn what_a_start_script_has_started_goes_with_it() {
        let script = shell("sleep 60 & echo ready; wait");
        let ready = |line: &str| (line == "ready").then_some(());
        let (server, ()) = ServerProcess::start(script, None, ready).unwrap();
        let members = family(server.pid());
        assert_eq!(members.len(), 2, "the script and what it runs");
        drop(server);
        let deadline = Instant::now() + START_WAIT_MAX;
        while members.iter().any(|member| cpu_time(*member).is_ok()) {
            assert!(Instant::now() < deadline, "{members:?} live on");
            thread::sleep(Duration::from_millis(5));
        }
    }
}
