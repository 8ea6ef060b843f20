//! What the tests of the binary share: how it is started, and a broker in a process of its own.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitStatus, Output, Stdio};

const BINARY: &str = env!("CARGO_BIN_EXE_tackboard");

/// A folder on a real disk, gone with the value.
pub fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder for the test")
}

/// What a test says that can't run on this machine, past what cargo keeps of its output. Where `TACKBOARD_TESTS_MUST_RUN`
/// is set, as in the gate, it fails.
pub fn pass_over(why: &str) {
    let must_run = std::env::var_os("TACKBOARD_TESTS_MUST_RUN").is_some();
    assert!(!must_run, "the test must run, but {why}");
    let current = std::thread::current();
    let name = current.name().unwrap_or_default();
    let _ = writeln!(std::io::stderr(), "{name} is passed over: {why}");
}

/// `tackboard` with arguments separated by spaces.
pub fn tackboard(arguments: &str) -> Command {
    let mut command = Command::new(BINARY);
    command
        .args(arguments.split_whitespace())
        .env_remove("TACKBOARD_BROKER");
    command
}

pub fn serve(data: &Path, more: &[&str]) -> Command {
    let mut command = tackboard(
        "serve --set native.bind=127.0.0.1:0 --set native.core_bind=127.0.0.1:0 --set kafka.bind=127.0.0.1:0 --set http.bind=127.0.0.1:0 --set cores=[0]",
    );
    command
        .arg("--set")
        .arg("memory.total=256 MiB")
        .arg("--data")
        .arg(data)
        .args(more);
    command
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

fn stdin_and_out(mut command: Command, input: &str) -> Output {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    let mut stdin = child.stdin.take().expect("piped");
    // A command that ends early closes the pipe.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    child.wait_with_output().expect("ends")
}

/// A broker in a process of its own; killed with the value.
pub struct Broker {
    pub child: Child,
    pub out: BufReader<ChildStdout>,
    /// What it printed until it was ready.
    pub greeting: String,
    /// Of the native listener.
    pub address: String,
    pub http: String,
}

impl Broker {
    /// Of the listener for clients of Kafka.
    pub fn kafka_address(&self) -> &str {
        let line = (self.greeting.lines()).find(|line| line.starts_with("kafka"));
        let address = line.and_then(|line| line.split_whitespace().nth(1));
        address.expect("its door is open")
    }

    pub fn start(data: &Path) -> Self {
        Self::spawn(serve(data, &[]))
    }

    /// The broker that `command` starts, once it is ready.
    pub fn spawn(command: Command) -> Self {
        let folder = folder();
        Self::spawn_logging(command, &folder.path().join("log"))
    }

    /// The same, with its warnings and its log in a file at `log`.
    pub fn spawn_logging(command: Command, log: &Path) -> Self {
        let stderr = File::create(log).expect("a file");
        Self::try_spawn(command, stderr.into()).unwrap_or_else(|status| {
            let said = std::fs::read_to_string(log).expect("its log");
            panic!("the broker ended before it was ready, with {status}: {said}")
        })
    }

    /// The same, with warnings and log to `stderr`; how it ended when that was before it was ready.
    pub fn try_spawn(mut command: Command, stderr: Stdio) -> Result<Self, ExitStatus> {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(stderr)
            .spawn()
            .expect("starts");
        let mut out = BufReader::new(child.stdout.take().expect("piped"));
        let (mut address, mut http) = (String::new(), String::new());
        let (mut line, mut greeting) = (String::new(), String::new());
        while !line.starts_with("ready in ") {
            line.clear();
            if out.read_line(&mut line).expect("text") == 0 {
                return Err(child.wait().expect("ends"));
            }
            greeting += &line;
            let mut words = line.split_whitespace();
            match (words.next(), words.next()) {
                (Some("native"), Some(word)) => word.clone_into(&mut address),
                (Some("http"), Some(word)) => word.clone_into(&mut http),
                _ => {}
            }
        }
        Ok(Self {
            child,
            out,
            greeting,
            address,
            http,
        })
    }

    pub fn command(&self, arguments: &str) -> Command {
        let mut command = tackboard(arguments);
        command.env("TACKBOARD_BROKER", &self.address);
        command
    }

    pub fn run(&self, arguments: &str, input: &str) -> Output {
        stdin_and_out(self.command(arguments), input)
    }

    pub fn ok(&self, arguments: &str, input: &str) -> String {
        let output = self.run(arguments, input);
        assert!(
            output.status.success(),
            "{arguments}: {}",
            text(&output.stderr)
        );
        text(&output.stdout)
    }

    /// What it says at `/metrics` of one metric, `tackboard_` left out: the sum over its cores.
    pub fn metric(&self, name: &str) -> u64 {
        let mut stream = std::net::TcpStream::connect(&self.http).expect("listens");
        let request = "GET /metrics HTTP/1.0\r\n\r\n";
        stream.write_all(request.as_bytes()).expect("is read");
        let mut page = String::new();
        stream.read_to_string(&mut page).expect("answers");
        let values = page.lines().filter_map(|line| {
            let rest = line.strip_prefix("tackboard_")?.strip_prefix(name)?;
            let value = match rest.split_once("} ") {
                Some((labels, value)) if labels.starts_with('{') => value,
                _ => rest.strip_prefix(' ')?,
            };
            Some(value.parse::<u64>().expect("a number"))
        });
        let values: Vec<u64> = values.collect();
        assert!(!values.is_empty(), "there is no metric {name}");
        values.into_iter().sum()
    }

    pub fn signal(&self, signal: i32) {
        // SAFETY: sends a signal to our own child, which has not been waited for.
        unsafe { libc::kill(self.child.id() as i32, signal) };
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
