//! A run that is interrupted leaves nothing behind: no data, no server.

use std::{
    fs,
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

/// No step here takes longer, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(60);

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "{what} never");
        thread::sleep(Duration::from_millis(10));
    }
}

fn entries(folder: &Path) -> Vec<std::path::PathBuf> {
    let listed = fs::read_dir(folder).into_iter().flatten().flatten();
    listed.map(|entry| entry.path()).collect()
}

fn start(arguments: &[&str], data: &Path) -> Child {
    Command::new(env!("CARGO_BIN_EXE_tackboard-perf"))
        .args(arguments)
        .arg("--data")
        .arg(data)
        .args(["--out", "none"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("starts")
}

fn interrupt(mut child: Child, data: &Path) {
    // SAFETY: sends a signal to our own child, which has not been waited for.
    unsafe { libc::kill(child.id() as libc::pid_t, libc::SIGINT) };
    let status = child.wait().expect("ends");
    assert_eq!(status.code(), Some(130));
    assert_eq!(entries(data), Vec::<std::path::PathBuf>::new());
}

#[test]
fn limits_take_their_files_with_them() {
    let data = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let child = start(&["limits", "--round-ms", "60000"], data.path());
    until("a file was written", || {
        entries(data.path())
            .iter()
            .any(|folder| !entries(folder).is_empty())
    });
    interrupt(child, data.path());
}

#[test]
fn a_run_takes_its_server_and_the_server_s_data_with_it() {
    let data = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let own = env!("CARGO_BIN_EXE_tackboard-perf");
    // No broker takes part: any file passes for its binary.
    let arguments = ["run", "--workload", "small", "--server", "buffered"];
    let arguments = [&arguments[..], &["--seconds", "600", "--tackboard", own]].concat();
    let child = start(&arguments, data.path());
    let log = |name: &str| {
        let runs = entries(data.path()).into_iter().map(|it| it.join("run"));
        runs.flat_map(|run| entries(&run))
            .any(|file| file.ends_with(name))
    };
    until("the server wrote a log", || log("0.log"));
    let process = format!("/proc/{0}/task/{0}/children", child.id());
    let servers = fs::read_to_string(process).expect("the driver runs");
    let server = servers
        .split_whitespace()
        .next()
        .expect("a server")
        .to_owned();
    interrupt(child, data.path());
    until("the server ends", || {
        let stat = fs::read_to_string(format!("/proc/{server}/stat"));
        stat.map_or(true, |stat| stat.contains(") Z "))
    });
}
