//! The binary on files that something else has damaged: ends of logs, sealed segments, indexes, ledgers, the superblock,
//! the metadata log.
//!
//! Each test fills a folder, ends the broker (in order and by kill), changes bytes, and starts it again. What may be
//! rebuilt is, without a loss. What can't be is kept, named and not served, and everything else is served. Where there
//! would be no telling what is lost the start is refused, and changes nothing.

#[path = "support/kafka.rs"]
mod kafka;
#[path = "support/process.rs"]
#[allow(dead_code, reason = "each of the binaries that share it uses a part")]
mod process;
#[path = "support/mod.rs"]
mod wire;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use process::{Broker, folder, serve};
use tackboard_schema::ErrorCode;
use tackboard_schema::kafka::{
    DeleteRecordsRequest, DeleteRecordsRequestPartition, DeleteRecordsRequestTopic,
    FindCoordinatorRequest, HeartbeatRequest, OffsetCommitRequest, OffsetCommitRequestPartition,
    OffsetCommitRequestTopic, OffsetFetchRequest, OffsetFetchRequestGroup,
    OffsetFetchRequestGroupTopic, SyncGroupRequest,
};
use tackboard_schema::record_batch::BatchIterator;
use wire::{Raw, batch, eventually};

const TOPIC: &str = "t";
const PARTITIONS: i32 = 3;
/// The one whose files are changed.
const HIT: i32 = 1;
/// Enough for some sealed segments and an active one.
const EVENTS: i64 = 80;
const SETTINGS: &[&str] = &[
    "--set",
    "log.segment.bytes=1 MiB",
    "--set",
    "message.max.bytes=65536",
];
/// Both ways to end.
const ENDS: [i32; 2] = [libc::SIGTERM, libc::SIGKILL];
/// Longer than the ledger may trail a log that is at rest.
const LEDGER_LAG: std::time::Duration = std::time::Duration::from_millis(500);

fn event(partition: i32, offset: i64) -> Vec<u8> {
    let mut event = format!("partition {partition}, event {offset} ").into_bytes();
    event.resize(40_000, b'.');
    event
}

/// A folder with events in it that no broker runs on.
struct Filled {
    place: tempfile::TempDir,
}

/// A broker on such a folder.
struct Started {
    broker: Broker,
    wire: Raw,
    log: PathBuf,
}

impl Filled {
    /// All partitions filled, everything acknowledged and proven, the broker ended by `signal`.
    fn new(signal: i32) -> Filled {
        let filled = Filled { place: folder() };
        let mut started = filled.start();
        assert_eq!(started.wire.create_topic(TOPIC, PARTITIONS), 0);
        for offset in 0..EVENTS {
            for partition in 0..PARTITIONS {
                started.append(partition, offset);
            }
        }
        std::thread::sleep(LEDGER_LAG);
        started.end(signal);
        filled
    }

    fn data(&self) -> PathBuf {
        self.place.path().join("data")
    }

    fn start(&self) -> Started {
        self.start_with(&[])
    }

    fn start_with(&self, more: &[&str]) -> Started {
        let log = self.place.path().join("stderr");
        let command = serve(&self.data(), &[SETTINGS, more].concat());
        let broker = Broker::spawn_logging(command, &log);
        let wire = Raw::connect(broker.address.parse().expect("an address"));
        Started { broker, wire, log }
    }

    /// The broker does not start, says all of `parts`, and leaves every file as it is.
    fn is_refused(&self, parts: &[&str]) {
        let before = contents(&self.data());
        let log = self.place.path().join("stderr");
        let to_log = fs::File::create(&log).expect("a file").into();
        let started = Broker::try_spawn(serve(&self.data(), SETTINGS), to_log);
        let stderr = fs::read_to_string(&log).expect("its log");
        let status = started
            .map(|broker| broker.greeting.clone())
            .expect_err("refused");
        assert_eq!(status.code(), Some(1), "{stderr}");
        for part in parts {
            assert!(stderr.contains(part), "{part} is missing in {stderr}");
        }
        let changed = changed(&before, &contents(&self.data()));
        assert!(changed.is_empty(), "refused, and changed {changed:?}");
    }

    /// Segments of a partition, oldest first: `.log` files.
    fn segments(&self, partition: i32) -> Vec<PathBuf> {
        let logs = fs::read_dir(self.data().join("p")).expect("logs");
        let ending = format!("-{partition}");
        let log = logs
            .map(|entry| entry.expect("listed").path())
            .find(|path| path.to_str().is_some_and(|path| path.ends_with(&ending)))
            .expect("its folder");
        let mut segments: Vec<PathBuf> = fs::read_dir(log)
            .expect("segments")
            .map(|entry| entry.expect("listed").path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "log"))
            .collect();
        segments.sort();
        segments
    }

    fn active(&self, partition: i32) -> PathBuf {
        self.segments(partition).pop().expect("one is active")
    }
}

impl Started {
    fn append(&mut self, partition: i32, offset: i64) {
        let bytes = batch(1_000 + offset, &[&event(partition, offset)]);
        assert_eq!(self.wire.produce(TOPIC, partition, &bytes), Ok(offset));
    }

    fn end(mut self, signal: i32) {
        self.broker.signal(signal);
        let status = self.broker.child.wait().expect("ends");
        assert_eq!(status.success(), signal == libc::SIGTERM, "{status}");
    }

    fn said(&self) -> String {
        fs::read_to_string(&self.log).expect("its log")
    }

    /// The event at this offset, or the code it is refused with.
    fn read(&mut self, partition: i32, offset: i64) -> Result<(), ErrorCode> {
        let found = self.wire.fetch(TOPIC, partition, offset);
        let found = found.map_err(|code| ErrorCode::from_code(code).expect("ours"))?;
        let (at, value) = found.first().expect("it was acknowledged");
        assert_eq!(*at, offset);
        assert!(
            *value == event(partition, offset),
            "{partition} {offset} was changed"
        );
        Ok(())
    }

    fn serves(&mut self, partition: i32, offsets: std::ops::Range<i64>) {
        for offset in offsets {
            let read = self.read(partition, offset);
            assert_eq!(read, Ok(()), "{partition} {offset}: {}", self.said());
        }
    }

    /// Everything of the partitions that were not hit is there, and they take more.
    fn others_go_on(&mut self) {
        for partition in (0..PARTITIONS).filter(|partition| *partition != HIT) {
            self.serves(partition, 0..EVENTS);
            self.append(partition, EVENTS);
        }
    }

    /// Nothing is lost anywhere, and every partition takes more.
    fn all_is_there(&mut self) {
        self.others_go_on();
        self.serves(HIT, 0..EVENTS);
        self.append(HIT, EVENTS);
        self.serves(HIT, EVENTS..EVENTS + 1);
    }
}

/// Every file of a folder but the lock, which names the process that looked.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("listed").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.file_name().is_some_and(|name| name != "lock") {
                let bytes = fs::read(&path).expect("a file");
                found.insert(path, bytes);
            }
        }
    }
    found
}

fn changed(
    before: &BTreeMap<PathBuf, Vec<u8>>,
    after: &BTreeMap<PathBuf, Vec<u8>>,
) -> Vec<PathBuf> {
    let names = before.keys().chain(after.keys());
    let mut changed: Vec<_> = names
        .filter(|path| before.get(*path) != after.get(*path))
        .cloned()
        .collect();
    changed.dedup();
    changed
}

/// Where each batch of a segment begins, and where the last one ends.
fn places(segment: &Path) -> Vec<u64> {
    let bytes = fs::read(segment).expect("a segment");
    let mut places = vec![0];
    for batch in BatchIterator::new(&bytes) {
        // Behind the last batch the reserved space begins.
        let Ok(batch) = batch else { break };
        places.push(places[places.len() - 1] + batch.header().total_length() as u64);
    }
    assert!(places.len() > 1, "{} holds no batch", segment.display());
    places
}

fn write_at(path: &Path, at: u64, bytes: &[u8]) {
    let file = fs::File::options().write(true).open(path).expect("there");
    file.write_all_at(bytes, at).expect("written");
}

fn flip(path: &Path, at: u64) {
    let file = fs::File::options()
        .read(true)
        .write(true)
        .open(path)
        .expect("there");
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).expect("within the file");
    file.write_all_at(&[byte[0] ^ 0x10], at).expect("written");
}

fn cut(path: &Path, length: u64) {
    let file = fs::File::options().write(true).open(path).expect("there");
    file.set_len(length).expect("cut");
}

#[test]
fn an_unfinished_write_behind_the_end_is_cut_off_and_nothing_else() {
    let next = batch(9_000, &[&event(HIT, EVENTS)]);
    let mut garbage = Vec::new();
    let mut number = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..1_000 {
        number = number.wrapping_mul(0x2545_f491_4f6c_dd1d).rotate_left(17) ^ 0x5bd1;
        garbage.extend_from_slice(&number.to_le_bytes());
    }
    let mut torn = next.clone();
    torn[5_000..9_096].fill(0);
    let tails: [(&str, &[u8], bool); 6] = [
        ("half a header", &next[..30], true),
        ("a header and half of its batch", &next[..20_000], true),
        ("a batch with a sector of zeros", &torn, true),
        ("garbage", &garbage, true),
        ("zeros", &[0; 10_000], false),
        ("nothing reserved", &[], false),
    ];
    for (what, tail, is_torn) in tails {
        let filled = Filled::new(libc::SIGKILL);
        let active = filled.active(HIT);
        let end = *places(&active).last().expect("an end");
        cut(&active, end);
        write_at(&active, end, tail);
        let mut started = filled.start();
        let greeting = &started.broker.greeting;
        assert_eq!(
            greeting.contains("1 torn tail cut"),
            is_torn,
            "{what}: {greeting}"
        );
        started.all_is_there();
    }
}

#[test]
fn damage_below_the_proof_of_an_active_segment_is_kept_named_and_not_served() {
    for signal in ENDS {
        for what in ["zeros", "a flipped bit", "cut"] {
            let filled = Filled::new(signal);
            let active = filled.active(HIT);
            let places = places(&active);
            let (last, end) = (places[places.len() - 2], places[places.len() - 1]);
            match what {
                "zeros" => write_at(&active, last, &vec![0; (end - last) as usize]),
                "cut" => cut(&active, end - 100),
                _ => flip(&active, last + 1_000),
            }
            let before = fs::read(&active).expect("a file");
            let mut started = filled.start();
            let case = format!("{what} after signal {signal}: {}", started.said());
            // After a clean stop the segment is not scanned, and damage within it shows when it is read.
            let is_scanned = signal == libc::SIGKILL || what == "cut";
            let greeting = &started.broker.greeting;
            assert_eq!(greeting.contains("1 damaged range"), is_scanned, "{case}");
            started.others_go_on();
            started.serves(HIT, 0..EVENTS - 1);
            let refused = started.read(HIT, EVENTS - 1);
            let (code, told) = match is_scanned {
                true => (
                    ErrorCode::KafkaStorageError,
                    "damaged offsets: kept on disk",
                ),
                false => (ErrorCode::CorruptMessage, "a segment holds damaged bytes"),
            };
            assert_eq!(refused, Err(code), "{case}");
            assert!(started.said().contains(told), "{case}");
            started.append(HIT, EVENTS);
            started.serves(HIT, EVENTS..EVENTS + 1);
            // Appends left it as it was found.
            let after = fs::read(&active).expect("a file");
            let (from, to) = (last as usize, before.len().min(end as usize));
            assert!(after[from..to] == before[from..to], "{case}");
        }
    }
}

#[test]
fn a_flipped_bit_in_a_sealed_segment_hides_its_batch_alone() {
    for signal in ENDS {
        // In the records, in the base offset, which no checksum covers, and in the length.
        for at in [2_000, 7, 10] {
            let filled = Filled::new(signal);
            let sealed = filled.segments(HIT)[0].clone();
            let batches = places(&sealed).len() as i64 - 1;
            let hit = batches / 2;
            flip(&sealed, places(&sealed)[hit as usize] + at);
            let mut started = filled.start();
            started.others_go_on();
            let case = format!("byte {at} of batch {hit} after signal {signal}");
            assert_eq!(
                started.read(HIT, hit),
                Err(ErrorCode::CorruptMessage),
                "{case}"
            );
            let said = started.said();
            assert!(said.contains("damaged batch at byte"), "{case}: {said}");
            assert!(said.contains(&format!("-{HIT}\"")), "{case}: {said}");
            // What lies before it, and in other segments, is served; what follows in this one is served, or refused
            // with the same error, and never wrong.
            started.serves(HIT, 0..hit);
            for offset in hit + 1..batches {
                let read = started.read(HIT, offset);
                assert!(
                    matches!(read, Ok(()) | Err(ErrorCode::CorruptMessage)),
                    "{case}: {read:?}"
                );
            }
            started.serves(HIT, batches..EVENTS);
            started.append(HIT, EVENTS);
        }
    }
}

#[test]
fn an_index_that_is_missing_empty_zeroed_or_cut_is_made_anew() {
    for signal in ENDS {
        for what in ["missing", "empty", "zeroed", "cut", "flipped"] {
            let filled = Filled::new(signal);
            let index = filled.segments(HIT)[0].with_extension("idx");
            let length = fs::metadata(&index).expect("sealed").len();
            match what {
                "missing" => fs::remove_file(&index).expect("removed"),
                "empty" => cut(&index, 0),
                "zeroed" => write_at(&index, 0, &vec![0; length as usize]),
                "cut" => cut(&index, length / 2),
                _ => flip(&index, length / 2),
            }
            let mut started = filled.start();
            started.all_is_there();
            // By time as well, which the index serves too.
            let found = started.wire.list_offset(TOPIC, HIT, 1_000 + 3);
            assert_eq!(found, (3, 1_003), "{what} after signal {signal}");
        }
    }
}

#[test]
fn a_producer_snapshot_that_is_missing_or_damaged_costs_no_event() {
    for what in ["missing", "flipped"] {
        let filled = Filled::new(libc::SIGKILL);
        for segment in filled.segments(HIT) {
            let snapshot = segment.with_extension("pst");
            match what {
                _ if !snapshot.exists() => {}
                "missing" => fs::remove_file(&snapshot).expect("removed"),
                _ => flip(&snapshot, 40),
            }
        }
        filled.start().all_is_there();
    }
}

#[test]
fn a_damaged_ledger_ends_the_start_until_that_is_accepted() {
    for signal in ENDS {
        let filled = Filled::new(signal);
        for entry in fs::read_dir(filled.data().join("ledger")).expect("ledgers") {
            let path = entry.expect("listed").path();
            // Its header and what follows: a record that says what is proven.
            flip(&path, 20);
            flip(&path, 4096 + 40);
        }
        filled.is_refused(&["ledger", "storage.missing_ledger=scan"]);
        let mut started = filled.start_with(&["--set", "storage.missing_ledger=scan"]);
        let greeting = &started.broker.greeting;
        assert!(
            greeting.contains("3 partitions without proof"),
            "{greeting}"
        );
        started.all_is_there();
    }
}

#[test]
fn one_damaged_superblock_is_passed_over_and_two_end_the_start() {
    for signal in ENDS {
        for copy in ["superblock.a", "superblock.b"] {
            let filled = Filled::new(signal);
            flip(&filled.data().join(copy), 30);
            filled.start().all_is_there();
        }
        let filled = Filled::new(signal);
        let copies = ["superblock.a", "superblock.b"].map(|copy| filled.data().join(copy));
        let intact = copies.each_ref().map(|path| fs::read(path).expect("there"));
        for path in &copies {
            flip(path, 30);
        }
        filled.is_refused(&[
            "the superblock cannot be read",
            "restore the file from a copy",
        ]);
        for path in &copies {
            fs::remove_file(path).expect("removed");
        }
        filled.is_refused(&["it holds logs but no superblock"]);
        for (path, bytes) in copies.iter().zip(intact) {
            fs::write(path, bytes).expect("written");
        }
        filled.start().all_is_there();
    }
}

/// Where the last command of a metadata log begins.
fn last_command(log: &[u8]) -> u64 {
    let length = |at: usize| {
        let bytes = log.get(at + 4..at + 8)?.try_into().expect("four bytes");
        (log[at..].starts_with(b"TMRC")).then_some(u32::from_le_bytes(bytes) as usize)
    };
    let (mut at, mut last) = (64, None);
    while let Some(length) = length(at) {
        last = Some(at as u64);
        at += 32 + length.next_multiple_of(8);
    }
    last.expect("there are commands")
}

#[test]
fn a_command_lost_after_a_clean_stop_ends_every_start() {
    let filled = Filled::new(libc::SIGTERM);
    let log = filled.data().join("meta").join(format!("log-{:020}", 0));
    let intact = fs::read(&log).expect("the commands");
    let last = last_command(&intact);
    for damaged in ["flipped", "cut"] {
        match damaged {
            "flipped" => flip(&log, last + 33),
            _ => cut(&log, last + 20),
        }
        // A refusal forgets nothing: the second start must not take it for a torn end.
        for _ in 0..2 {
            filled.is_refused(&["metadata:", "restore the folder meta/ from a copy"]);
        }
        fs::write(&log, &intact).expect("written");
    }
    filled.start().all_is_there();
}

#[test]
fn a_damaged_metadata_log_ends_the_start_and_a_torn_end_does_not() {
    for signal in ENDS {
        let filled = Filled::new(signal);
        let meta = filled.data().join("meta");
        let log = meta.join(format!("log-{:020}", 0));
        let intact = fs::read(&log).expect("the commands");
        // Its header, the first command, and the topic's.
        for at in [20, 64 + 40, 64 + 4] {
            flip(&log, at);
            filled.is_refused(&["metadata:", "restore the folder meta/ from a copy"]);
            fs::write(&log, &intact).expect("written");
        }
        fs::remove_file(&log).expect("removed");
        filled.is_refused(&["metadata:", "restore it from a copy"]);
        fs::write(&log, &intact).expect("written");
        if signal == libc::SIGKILL {
            // An unfinished command.
            let torn = [&intact[..], &intact[64..64 + 24]].concat();
            fs::write(&log, torn).expect("written");
        }
        let mut started = filled.start();
        let greeting = started.broker.greeting.clone();
        let is_torn = greeting.contains("of a torn metadata write cut");
        assert_eq!(is_torn, signal == libc::SIGKILL, "{greeting}");
        started.all_is_there();
    }
}

/// Where Kafka's hash puts the group `g`.
const OF_G: i32 = 7;

fn door(started: &Started) -> kafka::Client {
    let address = started.broker.kafka_address();
    kafka::Client::at(address.parse().expect("an address"))
}

/// What the group has committed for a partition, or why that is not told.
fn offset_of(client: &mut kafka::Client, partition: i32) -> Result<i64, i16> {
    let request = OffsetFetchRequest {
        groups: vec![OffsetFetchRequestGroup {
            group_id: "g".into(),
            topics: Some(vec![OffsetFetchRequestGroupTopic {
                name: TOPIC.into(),
                partition_indexes: vec![partition],
            }]),
            ..Default::default()
        }],
        ..Default::default()
    };
    let group = client.ask(8, &request).groups.remove(0);
    match group.error_code {
        0 => Ok(group.topics[0].partitions[0].committed_offset),
        code => Err(code),
    }
}

fn commit(client: &mut kafka::Client, partition: i32, offset: i64) {
    let request = OffsetCommitRequest {
        group_id: "g".into(),
        generation_id_or_member_epoch: -1,
        topics: vec![OffsetCommitRequestTopic {
            name: TOPIC.into(),
            partitions: vec![OffsetCommitRequestPartition {
                partition_index: partition,
                committed_offset: offset,
                ..Default::default()
            }],
        }],
        ..Default::default()
    };
    let told = client.ask(8, &request);
    assert_eq!(told.topics[0].partitions[0].error_code, 0);
}

/// What a member of the group is told that was in it before the broker started: to its heartbeat, and to its sync.
fn told_to_a_member(client: &mut kafka::Client) -> (i16, i16) {
    let heartbeat = HeartbeatRequest {
        group_id: "g".into(),
        generation_id: 1,
        member_id: "m".into(),
        ..Default::default()
    };
    let sync = SyncGroupRequest {
        group_id: "g".into(),
        generation_id: 1,
        member_id: "m".into(),
        ..Default::default()
    };
    (
        client.ask(4, &heartbeat).error_code,
        client.ask(5, &sync).error_code,
    )
}

/// Gives up what lies before an offset of the topic of the groups.
fn give_up(client: &mut kafka::Client, partition: i32, offset: i64) -> i16 {
    let request = DeleteRecordsRequest {
        topics: vec![DeleteRecordsRequestTopic {
            name: "__consumer_offsets".into(),
            partitions: vec![DeleteRecordsRequestPartition {
                partition_index: partition,
                offset,
            }],
        }],
        timeout_ms: 10_000,
    };
    client.ask(2, &request).topics[0].partitions[0].error_code
}

#[test]
fn groups_whose_records_are_damaged_are_served_again_once_these_are_given_up() {
    let filled = Filled::new(libc::SIGTERM);
    let started = filled.start();
    let mut client = door(&started);
    eventually("the group has a coordinator", || {
        let found = FindCoordinatorRequest {
            coordinator_keys: vec!["g".into()],
            ..Default::default()
        };
        client.ask(4, &found);
        offset_of(&mut client, 0).is_ok()
    });
    // One batch each: offsets 0 to 5.
    for (partition, offset) in [(0, 1), (1, 1), (0, 2), (1, 2), (0, 3), (2, 3)] {
        commit(&mut client, partition, offset);
    }
    drop(client);
    started.end(libc::SIGTERM);
    let log = filled.active(OF_G);
    // The fourth one: the newest commit for partition 1.
    flip(&log, places(&log)[3] + 70);

    let started = filled.start();
    let mut client = door(&started);
    let loading = Err(ErrorCode::CoordinatorLoadInProgress.code());
    eventually("the damage is met", || {
        started.said().contains("its groups are not served")
    });
    assert_eq!(
        offset_of(&mut client, 0),
        loading,
        "an older one is not told"
    );
    assert_eq!(
        told_to_a_member(&mut client),
        (0, ErrorCode::RebalanceInProgress.code()),
        "its members live on"
    );
    let refused = ErrorCode::InvalidTopicException.code();
    assert_eq!(
        give_up(&mut client, OF_G + 1, -1),
        refused,
        "that one is whole"
    );
    assert_eq!(give_up(&mut client, OF_G, 4), 0);
    eventually("the rest is served", || offset_of(&mut client, 0).is_ok());
    let told = [0, 1, 2].map(|partition| offset_of(&mut client, partition));
    assert_eq!(told, [Ok(3), Ok(-1), Ok(3)]);
    assert_eq!(give_up(&mut client, OF_G, -1), refused, "it is served");
    assert!(started.said().contains("records of groups were deleted"));
    commit(&mut client, 1, 4);
    drop(client);
    started.end(libc::SIGTERM);
    let started = filled.start();
    let mut client = door(&started);
    eventually("it is read again", || offset_of(&mut client, 0).is_ok());
    assert_eq!(offset_of(&mut client, 1), Ok(4));
}
