//! A run that is interrupted leaves nothing behind: no data, no server.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
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

/// Whether there is no such process any more, or only what its parent has still to be told.
fn has_ended(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.map_or(true, |stat| stat.contains(") Z "))
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
    until("the server ends", || has_ended(&server));
}

/// A server dies with the run that started it, by the kernel's hand; what its start script has started does not.
#[test]
fn a_run_takes_what_a_start_script_has_started_with_it() {
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let (script, started) = (place.path().join("broker"), place.path().join("started"));
    let text = format!(
        "#!/bin/sh\nsleep 600 &\necho $! > {0}.part\nmv {0}.part {0}\nwait\n",
        started.display()
    );
    fs::write(&script, text).expect("a script");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("it can be run");
    let data = place.path().join("data");
    fs::create_dir(&data).expect("a folder");
    let arguments = ["run", "--workload", "small", "--server", "Tackboard"];
    let script = script.to_str().expect("a name");
    let arguments = [&arguments[..], &["--tackboard", script]].concat();
    let child = start(&arguments, &data);
    until("the script started something", || started.exists());
    let sleeper = fs::read_to_string(&started).expect("a pid");
    interrupt(child, &data);
    until("what the script started ends", || has_ended(sleeper.trim()));
}
