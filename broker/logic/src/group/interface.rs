//! What goes into the coordinator of groups, and what comes out.

use std::sync::Arc;

use tackboard_schema::storage::group_record::{CommittedOffset, GroupKey, GroupMetadata};
use tackboard_schema::{ErrorCode, LeaderEpoch, Offset, TimestampMs};

/// Bytes that clients hand to each other through the coordinator: subscriptions and assignments.
pub type Opaque = Arc<[u8]>;

/// Whom an answer is owed to. The driver makes it, and drops the answer when nobody waits any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Waiter(pub u64);

/// One append to the internal topic. Those that are stored are there in the order in which they began; one that is refused
/// may end before others that began earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StoreId(pub u64);

/// A partition, by the name of its topic: that is what groups remember.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NamedPartition {
    /// The topic.
    pub topic: Arc<str>,
    /// Its partition.
    pub partition: i32,
}

/// Bounds and times of groups, under Kafka's names.
#[derive(Clone, Debug)]
pub struct GroupSettings {
    /// `group.min.session.timeout.ms`.
    pub session_timeout_min_ms: i32,
    /// `group.max.session.timeout.ms`.
    pub session_timeout_max_ms: i32,
    /// `group.initial.rebalance.delay.ms`.
    pub initial_rebalance_delay_ms: i32,
    /// `group.max.size`: members of one group, those that have not joined yet included.
    pub members_max: usize,
    /// Groups of one coordinator.
    pub groups_max: usize,
    /// Bytes of all groups of one coordinator.
    pub state_bytes_max: usize,
    /// `offset.metadata.max.bytes`.
    pub offset_metadata_bytes_max: usize,
    /// `offsets.retention.minutes`, in milliseconds.
    pub offsets_retention_ms: i64,
    /// `offsets.retention.check.interval.ms`.
    pub offsets_retention_check_ms: i64,
}

impl Default for GroupSettings {
    /// Kafka's defaults, and bounds where it has none.
    fn default() -> Self {
        Self {
            session_timeout_min_ms: 6_000,
            session_timeout_max_ms: 1_800_000,
            initial_rebalance_delay_ms: 3_000,
            members_max: 5_000,
            groups_max: 10_000,
            state_bytes_max: 64 << 20,
            offset_metadata_bytes_max: 4_096,
            offsets_retention_ms: 7 * 24 * 3_600_000,
            offsets_retention_check_ms: 600_000,
        }
    }
}

/// Who sends a request, as far as the group is concerned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemberRef {
    /// The generation that it believes in; -1: none.
    pub generation: i32,
    /// Its id; empty: none yet.
    pub member_id: String,
    /// Its static name.
    pub instance: Option<String>,
}

/// A request to join, or to join again.
#[derive(Clone, Debug, Default)]
pub struct Join {
    /// The group.
    pub group: String,
    /// Empty at first.
    pub member_id: String,
    /// Name of a static member.
    pub instance: Option<String>,
    /// As the client calls itself; new members are named after it.
    pub client_id: String,
    /// The address that it came from.
    pub client_host: String,
    /// Silence after which the member is out.
    pub session_timeout_ms: i32,
    /// How long a rebalance waits for it.
    pub rebalance_timeout_ms: i32,
    /// `consumer`, or what the client's kind of group is called.
    pub protocol_type: String,
    /// What it can do, dearest first.
    pub protocols: Vec<(String, Opaque)>,
    /// The client knows how to come back with the id that it is given, so it gets one before it becomes a member
    /// (KIP-394).
    pub takes_id_first: bool,
    /// The client knows that a leader may be told to leave the assignment as it is (KIP-814).
    pub may_skip_assignment: bool,
    /// 128 bits by which the driver makes a new member's id unique.
    pub entropy: u128,
}

/// The leader's assignment, or a follower's question for its own.
#[derive(Clone, Debug, Default)]
pub struct Sync {
    /// The group.
    pub group: String,
    /// Who asks.
    pub member: MemberRef,
    /// The group's type as the member knows it, from version 5 on.
    pub protocol_type: Option<String>,
    /// The assignor as the member knows it, from version 5 on.
    pub protocol: Option<String>,
    /// By member, from the leader.
    pub assignments: Vec<(String, Opaque)>,
    /// Why the leader's are not among them, as whoever hands it over knows.
    pub refused: Option<ErrorCode>,
}

/// One offset to be committed.
#[derive(Clone, Debug)]
pub struct CommitEntry {
    /// For which partition.
    pub partition: NamedPartition,
    /// The next offset to read.
    pub offset: Offset,
    /// As the consumer knows it; -1: not.
    pub leader_epoch: LeaderEpoch,
    /// Whatever it wants to be told again.
    pub metadata: String,
    /// Why it can't be, as whoever hands it over knows.
    pub refused: Option<ErrorCode>,
}

/// What a coordinator is told.
#[derive(Clone, Debug)]
pub enum Input {
    /// Answered by [`Effect::Joined`].
    Join(Waiter, Join),
    /// Answered by [`Effect::Synced`].
    Sync(Waiter, Sync),
    /// Answered by [`Effect::Done`].
    Heartbeat {
        /// Who waits.
        waiter: Waiter,
        /// The group.
        group: String,
        /// Who lives.
        member: MemberRef,
    },
    /// Answered by [`Effect::Left`].
    Leave {
        /// Who waits.
        waiter: Waiter,
        /// The group.
        group: String,
        /// Who leaves: by id, by static name, or both.
        members: Vec<MemberRef>,
    },
    /// Answered by [`Effect::Committed`].
    Commit {
        /// Who waits.
        waiter: Waiter,
        /// The group.
        group: String,
        /// Who commits; without a generation, somebody who assigned partitions to itself.
        member: MemberRef,
        /// What.
        entries: Vec<CommitEntry>,
    },
    /// Forgets offsets. Answered by [`Effect::Committed`].
    DeleteOffsets {
        /// Who waits.
        waiter: Waiter,
        /// The group.
        group: String,
        /// Whose offsets.
        partitions: Vec<NamedPartition>,
    },
    /// Forgets an empty group with its offsets. Answered by [`Effect::Done`].
    DeleteGroup {
        /// Who waits.
        waiter: Waiter,
        /// The group.
        group: String,
    },
    /// A topic is gone, and what groups committed for it.
    TopicDeleted {
        /// Its name.
        topic: Arc<str>,
        /// Another one has had its name since then: what was committed later is of that one.
        until: Option<TimestampMs>,
    },
    /// An append ended: below the high watermark, or refused.
    Stored {
        /// Which.
        store: StoreId,
        /// How.
        result: Result<(), ErrorCode>,
    },
    /// Time passed.
    Tick,
}

/// What a coordinator wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The answer to a join.
    Joined {
        /// Who waits.
        waiter: Waiter,
        /// The member's place in the new generation.
        outcome: Result<Joined, JoinRefusal>,
    },
    /// The answer to a sync.
    Synced {
        /// Who waits.
        waiter: Waiter,
        /// The member's assignment.
        outcome: Result<Synced, ErrorCode>,
    },
    /// The answer to a heartbeat or a deletion.
    Done {
        /// Who waits.
        waiter: Waiter,
        /// `None`, or why not.
        code: ErrorCode,
    },
    /// The answer to a leave.
    Left {
        /// Who waits.
        waiter: Waiter,
        /// One code per member, in the order of the request; or why nobody could leave.
        outcome: Result<Vec<ErrorCode>, ErrorCode>,
    },
    /// The answer to a commit or a deletion of offsets.
    Committed {
        /// Who waits.
        waiter: Waiter,
        /// One code per entry, in the order of the request; or why none was looked at.
        outcome: Result<Vec<ErrorCode>, ErrorCode>,
    },
    /// Append these to the internal topic, acks all, and say when they are there.
    Store {
        /// Which append.
        store: StoreId,
        /// In this order.
        records: Vec<Record>,
    },
}

/// One record of the internal topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// What a group committed for a partition; `None`: nothing any more.
    Offset {
        /// The group.
        group: Arc<str>,
        /// The partition.
        partition: NamedPartition,
        /// The offset.
        value: Option<CommittedOffset>,
    },
    /// Who is in a group; `None`: it is gone.
    Group {
        /// The group.
        group: Arc<str>,
        /// Its members.
        value: Option<GroupMetadata>,
    },
}

impl Record {
    /// Key and value as they are stored.
    pub fn encode(&self) -> (Vec<u8>, Option<Vec<u8>>) {
        match self {
            Self::Offset {
                group,
                partition,
                value,
            } => {
                let key = GroupKey::Offset {
                    group: group.to_string(),
                    topic: partition.topic.to_string(),
                    partition: partition.partition,
                };
                (key.encode(), value.as_ref().map(CommittedOffset::encode))
            }
            Self::Group { group, value } => {
                let key = GroupKey::Group {
                    group: group.to_string(),
                };
                (key.encode(), value.as_ref().map(GroupMetadata::encode))
            }
        }
    }
}

/// A member's place in a new generation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Joined {
    /// The generation.
    pub generation: i32,
    /// The group's type.
    pub protocol_type: Arc<str>,
    /// The assignor that all members know.
    pub protocol: Arc<str>,
    /// The member that assigns.
    pub leader: Arc<str>,
    /// The id of the one who is told this.
    pub member_id: Arc<str>,
    /// All of them, for the leader; nobody, for the others.
    pub members: Vec<JoinedMember>,
    /// The leader leaves the assignment as it is.
    pub skip_assignment: bool,
}

/// A member, as the leader sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinedMember {
    /// Its id.
    pub member_id: Arc<str>,
    /// Its static name.
    pub instance: Option<Arc<str>>,
    /// What it told the assignor.
    pub subscription: Opaque,
}

/// Why a join was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinRefusal {
    /// Why.
    pub code: ErrorCode,
    /// With `MEMBER_ID_REQUIRED`, the id to come back with; else the one that was sent.
    pub member_id: Arc<str>,
}

/// What a member has to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Synced {
    /// The group's type.
    pub protocol_type: Arc<str>,
    /// The assignor.
    pub protocol: Arc<str>,
    /// The member's part.
    pub assignment: Opaque,
}

/// Where a group stands. The names are Kafka's, and clients compare them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GroupState {
    /// No members; there may be offsets.
    Empty,
    /// Members are expected to join (again).
    PreparingRebalance,
    /// All have joined; the leader's assignment is awaited, or on its way to the disk.
    CompletingRebalance,
    /// Everybody knows their part.
    Stable,
    /// It is being forgotten.
    Dead,
}

impl GroupState {
    /// As Kafka writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Empty => "Empty",
            Self::PreparingRebalance => "PreparingRebalance",
            Self::CompletingRebalance => "CompletingRebalance",
            Self::Stable => "Stable",
            Self::Dead => "Dead",
        }
    }
}
