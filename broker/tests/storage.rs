//! The binary on file systems that are not what it would like: without direct I/O, and full.
//!
//! They are mounted in a mount namespace that a child process holds; everything is gone with it. Where namespaces or
//! mounts are not allowed the tests say so and are passed over, or fail if `TACKBOARD_TESTS_MUST_RUN` is set.

#[path = "support/process.rs"]
#[allow(dead_code, reason = "each of the binaries that share it uses a part")]
mod support;
#[path = "support/mod.rs"]
mod wire;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use support::{Broker, folder, serve, text};
use tackboard_schema::ErrorCode;
use wire::{PATIENCE, Raw, batch, eventually, produced};

/// Mounts that live as long as this.
struct Mounts {
    holder: Child,
}

impl Mounts {
    /// Runs `script` in a namespace of its own; else tells why that can't be done.
    fn new(script: &str) -> Result<Mounts, &'static str> {
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
        let mut holder = holder.map_err(|_| "there is no unshare")?;
        let mut line = String::new();
        let out = holder.stdout.take().expect("piped");
        BufReader::new(out).read_line(&mut line).expect("text");
        let mounts = Mounts { holder };
        match line.as_str() {
            "mounted\n" => Ok(mounts),
            _ => Err("this machine does not let the test mount"),
        }
    }

    /// The same; where it can't be done the test is passed over.
    fn or_pass_over(script: &str) -> Option<Mounts> {
        Mounts::new(script).map_err(support::pass_over).ok()
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
    let mounts = Mounts::or_pass_over(&format!(
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
    assert_eq!(
        check(&[]).status.code(),
        refused.status.code(),
        "a check ends as the start would"
    );
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

/// A small disk to fill.
struct SmallDisk {
    mounts: Mounts,
    data: PathBuf,
    /// Beside the disk: for what its broker says.
    log: PathBuf,
    settings: Vec<&'static str>,
}

/// File systems that are tried, each small: what makes an image, and how long that has to be.
const FILE_SYSTEMS: [(&str, &str, &str); 2] = [
    ("ext4", "mkfs.ext4 -q -F -m 0", "96M"),
    ("xfs", "mkfs.xfs -q", "320M"),
];

/// A small disk of each file system where the test may mount them, else a small tmpfs.
fn small_disks(place: &Path) -> Vec<SmallDisk> {
    let settings = vec![
        "--set",
        "storage.reserve_bytes=0",
        "--set",
        "log.segment.bytes=2 MiB",
    ];
    let disk = |name: &str, mounts: Mounts, settings: Vec<&'static str>| SmallDisk {
        mounts,
        data: place.join(name).join("disk/data"),
        log: place.join(name).join("stderr"),
        settings,
    };
    if !is_root() {
        let at = place.join("tmpfs");
        let script = format!(
            "mkdir -p {0}/disk; mount -t tmpfs -o size=96m tmpfs {0}/disk",
            at.display()
        );
        let mounts = Mounts::or_pass_over(&script);
        let settings = [PREFER, &settings].concat();
        return (mounts.into_iter())
            .map(|mounts| disk("tmpfs", mounts, settings.clone()))
            .collect();
    }
    let image = |(name, make, size): (&str, &str, &str)| {
        let at = place.join(name);
        let script = format!(
            "mkdir -p {0}/disk; truncate -s {size} {0}/image; {make} {0}/image; \
             mount -o loop {0}/image {0}/disk",
            at.display()
        );
        Mounts::or_pass_over(&script).map(|mounts| disk(name, mounts, settings.clone()))
    };
    FILE_SYSTEMS.into_iter().filter_map(image).collect()
}

/// A file that takes all the space there is.
struct Filler(PathBuf);

impl Filler {
    fn new(path: PathBuf) -> Filler {
        let mut file = std::fs::File::create(&path).expect("the test can write there");
        for length in [1 << 20, 4096, 1] {
            while file.write_all(&vec![7; length]).is_ok() {}
        }
        // What the file system kept for later is written as well.
        let _ = file.sync_all();
        Filler(path)
    }

    fn remove(self) {
        std::fs::remove_file(self.0).expect("it is there");
    }
}

/// Appends until the disk is full, eight requests at a time. Returns what was acknowledged.
fn produce_until_full(wire: &mut Raw, topic: &str, tag: &str) -> Vec<Vec<u8>> {
    let full = [ErrorCode::StorageFull, ErrorCode::StorageFullAfterAppend].map(ErrorCode::code);
    let mut acknowledged = Vec::new();
    for round in 0.. {
        let values: Vec<Vec<u8>> = (0..8)
            .map(|index| {
                let mut value = format!("{tag} {round} {index} ").into_bytes();
                value.resize(200_000, b'.');
                value
            })
            .collect();
        let mut sent = std::collections::BTreeMap::new();
        for value in values {
            sent.insert(wire.send_produce(topic, 0, &batch(1, &[&value])), value);
        }
        let mut is_full = false;
        while !sent.is_empty() {
            let answer = wire.receive().expect("an answer");
            // One that is refused where it arrives is answered before those that wait for the disk.
            let value = sent.remove(&answer.id).expect("answered once");
            match produced(&answer) {
                Ok(_) => acknowledged.push(value),
                // Not REQUEST_TIMED_OUT: nobody waits for space.
                Err((code, message)) => {
                    assert!(full.contains(&code), "{code}: {message}");
                    is_full = true;
                }
            }
        }
        if is_full {
            return acknowledged;
        }
    }
    unreachable!("a disk has an end")
}

/// Appends one event once the disk takes it again.
fn produce_when_there_is_space(wire: &mut Raw, topic: &str, value: &[u8]) {
    let begun = std::time::Instant::now();
    while let Err((code, message)) = wire.produce(topic, 0, &batch(1, &[value])) {
        assert_eq!(code, ErrorCode::StorageFull.code(), "{message}");
        assert!(begun.elapsed() < PATIENCE, "it does not resume: {message}");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

fn assert_holds(wire: &mut Raw, topic: &str, expected: &[Vec<u8>]) {
    const LATEST: i64 = -1;
    let (end, _) = wire.list_offset(topic, 0, LATEST);
    let mut found = std::collections::BTreeSet::new();
    let mut offset = 0;
    while offset < end {
        let records = wire.fetch(topic, 0, offset).expect("it can be read");
        let (last, _) = records.last().expect("there is something before the end");
        offset = last + 1;
        found.extend(records.into_iter().map(|(_, value)| value));
    }
    let name =
        |value: &Vec<u8>| String::from_utf8_lossy(&value[..value.len().min(20)]).into_owned();
    let lost = expected.iter().filter(|value| !found.contains(*value));
    let lost: Vec<String> = lost.map(name).collect();
    let (count, found) = (expected.len(), found.len());
    assert!(
        lost.is_empty(),
        "lost of {count} acknowledged: {lost:?}; {found} up to offset {end}"
    );
}

#[test]
fn a_full_disk_is_answered_at_once_reads_go_on_and_writing_resumes_by_itself() {
    let place = folder();
    for disk in small_disks(place.path()) {
        fill_free_and_go_on(&disk);
    }
}

fn fill_free_and_go_on(disk: &SmallDisk) {
    let SmallDisk {
        mounts,
        data,
        settings,
        ..
    } = disk;
    let start = || Broker::spawn(mounts.inside(&serve(data, settings)));
    let mut broker = start();
    let mut wire = Raw::connect(broker.address.parse().expect("an address"));
    assert_eq!(wire.create_topic("t", 1), 0);
    let filler = || Filler::new(mounts.path(&data.with_file_name("filler")));
    let filled = filler();
    let mut expected = produce_until_full(&mut wire, "t", "first");
    assert_holds(&mut wire, "t", &expected);
    filled.remove();
    produce_when_there_is_space(&mut wire, "t", b"again");
    expected.push(b"again".to_vec());

    let filled = filler();
    expected.extend(produce_until_full(&mut wire, "t", "second"));
    assert_holds(&mut wire, "t", &expected);
    assert_eq!(wire.create_topic("late", 1), ErrorCode::StorageFull.code());
    filled.remove();
    produce_when_there_is_space(&mut wire, "t", b"and again");
    broker.signal(libc::SIGTERM);
    assert_eq!(broker.child.wait().expect("ends").code(), Some(0));
    let broker = start();
    let mut wire = Raw::connect(broker.address.parse().expect("an address"));
    assert_holds(&mut wire, "t", &expected);
}

#[test]
fn a_deleted_topic_frees_a_full_disk_without_delay() {
    let place = folder();
    for disk in small_disks(place.path()) {
        delete_a_topic_when_full(&disk);
    }
}

fn delete_a_topic_when_full(disk: &SmallDisk) {
    let SmallDisk {
        mounts,
        data,
        settings,
        ..
    } = disk;
    let broker = Broker::spawn(mounts.inside(&serve(data, settings)));
    let mut wire = Raw::connect(broker.address.parse().expect("an address"));
    assert_eq!(
        (wire.create_topic("t", 1), wire.create_topic("old", 1)),
        (0, 0)
    );
    for index in 0..40 {
        let value = vec![index; 200_000];
        wire.produce("old", 0, &batch(1, &[&value])).expect("space");
    }
    let _filled = Filler::new(mounts.path(&data.with_file_name("filler")));
    produce_until_full(&mut wire, "t", "first");
    broker.ok("topic delete old", "");
    produce_when_there_is_space(&mut wire, "t", b"again");
}

#[test]
fn a_stop_on_a_full_disk_says_what_it_leaves_and_loses_nothing_acknowledged() {
    let place = folder();
    for disk in small_disks(place.path()) {
        stop_when_full(&disk);
    }
}

fn stop_when_full(disk: &SmallDisk) {
    let SmallDisk {
        mounts,
        data,
        log,
        settings,
    } = disk;
    let mut broker = Broker::spawn_logging(mounts.inside(&serve(data, settings)), log);
    let mut wire = Raw::connect(broker.address.parse().expect("an address"));
    assert_eq!(wire.create_topic("t", 1), 0);
    let filled = Filler::new(mounts.path(&data.with_file_name("filler")));
    let expected = produce_until_full(&mut wire, "t", "first");
    broker.signal(libc::SIGTERM);
    assert_eq!(broker.child.wait().expect("ends").code(), Some(1));
    let said = std::fs::read_to_string(log).expect("text");
    for part in [
        "the disk is full",
        "none of them acknowledged",
        "what was acknowledged under fsync is safe",
    ] {
        assert!(said.contains(part), "{part} is missing in {said}");
    }
    assert!(!said.contains("ran out"), "{said}");
    filled.remove();
    let broker = Broker::spawn(mounts.inside(&serve(data, settings)));
    let mut wire = Raw::connect(broker.address.parse().expect("an address"));
    assert_holds(&mut wire, "t", &expected);
}

fn large_value(index: usize) -> Vec<u8> {
    let mut value = format!("{index} ").into_bytes();
    value.resize(200_000, b'.');
    value
}

/// Appends so many events of 200 kB, none of which is refused.
fn produce_all(wire: &mut Raw, topic: &str, indexes: std::ops::Range<usize>) {
    for index in indexes {
        let produced = wire.produce(topic, 0, &batch(1, &[&large_value(index)]));
        produced.unwrap_or_else(|(code, message)| panic!("event {index}: {code}: {message}"));
    }
}

#[test]
fn all_logs_together_keep_within_their_budget_but_for_topics_that_are_exempt() {
    const EARLIEST: i64 = -2;
    const BUDGET: u64 = 16 << 20;
    let place = folder();
    let data = place.path().join("data");
    let settings = [
        "--set",
        "log.budget.bytes=16 MiB",
        "--set",
        "log.segment.bytes=2 MiB",
    ];
    let broker = Broker::spawn(serve(&data, &settings));
    broker.ok("topic create old", "");
    broker.ok("topic create new", "");
    broker.ok(
        "topic create kept --config tackboard.retention.budget=exempt",
        "",
    );
    let described = broker.ok("topic describe kept", "");
    assert!(
        described.contains("tackboard.retention.budget"),
        "{described}"
    );
    assert_eq!(broker.metric("log_budget_bytes"), BUDGET);

    let mut wire = Raw::connect(broker.address.parse().expect("an address"));
    // A segment holds ten events. Of the old ones more can go than has to.
    produce_all(&mut wire, "kept", 0..10);
    produce_all(&mut wire, "old", 0..60);
    produce_all(&mut wire, "new", 0..40);
    let bytes = || broker.metric("log_bytes");
    let dropped = || broker.metric("log_budget_dropped_bytes_total");
    // Nothing less will do; what is shown of the logs may be a second old.
    let excess = 110 * 200_000 - BUDGET;
    eventually("22 MB come down to 16 MiB", || {
        dropped() >= excess && bytes() <= BUDGET
    });
    let start = |wire: &mut Raw, topic: &str| wire.list_offset(topic, 0, EARLIEST).0;
    assert_eq!(start(&mut wire, "kept"), 0);
    assert!(start(&mut wire, "old") > 0);
    assert_eq!(start(&mut wire, "new"), 0, "the oldest go first");
    let begins = start(&mut wire, "old");
    let found = wire.fetch("old", 0, begins).expect("it can be read");
    assert_eq!(found[0], (begins, large_value(begins as usize)));
    let refused = wire.fetch("old", 0, 0).expect_err("it has gone");
    assert_eq!(refused, ErrorCode::OffsetOutOfRange.code());

    broker.signal(libc::SIGKILL);
    drop(broker);
    let broker = Broker::spawn(serve(&data, &settings));
    let mut wire = Raw::connect(broker.address.parse().expect("an address"));
    assert_eq!(start(&mut wire, "old"), begins, "it stays gone");
    assert_eq!(start(&mut wire, "kept"), 0);
}

#[test]
fn cores_give_for_the_budget_together_and_neither_gives_all() {
    const BUDGET: u64 = 16 << 20;
    let place = folder();
    let settings = [
        "--set",
        "log.budget.bytes=16 MiB",
        "--set",
        "log.segment.bytes=2 MiB",
        "--set",
        "cores=[0, 1]",
    ];
    let broker = Broker::spawn(serve(&place.path().join("data"), &settings));
    broker.ok("topic create t --partitions 2", "");
    let mut wire = Raw::connect(broker.address.parse().expect("an address"));
    for index in 0..60 {
        for partition in 0..2 {
            let produced = wire.produce("t", partition, &batch(1, &[&large_value(index)]));
            produced.expect("appended");
        }
    }
    let all = 120 * 200_000;
    eventually("24 MB come down to 16 MiB", || {
        broker.metric("log_budget_dropped_bytes_total") >= all - BUDGET
            && broker.metric("log_bytes") <= BUDGET
    });
    for partition in 0..2 {
        const EARLIEST: i64 = -2;
        let (start, _) = wire.list_offset("t", partition, EARLIEST);
        assert!(
            (1..50).contains(&start),
            "partition {partition} begins at {start}"
        );
    }
}

#[test]
fn with_a_budget_a_disk_that_would_be_full_takes_events_on_and_on() {
    let place = folder();
    let Some(disk) = small_disks(place.path()).into_iter().next() else {
        return;
    };
    let SmallDisk {
        mounts,
        data,
        settings,
        ..
    } = &disk;
    // More than the disk has: what matters is how much is free.
    let budget = ["--set", "log.budget.bytes=1 GiB"];
    let more = [
        &settings[..],
        &budget,
        &["--set", "storage.reserve_bytes=16 MiB"],
    ]
    .concat();
    let broker = Broker::spawn(mounts.inside(&serve(data, &more)));
    broker.ok("topic create t", "");
    let mut wire = Raw::connect(broker.address.parse().expect("an address"));
    // 160 MB into 96 MiB, no more in a second than can be made room for.
    for round in 0..20 {
        produce_all(&mut wire, "t", round * 40..(round + 1) * 40);
        std::thread::sleep(std::time::Duration::from_millis(500));
    }
    assert!(broker.metric("log_budget_dropped_bytes_total") > 0);
    const LATEST: i64 = -1;
    assert_eq!(wire.list_offset("t", 0, LATEST).0, 800);
    let last = wire.fetch("t", 0, 799).expect("it can be read");
    assert_eq!(last, [(799, large_value(799))]);
}

/// An ext4 in a file of so many bytes, mounted at `disk` in `at`; `None` where the test may not mount it.
fn small_ext4(at: &Path, size: &str, more: &str) -> Option<Mounts> {
    if !is_root() {
        support::pass_over("mounting an image takes root");
        return None;
    }
    Mounts::or_pass_over(&format!(
        "mkdir -p {0}/disk; truncate -s {size} {0}/image; mkfs.ext4 -q -F -m 0 {more} {0}/image; \
         mount -o loop {0}/image {0}/disk",
        at.display()
    ))
}

#[test]
fn a_budget_as_large_as_the_disk_refuses_nothing_however_fast_events_come() {
    const LATEST: i64 = -1;
    const EARLIEST: i64 = -2;
    const PARTITIONS: i32 = 6;
    const ROUNDS: usize = 240;
    let place = folder();
    let Some(mounts) = small_ext4(place.path(), "400M", "") else {
        return;
    };
    let data = place.path().join("disk/data");
    // Segments are of 128 MiB as a rule: the disk has room for two.
    let settings = ["--set", "log.budget.bytes=350 MiB", "--set", "cores=[0, 1]"];
    let broker = Broker::spawn(mounts.inside(&serve(&data, &settings)));
    let mut wire = Raw::connect(broker.address.parse().expect("an address"));
    assert_eq!(wire.create_topic("t", PARTITIONS), 0);
    let value = |round: usize, partition: i32| {
        let mut value = format!("{round} {partition} ").into_bytes();
        value.resize(800_000, b'.');
        value
    };
    // Three times what the disk holds. Over one connection: half of it crosses cores.
    for round in 0..ROUNDS {
        for partition in 0..PARTITIONS {
            wire.send_produce("t", partition, &batch(1, &[&value(round, partition)]));
        }
        for _ in 0..PARTITIONS {
            let answer = wire.receive().expect("an answer");
            let produced = produced(&answer);
            produced.unwrap_or_else(|(code, message)| panic!("round {round}: {code}: {message}"));
        }
    }
    let mut kept = 0;
    for partition in 0..PARTITIONS {
        let (end, _) = wire.list_offset("t", partition, LATEST);
        let (start, _) = wire.list_offset("t", partition, EARLIEST);
        assert_eq!(end, ROUNDS as i64);
        assert!(
            (1..end).contains(&start),
            "partition {partition} begins at {start}"
        );
        for offset in [start, end - 1] {
            let found = wire.fetch("t", partition, offset);
            let found = found.expect("it can be read");
            assert_eq!(found[0], (offset, value(offset as usize, partition)));
        }
        let gone = wire.fetch("t", partition, start - 1);
        assert_eq!(gone, Err(ErrorCode::OffsetOutOfRange.code()));
        kept += (end - start) as u64 * 800_000;
    }
    // Room is made for a quarter of the budget at most, and of what goes for it a segment may be too much.
    assert!(kept > 150 << 20, "{kept} bytes are left");
}

#[test]
fn without_inodes_no_topic_is_created_and_what_lacks_them_heals_when_there_are_some() {
    let place = folder();
    let Some(mounts) = small_ext4(place.path(), "96M", "-N 400") else {
        return;
    };
    let data = place.path().join("disk/data");
    let small = ["--set", "log.segment.bytes=2 MiB"];
    let broker = Broker::spawn(mounts.inside(&serve(&data, &small)));
    let mut wire = Raw::connect(broker.address.parse().expect("an address"));
    assert_eq!(wire.create_topic("before", 1), 0);
    // Empty files take nothing but inodes.
    let filler = mounts.path(&data.with_file_name("filler"));
    std::fs::create_dir(&filler).expect("the test can write there");
    let create = |name: usize| std::fs::File::create(filler.join(name.to_string()));
    let files = (0..).take_while(|name| create(*name).is_ok()).count();

    // What was measured may be a second old: then the topic is created, and its partition can't be opened.
    let is_early = wire.create_topic("early", 1) == 0;
    if is_early {
        let refused = wire.produce("early", 0, &batch(1, &[b"x"]));
        let (code, message) = refused.expect_err("there is nothing to write to");
        assert_eq!(code, ErrorCode::KafkaStorageError.code());
        assert!(message.contains("no inodes left"), "{message}");
    }
    let mut said = String::new();
    eventually("no topic is created", || {
        let output = broker.command("topic create late").output();
        let output = output.expect("runs");
        if output.status.success() {
            broker.ok("topic delete late", "");
        }
        said = text(&output.stderr).to_owned();
        !output.status.success()
    });
    for part in ["inodes left", "delete topics"] {
        assert!(said.contains(part), "{part} is missing in {said}");
    }
    assert!(!broker.ok("topic list", "").contains("late"));

    // The next segment of a topic that exists finds none: who waits is told, and nothing is fenced.
    let expected = produce_until_full(&mut wire, "before", "first");
    for name in 0..files {
        std::fs::remove_file(filler.join(name.to_string())).expect("it is there");
    }
    produce_when_there_is_space(&mut wire, "before", b"again");
    assert_holds(&mut wire, "before", &expected);
    if is_early {
        eventually("the partition is opened", || {
            wire.produce("early", 0, &batch(1, &[b"x"])).is_ok()
        });
    }
    eventually("topics are created", || wire.create_topic("late", 4) == 0);
    wire.produce("late", 3, &batch(1, &[b"x"])).expect("taken");
    assert_eq!(broker.metric("partitions_fenced"), 0);
}
