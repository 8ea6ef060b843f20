//! The coordinator of groups as the broker has it, behind heads, with a topic in memory.
//!
//! It can be stopped at any point and read back what it stored. Checks that a committed offset never goes back.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use tackboard_client::protocol::{ConnectionId, NativeFrame, Now};
use tackboard_logic::group::interface::{
    CommitEntry, Effect, GroupSettings, Input, Join, MemberRef, NamedPartition, Record, StoreId,
    Sync, Waiter,
};
use tackboard_logic::group::{Coordinator, Loader};
use tackboard_logic::shard::interface as shard;
use tackboard_schema::frame::{ApiKey, Kind, encode_head};
use tackboard_schema::native::{self, HeadBuilder, read_head};
use tackboard_schema::{CorrelationId, ErrorCode, LeaderEpoch, Offset, TimestampMs};

/// One of several clients, and its connection.
type Caller = (usize, ConnectionId);

struct Waiting {
    caller: Caller,
    api: ApiKey,
    correlation_id: CorrelationId,
    /// The partitions of a commit.
    partitions: Vec<NamedPartition>,
}

pub struct Groups {
    coordinator: Coordinator,
    settings: GroupSettings,
    now: Now,
    last_waiter: u64,
    waiting: BTreeMap<Waiter, Waiting>,
    answers: Vec<(Caller, Vec<u8>)>,
    /// Appends that have not ended.
    storing: VecDeque<(StoreId, Vec<Record>)>,
    stored: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    committed: BTreeMap<NamedPartition, Offset>,
    heads: HeadBuilder,
    entropy: u128,
}

fn wall(now: Now) -> shard::Now {
    let micros = now.0.as_micros() as u64;
    shard::Now {
        monotonic_us: micros,
        wall: TimestampMs(1_700_000_000_000 + micros as i64 / 1_000),
    }
}

fn owned(text: Option<&str>) -> Option<String> {
    text.map(Into::into)
}

impl Groups {
    pub fn new(settings: GroupSettings) -> Self {
        Self {
            coordinator: Loader::new(settings.clone(), wall(Now::default()))
                .finish(wall(Now::default())),
            settings,
            now: Now::default(),
            last_waiter: 0,
            waiting: BTreeMap::new(),
            answers: Vec::new(),
            storing: VecDeque::new(),
            stored: Vec::new(),
            committed: BTreeMap::new(),
            heads: HeadBuilder::new(),
            entropy: 1,
        }
    }

    pub fn committed(&self, topic: &str, partition: i32) -> Option<Offset> {
        let topic = topic.into();
        let partition = NamedPartition { topic, partition };
        self.committed.get(&partition).copied()
    }

    /// The state's name, the generation, and who is in the group.
    pub fn describe(&self, group: &str) -> Option<(&'static str, i32, usize)> {
        let view = self.coordinator.describe(group)?;
        Some((view.state.name(), view.generation, view.members.len()))
    }

    pub fn set_now(&mut self, now: Now) {
        self.now = now;
        let is_due = |due: u64| due <= wall(now).monotonic_us;
        if self.coordinator.next_deadline_us().is_some_and(is_due) {
            self.step(Input::Tick);
        }
    }

    pub fn next_deadline(&self) -> Option<Now> {
        let due = self.coordinator.next_deadline_us()?;
        Some(Now(std::time::Duration::from_micros(due)))
    }

    /// The oldest append ends, or fails.
    pub fn end_store(&mut self, result: Result<(), ErrorCode>) -> bool {
        let Some((store, records)) = self.storing.pop_front() else {
            return false;
        };
        if result.is_ok() {
            for record in &records {
                if let Record::Offset {
                    partition,
                    value: Some(value),
                    ..
                } = record
                {
                    let before = self.committed.insert(partition.clone(), value.offset);
                    assert!(
                        before.is_none_or(|before| before <= value.offset),
                        "{partition:?}: {before:?} was committed before {:?}",
                        value.offset
                    );
                }
                self.stored.push(record.encode());
            }
        }
        self.step(Input::Stored { store, result });
        true
    }

    /// The coordinator is gone, and another has read what it stored. Whoever waits is told to look for it.
    pub fn restart(&mut self) {
        self.storing.clear();
        let mut loader = Loader::new(self.settings.clone(), wall(self.now));
        for (key, value) in &self.stored {
            loader.take(key, value.as_deref()).unwrap();
        }
        self.coordinator = loader.finish(wall(self.now));
        for (_, waiting) in std::mem::take(&mut self.waiting) {
            let head = self
                .heads
                .error_response(ErrorCode::NotCoordinator, "it has moved")
                .to_vec();
            let frame = frame(ApiKey::Error, waiting.correlation_id, &head);
            self.answers.push((waiting.caller, frame));
        }
    }

    pub fn take_answers(&mut self) -> Vec<(Caller, Vec<u8>)> {
        std::mem::take(&mut self.answers)
    }

    /// Takes a request; the answer comes by [`Self::take_answers`].
    pub fn ask(&mut self, caller: Caller, request: &NativeFrame, address: (String, u16)) {
        let api = ApiKey::from_key(request.prefix.api_key).unwrap();
        let correlation_id = request.prefix.correlation_id;
        let head = request.head();
        let input = match api {
            ApiKey::FindCoordinator => {
                let answer = self.find(&address);
                return self
                    .answers
                    .push((caller, frame(api, correlation_id, &answer)));
            }
            ApiKey::OffsetFetch => {
                let answer = self.offsets(head);
                return self
                    .answers
                    .push((caller, frame(api, correlation_id, &answer)));
            }
            _ => {
                self.last_waiter += 1;
                self.input(Waiter(self.last_waiter), api, head)
            }
        };
        let partitions = match &input {
            Input::Commit { entries, .. } => entries
                .iter()
                .map(|entry| entry.partition.clone())
                .collect(),
            _ => Vec::new(),
        };
        let waiting = Waiting {
            caller,
            api,
            correlation_id,
            partitions,
        };
        self.waiting.insert(Waiter(self.last_waiter), waiting);
        self.step(input);
    }

    fn find(&mut self, (host, port): &(String, u16)) -> Vec<u8> {
        let head = self.heads.build(|builder| {
            let args = native::FindCoordinatorResponseArgs {
                broker_id: 1,
                host: Some(builder.create_string(host)),
                port: *port,
                ..Default::default()
            };
            native::FindCoordinatorResponse::create(builder, &args)
        });
        head.to_vec()
    }

    fn offsets(&mut self, head: &[u8]) -> Vec<u8> {
        let request = read_head::<native::OffsetFetchRequest<'_>>(head).unwrap();
        let coordinator = &self.coordinator;
        let head = self.heads.build(|builder| {
            let results: Vec<_> = (request.entries().unwrap().iter())
                .map(|entry| {
                    let partition = NamedPartition {
                        topic: entry.topic().into(),
                        partition: entry.partition(),
                    };
                    let committed = coordinator.committed_offset(request.group(), &partition);
                    let args = native::OffsetFetchResultArgs {
                        topic: Some(builder.create_string(entry.topic())),
                        partition: entry.partition(),
                        offset: committed.map_or(-1, |committed| committed.offset.0),
                        ..Default::default()
                    };
                    native::OffsetFetchResult::create(builder, &args)
                })
                .collect();
            let results = Some(builder.create_vector(&results));
            let args = native::OffsetFetchResponseArgs {
                results,
                ..Default::default()
            };
            native::OffsetFetchResponse::create(builder, &args)
        });
        head.to_vec()
    }

    fn input(&mut self, waiter: Waiter, api: ApiKey, head: &[u8]) -> Input {
        match api {
            ApiKey::JoinGroup => {
                let join = read_head::<native::JoinGroupRequest<'_>>(head).unwrap();
                self.entropy += 1;
                let protocols = join.protocols().iter().map(|protocol| {
                    let told: Arc<[u8]> = protocol.metadata().unwrap().bytes().into();
                    (protocol.name().to_owned(), told)
                });
                let join = Join {
                    group: join.group().into(),
                    member_id: join.member_id().unwrap_or_default().into(),
                    instance: owned(join.instance()),
                    client_id: join.client_id().unwrap_or_default().into(),
                    client_host: "127.0.0.1".into(),
                    session_timeout_ms: join.session_timeout_ms(),
                    rebalance_timeout_ms: join.rebalance_timeout_ms(),
                    protocol_type: join.protocol_type().into(),
                    protocols: protocols.collect(),
                    takes_id_first: true,
                    may_skip_assignment: false,
                    entropy: self.entropy,
                };
                Input::Join(waiter, join)
            }
            ApiKey::SyncGroup => {
                let sync = read_head::<native::SyncGroupRequest<'_>>(head).unwrap();
                let assignments = sync.assignments().unwrap_or_default().iter().map(|part| {
                    let told: Arc<[u8]> = part.assignment().unwrap().bytes().into();
                    (part.member_id().to_owned(), told)
                });
                let sync = Sync {
                    group: sync.group().into(),
                    member: MemberRef {
                        generation: sync.generation(),
                        member_id: sync.member_id().into(),
                        instance: owned(sync.instance()),
                    },
                    protocol_type: owned(sync.protocol_type()),
                    protocol: owned(sync.protocol()),
                    assignments: assignments.collect(),
                    ..Sync::default()
                };
                Input::Sync(waiter, sync)
            }
            ApiKey::Heartbeat => {
                let beat = read_head::<native::HeartbeatRequest<'_>>(head).unwrap();
                Input::Heartbeat {
                    waiter,
                    group: beat.group().into(),
                    member: MemberRef {
                        generation: beat.generation(),
                        member_id: beat.member_id().into(),
                        instance: owned(beat.instance()),
                    },
                }
            }
            ApiKey::LeaveGroup => {
                let leave = read_head::<native::LeaveGroupRequest<'_>>(head).unwrap();
                let members = leave.members().iter().map(|member| MemberRef {
                    generation: -1,
                    member_id: member.member_id().unwrap_or_default().into(),
                    instance: owned(member.instance()),
                });
                Input::Leave {
                    waiter,
                    group: leave.group().into(),
                    members: members.collect(),
                }
            }
            ApiKey::OffsetCommit => {
                let commit = read_head::<native::OffsetCommitRequest<'_>>(head).unwrap();
                let entries = commit.entries().iter().map(|entry| CommitEntry {
                    partition: NamedPartition {
                        topic: entry.topic().into(),
                        partition: entry.partition(),
                    },
                    offset: Offset(entry.offset()),
                    leader_epoch: LeaderEpoch(entry.leader_epoch()),
                    metadata: String::new(),
                    refused: None,
                });
                Input::Commit {
                    waiter,
                    group: commit.group().into(),
                    member: MemberRef {
                        generation: commit.generation(),
                        member_id: commit.member_id().unwrap_or_default().into(),
                        instance: owned(commit.instance()),
                    },
                    entries: entries.collect(),
                }
            }
            other => panic!("{other:?} is not asked by a member"),
        }
    }

    fn step(&mut self, input: Input) {
        let mut effects = Vec::new();
        self.coordinator.step(wall(self.now), input, &mut effects);
        self.coordinator.check_invariants();
        for effect in effects {
            match effect {
                Effect::Store { store, records } => self.storing.push_back((store, records)),
                Effect::Joined { waiter, outcome } => self.answer(waiter, |builder, _| {
                    let args = match &outcome {
                        Ok(joined) => {
                            let members: Vec<_> = (joined.members.iter())
                                .map(|member| {
                                    let instance = member.instance.as_deref();
                                    let args = native::JoinedMemberArgs {
                                        member_id: Some(builder.create_string(&member.member_id)),
                                        instance: instance.map(|name| builder.create_string(name)),
                                        metadata: Some(builder.create_vector(&member.subscription)),
                                    };
                                    native::JoinedMember::create(builder, &args)
                                })
                                .collect();
                            native::JoinGroupResponseArgs {
                                generation: joined.generation,
                                protocol_type: Some(builder.create_string(&joined.protocol_type)),
                                protocol: Some(builder.create_string(&joined.protocol)),
                                leader: Some(builder.create_string(&joined.leader)),
                                member_id: Some(builder.create_string(&joined.member_id)),
                                members: Some(builder.create_vector(&members)),
                                ..Default::default()
                            }
                        }
                        Err(refusal) => native::JoinGroupResponseArgs {
                            error_code: refusal.code.code(),
                            member_id: Some(builder.create_string(&refusal.member_id)),
                            ..Default::default()
                        },
                    };
                    native::JoinGroupResponse::create(builder, &args).as_union_value()
                }),
                Effect::Synced { waiter, outcome } => self.answer(waiter, |builder, _| {
                    let args = match &outcome {
                        Ok(synced) => native::SyncGroupResponseArgs {
                            assignment: Some(builder.create_vector(&synced.assignment)),
                            ..Default::default()
                        },
                        Err(code) => native::SyncGroupResponseArgs {
                            error_code: code.code(),
                            ..Default::default()
                        },
                    };
                    native::SyncGroupResponse::create(builder, &args).as_union_value()
                }),
                Effect::Done { waiter, code } => self.answer(waiter, |builder, _| {
                    let args = native::HeartbeatResponseArgs {
                        error_code: code.code(),
                        message: None,
                    };
                    native::HeartbeatResponse::create(builder, &args).as_union_value()
                }),
                Effect::Left { waiter, .. } => self.answer(waiter, |builder, _| {
                    native::LeaveGroupResponse::create(builder, &Default::default())
                        .as_union_value()
                }),
                Effect::Committed { waiter, outcome } => self.answer(waiter, |builder, waiting| {
                    let codes = outcome.clone().unwrap_or_default();
                    let results: Vec<_> = (codes.iter().zip(&waiting.partitions))
                        .map(|(code, partition)| {
                            let args = native::OffsetCommitResultArgs {
                                topic: Some(builder.create_string(&partition.topic)),
                                partition: partition.partition,
                                error_code: code.code(),
                                message: None,
                            };
                            native::OffsetCommitResult::create(builder, &args)
                        })
                        .collect();
                    let args = native::OffsetCommitResponseArgs {
                        error_code: outcome.err().map_or(0, ErrorCode::code),
                        results: Some(builder.create_vector(&results)),
                        message: None,
                    };
                    native::OffsetCommitResponse::create(builder, &args).as_union_value()
                }),
            }
        }
    }

    fn answer(
        &mut self,
        waiter: Waiter,
        make: impl FnOnce(
            &mut flatbuffers::FlatBufferBuilder<'static>,
            &Waiting,
        ) -> flatbuffers::WIPOffset<flatbuffers::UnionWIPOffset>,
    ) {
        let Some(waiting) = self.waiting.remove(&waiter) else {
            return;
        };
        let head = self.heads.build(|builder| make(builder, &waiting)).to_vec();
        let frame = frame(waiting.api, waiting.correlation_id, &head);
        self.answers.push((waiting.caller, frame));
    }
}

fn frame(api: ApiKey, correlation_id: CorrelationId, head: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    encode_head(&mut out, Kind::Response, api, correlation_id, head, 0);
    out
}
