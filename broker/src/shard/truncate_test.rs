//! The end of an open log is cut off, on a real disk: files are closed, cut, recovered and written again.
//!
//! Nothing on the wire asks for it yet, so logic is told directly.

use std::{collections::BTreeMap, net::SocketAddr, path::Path};

use tackboard_logic::{
    metadata::{
        ClusterId, Command, CreateTopic, Endpoint, IncarnationId, Machine as Metadata,
        RegisterBroker,
    },
    shard::interface::{Append, LogDescription, LogId, PayloadId, Ticket, Truncate},
};
use tackboard_runtime::{CoreSettings, Watchdog, inbox, spawn};
use tackboard_schema::{
    LeaderEpoch, Offset, PartitionIndex, ProducerEpoch, ProducerId, TopicId, TopicPartition,
    record_batch::{BatchBuilder, BatchHeader, Compression, check_stored_batch},
};

use super::*;
use crate::{
    config::{MissingLedger, Sources, load},
    data_folder::Folder,
    disk::file::Access,
};

const PARTITION: TopicPartition = TopicPartition {
    topic: TopicId([5; 16]),
    partition: PartitionIndex(0),
};
/// Turns of a millisecond that a test waits for what must come.
const PATIENCE_TURNS: u32 = 20_000;

fn config(root: &Path) -> Arc<Config> {
    let sets = ["log.segment.bytes=2MiB", "memory.total=256MiB"];
    let sources = Sources {
        file: None,
        data_dir: Some(root.to_owned()),
        sets: sets.map(str::to_owned).into(),
    };
    Arc::new(load(&sources).expect("a configuration"))
}

/// One topic of one partition. Every registration but the first begins a leader epoch.
fn image(config: &Config, registrations: u8) -> Arc<Image> {
    let mut metadata = Metadata::new(ClusterId([7; 16]));
    let endpoint = Endpoint {
        host: "host".into(),
        port: 7400,
    };
    let create = Command::CreateTopic(CreateTopic {
        name: "t".into(),
        topic_id: PARTITION.topic,
        partitions: 1,
        replication_factor: 1,
        configs: Vec::new(),
        at: TimestampMs(0),
    });
    let register = |incarnation| {
        Command::RegisterBroker(RegisterBroker {
            broker: config.broker_id,
            incarnation: IncarnationId([incarnation; 16]),
            any_core: endpoint.clone(),
            cores: vec![endpoint.clone()],
            partitions_per_core_max: 10,
        })
    };
    let commands = [register(1), create].into_iter();
    for command in commands.chain((1..registrations).map(|count| register(1 + count))) {
        let version = metadata.image().version + 1;
        metadata.apply(version, command).expect("accepted");
    }
    metadata.image()
}

/// Runs a core on the folder as a broker does, hands it to `work`, and leaves it as a kill would, or drains it.
fn run_core<Fut>(
    config: &Arc<Config>,
    registrations: u8,
    drains: bool,
    work: impl FnOnce(Rc<Shard>) -> Fut + Send + 'static,
) where
    Fut: Future<Output = ()> + 'static,
{
    let mut folder = Folder::open(&config.data_dir, config.broker_id, MissingLedger::Refuse)
        .expect("a data folder");
    folder.begin_run().expect("the superblock is written");
    let (own, address) = net::reserve(SocketAddr::from(([127, 0, 0, 1], 0))).expect("a port");
    let (_to_core, from_control) = inbox(8);
    let (own_inbox, from_peers) = inbox(8);
    let (control, _from_core) = flume::bounded(64);
    let (ready, _reports) = std::sync::mpsc::channel();
    let (go, wait_for_go) = flume::bounded(1);
    go.send(()).expect("it is awaited");
    let seed = Seed {
        core: CoreId(0),
        config: config.clone(),
        paths: folder.paths.clone(),
        access: Access::Direct,
        flusher: None,
        directory_id: folder.directory_id(),
        metrics: Metrics::new(1),
        image: image(config, registrations),
        restart: folder.restart,
        ledger: Arc::new(folder.ledger.clone()),
        ledger_start: LedgerStart {
            generation: folder.generation(),
            file: tackboard_logic::shard::interface::LedgerFile::A,
            logs: (folder.ledger.logs.iter())
                .map(|(partition, log)| (*partition, log.clone()))
                .collect(),
        },
        any_core: (address, None),
        kafka: None,
        own,
        from_control,
        from_peers,
        own_inbox,
        peers: vec![None],
        control,
        ready,
        go: wait_for_go,
        drained: Arc::default(),
    };
    // Without one an executor may fall asleep with work to do.
    let watchdog = Watchdog::start();
    let settings = CoreSettings {
        cpu: None,
        ..CoreSettings::pinned(0, "core-0")
    };
    let main = move |core| async move {
        let serving = start(core, seed).await.expect("the ledger is written");
        let serving = serving.expect("it may go");
        let shard = serving.shard.clone();
        work(shard.clone()).await;
        if drains {
            let deadline = Instant::now() + Duration::from_secs(60);
            assert!(drain(&shard, deadline, &serving.drained_cores, 1).await);
        }
    };
    let core = spawn(settings, &watchdog, main).expect("an executor");
    core.join().expect("the test holds");
}

async fn wait_for(shard: &Rc<Shard>, what: &str, mut done: impl FnMut(LogDescription) -> bool) {
    for _ in 0..PATIENCE_TURNS {
        if done(describe(shard)) {
            return;
        }
        sleep(Duration::from_millis(1)).await;
    }
    panic!("{what} does not come: {:?}", describe(shard));
}

fn log(shard: &Rc<Shard>) -> LogId {
    let state = shard.state.borrow();
    state.topics.log(PARTITION).expect("it is open")
}

fn describe(shard: &Rc<Shard>) -> LogDescription {
    let log = log(shard);
    shard
        .state
        .borrow()
        .machine
        .describe(log)
        .expect("it is open")
}

/// Appends batches of two records each, from sequence `from` on, and waits until all of it is durable.
async fn append(shard: &Rc<Shard>, sequences: std::ops::Range<i32>, filler: u8) {
    let log = log(shard);
    for sequence in sequences.step_by(2) {
        let mut builder = BatchBuilder::new(TimestampMs(0));
        for _ in 0..2 {
            let value = vec![filler; 60_000];
            let appended = builder.append(TimestampMs(0), None, Some(&value), &[]);
            appended.expect("the batch is short");
        }
        let producer = (ProducerId(9), ProducerEpoch(0), sequence);
        let bytes = builder.finish(Some(producer), Compression::None);
        let append = Append {
            log,
            ticket: Ticket(u64::MAX),
            header: BatchHeader::read(&bytes).expect("just built"),
            payload: PayloadId(0),
            acks: None,
            durability: None,
            deadline_us: u64::MAX,
        };
        shard.enter(|state| state.step(Input::Append(append), &bytes));
    }
    wait_for(shard, "the end", |log| {
        log.high_watermark == log.log_end_offset
    })
    .await;
}

async fn truncate(shard: &Rc<Shard>, offset: i64) {
    let log = log(shard);
    let leader_epoch = LeaderEpoch(describe(shard).leader_epoch.0 + 1);
    let truncate = Truncate {
        log,
        ticket: Ticket(u64::MAX),
        offset: Offset(offset),
        leader_epoch,
        below_high_watermark: true,
    };
    shard.enter(|state| state.step(Input::Truncate(truncate), &[]));
    wait_for(shard, "the cut", |log| log.leader_epoch == leader_epoch).await;
    let cutting = |shard: &Rc<Shard>| shard.state.borrow().machine.is_truncating(log);
    wait_for(shard, "the end of the cut", |_| !cutting(shard)).await;
}

/// Every batch of the log as its files hold it: base offset, leader epoch, first byte of its values.
fn stored(config: &Config) -> Vec<(i64, i32, u8)> {
    let paths = DataPaths::new(&config.data_dir);
    let entries = std::fs::read_dir(paths.log(PARTITION)).expect("the log's folder");
    let files: BTreeMap<_, _> = entries
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "log"))
        .map(|path| (path.clone(), std::fs::read(path).expect("a segment")))
        .collect();
    let mut found = Vec::new();
    for (path, bytes) in &files {
        let mut at = 0;
        while bytes[at..].iter().any(|byte| *byte != 0) {
            let batch = check_stored_batch(&bytes[at..], u32::MAX);
            let batch = batch.unwrap_or_else(|error| panic!("{} at {at}: {error}", path.display()));
            let header = batch.header();
            let epoch = header.partition_leader_epoch.0;
            found.push((header.base_offset.0, epoch, batch.bytes()[100]));
            at += batch.bytes().len();
        }
    }
    found
}

fn expected(parts: &[(std::ops::Range<i64>, i32, u8)]) -> Vec<(i64, i32, u8)> {
    let part = |(offsets, epoch, filler): &(std::ops::Range<i64>, i32, u8)| {
        let (epoch, filler) = (*epoch, *filler);
        offsets
            .clone()
            .step_by(2)
            .map(move |offset| (offset, epoch, filler))
    };
    parts.iter().flat_map(part).collect()
}

#[test]
fn a_cut_log_goes_on_and_stays_cut() {
    let data = tempfile::tempdir().expect("a folder");
    let config = config(data.path());
    // In the newest segment, then in the middle of an older one: where, is known from memory.
    run_core(&config, 1, false, |shard| async move {
        append(&shard, 0..100, 1).await;
        assert!(describe(&shard).segment_count >= 3);
        truncate(&shard, 97).await;
        assert_eq!(describe(&shard).log_end_offset, Offset(96));
        append(&shard, 96..98, 2).await;
        truncate(&shard, 71).await;
        assert_eq!(describe(&shard).log_end_offset, Offset(70));
        // The producer's state is as of the cut.
        append(&shard, 70..90, 3).await;
    });
    let parts = [(0..70, 0, 1), (70..90, 2, 3)];
    assert_eq!(stored(&config), expected(&parts));
    // Behind what looks like a kill nothing is in memory: where, is read from the disk.
    run_core(&config, 5, false, |shard| async move {
        assert_eq!(describe(&shard).log_end_offset, Offset(90));
        truncate(&shard, 21).await;
        assert_eq!(describe(&shard).log_end_offset, Offset(20));
        append(&shard, 20..60, 4).await;
    });
    let parts = [(0..20, 0, 1), (20..60, 5, 4)];
    assert_eq!(stored(&config), expected(&parts));
    // And once more, with a stop in order, and a start after it.
    for registrations in [7, 8] {
        run_core(&config, registrations, true, |shard| async move {
            assert_eq!(describe(&shard).log_end_offset, Offset(60));
        });
        assert_eq!(stored(&config), expected(&parts));
    }
}
