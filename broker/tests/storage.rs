//! The binary on file systems that are not what it would like: without direct I/O, and full.
//!
//! They are mounted in a mount namespace that a child process holds; everything is gone with it. Where namespaces or
//! mounts are not allowed the tests say so and are passed over.

#[path = "support/process.rs"]
#[allow(dead_code, reason = "each of the binaries that share it uses a part")]
mod support;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use support::{Broker, folder, serve, text};

/// Mounts that live as long as this.
struct Mounts {
    holder: Child,
}

impl Mounts {
    /// Runs `script` in a namespace of its own; `None`, with a word to stderr, where that is not allowed.
    fn new(script: &str) -> Option<Mounts> {
        let mut command = Command::new("unshare");
        command.arg("--mount");
        if !is_root() {
            command.args(["--user", "--map-root-user"]);
        }
        let held = format!("set -e; {script}; echo mounted; exec cat");
        let holder = command
            .args(["sh", "-c", &held])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let Ok(mut holder) = holder else {
            eprintln!("not run: there is no unshare");
            return None;
        };
        let mut line = String::new();
        let out = holder.stdout.take().expect("piped");
        BufReader::new(out).read_line(&mut line).expect("text");
        let mounts = Mounts { holder };
        if line != "mounted\n" {
            eprintln!("not run: this machine does not let the test mount");
            return None;
        }
        Some(mounts)
    }

    /// `command`, run where the mounts are.
    fn inside(&self, command: &Command) -> Command {
        let mut inside = Command::new("nsenter");
        inside.args(["--target", &self.holder.id().to_string(), "--mount"]);
        if !is_root() {
            inside.args(["--user", "--preserve-credentials"]);
        }
        inside.arg("--").arg(command.get_program());
        inside.args(command.get_args());
        inside
    }

    /// A path inside, as it is reached from outside.
    fn path(&self, path: &Path) -> PathBuf {
        let root = format!("/proc/{}/root", self.holder.id());
        Path::new(&root).join(path.strip_prefix("/").expect("absolute"))
    }
}

impl Drop for Mounts {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

fn is_root() -> bool {
    // SAFETY: it cannot fail and touches nothing.
    unsafe { libc::geteuid() == 0 }
}

/// An overlay over ramfs: an ordinary file system by its type, whose files refuse O_DIRECT.
fn without_direct_io(at: &Path) -> Option<(Mounts, PathBuf)> {
    let mounts = Mounts::new(&format!(
        "mount -t ramfs ramfs {0}; mkdir {0}/lower {0}/upper {0}/work {0}/merged; \
         mount -t overlay overlay -o lowerdir={0}/lower,upperdir={0}/upper,workdir={0}/work {0}/merged",
        at.display()
    ))?;
    Some((mounts, at.join("merged/data")))
}

fn http_get(address: &str, path: &str) -> String {
    let mut stream = std::net::TcpStream::connect(address).expect("listens");
    let request = format!("GET {path} HTTP/1.0\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("write");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("read");
    answer
}

const PREFER: &[&str] = &["--set", "storage.direct_io=prefer"];

#[test]
fn refused_direct_io_ends_the_start_unless_buffered_io_is_allowed() {
    let place = folder();
    let Some((mounts, data)) = without_direct_io(place.path()) else {
        return;
    };
    let run = |command: Command| -> Output { mounts.inside(&command).output().expect("runs") };
    let refused = run(serve(&data, &[]));
    assert_eq!(refused.status.code(), Some(2));
    let stderr = text(&refused.stderr);
    for part in [
        "direct I/O refused by overlayfs",
        "storage.direct_io = \"require\"",
        "--set storage.direct_io=prefer",
    ] {
        assert!(stderr.contains(part), "{part} is missing in {stderr}");
    }
    assert!(!mounts.path(&data).exists());

    let check = |more: &[&str]| {
        let mut command = support::tackboard("check --data");
        command.arg(&data).args(more);
        run(command)
    };
    assert_eq!(check(&[]).status.code(), Some(1));
    let allowed = check(PREFER);
    let stdout = text(&allowed.stdout);
    assert_eq!(allowed.status.code(), Some(0), "{stdout}");
    assert!(stdout.contains("buffered"), "{stdout}");
}

#[test]
fn what_was_acknowledged_through_the_page_cache_outlives_kills_and_a_clean_stop() {
    let place = folder();
    let Some((mounts, data)) = without_direct_io(place.path()) else {
        return;
    };
    let more = [PREFER, &["--set", "log.segment.bytes=2 MiB"]].concat();
    let start = || Broker::spawn(mounts.inside(&serve(&data, &more)));
    let mut broker = start();
    assert!(
        (broker.greeting).contains("storage  buffered (direct I/O refused by overlayfs"),
        "{}",
        broker.greeting
    );
    let metrics = http_get(&broker.http, "/metrics");
    let info = "tackboard_storage_info{io=\"buffered\",file_system=\"overlayfs\"} 1";
    assert!(metrics.contains(info), "{metrics}");
    broker.ok("topic create t", "");

    let mut expected = String::new();
    for round in 0..3 {
        let lines: String = (0..20_000)
            .map(|line| {
                format!("round {round}, event {line}, and something to fill a segment with\n")
            })
            .collect();
        broker.ok("produce t --acks all", &lines);
        expected += &lines;
        // More is being written when the kill comes; whether that is kept was never promised.
        let mut late = (broker.command("produce t"))
            .stdin(Stdio::piped())
            .stderr(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .expect("starts");
        let mut pipe = late.stdin.take().expect("piped");
        let sending = std::thread::spawn(move || {
            let _ = pipe.write_all("late\n".repeat(1_000_000).as_bytes());
        });
        let one_more = expected.lines().count() + 1;
        broker.ok(&format!("consume t --follow --count {one_more}"), "");
        broker.signal(libc::SIGKILL);
        broker.child.wait().expect("ends");
        late.kill().expect("it retries until then");
        late.wait().expect("ends");
        sending.join().expect("the pipe was closed");
        broker = start();
        let got = broker.ok("consume t", "");
        let late = got.strip_prefix(&expected);
        let late = late.unwrap_or_else(|| panic!("round {round} lost what was acknowledged"));
        assert_eq!(late.replace("late\n", ""), "", "round {round}");
        expected = got;
    }
    broker.signal(libc::SIGTERM);
    assert_eq!(broker.child.wait().expect("ends").code(), Some(0));
    let broker = start();
    assert!(
        broker.greeting.contains("clean shutdown"),
        "{}",
        broker.greeting
    );
}
