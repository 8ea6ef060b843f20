use std::fs;
use std::path::{Path, PathBuf};

use tackboard_logic::metadata::{
    ClusterId, Command, CreateTopic, Endpoint, IncarnationId, Outcome, RegisterBroker,
};
use tackboard_schema::{BrokerId, ErrorCode, TimestampMs, TopicId};

use super::*;
use crate::bridge::Decided;

const CLUSTER: ClusterId = ClusterId([9; 16]);

fn endpoint(port: u16) -> Endpoint {
    Endpoint {
        host: "127.0.0.1".to_owned(),
        port,
    }
}

fn register() -> Command {
    Command::RegisterBroker(RegisterBroker {
        broker: BrokerId(1),
        incarnation: IncarnationId([1; 16]),
        any_core: endpoint(7400),
        cores: vec![endpoint(7401)],
        partitions_per_core_max: 1000,
    })
}

fn create(number: u8) -> Command {
    Command::CreateTopic(CreateTopic {
        name: format!("topic-{number}"),
        topic_id: TopicId([number; 16]),
        partitions: 3,
        replication_factor: 1,
        configs: Vec::new(),
        at: TimestampMs(1_000),
    })
}

fn open(folder: &Path) -> MetadataLog {
    MetadataLog::open(folder, CLUSTER, small_limits())
        .expect("opens")
        .0
}

fn small_limits() -> Limits {
    Limits {
        records: 4,
        bytes: 1 << 20,
    }
}

fn topics(log: &MetadataLog) -> usize {
    log.image().topics().len()
}

fn files(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder.join("meta")).expect("folder");
    let mut names: Vec<String> = entries
        .map(|entry| {
            entry
                .expect("entry")
                .file_name()
                .into_string()
                .expect("text")
        })
        .collect();
    names.sort();
    names
}

fn only_log(folder: &Path) -> PathBuf {
    folder.join("meta/log-00000000000000000000")
}

#[test]
fn commands_outlive_the_process() {
    let folder = tempfile::tempdir().expect("folder");
    let mut log = open(folder.path());
    let answers = log.propose(vec![register(), create(1), create(1)]);
    assert!(matches!(
        &answers[0],
        Ok(Decided {
            version: 1,
            outcome: Outcome::BrokerRegistered { .. }
        })
    ));
    assert!(matches!(
        &answers[1],
        Ok(Decided {
            version: 2,
            outcome: Outcome::TopicCreated { .. }
        })
    ));
    assert!(matches!(&answers[2], Err(refusal) if refusal.code == ErrorCode::TopicAlreadyExists));
    let image = log.image();
    drop(log);
    let (log, summary) = MetadataLog::open(folder.path(), CLUSTER, small_limits()).expect("opens");
    assert_eq!(*log.image(), *image);
    assert_eq!((summary.commands_replayed, summary.torn_bytes), (3, 0));
}

#[test]
fn snapshots_replace_old_logs_and_the_state_stays() {
    let folder = tempfile::tempdir().expect("folder");
    let mut log = open(folder.path());
    log.propose(vec![register()]);
    for number in 1..=20 {
        log.propose(vec![create(number)]);
    }
    assert_eq!(topics(&log), 20);
    let image = log.image();
    drop(log);
    let names = files(folder.path());
    assert_eq!(
        names,
        [
            "log-00000000000000000016",
            "log-00000000000000000020",
            "snapshot-00000000000000000016",
            "snapshot-00000000000000000020"
        ]
    );
    assert_eq!(*open(folder.path()).image(), *image);
}

#[test]
fn a_damaged_newest_snapshot_is_replaced_by_the_older_one_and_its_log() {
    let folder = tempfile::tempdir().expect("folder");
    let mut log = open(folder.path());
    log.propose(vec![register()]);
    for number in 1..=12 {
        log.propose(vec![create(number)]);
    }
    let image = log.image();
    drop(log);
    let newest = folder.path().join("meta/snapshot-00000000000000000012");
    let mut bytes = fs::read(&newest).expect("snapshot");
    bytes[70] ^= 1;
    fs::write(&newest, bytes).expect("write");
    let (log, summary) = MetadataLog::open(folder.path(), CLUSTER, small_limits()).expect("opens");
    assert_eq!(*log.image(), *image);
    assert_eq!(summary.snapshots_skipped.len(), 1, "{summary:?}");
}

#[test]
fn a_log_cut_at_every_byte_opens_with_what_was_whole_and_goes_on() {
    let folder = tempfile::tempdir().expect("folder");
    let mut log = MetadataLog::open(folder.path(), CLUSTER, Limits::default())
        .expect("opens")
        .0;
    for command in [register(), create(1), create(2), create(3)] {
        log.propose(vec![command]);
    }
    drop(log);
    let whole = fs::read(only_log(folder.path())).expect("log");
    let mut topics_before = 0;
    for cut in format::LOG_HEADER_LENGTH..whole.len() {
        fs::write(only_log(folder.path()), &whole[..cut]).expect("write");
        let mut log = MetadataLog::open(folder.path(), CLUSTER, Limits::default())
            .expect("opens")
            .0;
        assert!(topics(&log) >= topics_before, "cut at {cut}");
        topics_before = topics(&log);
        let version = log.image().version;
        log.propose(vec![register()]);
        drop(log);
        let log = MetadataLog::open(folder.path(), CLUSTER, Limits::default())
            .expect("opens")
            .0;
        assert_eq!(log.image().version, version + 1, "cut at {cut}");
    }
    assert_eq!(topics_before, 2);
}

#[test]
fn a_log_cut_within_its_header_is_damage() {
    let folder = tempfile::tempdir().expect("folder");
    drop(open(folder.path()));
    let whole = fs::read(only_log(folder.path())).expect("log");
    for cut in 0..format::LOG_HEADER_LENGTH {
        fs::write(only_log(folder.path()), &whole[..cut]).expect("write");
        let opened = MetadataLog::open(folder.path(), CLUSTER, small_limits());
        assert!(
            matches!(opened, Err(MetadataLogError::Damaged { .. })),
            "cut at {cut}"
        );
    }
}

#[test]
fn damage_before_the_last_write_is_refused_and_changes_nothing() {
    let folder = tempfile::tempdir().expect("folder");
    let mut log = MetadataLog::open(folder.path(), CLUSTER, Limits::default())
        .expect("opens")
        .0;
    for command in [register(), create(1), create(2)] {
        log.propose(vec![command]);
    }
    drop(log);
    let path = only_log(folder.path());
    let mut bytes = fs::read(&path).expect("log");
    bytes[format::LOG_HEADER_LENGTH + 40] ^= 1;
    fs::write(&path, &bytes).expect("write");
    let error = MetadataLog::open(folder.path(), CLUSTER, Limits::default()).expect_err("refused");
    assert!(error.to_string().contains("damaged at byte 64"), "{error}");
    assert_eq!(fs::read(&path).expect("log"), bytes);
}

#[test]
fn unfinished_files_are_deleted() {
    let folder = tempfile::tempdir().expect("folder");
    drop(open(folder.path()));
    fs::write(
        folder.path().join("meta/snapshot-00000000000000000004.tmp"),
        b"half",
    )
    .expect("write");
    drop(open(folder.path()));
    assert_eq!(files(folder.path()), ["log-00000000000000000000"]);
}

#[test]
fn lost_metadata_beside_partitions_is_not_a_fresh_start() {
    let folder = tempfile::tempdir().expect("folder");
    fs::create_dir_all(folder.path().join("p/0909-0")).expect("folder");
    let opened = MetadataLog::open(folder.path(), CLUSTER, small_limits());
    assert!(matches!(opened, Err(MetadataLogError::Missing { .. })));
}

#[test]
fn metadata_of_another_cluster_is_refused() {
    let folder = tempfile::tempdir().expect("folder");
    drop(open(folder.path()));
    let opened = MetadataLog::open(folder.path(), ClusterId([1; 16]), small_limits());
    let error = opened.expect_err("refused");
    assert!(error.to_string().contains("belongs to cluster"), "{error}");
}

#[test]
fn a_missing_log_between_two_others_is_noticed() {
    let folder = tempfile::tempdir().expect("folder");
    let mut log = open(folder.path());
    log.propose(vec![register()]);
    for number in 1..=12 {
        log.propose(vec![create(number)]);
    }
    drop(log);
    // The newest snapshot is unreadable, and the log that would bridge the gap is gone.
    fs::write(
        folder.path().join("meta/snapshot-00000000000000000012"),
        b"",
    )
    .expect("write");
    fs::remove_file(folder.path().join("meta/log-00000000000000000008")).expect("remove");
    let opened = MetadataLog::open(folder.path(), CLUSTER, small_limits());
    assert!(
        matches!(opened, Err(MetadataLogError::Damaged { .. })),
        "{opened:?}"
    );
}
