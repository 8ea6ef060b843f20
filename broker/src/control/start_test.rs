use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;

use tackboard_logic::metadata::{CreateTopic, Outcome};
use tackboard_schema::{ErrorCode, LeaderEpoch, TimestampMs, TopicId};

use super::*;
use crate::bridge::{ProposalResult, ToCore};

const PATIENCE: Duration = Duration::from_secs(10);

/// A control thread with cores that are played by the test.
struct Stage {
    handle: ControlHandle,
    cores: Vec<flume::Receiver<ToCore>>,
    to_control: flume::Sender<ToControl>,
}

fn endpoint(port: u16) -> Endpoint {
    Endpoint {
        host: "127.0.0.1".to_owned(),
        port,
    }
}

fn stage(data_dir: &Path, core_count: usize, inbox_capacity: usize) -> Stage {
    let (to_control, inbox) = flume::unbounded();
    let (senders, cores): (Vec<_>, Vec<_>) = (0..core_count)
        .map(|_| flume::bounded(inbox_capacity))
        .unzip();
    let cluster_id = ClusterId([3; 16]);
    let metadata = Metadata::open(data_dir, cluster_id, false).expect("its metadata");
    let config = ControlConfig {
        broker: BrokerId(1),
        cluster_id,
        data_dir: data_dir.to_owned(),
        any_core: endpoint(7400),
        core_endpoints: (0..core_count)
            .map(|core| endpoint(7401 + core as u16))
            .collect(),
        partitions_per_core_max: 100,
        cores: senders.into_iter().map(CoreSender::from).collect(),
        inbox,
        http: Some(TcpListener::bind("127.0.0.1:0").expect("port")),
        metrics: Metrics::new(core_count),
        refresh_metrics: RefreshMetrics(Box::new(|_| {})),
        reserve_bytes: 1 << 20,
        memory_bytes: 1 << 30,
        log_budget_bytes: 0,
        storage: StorageLabels {
            io: "direct",
            file_system: "ext4",
        },
    };
    let handle = start(config, metadata).expect("starts");
    Stage {
        handle,
        cores,
        to_control,
    }
}

impl Stage {
    fn receive(&self, core: usize) -> ToCore {
        self.cores[core].recv_timeout(PATIENCE).expect("a message")
    }

    fn image(&self, core: usize) -> Arc<Image> {
        match self.receive(core) {
            ToCore::Image(image) => image,
            other => panic!("expected an image, not {other:?}"),
        }
    }

    fn applied(&self, core: usize, version: u64) {
        let core = CoreId(core as u16);
        let message = ToControl::ImageApplied {
            core,
            version,
            faults: Vec::new(),
        };
        self.to_control.send(message).expect("control lives");
    }

    fn propose_topic(&self, core: usize, call: u64, name: &str) {
        let command = Command::CreateTopic(CreateTopic {
            name: name.to_owned(),
            topic_id: TopicId([call as u8; 16]),
            partitions: 4,
            replication_factor: 1,
            configs: Vec::new(),
            at: TimestampMs(0),
        });
        let core = CoreId(core as u16);
        self.to_control
            .send(ToControl::Propose {
                core,
                call,
                command,
            })
            .expect("control lives");
    }

    fn proposal_done(&self, core: usize) -> (u64, ProposalResult) {
        match self.receive(core) {
            ToCore::ProposalDone { call, result } => (call, result),
            other => panic!("expected an answer, not {other:?}"),
        }
    }

    fn become_ready(&self) {
        for core in 0..self.cores.len() {
            let version = self.image(core).version;
            self.applied(core, version);
        }
        assert_eq!(self.handle.wait_ready(), Ok(Vec::new()));
    }

    fn http(&self, path: &str) -> String {
        let address = self.handle.http_address.expect("HTTP is on");
        let mut stream = TcpStream::connect(address).expect("connects");
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n"
        )
        .expect("write");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("read");
        answer
    }
}

#[test]
fn a_proposer_is_answered_only_when_every_core_has_applied() {
    let folder = tempfile::tempdir().expect("folder");
    let stage = stage(folder.path(), 2, 16);
    stage.become_ready();
    stage.propose_topic(1, 77, "flights");
    let version = stage.image(0).version;
    assert_eq!(stage.image(1).version, version);
    stage.applied(1, version);
    assert!(
        stage.cores[1]
            .recv_timeout(Duration::from_millis(50))
            .is_err()
    );
    stage.applied(0, version);
    let (call, result) = stage.proposal_done(1);
    assert_eq!(call, 77);
    let decided = result.expect("accepted");
    assert_eq!(decided.version, version);
    assert!(matches!(
        decided.outcome,
        Outcome::TopicCreated { partitions: 4, .. }
    ));
}

#[test]
fn a_refusal_reaches_its_proposer() {
    let folder = tempfile::tempdir().expect("folder");
    let stage = stage(folder.path(), 1, 16);
    stage.become_ready();
    stage.propose_topic(0, 5, "not a name");
    let version = stage.image(0).version;
    stage.applied(0, version);
    let (call, result) = stage.proposal_done(0);
    assert_eq!(call, 5);
    assert_eq!(
        result.expect_err("refused").code,
        ErrorCode::InvalidTopicException
    );
}

#[test]
fn a_full_inbox_loses_no_answer_and_skips_to_the_newest_image() {
    let folder = tempfile::tempdir().expect("folder");
    let stage = stage(folder.path(), 1, 1);
    stage.become_ready();
    for call in 1..=20 {
        stage.propose_topic(0, call, &format!("topic-{call}"));
    }
    let mut answered = Vec::new();
    while answered.len() < 20 {
        match stage.receive(0) {
            ToCore::Image(image) => stage.applied(0, image.version),
            ToCore::ProposalDone { call, result } => {
                result.expect("accepted");
                answered.push(call);
            }
            other => panic!("unexpected {other:?}"),
        }
    }
    assert_eq!(answered, (1..=20).collect::<Vec<_>>());
}

#[test]
fn every_start_bumps_the_epochs_of_what_the_broker_leads() {
    let folder = tempfile::tempdir().expect("folder");
    let epoch = |stage: &Stage| {
        stage
            .handle
            .first_image
            .topic("flights")
            .map(|topic| topic.partitions[0].leader_epoch)
    };
    let first = stage(folder.path(), 1, 16);
    first.become_ready();
    first.propose_topic(0, 1, "flights");
    let version = first.image(0).version;
    first.applied(0, version);
    first.proposal_done(0).1.expect("accepted");
    drop(first);
    let second = stage(folder.path(), 1, 16);
    let LeaderEpoch(before) = epoch(&second).expect("the topic is there");
    drop(second);
    let third = stage(folder.path(), 1, 16);
    assert_eq!(epoch(&third), Some(LeaderEpoch(before + 1)));
}

#[test]
fn a_shutdown_waits_for_the_cores() {
    let folder = tempfile::tempdir().expect("folder");
    let Stage {
        handle,
        cores,
        to_control,
    } = stage(folder.path(), 2, 16);
    let drain = thread::spawn(move || {
        for (index, core) in cores.iter().enumerate() {
            while !matches!(core.recv_timeout(PATIENCE), Ok(ToCore::Shutdown { .. })) {}
            let core = CoreId(index as u16);
            to_control
                .send(ToControl::Drained { core, clean: true })
                .expect("control lives");
        }
    });
    let report = handle.shutdown(Instant::now() + PATIENCE);
    assert_eq!(
        report,
        Some(ShutdownReport {
            clean: true,
            not_drained: Vec::new()
        })
    );
    drain.join().expect("drained");
}

#[test]
fn a_shutdown_ends_at_its_deadline() {
    let folder = tempfile::tempdir().expect("folder");
    let stage = stage(folder.path(), 2, 16);
    let drained = ToControl::Drained {
        core: CoreId(0),
        clean: true,
    };
    stage.to_control.send(drained).expect("control lives");
    let report = stage
        .handle
        .shutdown(Instant::now() + Duration::from_millis(50));
    assert_eq!(
        report,
        Some(ShutdownReport {
            clean: false,
            not_drained: vec![CoreId(1)]
        })
    );
}

#[test]
fn a_core_that_cannot_go_on_is_reported() {
    let folder = tempfile::tempdir().expect("folder");
    let stage = stage(folder.path(), 1, 16);
    let reason = "the ledger cannot be written".to_owned();
    stage
        .to_control
        .send(ToControl::Fatal {
            core: CoreId(0),
            reason,
        })
        .expect("control lives");
    let reason = stage.handle.wait_ready().expect_err("fatal");
    assert_eq!(reason, "core 0: the ledger cannot be written");
    assert!(stage.http("/healthz").contains("503"));
}

#[test]
fn http_tells_metrics_health_and_readiness() {
    let folder = tempfile::tempdir().expect("folder");
    let stage = stage(folder.path(), 2, 16);
    assert!(stage.http("/readyz").starts_with("HTTP/1.1 503"));
    stage.become_ready();
    assert!(stage.http("/readyz").starts_with("HTTP/1.1 503"));
    stage.handle.announce_ready();
    assert!(stage.http("/readyz").starts_with("HTTP/1.1 200"));
    assert!(stage.http("/healthz").ends_with("ok\n"));
    assert!(stage.http("/nothing").starts_with("HTTP/1.1 404"));
    let metrics = stage.http("/metrics");
    for expected in [
        "# TYPE tackboard_requests counter\n",
        "tackboard_requests_total{core=\"1\"} 0\n",
        "# TYPE tackboard_partitions gauge\n",
        "tackboard_ready 1\n",
        "tackboard_metadata_version 1\n",
        "tackboard_broker_info{version=",
        "# EOF\n",
    ] {
        assert!(
            metrics.contains(expected),
            "{expected} is missing in\n{metrics}"
        );
    }
}

#[test]
fn a_core_that_is_slow_gets_the_newest_image_when_it_has_reported_the_one_before() {
    let folder = tempfile::tempdir().expect("folder");
    let stage = stage(folder.path(), 2, 16);
    stage.become_ready();
    stage.propose_topic(0, 1, "first");
    let first = stage.image(1).version;
    // Core 0 applies whatever comes; core 1 has not reported the first one.
    for call in 2..=5 {
        let version = stage.image(0).version;
        stage.applied(0, version);
        stage.propose_topic(0, call, &format!("topic-{call}"));
    }
    let newest = stage.image(0).version;
    stage.applied(0, newest);
    assert!(newest > first);
    assert!(stage.cores[1].is_empty(), "one image at a time");
    stage.applied(1, first);
    assert_eq!(stage.image(1).version, newest, "those between are skipped");
    assert_eq!(
        stage.proposal_done(0).0,
        1,
        "answered when all had the first"
    );
    stage.applied(1, newest);
    for call in 2..=5 {
        assert_eq!(stage.proposal_done(0).0, call);
    }
}
