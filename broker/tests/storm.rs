//! Topics come and go under clients that use them: nobody is told more than that a topic is not there.

mod support;

use std::{
    collections::BTreeMap,
    io::{BufRead as _, BufReader},
    net::SocketAddr,
    process::{Child, ChildStdout, Command, Stdio},
    sync::atomic::{AtomicBool, Ordering},
};

use support::{Raw, batch, fetched, folder, produced};
use tackboard_schema::ErrorCode;

/// Topics that are created and deleted.
const TOPICS: [&str; 3] = ["a", "b", "c"];
/// Partitions of each: more than one core opens at a time.
const PARTITIONS: i32 = 20;
/// Times that each of the two creators creates or deletes one.
const CHANGES: usize = 60;

struct Process {
    child: Child,
    /// Kept, or the broker's next line would find the pipe closed.
    _out: BufReader<ChildStdout>,
    native: SocketAddr,
}

fn serve(data: &std::path::Path, log: std::fs::File) -> Process {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tackboard"));
    command.arg("serve").arg("--data").arg(data);
    for set in [
        "native.bind=127.0.0.1:0",
        "native.core_bind=127.0.0.1:0",
        "kafka.bind=off",
        "http.bind=off",
        "cores=[0, 1]",
        "memory.total=256 MiB",
    ] {
        command.args(["--set", set]);
    }
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(log)
        .spawn()
        .expect("starts");
    let mut out = BufReader::new(child.stdout.take().expect("piped"));
    let (mut native, mut line) = (None, String::new());
    while !line.starts_with("ready in ") {
        line.clear();
        assert!(out.read_line(&mut line).expect("text") > 0, "no start");
        if let Some(rest) = line.strip_prefix("native ") {
            let address = rest.split_whitespace().next().expect("an address");
            native = Some(address.parse().expect("an address"));
        }
    }
    Process {
        child,
        _out: out,
        native: native.expect("told before it is ready"),
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// How often each API answered with each code.
type Told = BTreeMap<(&'static str, i16), u64>;

fn note(told: &mut Told, api: &'static str, code: i16) {
    *told.entry((api, code)).or_default() += 1;
}

fn change_topics(native: SocketAddr, first: usize) -> Told {
    let (mut client, mut told) = (Raw::connect(native), Told::new());
    for turn in 0..CHANGES {
        let topic = TOPICS[(first + turn / 2) % TOPICS.len()];
        match turn % 2 {
            0 => note(&mut told, "create", client.create_topic(topic, PARTITIONS)),
            _ => note(&mut told, "delete", client.delete_topic(topic)),
        }
    }
    told
}

fn use_topics(native: SocketAddr, first: usize, ended: &AtomicBool) -> Told {
    let (mut client, mut told) = (Raw::connect(native), Told::new());
    let code = |outcome: Result<(), i16>| outcome.err().unwrap_or(0);
    let events = batch(1_000, &[&[7; 1_000]]);
    let mut turn = first;
    while !ended.load(Ordering::Relaxed) {
        turn += 1;
        let topic = TOPICS[turn % TOPICS.len()];
        let partition = (turn / TOPICS.len()) as i32 % PARTITIONS;
        client.send_produce(topic, partition, &events);
        let answer = client.receive().expect("an answer");
        let outcome = produced(&answer).map(drop).map_err(|(code, _)| code);
        note(&mut told, "produce", code(outcome));
        // Both cores, from the disk and from memory.
        let listed: Vec<_> = (0..PARTITIONS)
            .flat_map(|partition| [(topic, partition, -1), (topic, partition, 500)])
            .collect();
        for outcome in client.list_offsets(&listed) {
            note(&mut told, "list offsets", code(outcome.map(drop)));
        }
        let wanted: Vec<_> = (0..PARTITIONS).map(|index| (topic, index, 0)).collect();
        client.send_fetch(turn as u32 % 20, &wanted);
        for outcome in fetched(&client.receive().expect("an answer")) {
            note(&mut told, "fetch", code(outcome.map(drop)));
        }
        for code in client.describe_topic(topic) {
            note(&mut told, "describe", code);
        }
    }
    told
}

#[test]
fn topics_that_come_and_go_are_unknown_and_nothing_worse() {
    let data = folder();
    let log = data.path().join("stderr");
    let file = std::fs::File::create(&log).expect("a file for the log");
    let broker = serve(&data.path().join("data"), file);
    let native = broker.native;
    let ended = AtomicBool::new(false);
    let told: Vec<Told> = std::thread::scope(|scope| {
        let users: Vec<_> = (0..3)
            .map(|first| {
                scope.spawn({
                    let ended = &ended;
                    move || use_topics(native, first, ended)
                })
            })
            .collect();
        let creators: Vec<_> = (0..2)
            .map(|first| scope.spawn(move || change_topics(native, first)))
            .collect();
        let mut told: Vec<_> = (creators.into_iter())
            .map(|creator| creator.join().expect("no panic"))
            .collect();
        ended.store(true, Ordering::Relaxed);
        told.extend(users.into_iter().map(|user| user.join().expect("no panic")));
        told
    });
    drop(broker);
    let allowed = [
        ErrorCode::None,
        ErrorCode::UnknownTopicOrPartition,
        // In the metadata already, and not opened yet: clients look at the metadata again and come back.
        ErrorCode::NotLeaderOrFollower,
    ]
    .map(ErrorCode::code);
    let mut total = Told::new();
    for ((api, code), count) in told.into_iter().flatten() {
        *total.entry((api, code)).or_default() += count;
    }
    let is_allowed = |(api, code): (&str, i16)| {
        let exists = api == "create" && code == ErrorCode::TopicAlreadyExists.code();
        exists || allowed.contains(&code)
    };
    assert!(total.keys().all(|told| is_allowed(*told)), "{total:?}");
    for api in [
        "create",
        "delete",
        "produce",
        "fetch",
        "list offsets",
        "describe",
    ] {
        assert!(
            total.contains_key(&(api, 0)),
            "{api} never worked: {total:?}"
        );
    }
    let log = std::fs::read_to_string(log).expect("its log");
    let bad: Vec<_> = (log.lines())
        .filter(|line| line.contains("ERROR") || line.contains("WARN") || line.contains("panic"))
        .collect();
    assert!(bad.is_empty(), "{bad:#?}");
}
