//! The binary under clients of Kafka's door that mean it no good: half and false frames, APIs and versions that are not
//! served, random bytes, requests that something has changed, handshakes out of order, readers that don't read, thousands
//! that wait.
//!
//! In each of them a client that does nothing wrong, the witness, is served, and nothing acknowledged is lost.
//!
//! `ENDURE_SEED` sets the seed of what is random; it is printed.

#[path = "../../schema/tests/kafka_messages/mod.rs"]
mod kafka_messages;
#[path = "support/process.rs"]
#[allow(dead_code, reason = "each of the binaries that share it uses a part")]
mod process;
#[path = "support/random.rs"]
mod random;
#[path = "support/kafka.rs"]
mod wire;

use std::collections::VecDeque;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use kafka_messages::{Extent, Invent, Inventor, for_every_api};
use process::{Broker, folder, serve};
use random::Random;
use tackboard_schema::{ErrorCode, kafka::*};
use wire::{Client, batch, fetch, offsets};

/// A name that nothing random comes upon.
const TOPIC: &str = "the-witness";
const PARTITIONS: i32 = 4;
/// One more partition, to which the witness appends nothing.
const IDLE: i32 = PARTITIONS;
/// What `serve` gives the broker, and what it may use beside that.
const MEMORY_MAX: u64 = (256 + 64) << 20;
/// Longest wait for anything.
const PATIENCE: Duration = Duration::from_secs(20);

/// A broker, and a client that does nothing wrong.
struct Watched {
    broker: Broker,
    address: SocketAddr,
    witness: Client,
    /// Events acknowledged to the witness, in each partition.
    acknowledged: i64,
    log: PathBuf,
}

impl Watched {
    fn start(place: &Path) -> Watched {
        let mut watched = Watched::resume(place, 0);
        assert_eq!(watched.witness.create(TOPIC, PARTITIONS + 1), 0);
        watched
    }

    fn resume(place: &Path, acknowledged: i64) -> Watched {
        let log = place.join("stderr");
        let mut command = serve(&place.join("data"), &[]);
        // A request may ask for many partitions, and for topics of any name.
        for set in [
            "storage.partitions_per_core_max=40",
            "auto.create.topics.enable=false",
        ] {
            command.args(["--set", set]);
        }
        let broker = Broker::spawn_logging(command, &log);
        let address = broker.kafka_address().parse().expect("an address");
        Watched {
            witness: Client::at(address),
            broker,
            address,
            acknowledged,
            log,
        }
    }

    fn stranger(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time-out");
        stream
    }

    /// Appends an event to each partition, and reads it.
    fn goes_on(&mut self) {
        for partition in 0..PARTITIONS {
            let told = self.witness.produce(TOPIC, partition, batch(&["event"]));
            let outcome = (told.error_code, told.base_offset);
            assert_eq!(outcome, (0, self.acknowledged), "{:?}", told.error_message);
            let answer = self
                .witness
                .ask(12, &fetch(TOPIC, &[partition], self.acknowledged, 0));
            let read = offsets(&answer.responses[0].partitions[0]);
            assert_eq!(read, [self.acknowledged]);
        }
        self.acknowledged += 1;
    }

    fn stays_within_its_memory(&self) {
        let status = fs::read_to_string(format!("/proc/{}/status", self.broker.child.id()));
        let status = status.expect("it runs");
        let own = status
            .lines()
            .find_map(|line| line.strip_prefix("RssAnon:"));
        let kib = own.and_then(|line| line.split_whitespace().next());
        let resident = kib.expect("a number").parse::<u64>().expect("a number") << 10;
        assert!(resident <= MEMORY_MAX, "{} MiB", resident >> 20);
    }

    /// Hundredths of a second that it has computed for.
    fn cpu_ticks(&self) -> u64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.broker.child.id()));
        let stat = stat.expect("it runs");
        let (_, behind_name) = stat.rsplit_once(')').expect("as proc(5) says");
        let ticks = behind_name.split_whitespace().skip(11).take(2);
        ticks
            .map(|ticks| ticks.parse::<u64>().expect("a number"))
            .sum()
    }

    /// Stops in order, having met no panic; and a broker after it has everything.
    fn ends_well(mut self, place: &Path) {
        self.goes_on();
        self.broker.signal(libc::SIGTERM);
        let status = self.broker.child.wait().expect("ends");
        let said = fs::read_to_string(&self.log).expect("its log");
        let is_well = status.success() && !said.contains("panicked");
        assert!(is_well, "{status}: {said}");
        let mut again = Watched::resume(place, self.acknowledged);
        for partition in 0..PARTITIONS {
            let answer = again.witness.ask(12, &fetch(TOPIC, &[partition], 0, 0));
            let read = offsets(&answer.responses[0].partitions[0]);
            assert_eq!(read, (0..self.acknowledged).collect::<Vec<_>>());
        }
        again.goes_on();
    }
}

/// A frame with that header and body. Flexible versions end their header with an empty list of tags.
fn framed(key: i16, version: i16, body: &[u8]) -> Vec<u8> {
    let flexible = ApiKey::from_code(key).is_some_and(|key| key.row().is_flexible(version));
    let mut frame = vec![0; LENGTH_PREFIX_BYTES];
    frame.extend(key.to_be_bytes());
    frame.extend(version.to_be_bytes());
    frame.extend(7_i32.to_be_bytes());
    frame.extend((-1_i16).to_be_bytes());
    frame.extend(flexible.then_some(0));
    frame.extend(body);
    let length = (frame.len() - LENGTH_PREFIX_BYTES) as i32;
    frame[..LENGTH_PREFIX_BYTES].copy_from_slice(&length.to_be_bytes());
    frame
}

/// What comes until the broker hangs up.
fn until_it_ends(stream: &mut TcpStream) -> Vec<u8> {
    let mut answer = Vec::new();
    // A connection that is reset has ended, too.
    if let Err(error) = stream.read_to_end(&mut answer) {
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "{error}");
    }
    answer
}

#[test]
fn frames_that_never_end_or_claim_too_much_hinder_nobody() {
    const FRAME: i32 = 16 << 20;
    let place = folder();
    let mut watched = Watched::start(place.path());
    for length in [i32::MAX, FRAME + 1, -1, i32::MIN] {
        let mut stream = watched.stranger();
        stream.write_all(&length.to_be_bytes()).expect("it reads");
        assert_eq!(until_it_ends(&mut stream), b"", "{length}: it hangs up");
        watched.goes_on();
    }
    let half_open: Vec<TcpStream> = (0..40)
        .map(|number| {
            let mut stream = watched.stranger();
            let patience = Some(Duration::from_millis(100));
            stream.set_write_timeout(patience).expect("a time-out");
            let mut bytes = FRAME.to_be_bytes().to_vec();
            // A length alone, a part of one, or nearly a frame; for want of memory it may be hung up on.
            match number % 3 {
                0 => {}
                1 => bytes.truncate(2),
                _ => bytes.resize(FRAME as usize - 100, 0),
            }
            let _ = stream.write_all(&bytes);
            stream
        })
        .collect();
    for _ in 0..20 {
        watched.goes_on();
        watched.stays_within_its_memory();
    }
    drop(half_open);
    watched.ends_well(place.path());
}

#[test]
fn apis_and_versions_that_are_not_served_end_their_connection_alone() {
    let place = folder();
    let mut watched = Watched::start(place.path());
    let mut offered = watched
        .witness
        .ask(3, &ApiVersionsRequest::default())
        .api_keys;
    offered.retain(|api| api.api_key != ApiKey::ApiVersions.code());
    let known = |key| offered.iter().any(|api| api.api_key == key);
    let unknown = (-1..100).chain([i16::MIN, i16::MAX]);
    let unknown = unknown.filter(|key| !known(*key) && *key != ApiKey::ApiVersions.code());
    let unknown = unknown.map(|key| (key, 0));
    let beyond = offered.iter().flat_map(|api| {
        let versions = [i16::MIN, -1, api.max_version + 1, i16::MAX];
        versions.map(|version| (api.api_key, version))
    });
    for (key, version) in unknown.chain(beyond) {
        let mut stream = watched.stranger();
        stream
            .write_all(&framed(key, version, &[0; 64]))
            .expect("it reads");
        assert_eq!(
            until_it_ends(&mut stream),
            b"",
            "API {key} version {version}"
        );
    }
    watched.goes_on();
    watched.ends_well(place.path());
}

#[test]
fn random_bodies_in_every_api_and_version_hinder_nobody() {
    let mut random = Random::new();
    let place = folder();
    let mut watched = Watched::start(place.path());
    let offered = watched
        .witness
        .ask(3, &ApiVersionsRequest::default())
        .api_keys;
    for api in &offered {
        for version in api.min_version..=api.max_version {
            for round in 0..8 {
                let length = random.next() as usize % 200;
                let mut body = random.bytes(length);
                // Lengths that are small, or none at all, take the decoder further.
                for byte in &mut body {
                    if round % 2 == 1 && !random.next().is_multiple_of(3) {
                        *byte %= 3;
                    }
                }
                let mut stream = watched.stranger();
                let _ = stream.write_all(&framed(api.api_key, version, &body));
                let _ = stream.write_all(&random.bytes(16));
            }
        }
        watched.goes_on();
        watched.stays_within_its_memory();
    }
    for _ in 0..200 {
        let length = random.next() as usize % 2_000;
        let mut stream = watched.stranger();
        let _ = stream.write_all(&random.bytes(length));
    }
    watched.goes_on();
    watched.ends_well(place.path());
}

/// An honest request made up by a seed, framed.
fn invented<R: Request + Invent>(version: i16, extent: Extent, seed: u64) -> Vec<u8> {
    let request: R = Inventor::new(version, extent, seed).value();
    let mut frame = Vec::new();
    encode_request(&mut frame, version, 7, Some(&"stranger".into()), &request).expect("fits");
    frame
}

macro_rules! inventors {
    ($($name:ident, $request:ident, $response:ident;)*) => {
        const INVENTED: &[(ApiKey, fn(i16, Extent, u64) -> Vec<u8>)] =
            &[$((ApiKey::$name, invented::<$request>),)*];
    };
}

for_every_api!(inventors);

/// Does something to a frame behind API, version and number of the request. Its length is right afterwards, or what it was.
fn change(frame: &mut Vec<u8>, random: &mut Random) {
    const NUMBER_END: usize = LENGTH_PREFIX_BYTES + 2 + 2 + 4;
    let behind = (frame.len() - NUMBER_END) as u64;
    match random.below(3) {
        0 => frame.truncate(NUMBER_END + random.below(behind + 1) as usize),
        1 => {
            // What may be a length becomes a large one, or a negative one.
            let with: &[u8] = match random.below(4) {
                0 => &[0x7f, 0xff, 0xff, 0xff],
                1 => &[0xff; 4],
                2 => &[0xff, 0xff, 0xff, 0xff, 0x0f],
                _ => &[0x00, 0x10, 0x00, 0x00],
            };
            let at = NUMBER_END + random.below(behind) as usize;
            let end = (at + with.len()).min(frame.len());
            frame.splice(at..end, with.iter().copied());
        }
        _ => {
            for _ in 0..=random.below(4) {
                let at = NUMBER_END + random.below(behind) as usize;
                frame[at] ^= 1 << random.below(8);
            }
        }
    }
    if random.below(4) > 0 {
        let length = (frame.len() - LENGTH_PREFIX_BYTES) as i32;
        frame[..LENGTH_PREFIX_BYTES].copy_from_slice(&length.to_be_bytes());
    }
}

#[test]
fn requests_of_every_api_and_version_that_something_has_changed_hinder_nobody() {
    const EXTENTS: [Extent; 3] = [Extent::Least, Extent::Most, Extent::Random];
    /// So many stay connected while the next ones come.
    const STRANGERS_MAX: usize = 64;
    let mut random = Random::new();
    let place = folder();
    let mut watched = Watched::start(place.path());
    let offered = watched
        .witness
        .ask(3, &ApiVersionsRequest::default())
        .api_keys;
    let mut strangers = VecDeque::new();
    for api in &offered {
        let (_, invented) = (INVENTED.iter())
            .find(|(key, _)| key.code() == api.api_key)
            .expect("whatever is offered has its messages");
        for version in api.min_version..=api.max_version {
            for round in 0..36 {
                let mut frame = invented(version, EXTENTS[round % 3], random.next());
                // Of each kind one is honest.
                if round >= EXTENTS.len() {
                    change(&mut frame, &mut random);
                }
                let mut stream = watched.stranger();
                // It may be hung up on at once.
                let _ = stream.write_all(&frame);
                strangers.push_back(stream);
                if strangers.len() > STRANGERS_MAX {
                    strangers.pop_front();
                }
            }
        }
        watched.goes_on();
        watched.stays_within_its_memory();
    }
    drop(strangers);
    watched.ends_well(place.path());
}

#[test]
fn five_thousand_consumers_in_long_polls_cost_little_and_are_all_answered() {
    const CONSUMERS: usize = 5_000;
    const WAIT_MS: i32 = 15_000;
    let place = folder();
    let mut watched = Watched::start(place.path());
    let mut consumers: Vec<Client> = (0..CONSUMERS)
        .map(|_| Client::at(watched.address))
        .collect();
    let poll = |consumers: &mut Vec<Client>, offset, wait_ms| -> Vec<i32> {
        let request = fetch(TOPIC, &[IDLE], offset, wait_ms);
        let consumers = consumers.iter_mut();
        consumers
            .map(|consumer| consumer.send(12, &request))
            .collect()
    };
    let answers = |consumers: &mut Vec<Client>, ids: Vec<i32>| -> Vec<Vec<i64>> {
        let answers = consumers.iter_mut().zip(ids).map(|(consumer, id)| {
            let answer = consumer.receive::<FetchRequest>(12, id);
            let answer = &answer.responses[0].partitions[0];
            assert_eq!(answer.error_code, 0);
            offsets(answer)
        });
        answers.collect()
    };
    let ids = poll(&mut consumers, 0, WAIT_MS);
    watched.goes_on();
    watched.stays_within_its_memory();
    // They wait; each of two seconds has a hundred ticks.
    let before = watched.cpu_ticks();
    std::thread::sleep(Duration::from_secs(2));
    let ticks = watched.cpu_ticks() - before;
    eprintln!("{ticks} of 200 ticks while {CONSUMERS} wait");
    assert!(ticks < 50, "{ticks} of 200 ticks while all wait");
    for _ in 0..20 {
        watched.goes_on();
    }
    watched.stays_within_its_memory();
    // Nothing comes for them, which they are told when their time is up.
    let told = answers(&mut consumers, ids);
    assert!(told.iter().all(Vec::is_empty));
    // And what comes, comes to all of them.
    let ids = poll(&mut consumers, 0, 10 * WAIT_MS);
    let produced = watched.witness.produce(TOPIC, IDLE, batch(&["event"]));
    assert_eq!((produced.error_code, produced.base_offset), (0, 0));
    let told = answers(&mut consumers, ids);
    assert!(told.iter().all(|offsets| offsets == &[0]));
    watched.stays_within_its_memory();
    drop(consumers);
    watched.ends_well(place.path());
}

#[test]
fn handshakes_come_in_any_order_or_not_at_all() {
    let place = folder();
    let mut watched = Watched::start(place.path());
    // No handshake: the first request is one for data.
    let mut client = Client::at(watched.address);
    let answer = client.ask(4, &fetch(TOPIC, &[0], 0, 0));
    assert_eq!(answer.responses[0].partitions[0].error_code, 0);
    // In the midst, and again, in other versions, behind one from the future.
    for version in [0, 3, 2] {
        let answer = client.ask(version, &ApiVersionsRequest::default());
        assert_eq!(answer.error_code, 0);
    }
    let future = framed(ApiKey::ApiVersions.code(), 99, &[]);
    client.stream.write_all(&future).expect("it reads");
    let answer = client.receive::<ApiVersionsRequest>(0, 7);
    assert_eq!(answer.error_code, ErrorCode::UnsupportedVersion.code());
    assert_eq!(client.ask(12, &MetadataRequest::default()).brokers.len(), 1);
    // Several before the first is answered, and authentication, which is not offered.
    let ids = [(); 3].map(|()| client.send(3, &ApiVersionsRequest::default()));
    for id in ids {
        client.receive::<ApiVersionsRequest>(3, id);
    }
    client
        .stream
        .write_all(&framed(17, 1, b"\0\x05PLAIN"))
        .expect("it reads");
    assert!(client.is_ended());
    watched.goes_on();
    watched.ends_well(place.path());
}

#[test]
fn readers_that_never_read_are_kept_within_memory_and_hinder_nobody() {
    let place = folder();
    let mut watched = Watched::start(place.path());
    let large = "x".repeat(200_000);
    for _ in 0..100 {
        assert_eq!(
            watched
                .witness
                .produce(TOPIC, 3, batch(&[&large]))
                .error_code,
            0
        );
    }
    let mut requests = Vec::new();
    let mut greedy = fetch(TOPIC, &[3], 0, 0);
    greedy.topics[0].partitions[0].partition_max_bytes = i32::MAX;
    greedy.max_bytes = i32::MAX;
    encode_request(&mut requests, 12, 1, None, &greedy).expect("fits");
    let describe = DescribeConfigsRequest {
        resources: vec![DescribeConfigsRequestResource {
            resource_type: 2,
            resource_name: TOPIC.into(),
            configuration_keys: None,
        }],
        include_synonyms: true,
        include_documentation: true,
    };
    encode_request(&mut requests, 4, 2, None, &describe).expect("fits");
    let strangers: Vec<TcpStream> = (0..40)
        .map(|_| {
            let mut stream = watched.stranger();
            let patience = Some(Duration::from_millis(50));
            stream.set_write_timeout(patience).expect("a time-out");
            for _ in 0..500 {
                // The broker stops reading from whoever does not read.
                if stream.write_all(&requests).is_err() {
                    break;
                }
            }
            stream
        })
        .collect();
    for _ in 0..20 {
        let told = watched.witness.produce(TOPIC, 0, batch(&["event"]));
        assert_eq!(told.error_code, 0);
        watched.stays_within_its_memory();
    }
    drop(strangers);
    watched.broker.signal(libc::SIGTERM);
    let status = watched.broker.child.wait().expect("ends");
    let said = fs::read_to_string(&watched.log).expect("its log");
    assert!(
        status.success() && !said.contains("panicked"),
        "{status}: {said}"
    );
}
