//! The binary under clients and circumstances that mean it no good: stopped in mid-air, killed and started on other
//! cores, thousands of connections, half and false frames, readers that don't read, a clock that jumps.
//!
//! In each of them a client that does nothing wrong, the witness, is served, and nothing acknowledged is lost.
//!
//! `ENDURE_SEED` sets the seed of what is random (it is printed), `ENDURE_RESTARTS` how many restarts there are (10).

#[path = "support/process.rs"]
#[allow(dead_code, reason = "each of the binaries that share it uses a part")]
mod process;
#[path = "support/mod.rs"]
mod wire;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::net::TcpStream;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use process::{Broker, folder, serve, tackboard};
use tackboard_schema::frame::{self, ApiKey, Kind};
use tackboard_schema::native::{FetchEntryHead, FetchRequestHead, HeadBuilder};
use tackboard_schema::{CorrelationId, ErrorCode, Offset, PartitionIndex};
use wire::{PATIENCE, Raw, batch, produced};

const TOPIC: &str = "t";
const PARTITIONS: i32 = 4;
/// What `serve` gives the broker.
const MEMORY_TOTAL: u64 = 256 << 20;
/// What a broker may use beside `memory.total`.
const MEMORY_BESIDE: u64 = 64 << 20;

/// What is known to be in the log: partition and offset of each acknowledged event.
type Acknowledged = BTreeMap<(i32, i64), Vec<u8>>;

fn connect(broker: &Broker) -> Raw {
    Raw::connect(broker.address.parse().expect("an address"))
}

fn number(name: &str, otherwise: u64) -> u64 {
    let text = std::env::var(name).ok();
    text.map_or(otherwise, |text| text.parse().expect("a whole number"))
}

/// Numbers from a seed that is printed.
struct Random(u64);

impl Random {
    fn new() -> Random {
        let seed = number("ENDURE_SEED", 0x9e37_79b9_7f4a_7c15);
        eprintln!("ENDURE_SEED={seed}");
        Random(seed | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| self.next() as u8).collect()
    }
}

/// A broker, and a client that asks for nothing unusual.
struct Watched {
    broker: Broker,
    wire: Raw,
    acknowledged: Acknowledged,
    sent: u64,
    log: PathBuf,
}

impl Watched {
    fn start(place: &Path, settings: &[&str]) -> Watched {
        let mut watched = Watched::resume(place, settings, Acknowledged::new());
        assert_eq!(watched.wire.create_topic(TOPIC, PARTITIONS), 0);
        watched
    }

    /// A start on a folder that is known.
    fn resume(place: &Path, settings: &[&str], acknowledged: Acknowledged) -> Watched {
        let log = place.join("stderr");
        let mut command = serve(&place.join("data"), &[]);
        for setting in settings {
            command.args(["--set", setting]);
        }
        let broker = Broker::spawn_logging(command, &log);
        Watched {
            wire: connect(&broker),
            broker,
            sent: acknowledged.len() as u64,
            acknowledged,
            log,
        }
    }

    /// Appends an event to each partition; all are taken.
    fn goes_on(&mut self) {
        for partition in 0..PARTITIONS {
            self.sent += 1;
            let event = format!("event {}", self.sent).into_bytes();
            let offset = self.wire.produce(TOPIC, partition, &batch(1, &[&event]));
            let offset = offset.unwrap_or_else(|refusal| panic!("{refusal:?}"));
            self.acknowledged.insert((partition, offset), event);
        }
    }

    fn holds(&mut self) {
        holds(&mut self.wire, &self.acknowledged);
    }

    /// Stops in order, having met no panic; and a broker after it has everything.
    fn ends_well(mut self, place: &Path) {
        self.goes_on();
        self.broker.signal(libc::SIGTERM);
        let status = self.broker.child.wait().expect("ends");
        let said = fs::read_to_string(&self.log).expect("its log");
        assert!(
            status.success() && !said.contains("panicked"),
            "{status}: {said}"
        );
        let mut again = Watched::resume(place, &[], self.acknowledged);
        again.holds();
        again.goes_on();
    }

    /// Memory that is its own, bytes.
    fn resident(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.broker.child.id()));
        let status = status.expect("it runs");
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("RssAnon:"));
        let kib = line.and_then(|line| line.split_whitespace().next());
        kib.expect("a number").parse::<u64>().expect("a number") << 10
    }

    fn stays_within_its_memory(&self) {
        let (resident, most) = (self.resident(), MEMORY_TOTAL + MEMORY_BESIDE);
        assert!(resident <= most, "{} of {} MiB", resident >> 20, most >> 20);
    }

    /// How many files and threads it has, but for the kernel's own workers, which come and go.
    fn held(&self) -> (usize, usize) {
        let process = PathBuf::from(format!("/proc/{}", self.broker.child.id()));
        let listed = |what: &str| fs::read_dir(process.join(what)).expect("it runs").flatten();
        let is_ours = |name: &String| !name.starts_with("iou-");
        let names =
            listed("task").filter_map(|task| fs::read_to_string(task.path().join("comm")).ok());
        (listed("fd").count(), names.filter(is_ours).count())
    }
}

fn holds(wire: &mut Raw, acknowledged: &Acknowledged) {
    for partition in 0..PARTITIONS {
        let mut there = BTreeMap::new();
        let mut offset = 0;
        loop {
            let records = wire.fetch(TOPIC, partition, offset).expect("it is read");
            let Some((last, _)) = records.last() else {
                break;
            };
            offset = last + 1;
            there.extend(records);
        }
        let whole = there.keys().copied().eq(0..offset);
        assert!(whole, "partition {partition} has gaps");
        for ((_, at), event) in acknowledged.range((partition, 0)..(partition + 1, 0)) {
            assert_eq!(
                there.get(at),
                Some(event),
                "partition {partition} offset {at}"
            );
        }
    }
}

fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Sends to all partitions until told to end. What was acknowledged, and how often each code was told.
fn load(broker_address: &str, ended: &AtomicBool) -> (Acknowledged, BTreeMap<ErrorCode, u64>) {
    let mut wire = Raw::connect(broker_address.parse().expect("an address"));
    let patience = Some(Duration::from_secs(60));
    wire.stream()
        .set_read_timeout(patience)
        .expect("a time-out");
    let (mut acknowledged, mut refused) = (Acknowledged::new(), BTreeMap::new());
    let mut sent = 0_u64;
    while !ended.load(Ordering::Relaxed) {
        let mut flying = BTreeMap::new();
        for partition in (0..PARTITIONS).cycle().take(16) {
            sent += 1;
            let event = format!("load {sent}").into_bytes();
            let id = wire.send_produce(TOPIC, partition, &batch(1, &[&event]));
            flying.insert(id, (partition, event));
        }
        while !flying.is_empty() {
            let answer = wire.receive().expect("an answer");
            let (partition, event) = flying.remove(&answer.id).expect("answered once");
            match produced(&answer) {
                Ok(offset) => drop(acknowledged.insert((partition, offset), event)),
                Err((code, _)) => {
                    let code = ErrorCode::from_code(code).expect("a code of ours");
                    *refused.entry(code).or_default() += 1;
                }
            }
        }
    }
    (acknowledged, refused)
}

#[test]
fn a_broker_that_is_stopped_and_continued_goes_on_where_it_was() {
    let place = folder();
    let mut watched = Watched::start(place.path(), &[]);
    watched.goes_on();
    let ended = AtomicBool::new(false);
    let (acknowledged, refused) = std::thread::scope(|scope| {
        let address = watched.broker.address.clone();
        let loading = scope.spawn(|| load(&{ address }, &ended));
        // The last one is longer than a write may take: what was under way has long been done by the kernel.
        for seconds in [1, 1, 33] {
            std::thread::sleep(Duration::from_millis(500));
            watched.broker.signal(libc::SIGSTOP);
            std::thread::sleep(Duration::from_secs(seconds));
            watched.broker.signal(libc::SIGCONT);
        }
        std::thread::sleep(Duration::from_millis(500));
        ended.store(true, Ordering::Relaxed);
        loading.join().expect("no panic")
    });
    // Time passed for whoever waited; nothing else is told.
    let only_late = refused
        .keys()
        .all(|code| *code == ErrorCode::RequestTimedOut);
    assert!(
        only_late,
        "{refused:?}: {}",
        fs::read_to_string(&watched.log).expect("its log")
    );
    assert!(!acknowledged.is_empty());
    watched.acknowledged.extend(acknowledged);
    watched.holds();
    watched.ends_well(place.path());
}

#[test]
fn another_number_of_cores_after_each_kill_finds_everything() {
    let place = folder();
    let mut watched = Watched::start(place.path(), &[]);
    for cores in ["cores=[0, 1]", "cores=[1]", "cores=[0, 1]", "cores=[0]"] {
        let ended = AtomicBool::new(false);
        let (acknowledged, refused) = std::thread::scope(|scope| {
            let address = watched.broker.address.clone();
            let loading = scope.spawn(|| load(&{ address }, &ended));
            std::thread::sleep(Duration::from_millis(300));
            ended.store(true, Ordering::Relaxed);
            loading.join().expect("no panic")
        });
        assert!(
            refused.is_empty() && !acknowledged.is_empty(),
            "{refused:?}"
        );
        watched.acknowledged.extend(acknowledged);
        watched.broker.signal(libc::SIGKILL);
        watched.broker.child.wait().expect("ends");
        watched = Watched::resume(place.path(), &[cores], watched.acknowledged);
        watched.holds();
        watched.goes_on();
    }
    watched.ends_well(place.path());
}

/// A frame that is whole and says `head` of this API.
fn framed(api: ApiKey, head: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    frame::encode_head(&mut bytes, Kind::Request, api, CorrelationId(1), head, 0);
    bytes
}

/// The start of a frame that claims to be `total_length` bytes long, its checksum right.
fn claiming(total_length: u32) -> Vec<u8> {
    let mut bytes = framed(ApiKey::Hello, &[0; 8]);
    bytes[..4].copy_from_slice(&total_length.to_le_bytes());
    let crc = crc32c::crc32c_append(crc32c::crc32c(&bytes[..20]), &bytes[24..32]);
    bytes[20..24].copy_from_slice(&crc.to_le_bytes());
    bytes
}

/// Closes with a reset, as a client that died does.
fn reset(stream: TcpStream) {
    let linger = libc::linger {
        l_onoff: 1,
        l_linger: 0,
    };
    // SAFETY: a plain system call on a socket that is open, with a structure of the length that it is told.
    let set = unsafe {
        libc::setsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_LINGER,
            (&raw const linger).cast(),
            size_of::<libc::linger>() as libc::socklen_t,
        )
    };
    assert_eq!(set, 0);
}

#[test]
fn ten_thousand_connections_that_come_and_go_leave_nothing_behind() {
    const AT_ONCE: usize = 500;
    let place = folder();
    let mut watched = Watched::start(place.path(), &[]);
    watched.goes_on();
    let held = watched.held();
    let half = &claiming(1 << 20)[..28];
    for _ in 0..10_000 / AT_ONCE {
        let open = |number| {
            let mut stream = TcpStream::connect(&watched.broker.address).expect("it listens");
            // Nothing, half a frame, or one that is answered to nobody.
            match number % 3 {
                0 => {}
                1 => stream.write_all(half).expect("it reads"),
                _ => stream
                    .write_all(&framed(ApiKey::Metadata, &[]))
                    .expect("it reads"),
            }
            stream
        };
        let streams: Vec<TcpStream> = (0..AT_ONCE).map(open).collect();
        watched.goes_on();
        for (number, stream) in streams.into_iter().enumerate() {
            if number % 2 == 0 {
                reset(stream);
            }
        }
    }
    eventually("all files are closed", || watched.held() <= held);
    watched.stays_within_its_memory();
    watched.ends_well(place.path());
}

#[test]
fn readers_that_never_read_are_kept_within_memory_and_hinder_nobody() {
    let place = folder();
    let mut watched = Watched::start(place.path(), &["log.segment.bytes=4 MiB"]);
    for number in 0..200_u32 {
        let event = vec![number as u8; 200_000];
        watched
            .wire
            .produce(TOPIC, 0, &batch(1, &[&event]))
            .expect("taken");
    }
    let request = FetchRequestHead {
        wait_ms_max: 0,
        bytes_min: 1,
        bytes_max: u32::MAX,
    };
    let entry = |offset| FetchEntryHead {
        topic: TOPIC,
        partition: PartitionIndex(0),
        fetch_offset: Offset(offset),
        bytes_max: u32::MAX,
    };
    let mut heads = HeadBuilder::new();
    // Of the past and of the present, from the disk and from memory.
    let head = heads
        .fetch_request(&request, &[entry(0), entry(50), entry(190)])
        .to_vec();
    let greedy: Vec<TcpStream> = (0..40)
        .map(|_| {
            let mut stream = TcpStream::connect(&watched.broker.address).expect("it listens");
            stream
                .set_write_timeout(Some(Duration::from_millis(100)))
                .expect("a time-out");
            for _ in 0..200 {
                // The broker stops reading from whoever does not read.
                if stream.write_all(&framed(ApiKey::Fetch, &head)).is_err() {
                    break;
                }
            }
            stream
        })
        .collect();
    for _ in 0..50 {
        watched.goes_on();
        watched.stays_within_its_memory();
    }
    drop(greedy);
    watched
        .acknowledged
        .retain(|(partition, _), _| *partition != 0);
    watched.ends_well(place.path());
}

#[test]
fn frames_that_never_end_are_kept_within_memory_and_hinder_nobody() {
    const FRAME: u32 = 16 << 20;
    let place = folder();
    let mut watched = Watched::start(place.path(), &[]);
    let streams: Vec<TcpStream> = (0..40)
        .map(|_| {
            let mut stream = TcpStream::connect(&watched.broker.address).expect("it listens");
            stream
                .set_write_timeout(Some(Duration::from_millis(100)))
                .expect("a time-out");
            let mut bytes = claiming(FRAME);
            bytes.resize(FRAME as usize - 100, 0);
            // It may be hung up on, for want of memory.
            let _ = stream.write_all(&bytes);
            stream
        })
        .collect();
    for _ in 0..50 {
        watched.goes_on();
        watched.stays_within_its_memory();
    }
    drop(streams);
    watched.ends_well(place.path());
}

#[test]
fn a_writer_that_takes_its_time_is_served_in_the_end() {
    let place = folder();
    let mut watched = Watched::start(place.path(), &[]);
    let mut slow = TcpStream::connect(&watched.broker.address).expect("it listens");
    slow.set_read_timeout(Some(PATIENCE)).expect("a time-out");
    slow.set_nodelay(true).expect("no delay");
    let frame = framed(ApiKey::Metadata, &[0xff; 64]);
    for byte in &frame {
        slow.write_all(&[*byte]).expect("it reads");
        watched.goes_on();
    }
    let mut answer = [0; 24];
    std::io::Read::read_exact(&mut slow, &mut answer).expect("an answer");
    assert_eq!(answer[8..16], 1_u64.to_le_bytes(), "to the request");
    watched.ends_well(place.path());
}

#[test]
fn frames_that_claim_too_much_end_their_connection_alone() {
    let place = folder();
    let mut watched = Watched::start(place.path(), &[]);
    for length in [2 << 30, u32::MAX - 7, 1 << 30, 16] {
        let mut client = connect(&watched.broker);
        client
            .stream()
            .write_all(&claiming(length))
            .expect("it reads");
        assert!(client.receive().is_none(), "{length}: it hangs up");
        watched.goes_on();
        watched.stays_within_its_memory();
    }
    watched.ends_well(place.path());
}

#[test]
fn random_bytes_and_random_heads_hinder_nobody() {
    let mut random = Random::new();
    let place = folder();
    // A head may ask for many partitions.
    let few = "storage.partitions_per_core_max=20";
    let mut watched = Watched::start(place.path(), &[few]);
    for round in 0..150 {
        let mut stream = TcpStream::connect(&watched.broker.address).expect("it listens");
        for _ in 0..20 {
            let length = random.below(300);
            let bytes = random.bytes(length);
            let sent = if round % 3 == 0 {
                stream.write_all(&bytes)
            } else {
                let api = ApiKey::ALL[random.below(ApiKey::ALL.len())];
                stream.write_all(&framed(api, &bytes))
            };
            // It hangs up on what is no frame.
            if sent.is_err() {
                break;
            }
        }
        if round % 10 == 0 {
            watched.goes_on();
        }
    }
    watched.stays_within_its_memory();
    watched.ends_well(place.path());
}

/// A library that makes a process's wall clock wrong; `None` where there is no compiler for it.
fn shifted_clock(place: &Path) -> Option<PathBuf> {
    let library = place.join("shifted_clock.so");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/shifted_clock.c");
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .arg(&library)
        .arg(source)
        .stdin(Stdio::null())
        .status();
    match built {
        Ok(status) if status.success() => Some(library),
        _ => {
            process::pass_over("cc builds no library here");
            None
        }
    }
}

#[test]
fn a_clock_that_is_set_back_an_hour_and_forward_again_loses_nothing() {
    const HOUR: i64 = 3600;
    let place = folder();
    let Some(library) = shifted_clock(place.path()) else {
        return;
    };
    let shift = place.path().join("shift");
    let set = |seconds: i64| fs::write(&shift, seconds.to_string()).expect("written");
    let shifted = |mut command: Command| {
        command
            .env("LD_PRELOAD", &library)
            .env("SHIFTED_CLOCK", &shift);
        command
    };
    let data = place.path().join("data");
    let sets = [
        "--set",
        "log.retention.ms=30 min",
        "--set",
        "log.segment.bytes=1 MiB",
        "--set",
        "message.max.bytes=262144",
        "--set",
        "durability.default=interval",
    ];
    set(0);
    let mut broker = Broker::spawn(shifted(serve(&data, &sets)));
    let mut wire = connect(&broker);
    assert_eq!(wire.create_topic(TOPIC, PARTITIONS), 0);
    let mut acknowledged = Acknowledged::new();
    let mut append = |wire: &mut Raw| {
        for number in 0..20_u8 {
            for partition in 0..PARTITIONS {
                let event = vec![number; 100_000];
                let offset = wire
                    .produce(TOPIC, partition, &batch(1, &[&event]))
                    .expect("taken");
                acknowledged.insert((partition, offset), event);
            }
        }
        holds(wire, &acknowledged);
    };
    append(&mut wire);
    set(-HOUR);
    // Events that a client stamps by that clock: it is seen to be wrong.
    let mut client = shifted(tackboard("produce t --acks all"));
    client
        .env("TACKBOARD_BROKER", &broker.address)
        .stdin(Stdio::piped());
    let mut client = client.stdout(Stdio::null()).spawn().expect("starts");
    client
        .stdin
        .take()
        .expect("piped")
        .write_all(b"early\n")
        .expect("it reads");
    assert!(client.wait().expect("ends").success());
    let found = broker.ok("consume t --json", "");
    let early = found
        .lines()
        .find(|line| line.contains("early"))
        .expect("it was taken");
    let early: serde_json::Value = serde_json::from_str(early).expect("JSON");
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("after 1970");
    let off_ms = now.as_millis() as i64 - early["timestamp"].as_i64().expect("a time");
    assert!(
        (HOUR - 60..HOUR + 60).contains(&(off_ms / 1000)),
        "{off_ms} ms"
    );
    // The housekeeping of once a second sees the time before the events.
    std::thread::sleep(Duration::from_millis(2_500));
    append(&mut wire);
    // A start in the past, and one back in the present.
    for (signal, seconds) in [(libc::SIGKILL, -HOUR), (libc::SIGTERM, 0)] {
        broker.signal(signal);
        broker.child.wait().expect("ends");
        set(seconds);
        broker = Broker::spawn(shifted(serve(&data, &sets)));
        wire = connect(&broker);
        std::thread::sleep(Duration::from_millis(1_500));
        append(&mut wire);
    }
}

#[test]
fn timestamps_of_any_time_are_kept_found_and_outlive_a_kill() {
    const CENTURY_MS: i64 = 100 * 365 * 24 * 3_600_000;
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("after 1970");
    let future = now.as_millis() as i64 + CENTURY_MS;
    let stamps = [1_000, future, 0, 2_000, i64::MAX, 3_000];
    let place = folder();
    let mut watched = Watched::start(place.path(), &["log.retention.ms=30 min"]);
    for (offset, stamp) in stamps.iter().enumerate() {
        let event = format!("at {stamp}").into_bytes();
        let told = watched.wire.produce(TOPIC, 0, &batch(*stamp, &[&event]));
        assert_eq!(told, Ok(offset as i64), "{stamp}");
        watched.acknowledged.insert((0, offset as i64), event);
    }
    for signal in [libc::SIGKILL, libc::SIGTERM] {
        for (time, offset, stamp) in [
            (500, 0, 1_000),
            (1_001, 1, future),
            (future + 1, 4, i64::MAX),
        ] {
            assert_eq!(watched.wire.list_offset(TOPIC, 0, time), (offset, stamp));
        }
        watched.holds();
        watched.broker.signal(signal);
        watched.broker.child.wait().expect("ends");
        watched = Watched::resume(place.path(), &[], watched.acknowledged);
    }
    watched.holds();
    watched.ends_well(place.path());
}

/// Every file below a folder.
fn files(folder: &Path) -> usize {
    let entries = fs::read_dir(folder).expect("a folder").flatten();
    entries
        .map(|entry| match entry.path() {
            path if path.is_dir() => files(&path),
            _ => 1,
        })
        .sum()
}

#[test]
fn restarts_leave_no_files_descriptors_or_threads_behind() {
    let place = folder();
    let mut watched = Watched::start(place.path(), &[]);
    let (mut held, mut kept) = (Vec::new(), Vec::new());
    for round in 0..number("ENDURE_RESTARTS", 10) {
        watched.goes_on();
        held.push(watched.held());
        kept.push(files(&place.path().join("data")));
        watched.broker.signal(if round % 2 == 0 {
            libc::SIGKILL
        } else {
            libc::SIGTERM
        });
        watched.broker.child.wait().expect("ends");
        watched = Watched::resume(place.path(), &[], watched.acknowledged);
    }
    // The first clean stop writes an index and a snapshot of each log's end; what comes after finds all there is.
    assert!(held[2..].iter().all(|one| *one == held[2]), "{held:?}");
    assert!(kept[2..].iter().all(|one| *one == kept[2]), "{kept:?}");
    watched.holds();
    watched.ends_well(place.path());
}
