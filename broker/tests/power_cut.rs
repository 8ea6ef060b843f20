//! Power cuts on the real binary: a broker on a disk that loses what was not synced, cut at any change that it makes,
//! while events arrive, topics come and go, it starts, or it stops.
//!
//! What is demanded after each cut, under `fsync`: every acknowledged event is there, at its offset, unchanged; whatever
//! was ever read is still there; offsets have no gaps, no event is there twice; a topic whose creation or deletion was
//! acknowledged exists or doesn't.
//!
//! `POWER_CUTS` sets how many cuts (20 unless said, 1,000 for a thorough run), `POWER_CUT_SEED` the first seed. A failure
//! names its seed and the one to begin at. Mounting takes root and FUSE; where it can't be done the tests say so and are
//! passed over, or fail if `TACKBOARD_TESTS_MUST_RUN` is set.

#[path = "support/process.rs"]
#[allow(dead_code, reason = "each test uses a part")]
mod process;
mod volatile;

use std::{
    collections::BTreeMap,
    os::unix::process::ExitStatusExt,
    path::Path,
    process::Child,
    time::{Duration, Instant},
};

use process::Broker;
use tackboard_client::{
    Acks, Admin, ClientConfig, Consumer, ConsumerConfig, NewTopic, Producer, ProducerConfig,
    ProducerRecord, Start,
};
use volatile::{Dice, VolatileDisk};

/// What the broker says, of the last start alone.
const LOG: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/power_cut.log");
/// Cuts that one disk suffers before an empty one takes its place: all that it holds is read after each.
const CUTS_A_DISK: usize = 100;
const TOPIC: &str = "events";
const PARTITIONS: i32 = 4;
/// No start, read or stop takes longer, where nothing was cut.
const PATIENCE: Duration = Duration::from_secs(60);
/// The longest that a stop may take, as `shutdown.deadline` has it.
const STOP: Duration = Duration::from_secs(30);
/// How long answers that are under way when the power goes may take to arrive.
const AFTERGLOW: Duration = Duration::from_millis(50);

/// From so many cuts on it is strange if hardly an event was acknowledged. A seed that is tried again may be cut early.
const CUTS_JUDGED_MIN: u64 = 20;

type Place = (i32, i64);

/// What is known of the log from outside.
#[derive(Default)]
struct Known {
    /// Acknowledged or read: it has to stay.
    events: BTreeMap<Place, Vec<u8>>,
    /// Topics whose creation (true) or deletion was acknowledged.
    topics: BTreeMap<String, bool>,
    sent: u64,
}

#[test]
fn nothing_acknowledged_is_lost_with_the_power() {
    let number = |name: &str, otherwise| {
        let text = std::env::var(name).ok();
        text.map_or(otherwise, |text| text.parse().expect("a number"))
    };
    let (cuts, first_seed) = (number("POWER_CUTS", 20), number("POWER_CUT_SEED", 1));
    let seeds: Vec<u64> = (first_seed..first_seed + cuts).collect();
    let mut kept = 0;
    for seeds in seeds.chunks(CUTS_A_DISK) {
        let folder = tempfile::tempdir().expect("a folder to mount at");
        let Some(disk) = mount(folder.path()) else {
            return;
        };
        let mut known = Known::default();
        for seed in seeds {
            let told = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                one_cut(&disk, &mut known, *seed);
            }));
            let first = seeds[0];
            assert!(
                told.is_ok(),
                "it failed at seed {seed}, on a disk that is empty at seed {first}; what the broker said is in {LOG}"
            );
        }
        // What the last cut left.
        let broker = start(disk.path()).expect("a broker with power starts");
        check(&broker, &mut known);
        kept += known.events.len() as u64;
        eprintln!(
            "{} power cuts, {} events sent, {} kept",
            seeds.len(),
            known.sent,
            known.events.len()
        );
    }
    assert!(
        kept > cuts || cuts < CUTS_JUDGED_MIN,
        "hardly anything was acknowledged"
    );
}

fn mount(at: &Path) -> Option<VolatileDisk> {
    let disk = VolatileDisk::mount(at);
    disk.map_err(|why| process::pass_over(&why)).ok()
}

/// Nothing can be written any more, so nothing is gained by trying for as long as a stop may take.
#[test]
fn a_broker_whose_disk_has_gone_stops_without_delay() {
    let folder = process::folder();
    let Some(disk) = mount(folder.path()) else {
        return;
    };
    let mut broker = start(disk.path()).expect("a new folder");
    let mut admin = Admin::connect(&[&broker.address], client()).expect("a broker to ask");
    let topic = NewTopic::new(TOPIC).partitions(PARTITIONS);
    admin.create_topic(&topic).expect("a topic");
    let config = ProducerConfig {
        client: ClientConfig {
            call_timeout: Duration::from_secs(1),
            ..ClientConfig::default()
        },
        ..ProducerConfig::default()
    };
    let producer = Producer::connect(&[&broker.address], config).expect("a producer");
    let send_everywhere = || -> Vec<_> {
        (0..PARTITIONS)
            .map(|partition| {
                let partition = tackboard_client::PartitionIndex(partition);
                let record = ProducerRecord::new(b"event").partition(partition);
                producer.send_tracked(TOPIC, record)
            })
            .collect()
    };
    for delivery in send_everywhere() {
        let acknowledged = delivery.expect("taken").wait_timeout(PATIENCE);
        acknowledged.expect("in time").expect("with power");
    }
    disk.power_off();
    drop(send_everywhere());
    let begun = Instant::now();
    broker.signal(libc::SIGTERM);
    let status = broker.child.wait().expect("ends");
    did_not_crash(status);
    assert!(!status.success(), "not everything was written");
    assert!(begun.elapsed() < STOP / 4, "{:?}", begun.elapsed());
}

/// Starts the broker, checks what is there, loads it until the power goes, and turns the power on again.
fn one_cut(disk: &VolatileDisk, known: &mut Known, seed: u64) {
    let mut dice = Dice::new(seed);
    if dice.one_in(4) {
        // While it starts: recovery has to survive its own cuts.
        disk.power_off_after(1 + dice.below(60));
        if let Some(mut broker) = start(disk.path()) {
            disk.power_off();
            kill(&mut broker.child);
        }
        disk.power_on(&mut dice);
    }
    let mut broker = start(disk.path()).expect("a broker with power starts");
    check(&broker, known);
    if dice.one_in(6) {
        stop_in_order(&mut broker);
        disk.power_off();
    } else {
        disk.power_off_after(dice.of_any_size(10));
        load(&broker, disk, known, &mut dice);
        kill(&mut broker.child);
    }
    disk.power_on(&mut dice);
}

/// A broker that is ready, or `None` when it ended before.
fn start(mount: &Path) -> Option<Broker> {
    let mut command = process::serve(&mount.join("data"), &[]);
    for setting in [
        "message.max.bytes=65536",
        "log.segment.bytes=1 MiB",
        "durability.default=fsync",
        "cores=[0,1]",
    ] {
        command.arg("--set").arg(setting);
    }
    let log = std::fs::File::create(LOG).expect("a file for the broker's log");
    match Broker::try_spawn(command, log.into()) {
        Ok(broker) => Some(broker),
        Err(status) => {
            did_not_crash(status);
            None
        }
    }
}

fn kill(child: &mut Child) {
    let _ = child.kill();
    did_not_crash(child.wait().expect("ends"));
}

/// One crash is known and harmless: the executor's library panics when it opens a file and the disk then does not even
/// say what file system it holds.
fn did_not_crash(status: std::process::ExitStatus) {
    let known = || {
        let said = std::fs::read_to_string(LOG).expect("the broker's log");
        status.signal() == Some(libc::SIGABRT) && said.contains("src/io/dma_file.rs")
    };
    let signal = status.signal();
    let fine = signal.is_none_or(|signal| signal == libc::SIGKILL) || known();
    assert!(fine, "the broker crashed: {status}");
}

fn stop_in_order(broker: &mut Broker) {
    broker.signal(libc::SIGTERM);
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(status) = broker.child.try_wait().expect("can be waited for") {
            return assert!(status.success(), "a stop in order: {status}");
        }
        assert!(Instant::now() < deadline, "the broker does not stop");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn client() -> ClientConfig {
    ClientConfig {
        call_timeout: Duration::from_secs(10),
        ..ClientConfig::default()
    }
}

/// Everything that is known is there, and nothing is wrong with the rest.
fn check(broker: &Broker, known: &mut Known) {
    let mut admin = Admin::connect(&[&broker.address], client()).expect("a broker to ask");
    let listed = admin.list_topics().expect("its topics");
    for (name, exists) in &known.topics {
        let found = listed.iter().any(|topic| *topic.name == **name);
        assert_eq!(found, *exists, "topic {name}");
    }
    if listed.iter().all(|topic| &*topic.name != TOPIC) {
        assert!(known.events.is_empty(), "the topic is gone with its events");
        admin
            .create_topic(&NewTopic::new(TOPIC).partitions(PARTITIONS))
            .expect("a topic");
    }
    let there = read_all(broker, &mut admin);
    for (place, value) in &known.events {
        assert!(
            there.get(place) == Some(value),
            "partition {} offset {} was acknowledged or read as {:?}, and is {:?}",
            place.0,
            place.1,
            number_of(value),
            there.get(place).map(|value| number_of(value))
        );
    }
    let mut numbers: Vec<u64> = there.values().map(|value| number_of(value)).collect();
    numbers.sort_unstable();
    let twice = numbers.windows(2).find(|pair| pair[0] == pair[1]);
    assert_eq!(twice, None, "an event is there twice");
    known.events = there;
}

/// All partitions from their start to their high watermark.
fn read_all(broker: &Broker, admin: &mut Admin) -> BTreeMap<Place, Vec<u8>> {
    let described = admin.describe_topic(TOPIC).expect("its partitions");
    let mut ends = BTreeMap::new();
    for partition in &described.partitions {
        assert_eq!(partition.error, None, "partition {}", partition.partition);
        assert_eq!(partition.log_start_offset.0, 0);
        ends.insert(partition.partition.0, partition.high_watermark.0);
    }
    let config = ConsumerConfig {
        client: client(),
        ..ConsumerConfig::default()
    };
    let mut consumer = Consumer::connect(&[&broker.address], config).expect("a broker to read");
    consumer
        .assign_topic(TOPIC, Start::Earliest)
        .expect("its partitions");
    let wanted: i64 = ends.values().sum();
    let mut there = BTreeMap::new();
    let deadline = Instant::now() + PATIENCE;
    while (there.len() as i64) < wanted {
        assert!(
            Instant::now() < deadline,
            "{} of {wanted} events were read",
            there.len()
        );
        let records = consumer
            .poll(Duration::from_millis(100))
            .expect("what the log holds");
        for record in records.iter() {
            let record = record.expect("a record that can be read");
            let place = (record.partition.0, record.offset.0);
            let value = record.value.expect("every event has a value").to_vec();
            assert!(
                there.insert(place, value).is_none(),
                "{place:?} was read twice"
            );
        }
    }
    for (partition, end) in ends {
        let offsets = there
            .range((partition, 0)..(partition + 1, 0))
            .map(|(place, _)| place.1);
        assert!(offsets.eq(0..end), "partition {partition} has gaps");
    }
    there
}

/// An event: its number, and bytes that follow from it.
fn event(number: u64, length: u64) -> Vec<u8> {
    let mut value = number.to_le_bytes().to_vec();
    value.extend((0..length).map(|at| (number.wrapping_mul(31).wrapping_add(at)) as u8));
    value
}

fn number_of(value: &[u8]) -> u64 {
    let (number, rest) = value.split_first_chunk::<8>().expect("an event of ours");
    let number = u64::from_le_bytes(*number);
    assert_eq!(
        event(number, rest.len() as u64),
        value,
        "an event was changed"
    );
    number
}

/// Sends events and creates and deletes topics until the power goes.
fn load(broker: &Broker, disk: &VolatileDisk, known: &mut Known, dice: &mut Dice) {
    let config = ProducerConfig {
        client: client(),
        acks: Some(Acks::All),
        batch_bytes: 8 << 10,
        linger: Duration::from_millis(1),
        ..ProducerConfig::default()
    };
    let Ok(producer) = Producer::connect(&[&broker.address], config) else {
        return assert!(disk.is_off(), "no connection to a broker with power");
    };
    let deadline = Instant::now() + PATIENCE;
    while !disk.is_off() {
        assert!(
            Instant::now() < deadline,
            "the power should have gone by now"
        );
        if dice.one_in(8) {
            change_topics(broker, disk, known, dice);
        }
        let mut under_way = Vec::new();
        for _ in 0..1 + dice.below(40) {
            let number = known.sent;
            known.sent += 1;
            let length = dice.of_any_size(14);
            let value = event(number, length);
            let partition = tackboard_client::PartitionIndex(dice.below(PARTITIONS as u64) as i32);
            let record = ProducerRecord::new(&value).partition(partition);
            match producer.send_tracked(TOPIC, record) {
                Ok(delivery) => under_way.push((value, delivery)),
                Err(error) => return assert!(disk.is_off(), "an event was refused: {error}"),
            }
        }
        for (value, delivery) in under_way {
            let outcome = loop {
                match delivery.wait_timeout(AFTERGLOW) {
                    Some(outcome) => break Some(outcome),
                    None if disk.is_off() => break None,
                    None => assert!(Instant::now() < deadline, "an event is not answered"),
                }
            };
            match outcome {
                Some(Ok(position)) => {
                    let offset = position.offset.expect("acks tell the offset");
                    let place = (position.partition.0, offset.0);
                    let before = known.events.insert(place, value);
                    assert_eq!(before, None, "two events at {place:?}");
                }
                Some(Err(error)) => assert!(disk.is_off(), "an event failed: {error}"),
                None => {}
            }
        }
    }
}

fn change_topics(broker: &Broker, disk: &VolatileDisk, known: &mut Known, dice: &mut Dice) {
    let config = ClientConfig {
        call_timeout: Duration::from_secs(1),
        ..ClientConfig::default()
    };
    let Ok(mut admin) = Admin::connect(&[&broker.address], config) else {
        return assert!(disk.is_off(), "no connection to a broker with power");
    };
    let name = format!("other-{}", dice.below(4));
    let exists = known.topics.get(&name).copied();
    // Unless it is answered, it may have happened or not.
    known.topics.remove(&name);
    let (outcome, after) = match exists {
        Some(true) => (admin.delete_topic(&name), false),
        _ => (admin.create_topic(&NewTopic::new(&name)).map(drop), true),
    };
    match outcome {
        Ok(()) => {
            known.topics.insert(name, after);
        }
        // It was under way when the power went the last time.
        Err(error) if exists.is_none() && error.code().is_some() => {}
        Err(error) => assert!(disk.is_off(), "topic {name}: {error}"),
    }
}
