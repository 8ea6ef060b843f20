//! The binary as people run it: exit codes, texts, signals, pipes.

#[path = "support/process.rs"]
#[allow(dead_code, reason = "each of the binaries that share it uses a part")]
mod support;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use support::{Broker, folder, serve, tackboard, text};

#[test]
fn a_wrong_configuration_is_refused_with_all_its_faults_and_code_2() {
    let data = folder();
    let file = data.path().join("broker.toml");
    std::fs::write(&file, "log.segment.bytes = \"12\"\nretension.ms = 1\n").expect("write");
    let mut command = serve(&data.path().join("data"), &["--set", "acks.default=7"]);
    let output = command.arg("--config").arg(&file).output().expect("runs");
    assert_eq!(output.status.code(), Some(2));
    let stderr = text(&output.stderr);
    for expected in [
        "3 faults, nothing was started",
        "line 1",
        "did you mean log.retention.ms?",
        "--set",
    ] {
        assert!(
            stderr.contains(expected),
            "{expected} is missing in {stderr}"
        );
    }
    assert!(!data.path().join("data").exists());
}

#[test]
fn wrong_usage_has_code_2_and_help_has_code_0() {
    for (arguments, code) in [
        ("", 2),
        ("nonsense", 2),
        ("topic create", 2),
        ("consume flights --from yesterday", 2),
        ("config explain no.such.key", 2),
        ("--help", 0),
        ("serve --help", 0),
        ("--version", 0),
        ("config render", 0),
        ("config explain acks.default", 0),
    ] {
        let output = tackboard(arguments).output().expect("runs");
        assert_eq!(output.status.code(), Some(code), "{arguments}");
    }
}

#[test]
fn a_check_ends_with_the_code_of_the_start_that_it_checks_for() {
    for arguments in [
        "--set acks.default=7",
        "--set retension.ms=1",
        "--config no/such/file.toml",
        "--data /proc/tackboard",
    ] {
        let codes = ["serve", "check"].map(|command| {
            let output = tackboard(&format!("{command} {arguments}")).output();
            output.expect("runs").status.code()
        });
        assert_eq!(codes, [Some(2); 2], "{arguments}");
    }
}

#[test]
fn an_empty_variable_for_the_broker_is_as_good_as_none() {
    for (value, broker) in [
        ("", "127.0.0.1:7400"),
        ("127.0.0.1:1", "127.0.0.1:1"),
        ("127.0.0.1:1,127.0.0.1:2", "127.0.0.1:1,127.0.0.1:2"),
    ] {
        let mut command = tackboard("topic list --help");
        let output = command.env("TACKBOARD_BROKER", value).output();
        let help = text(&output.expect("runs").stdout);
        let default = format!("[default: {broker}]");
        assert!(help.contains(&default), "{default} in {help}");
    }
    let told = |arguments: &str, value: &str| {
        let mut command = tackboard(arguments);
        let output = command.env("TACKBOARD_BROKER", value).output();
        let output = output.expect("runs");
        (output.status.code(), text(&output.stderr))
    };
    let (code, said) = told("topic list", "127.0.0.1:1");
    assert_eq!(code, Some(1));
    assert!(said.contains("no broker answers at 127.0.0.1:1"), "{said}");
    let (code, said) = told("topic list", "nonsense");
    assert_eq!(code, Some(2));
    assert!(said.contains("'nonsense'"), "{said}");
    let (code, _) = told("topic list --broker=", "");
    assert_eq!(code, Some(2), "what is written has to be an address");
}

#[test]
fn nobody_listening_is_said_with_what_to_do() {
    let output = tackboard("topic list --broker 127.0.0.1:1")
        .output()
        .expect("runs");
    assert_eq!(output.status.code(), Some(1));
    let stderr = text(&output.stderr);
    assert!(
        stderr.starts_with("error  no broker answers at 127.0.0.1:1"),
        "{stderr}"
    );
    let output = tackboard("topic list --json --broker 127.0.0.1:1")
        .output()
        .expect("runs");
    let error: serde_json::Value = serde_json::from_slice(&output.stderr).expect("JSON");
    assert!(error["error"]["message"].is_string());
}

#[test]
fn events_go_in_and_come_out_and_a_signal_stops_the_broker() {
    let data = folder();
    let mut broker = Broker::start(data.path());
    assert!(
        broker
            .ok("topic create flights --partitions 3", "")
            .starts_with("created flights")
    );
    assert_eq!(
        broker.run("topic create flights", "").status.code(),
        Some(1)
    );
    let lines = "{\"k\":\"a\",\"t\":1000}\n{\"k\":null,\"t\":2000}\n{\"k\":\"a\",\"t\":\"1970-01-01T00:00:03Z\"}";
    let summary = broker.ok(
        "produce flights --key-field k --timestamp-field t --json",
        lines,
    );
    let summary: serde_json::Value = serde_json::from_str(&summary).expect("JSON");
    assert_eq!(
        (&summary["sent"], &summary["acknowledged"]),
        (&3.into(), &3.into())
    );

    let consumed = broker.ok("consume flights --json", "");
    let mut events: Vec<serde_json::Value> = consumed
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    events.sort_by_key(|event| event["timestamp"].as_i64());
    assert_eq!(events.len(), 3);
    let values: Vec<_> = events
        .iter()
        .filter_map(|event| event["value"].as_str())
        .collect();
    assert_eq!(values, lines.lines().collect::<Vec<_>>());
    assert_eq!(events[0]["key"], "a");
    assert_eq!(events[1]["key"], serde_json::Value::Null);
    assert_eq!(events[0]["partition"], events[2]["partition"]);
    assert_eq!(events[2]["timestamp"], 3000);

    assert_eq!(
        broker.ok("consume flights --from 1970-01-01T00:00:03Z --count 1", ""),
        format!("{}\n", lines.lines().last().expect("three"))
    );
    assert_eq!(broker.ok("consume flights --from latest", ""), "");
    assert!(broker.ok("topic list", "").contains("flights"));
    assert!(broker.ok("topic describe flights", "").contains("3 events"));
    let altered = "topic alter flights --partitions 8 --config retention.ms=2h --reset segment.ms";
    assert_eq!(
        broker.ok(altered, ""),
        "altered flights   8 partitions\n  retention.ms = 7200000\n  segment.ms = 43200000   (the broker's)\n"
    );
    let refused = broker.run("topic alter flights --partitions 8", "");
    assert_eq!(refused.status.code(), Some(1));
    let stderr = text(&refused.stderr);
    assert!(stderr.contains("INVALID_PARTITIONS"), "{stderr}");
    assert_eq!(broker.run("topic alter flights", "").status.code(), Some(2));
    assert!(
        broker
            .ok("topic delete flights --json", "")
            .contains("true")
    );

    broker.signal(libc::SIGTERM);
    assert_eq!(broker.child.wait().expect("ends").code(), Some(0));
    let mut rest = String::new();
    broker.out.read_to_string(&mut rest).expect("text");
    assert!(rest.contains("stopped cleanly"), "{rest}");
}

#[test]
fn a_signal_that_comes_twice_at_once_is_one() {
    // `timeout` sends one to the process and one to its group.
    let data = folder();
    let mut broker = Broker::start(data.path());
    broker.signal(libc::SIGTERM);
    std::thread::sleep(Duration::from_millis(2));
    broker.signal(libc::SIGTERM);
    assert_eq!(broker.child.wait().expect("ends").code(), Some(0));
}

#[test]
fn what_asks_for_no_answer_is_not_called_acknowledged() {
    let data = folder();
    let broker = Broker::start(data.path());
    broker.ok("topic create t", "");
    let summary = broker.ok("produce t --acks 0 --json", "a\nb\n");
    let summary: serde_json::Value = serde_json::from_str(&summary).expect("JSON");
    assert_eq!(
        (&summary["sent"], &summary["acknowledged"]),
        (&2.into(), &0.into())
    );
    let told = broker.ok("produce t --acks 0", "c\n");
    assert!(
        told.starts_with("1 event to t, 1 not acknowledged (acks 0)   1 B   "),
        "{told}"
    );
    let told = broker.ok("produce t --acks 1", "d\n");
    assert!(told.starts_with("1 event to t   1 B   "), "{told}");
}

#[test]
fn a_folder_is_no_file_of_lines() {
    let output = tackboard("produce t /tmp").output().expect("runs");
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        text(&output.stderr),
        "error  /tmp is a folder, not a file of lines\n       nothing was sent\n"
    );
}

#[test]
fn a_bad_line_is_named_and_what_came_before_it_is_kept() {
    let data = folder();
    let broker = Broker::start(data.path());
    broker.ok("topic create t", "");
    let output = broker.run(
        "produce t --key-field k",
        "{\"k\":1}\n{\"k\":2}\nnot JSON\n{\"k\":4}\n",
    );
    assert_eq!(output.status.code(), Some(1));
    let stderr = text(&output.stderr);
    assert!(
        stderr.contains("line 3 is no JSON object: not JSON; expected one"),
        "{stderr}"
    );
    assert!(
        stderr.contains("2 events sent to t, 2 acknowledged; to go on, begin at line 3"),
        "{stderr}"
    );
    assert_eq!(broker.ok("consume t", ""), "{\"k\":1}\n{\"k\":2}\n");
}

#[test]
fn a_key_field_that_no_line_has_is_noted() {
    let data = folder();
    let broker = Broker::start(data.path());
    broker.ok("topic create t", "");
    let noted = |field: &str| {
        let arguments = format!("produce t --key-field {field}");
        let output = broker.run(&arguments, "{\"k\":1}\n{}\n");
        assert!(output.status.success());
        text(&output.stderr).contains("no line had a value in the field")
    };
    assert!(noted("kk"));
    assert!(!noted("k"));
}

#[test]
fn a_signal_ends_the_input_and_what_was_read_of_it_is_sent_and_counted() {
    let data = folder();
    let broker = Broker::start(data.path());
    broker.ok("topic create t", "");
    for (signal, name) in [(libc::SIGINT, "SIGINT"), (libc::SIGTERM, "SIGTERM")] {
        let mut child = broker
            .command("produce t --json")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("starts");
        let mut stdin = child.stdin.take().expect("piped");
        stdin
            .write_all(name.as_bytes())
            .expect("it reads its input");
        stdin.write_all(b"\nhalf a li").expect("it reads its input");
        // The event shows in the log, so it was read; the command waits for the rest of the second line.
        let is_read = (0..1000).any(|_| broker.ok("consume t", "").contains(name));
        assert!(is_read, "the first line does not arrive");
        // SAFETY: sends a signal to our own child, which has not been waited for.
        unsafe { libc::kill(child.id() as i32, signal) };
        let output = child.wait_with_output().expect("ends");
        drop(stdin);
        assert_eq!(output.status.code(), Some(130));
        let stderr = text(&output.stderr);
        let expected =
            format!("{name}: 1 event sent to t, 1 acknowledged; to go on, begin at line 2");
        assert!(stderr.contains(&expected), "{stderr}");
        let summary: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(
            (&summary["acknowledged"], &summary["interrupted"]),
            (&1.into(), &true.into())
        );
    }
    assert_eq!(broker.ok("consume t", ""), "SIGINT\nSIGTERM\n");
}

#[test]
fn a_check_from_a_client_names_what_the_client_is_told_and_cannot_reach() {
    let data = folder();
    let at_kafkas_door =
        |broker: &Broker| format!("check --from-client {}", broker.kafka_address());
    let check = |broker: &Broker, command: &str| {
        let output = broker.run(command, "");
        (output.status.code(), text(&output.stdout))
    };
    let broker = Broker::start(data.path());
    let native = format!("check --from-client {}", broker.address);
    for command in [&native, &at_kafkas_door(&broker)] {
        let (code, said) = check(&broker, command);
        assert_eq!(code, Some(0), "{said}");
        assert!(
            said.ends_with("clients on this machine reach the broker\n"),
            "{said}"
        );
    }
    // A broker of another cluster, where the first one says that it is.
    let elsewhere = folder();
    let more = [
        "--set",
        "kafka.advertised=127.0.0.1:1",
        "--set",
        "native.core_advertised_host=no.such.host.invalid",
        "--set",
    ];
    let advertised = format!("native.advertised={}", broker.address);
    let other = Broker::spawn(serve(
        elsewhere.path(),
        &[&more[..], &[&advertised]].concat(),
    ));
    let (code, said) = check(&other, &at_kafkas_door(&other));
    assert_eq!(code, Some(1));
    assert!(
        said.contains("127.0.0.1:1") && said.contains("set kafka.advertised to"),
        "{said}"
    );
    let (code, said) = check(&other, &format!("check --from-client {}", other.address));
    assert_eq!(code, Some(1));
    for part in [
        "is a broker of another cluster",
        "set native.advertised to",
        "no.such.host.invalid",
        "set native.core_advertised_host to",
        "2 to mend",
    ] {
        assert!(said.contains(part), "{part} in {said}");
    }
    let (code, said) = check(&broker, "check --from-client 127.0.0.1:1");
    assert_eq!(code, Some(1));
    assert!(said.contains("no broker answers at 127.0.0.1:1"), "{said}");
}

#[test]
fn an_unknown_topic_is_told_in_one_way_by_every_command() {
    let data = folder();
    let broker = Broker::start(data.path());
    broker.ok("topic create flights", "");
    for (command, may_create) in [
        ("consume flihts", false),
        ("topic describe flihts", false),
        ("topic delete flihts", false),
        ("topic alter flihts --partitions 2", false),
        ("produce flihts", true),
    ] {
        let output = broker.run(command, "event\n");
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{command}: {stderr}");
        let mut expected = format!(
            "error  there is no topic flihts on the broker at {0} (UNKNOWN_TOPIC_OR_PARTITION)\n       did you mean flights?\n",
            broker.address
        );
        if may_create {
            expected += &format!(
                "       create it: tackboard topic create flihts --broker {}\n",
                broker.address
            );
        }
        assert_eq!(stderr, expected, "{command}");
    }
}

#[test]
fn an_offset_beyond_the_end_is_refused_and_the_end_itself_is_not() {
    let data = folder();
    let broker = Broker::start(data.path());
    broker.ok("topic create t", "");
    broker.ok("produce t", "a\nb\n");
    assert_eq!(broker.ok("consume t --from 1", ""), "b\n");
    assert_eq!(broker.ok("consume t --from 2", ""), "");
    for more in ["", " --follow", " --count 1"] {
        let output = broker.run(&format!("consume t --from 3 --json{more}"), "");
        assert_eq!(output.status.code(), Some(1));
        let error: serde_json::Value = serde_json::from_slice(&output.stderr).expect("JSON");
        assert_eq!(error["error"]["code"], "OFFSET_OUT_OF_RANGE");
        let message = error["error"]["message"].as_str().expect("text");
        assert!(message.contains("t-0 has 0 to 1"), "{message}");
    }
}

#[test]
fn too_many_acknowledgements_are_refused_before_anything_is_sent() {
    let data = folder();
    let broker = Broker::start(data.path());
    broker.ok("topic create t", "");
    let output = broker.run("produce t --acks 2", "event\n");
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("nothing was written; lower --acks"));
    assert_eq!(broker.ok("consume t", ""), "");
}

#[test]
fn a_reader_that_closes_the_pipe_is_no_error() {
    let data = folder();
    let broker = Broker::start(data.path());
    broker.ok("topic create t", "");
    broker.ok("produce t", &"0123456789abcdef\n".repeat(50_000));
    let mut child = broker
        .command("consume t")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    let mut first = String::new();
    let mut out = BufReader::new(child.stdout.take().expect("piped"));
    out.read_line(&mut first).expect("text");
    drop(out);
    let output = child.wait_with_output().expect("ends");
    assert_eq!(first, "0123456789abcdef\n");
    assert_eq!(
        (output.status.code(), text(&output.stderr).as_str()),
        (Some(0), "")
    );
}

#[test]
fn a_second_broker_on_the_folder_is_refused_and_the_folder_outlives_a_kill() {
    let data = folder();
    let mut broker = Broker::start(data.path());
    broker.ok("topic create t", "");
    broker.ok("produce t", "kept\n");
    let second = serve(data.path(), &[]).output().expect("runs");
    assert_eq!(second.status.code(), Some(1));
    assert!(
        text(&second.stderr).contains("in use by another broker"),
        "{}",
        text(&second.stderr)
    );
    broker.signal(libc::SIGKILL);
    broker.child.wait().expect("ends");
    let broker = Broker::start(data.path());
    assert_eq!(broker.ok("consume t", ""), "kept\n");
}

#[test]
fn a_start_that_finds_its_port_taken_leaves_no_folder_behind() {
    let data = folder();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("bound");
    let folder = data.path().join("new/data");
    for key in ["native.bind", "native.core_bind", "kafka.bind", "http.bind"] {
        let output = serve(&folder, &["--set", &format!("{key}={address}")])
            .output()
            .expect("runs");
        assert_eq!(output.status.code(), Some(1));
        let stderr = text(&output.stderr);
        assert!(
            stderr.contains(key) && stderr.contains("another process listens there"),
            "{stderr}"
        );
        assert!(!data.path().join("new").exists(), "{key}");
    }
}

#[test]
fn http_answers_while_the_broker_serves() {
    let data = folder();
    let broker = Broker::start(data.path());
    let mut stream = std::net::TcpStream::connect(&broker.http).expect("listens");
    stream
        .write_all(b"GET /readyz HTTP/1.0\r\n\r\n")
        .expect("write");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("read");
    assert!(
        answer.contains("200 OK") && answer.ends_with("ready\n"),
        "{answer}"
    );
}

#[test]
fn a_log_that_cannot_be_written_ends_nothing() {
    let data = folder();
    // Every write to it finds no space.
    let full = Path::new("/dev/full");
    let debug = ["--set", "logging.level=debug"];
    let start = || Broker::spawn_logging(serve(data.path(), &debug), full);
    let mut broker = start();
    broker.ok("topic create t", "");
    broker.signal(libc::SIGTERM);
    assert_eq!(broker.child.wait().expect("ends").code(), Some(0));
    // One that has to warn at the start, and to say why it stops.
    std::fs::create_dir(data.path().join("p").join(format!("{}-0", "5a".repeat(16))))
        .expect("a folder");
    let mut broker = start();
    broker.ok("produce t", "kept\n");
    broker.signal(libc::SIGTERM);
    assert_eq!(broker.child.wait().expect("ends").code(), Some(0));
}

/// Where the only partition of the only topic lies.
fn only_log(data: &Path) -> std::path::PathBuf {
    let mut logs = std::fs::read_dir(data.join("p")).expect("logs");
    logs.next().expect("one").expect("listed").path()
}

#[test]
fn lost_ledgers_end_the_start_unless_that_is_accepted() {
    for stop in [libc::SIGTERM, libc::SIGKILL] {
        let data = folder();
        let mut broker = Broker::start(data.path());
        broker.ok("topic create t", "");
        broker.ok("produce t", "kept\n");
        broker.signal(stop);
        broker.child.wait().expect("ends");
        for entry in std::fs::read_dir(data.path().join("ledger")).expect("ledgers") {
            let path = entry.expect("listed").path();
            // Gone, or there and empty: neither proves anything.
            match stop {
                libc::SIGTERM => std::fs::remove_file(path).expect("removed"),
                _ => std::fs::write(path, "").expect("emptied"),
            }
        }
        let refused = serve(data.path(), &[]).output().expect("runs");
        assert_eq!(refused.status.code(), Some(1));
        let stderr = text(&refused.stderr);
        for part in ["is missing", "--set storage.missing_ledger=scan"] {
            assert!(stderr.contains(part), "{part} is missing in {stderr}");
        }
        // Refusing changed nothing.
        assert!(
            !serve(data.path(), &[])
                .output()
                .expect("runs")
                .status
                .success()
        );

        let accepted = serve(data.path(), &["--set", "storage.missing_ledger=scan"]);
        let mut broker = Broker::spawn(accepted);
        let greeting = &broker.greeting;
        assert!(greeting.contains("ledgers are lost"), "{greeting}");
        assert!(greeting.contains("1 partition without proof"), "{greeting}");
        assert_eq!(broker.ok("consume t", ""), "kept\n");
        broker.signal(libc::SIGKILL);
        broker.child.wait().expect("ends");
        // From here on there is proof again.
        let broker = Broker::start(data.path());
        assert_eq!(broker.ok("consume t", ""), "kept\n");
    }
}

#[test]
fn a_log_of_no_topic_is_reported_and_left_alone() {
    let data = folder();
    let mut broker = Broker::start(data.path());
    broker.ok("topic create t", "");
    broker.signal(libc::SIGTERM);
    broker.child.wait().expect("ends");
    let orphan = data.path().join("p").join(format!("{}-0", "5a".repeat(16)));
    std::fs::rename(only_log(data.path()), &orphan).expect("renamed");
    let log = data.path().join("stderr");
    let mut broker = Broker::spawn_logging(serve(data.path(), &[]), &log);
    broker.signal(libc::SIGTERM);
    broker.child.wait().expect("ends");
    let said = std::fs::read_to_string(&log).expect("text");
    assert!(said.contains("1 entry among the logs"), "{said}");
    assert!(said.contains(&"5a".repeat(16)), "{said}");
    assert!(orphan.is_dir());
}

#[test]
fn a_foreign_file_among_the_segments_is_set_aside_and_named() {
    for stop in [libc::SIGTERM, libc::SIGKILL] {
        let data = folder();
        let mut broker = Broker::start(data.path());
        broker.ok("topic create t", "");
        let lines: String = (0..50_000).map(|line| format!("event {line}\n")).collect();
        broker.ok("produce t", &lines);
        broker.signal(stop);
        broker.child.wait().expect("ends");
        let stranger = only_log(data.path()).join("00000000000000020000.log");
        std::fs::write(&stranger, "").expect("written");
        let log = data.path().join("stderr");
        let broker = Broker::spawn_logging(serve(data.path(), &[]), &log);
        assert!(broker.ok("consume t", "") == lines, "all is served");
        let said = std::fs::read_to_string(&log).expect("text");
        assert!(said.contains("00000000000000020000.log"), "{said}");
        assert!(!stranger.exists());
        assert!(stranger.with_extension("log.aside").exists());
    }
}

/// A port that was free a moment ago.
fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("bound").port()
}

#[test]
fn a_stop_as_soon_as_it_is_ready_is_a_clean_one() {
    let data = folder();
    for _ in 0..10 {
        let port = free_port();
        let mut child = serve(
            data.path(),
            &["--set", &format!("http.bind=127.0.0.1:{port}")],
        )
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
        let is_ready = || {
            let Ok(mut stream) = std::net::TcpStream::connect(("127.0.0.1", port)) else {
                return false;
            };
            let mut answer = String::new();
            let asked = stream.write_all(b"GET /readyz HTTP/1.0\r\n\r\n");
            asked
                .and_then(|()| stream.read_to_string(&mut answer))
                .is_ok()
                && answer.contains("200 OK")
        };
        while !is_ready() {
            assert_eq!(child.try_wait().expect("waits"), None, "it ended");
        }
        // SAFETY: sends a signal to our own child, which has not been waited for.
        unsafe { libc::kill(child.id() as i32, libc::SIGTERM) };
        let output = child.wait_with_output().expect("ends");
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{stderr}");
    }
}

/// Denies `io_uring_setup` with EPERM, as container runtimes do.
fn deny_io_uring() -> std::io::Result<()> {
    const LOAD_WORD: u16 = 0x20;
    const JUMP_IF_EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;
    let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let mut filter = [
        step(LOAD_WORD, 0, 0, 0),
        step(JUMP_IF_EQUAL, 0, 1, libc::SYS_io_uring_setup as u32),
        step(RETURN, 0, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
        step(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_mut_ptr(),
    };
    // SAFETY: plain system calls; the program is alive while the second one reads it.
    let denied = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &program) == 0
    };
    if denied {
        Ok(())
    } else {
        Err(std::io::Error::last_os_error())
    }
}

/// Takes away locked memory, also from root.
fn limit_locked_memory() -> std::io::Result<()> {
    const CAP_IPC_LOCK: libc::c_ulong = 14;
    let limit = libc::rlimit {
        rlim_cur: 64 << 10,
        rlim_max: 64 << 10,
    };
    // SAFETY: plain system calls; the limit is alive while the second one reads it. The first one fails
    // where the capability is not there to be dropped, which is as well.
    let limited = unsafe {
        libc::prctl(libc::PR_CAPBSET_DROP, CAP_IPC_LOCK, 0, 0, 0);
        libc::setrlimit(libc::RLIMIT_MEMLOCK, &limit) == 0
    };
    if limited {
        Ok(())
    } else {
        Err(std::io::Error::last_os_error())
    }
}

/// What a start says that is refused on a machine like this, where a check ends with the same code.
fn refused_start(prepare: fn() -> std::io::Result<()>) -> String {
    let data = folder();
    let data = data.path().join("data");
    let mut check = tackboard("check --data");
    check.arg(&data);
    let [checked, refused] = [check, serve(&data, &[])].map(|mut command| {
        // SAFETY: `prepare` makes only system calls that are allowed between fork and exec.
        unsafe { command.pre_exec(prepare) };
        let output = command.output().expect("runs");
        assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
        assert!(!data.exists());
        output
    });
    assert!(text(&checked.stdout).contains("cannot run the broker yet"));
    text(&refused.stderr)
}

#[test]
fn denied_io_uring_ends_the_start_with_code_2_and_the_remedy() {
    let stderr = refused_start(deny_io_uring);
    assert!(stderr.contains("seccomp=unconfined"), "{stderr}");
}

#[test]
fn too_little_locked_memory_ends_the_start_with_code_2_and_the_remedy() {
    let stderr = refused_start(limit_locked_memory);
    assert!(stderr.contains("LimitMEMLOCK=infinity"), "{stderr}");
}

#[cfg(not(feature = "inject-faults"))]
#[test]
fn a_build_for_users_makes_no_storage_faults_and_refuses_to_be_asked() {
    let data = folder();
    let mut command = serve(&data.path().join("data"), &[]);
    let asked = command.env("TACKBOARD_INJECT_FAULTS", "write *.log eio");
    let output = asked.output().expect("runs");
    assert_eq!(output.status.code(), Some(2));
    let stderr = text(&output.stderr);
    assert!(stderr.contains("this build makes none"), "{stderr}");
    assert!(!data.path().join("data").exists());
    let binary = std::fs::read(command.get_program()).expect("the binary");
    let told = b"a storage fault on purpose";
    assert!(!binary.windows(told.len()).any(|bytes| bytes == told));
}
