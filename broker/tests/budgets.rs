//! The binary at its bounds: what is too much is refused in so many words or waits, is counted, and disturbs nobody else.
//!
//! The bounds of the disk are in `storage.rs`.

#[path = "support/process.rs"]
#[allow(dead_code, reason = "each of the binaries that share it uses a part")]
mod support;
#[path = "support/mod.rs"]
mod wire;

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream};
use std::os::fd::FromRawFd as _;
use std::os::unix::process::CommandExt as _;

use support::{Broker, folder, serve};
use tackboard_schema::ErrorCode;
use wire::{PATIENCE, Raw, batch, eventually};

fn start(data: &tempfile::TempDir, sets: &[&str]) -> Broker {
    Broker::spawn(command(data, sets))
}

fn command(data: &tempfile::TempDir, sets: &[&str]) -> std::process::Command {
    let more: Vec<&str> = sets.iter().flat_map(|set| ["--set", set]).collect();
    serve(&data.path().join("data"), &more)
}

fn native(broker: &Broker) -> SocketAddr {
    broker.address.parse().expect("an address")
}

/// Connects from an address of the loopback network.
fn connect_from(from: [u8; 4], to: SocketAddr) -> TcpStream {
    let SocketAddr::V4(to) = to else {
        panic!("the tests listen on IPv4");
    };
    let raw = |address: SocketAddrV4| libc::sockaddr_in {
        sin_family: libc::AF_INET as u16,
        sin_port: address.port().to_be(),
        sin_addr: libc::in_addr {
            s_addr: u32::from_ne_bytes(address.ip().octets()),
        },
        sin_zero: [0; 8],
    };
    let from = raw(SocketAddrV4::new(Ipv4Addr::from(from), 0));
    let to = raw(to);
    let length = size_of::<libc::sockaddr_in>() as u32;
    // SAFETY: both addresses are alive and of the length that is named; the descriptor is nobody else's.
    unsafe {
        let socket = libc::socket(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0);
        assert!(socket >= 0);
        let stream = TcpStream::from_raw_fd(socket);
        assert_eq!(libc::bind(socket, (&raw const from).cast(), length), 0);
        assert_eq!(libc::connect(socket, (&raw const to).cast(), length), 0);
        stream
    }
}

/// The broker answers on this connection.
#[track_caller]
fn assert_served(wire: &mut Raw) {
    let code = wire.create_topic("any", 1);
    let answers = [ErrorCode::None, ErrorCode::TopicAlreadyExists].map(ErrorCode::code);
    assert!(answers.contains(&code), "{code}");
}

/// Whether the broker ends the connection without a word.
fn is_closed(mut stream: &TcpStream) -> bool {
    stream
        .set_read_timeout(Some(PATIENCE))
        .expect("a time-out can be set");
    match stream.read(&mut [0; 1]) {
        Ok(count) => count == 0,
        Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
    }
}

#[test]
fn connections_beyond_the_bounds_are_closed_counted_and_told_of_once() {
    let data = folder();
    let log = data.path().join("log");
    let sets = [
        "native.connections_max=3",
        "native.connections_per_address_max=2",
    ];
    let broker = Broker::spawn_logging(command(&data, &sets), &log);
    let to = native(&broker);
    let mut first = Raw::over(connect_from([127, 0, 0, 1], to));
    let mut second = Raw::over(connect_from([127, 0, 0, 1], to));
    assert_served(&mut first);
    assert_served(&mut second);
    for _ in 0..5 {
        assert!(is_closed(&connect_from([127, 0, 0, 1], to)));
    }
    assert_eq!(broker.metric("connections_refused_per_address_total"), 5);
    let mut other = Raw::over(connect_from([127, 0, 0, 2], to));
    assert_served(&mut other);
    assert!(is_closed(&connect_from([127, 0, 0, 3], to)));
    assert_eq!(broker.metric("connections_refused_total"), 1);
    assert_eq!(broker.metric("connections_open"), 3);

    drop(first);
    eventually("the place is free again", || {
        broker.metric("connections_open") == 2
    });
    assert_served(&mut Raw::over(connect_from([127, 0, 0, 1], to)));
    assert_served(&mut second);
    assert_served(&mut other);
    let told = std::fs::read_to_string(&log).expect("its log");
    let told = told.matches("connections were refused").count();
    assert_eq!(told, 1, "one line in ten seconds");
}

#[test]
fn more_requests_than_may_be_in_flight_wait_unread_and_hold_up_nobody_else() {
    let data = folder();
    let broker = start(&data, &["native.requests_in_flight_max=2"]);
    let mut wire = Raw::connect(native(&broker));
    assert_eq!(wire.create_topic("t", 1), 0);
    let parked = [(); 2].map(|()| wire.send_fetch(60_000, &[("t", 0, 0)]));
    let unread = wire.send_fetch(60_000, &[("t", 0, 1)]);
    eventually("two are in flight", || {
        broker.metric("requests_in_flight") == 2
    });
    assert_eq!(broker.metric("fetches_parked"), 2);
    let mut other = Raw::connect(native(&broker));
    other.produce("t", 0, &batch(1, &[b"1"])).expect("appended");
    let mut answered = [(); 2].map(|()| wire.receive().expect("an answer").id);
    answered.sort_unstable();
    assert_eq!(answered, parked);
    eventually("the third is read now", || {
        broker.metric("requests_in_flight") == 1
    });
    other.produce("t", 0, &batch(1, &[b"2"])).expect("appended");
    assert_eq!(wire.receive().expect("an answer").id, unread);
}

#[test]
fn reads_of_history_beyond_their_memory_are_refused_until_others_are_sent() {
    let data = folder();
    // Reads of history have 9.6 MiB, and the tail cache less than was appended.
    let sets = ["memory.total=64 MiB", "log.segment.bytes=8 MiB"];
    let broker = start(&data, &sets);
    let mut wire = Raw::connect(native(&broker));
    assert_eq!(wire.create_topic("t", 8), 0);
    let value = vec![7; 500_000];
    for _ in 0..10 {
        for partition in 0..8 {
            let appended = wire.produce("t", partition, &batch(1, &[&value]));
            appended.expect("appended");
        }
    }
    let history: Vec<(&str, i32, i64)> = (0..8).map(|partition| ("t", partition, 0)).collect();
    let mut slow = Raw::over(with_small_buffer(native(&broker)));
    slow.send_fetch(0, &history);
    eventually(
        "a client that does not read holds what was read for it",
        || broker.metric("memory_cold_read_bytes") > 6 << 20,
    );
    // Of several partitions some find no room.
    wire.send_fetch(0, &history);
    let answer = wire.receive().expect("an answer");
    let results = wire::fetched(&answer);
    let refused = Err(ErrorCode::OverBudget.code());
    assert!(results.contains(&refused), "none is refused");

    assert!(wire::fetched(&slow.receive().expect("an answer"))[0].is_ok());
    eventually("all was sent", || {
        broker.metric("memory_cold_read_bytes") == 0
    });
    assert!(wire.fetch("t", 0, 0).is_ok());
}

/// A connection whose client takes in little before it reads.
fn with_small_buffer(to: SocketAddr) -> TcpStream {
    let stream = connect_from([127, 0, 0, 1], to);
    let bytes: libc::c_int = 64 << 10;
    let length = size_of::<libc::c_int>() as u32;
    // SAFETY: the option's value is alive and of the length that is named.
    let set = unsafe {
        libc::setsockopt(
            std::os::fd::AsRawFd::as_raw_fd(&stream),
            libc::SOL_SOCKET,
            libc::SO_RCVBUF,
            (&raw const bytes).cast(),
            length,
        )
    };
    assert_eq!(set, 0);
    stream
}

/// The beginning of a frame of so many bytes.
fn beginning(total_length: u32) -> [u8; 24] {
    let mut prefix = [0; 24];
    prefix[..4].copy_from_slice(&total_length.to_le_bytes());
    prefix
}

#[test]
fn a_frame_that_is_too_large_or_has_no_room_ends_its_connection_alone() {
    let data = folder();
    // The sockets have a fifth: 12.8 MiB.
    let broker = start(&data, &["memory.total=64 MiB"]);
    let connect = || TcpStream::connect(native(&broker)).expect("the broker listens");
    let mut wire = Raw::connect(native(&broker));

    let mut too_large = connect();
    too_large
        .write_all(&beginning((16 << 20) + 8))
        .expect("sent");
    assert!(is_closed(&too_large));
    assert_eq!(broker.metric("frames_broken_total"), 1);

    // Memory is taken as bytes arrive.
    let part = vec![0; 5 << 20];
    let mut large = connect();
    large.write_all(&beginning(8 << 20)).expect("sent");
    large.write_all(&part).expect("sent");
    eventually("memory is taken for it", || {
        broker.metric("memory_socket_bytes") > 7 << 20
    });
    let mut no_room = connect();
    no_room.write_all(&beginning(8 << 20)).expect("sent");
    // The broker hangs up on the way.
    let _ = no_room.write_all(&part);
    assert!(is_closed(&no_room));
    assert_eq!(broker.metric("frames_over_budget_total"), 1);
    assert_served(&mut wire);

    drop(large);
    eventually("its memory is given back", || {
        broker.metric("memory_socket_bytes") == 0
    });
}

#[test]
fn a_batch_that_is_too_large_is_refused_and_the_connection_goes_on() {
    let data = folder();
    let broker = start(&data, &["message.max.bytes=4 KiB"]);
    let mut wire = Raw::connect(native(&broker));
    assert_eq!(wire.create_topic("t", 1), 0);
    let refused = wire.produce("t", 0, &batch(1, &[&[7; 8 << 10]]));
    let (code, _) = refused.expect_err("it is too large");
    assert_eq!(code, ErrorCode::MessageTooLarge.code());
    assert_eq!(broker.metric("produce_batches_refused_total"), 1);
    wire.produce("t", 0, &batch(1, &[b"small"]))
        .expect("appended");
}

#[test]
fn more_partitions_than_a_core_takes_are_refused_with_the_bound() {
    let data = folder();
    let broker = start(&data, &["storage.partitions_per_core_max=3"]);
    broker.ok("topic create t --partitions 2", "");
    let refused = broker.run("topic create u --partitions 2", "");
    assert_eq!(refused.status.code(), Some(1));
    let said = support::text(&refused.stderr);
    assert!(said.contains("all cores together take 3"), "{said}");
    broker.ok("topic create u --partitions 1", "");
    eventually("they are counted", || broker.metric("partitions") == 3);
}

fn few_open_files() -> std::io::Result<()> {
    let limit = libc::rlimit {
        rlim_cur: 300,
        rlim_max: 300,
    };
    // SAFETY: a plain system call; the limit is alive while it is read.
    match unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

#[test]
fn without_open_files_left_those_that_connect_wait_and_the_others_go_on() {
    let data = folder();
    let mut command = command(&data, &[]);
    // SAFETY: it makes only system calls that are allowed between fork and exec.
    unsafe { command.pre_exec(few_open_files) };
    let broker = Broker::spawn(command);
    let mut wire = Raw::connect(native(&broker));
    assert_eq!(wire.create_topic("t", 1), 0);
    // Each takes two files.
    let mut crowd: Vec<TcpStream> = (0..200)
        .map(|_| TcpStream::connect(native(&broker)).expect("the kernel takes it"))
        .collect();
    wire.produce("t", 0, &batch(1, &[b"1"])).expect("appended");
    crowd.clear();
    let mut late = Raw::connect(native(&broker));
    late.produce("t", 0, &batch(1, &[b"2"])).expect("appended");
    let records = wire.fetch("t", 0, 0).expect("it can be read");
    let values: Vec<Vec<u8>> = records.into_iter().map(|(_, value)| value).collect();
    assert_eq!(values, [b"1", b"2"]);
    eventually("the crowd has gone", || {
        broker.metric("connections_open") == 2
    });
}
