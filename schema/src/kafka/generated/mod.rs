// Made from schema/kafka/messages/ by schema/regenerate. Changes go there.

use crate::kafka::table::{ApiRow, Versions};

mod produce;
mod fetch;
mod list_offsets;
mod metadata;
mod offset_commit;
mod offset_fetch;
mod find_coordinator;
mod join_group;
mod heartbeat;
mod leave_group;
mod sync_group;
mod describe_groups;
mod list_groups;
mod api_versions;
mod create_topics;
mod delete_topics;
mod delete_records;
mod init_producer_id;
mod offset_for_leader_epoch;
mod describe_configs;
mod alter_configs;
mod create_partitions;
mod delete_groups;
mod incremental_alter_configs;
mod offset_delete;
mod describe_cluster;

pub use produce::*;
pub use fetch::*;
pub use list_offsets::*;
pub use metadata::*;
pub use offset_commit::*;
pub use offset_fetch::*;
pub use find_coordinator::*;
pub use join_group::*;
pub use heartbeat::*;
pub use leave_group::*;
pub use sync_group::*;
pub use describe_groups::*;
pub use list_groups::*;
pub use api_versions::*;
pub use create_topics::*;
pub use delete_topics::*;
pub use delete_records::*;
pub use init_producer_id::*;
pub use offset_for_leader_epoch::*;
pub use describe_configs::*;
pub use alter_configs::*;
pub use create_partitions::*;
pub use delete_groups::*;
pub use incremental_alter_configs::*;
pub use offset_delete::*;
pub use describe_cluster::*;

/// An API by its number on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(i16)]
pub enum ApiKey {
    /// Appends one record batch to each of any number of partitions.
    Produce = 0,
    /// Reads record batches of any number of partitions, and waits for them.
    Fetch = 1,
    /// Finds the offsets of partitions at points in time.
    ListOffsets = 2,
    /// Names the brokers, topics and partitions, and creates topics that are asked for.
    Metadata = 3,
    /// Stores how far a group has read.
    OffsetCommit = 8,
    /// Answers how far groups have read.
    OffsetFetch = 9,
    /// Names the broker that coordinates a group or a transaction.
    FindCoordinator = 10,
    /// Makes a client a member of a group, or keeps it one; answered when the group's next generation begins.
    JoinGroup = 11,
    /// Keeps a member in its group, and tells it when to join again.
    Heartbeat = 12,
    /// Takes members out of a group.
    LeaveGroup = 13,
    /// Brings the leader's assignment, and answers each member with its own.
    SyncGroup = 14,
    /// Describes groups and their members.
    DescribeGroups = 15,
    /// Lists the groups that this broker coordinates.
    ListGroups = 16,
    /// Names the APIs that the broker serves, with their versions.
    ApiVersions = 18,
    /// Creates topics.
    CreateTopics = 19,
    /// Deletes topics.
    DeleteTopics = 20,
    /// Deletes the records of partitions below an offset.
    DeleteRecords = 21,
    /// Gives a producer its id and epoch.
    InitProducerId = 22,
    /// Finds where a leader epoch ended, so that a client sees what was truncated (KIP-320).
    OffsetForLeaderEpoch = 23,
    /// Answers the settings of topics and brokers.
    DescribeConfigs = 32,
    /// Sets all settings of topics and brokers; what is not named goes back to its default.
    AlterConfigs = 33,
    /// Gives topics more partitions.
    CreatePartitions = 37,
    /// Deletes groups that have no members.
    DeleteGroups = 42,
    /// Changes settings of topics and brokers, and leaves others as they are (KIP-339).
    IncrementalAlterConfigs = 44,
    /// Deletes offsets that a group has stored (KIP-496).
    OffsetDelete = 47,
    /// Names the cluster and its brokers (KIP-700).
    DescribeCluster = 60,
}

/// Every API, in order of key.
pub static API_TABLE: [ApiRow; 26] = [
    ApiRow {
        key: ApiKey::Produce,
        name: "Produce",
        served: Versions { min: 3, max: 11 },
        advertised: Versions { min: 0, max: 11 },
        flexible_from: Some(9),
    },
    ApiRow {
        key: ApiKey::Fetch,
        name: "Fetch",
        served: Versions { min: 4, max: 17 },
        advertised: Versions { min: 4, max: 17 },
        flexible_from: Some(12),
    },
    ApiRow {
        key: ApiKey::ListOffsets,
        name: "ListOffsets",
        served: Versions { min: 1, max: 10 },
        advertised: Versions { min: 1, max: 6 },
        flexible_from: Some(6),
    },
    ApiRow {
        key: ApiKey::Metadata,
        name: "Metadata",
        served: Versions { min: 0, max: 12 },
        advertised: Versions { min: 0, max: 12 },
        flexible_from: Some(9),
    },
    ApiRow {
        key: ApiKey::OffsetCommit,
        name: "OffsetCommit",
        served: Versions { min: 2, max: 9 },
        advertised: Versions { min: 2, max: 9 },
        flexible_from: Some(8),
    },
    ApiRow {
        key: ApiKey::OffsetFetch,
        name: "OffsetFetch",
        served: Versions { min: 1, max: 9 },
        advertised: Versions { min: 1, max: 9 },
        flexible_from: Some(6),
    },
    ApiRow {
        key: ApiKey::FindCoordinator,
        name: "FindCoordinator",
        served: Versions { min: 0, max: 5 },
        advertised: Versions { min: 0, max: 5 },
        flexible_from: Some(3),
    },
    ApiRow {
        key: ApiKey::JoinGroup,
        name: "JoinGroup",
        served: Versions { min: 0, max: 9 },
        advertised: Versions { min: 0, max: 9 },
        flexible_from: Some(6),
    },
    ApiRow {
        key: ApiKey::Heartbeat,
        name: "Heartbeat",
        served: Versions { min: 0, max: 4 },
        advertised: Versions { min: 0, max: 4 },
        flexible_from: Some(4),
    },
    ApiRow {
        key: ApiKey::LeaveGroup,
        name: "LeaveGroup",
        served: Versions { min: 0, max: 5 },
        advertised: Versions { min: 0, max: 5 },
        flexible_from: Some(4),
    },
    ApiRow {
        key: ApiKey::SyncGroup,
        name: "SyncGroup",
        served: Versions { min: 0, max: 5 },
        advertised: Versions { min: 0, max: 5 },
        flexible_from: Some(4),
    },
    ApiRow {
        key: ApiKey::DescribeGroups,
        name: "DescribeGroups",
        served: Versions { min: 0, max: 5 },
        advertised: Versions { min: 0, max: 5 },
        flexible_from: Some(5),
    },
    ApiRow {
        key: ApiKey::ListGroups,
        name: "ListGroups",
        served: Versions { min: 0, max: 5 },
        advertised: Versions { min: 0, max: 5 },
        flexible_from: Some(3),
    },
    ApiRow {
        key: ApiKey::ApiVersions,
        name: "ApiVersions",
        served: Versions { min: 0, max: 4 },
        advertised: Versions { min: 0, max: 4 },
        flexible_from: Some(3),
    },
    ApiRow {
        key: ApiKey::CreateTopics,
        name: "CreateTopics",
        served: Versions { min: 2, max: 7 },
        advertised: Versions { min: 2, max: 7 },
        flexible_from: Some(5),
    },
    ApiRow {
        key: ApiKey::DeleteTopics,
        name: "DeleteTopics",
        served: Versions { min: 1, max: 6 },
        advertised: Versions { min: 1, max: 6 },
        flexible_from: Some(4),
    },
    ApiRow {
        key: ApiKey::DeleteRecords,
        name: "DeleteRecords",
        served: Versions { min: 0, max: 2 },
        advertised: Versions { min: 0, max: 2 },
        flexible_from: Some(2),
    },
    ApiRow {
        key: ApiKey::InitProducerId,
        name: "InitProducerId",
        served: Versions { min: 0, max: 4 },
        advertised: Versions { min: 0, max: 4 },
        flexible_from: Some(2),
    },
    ApiRow {
        key: ApiKey::OffsetForLeaderEpoch,
        name: "OffsetForLeaderEpoch",
        served: Versions { min: 2, max: 4 },
        advertised: Versions { min: 2, max: 4 },
        flexible_from: Some(4),
    },
    ApiRow {
        key: ApiKey::DescribeConfigs,
        name: "DescribeConfigs",
        served: Versions { min: 1, max: 4 },
        advertised: Versions { min: 1, max: 4 },
        flexible_from: Some(4),
    },
    ApiRow {
        key: ApiKey::AlterConfigs,
        name: "AlterConfigs",
        served: Versions { min: 0, max: 2 },
        advertised: Versions { min: 0, max: 2 },
        flexible_from: Some(2),
    },
    ApiRow {
        key: ApiKey::CreatePartitions,
        name: "CreatePartitions",
        served: Versions { min: 0, max: 3 },
        advertised: Versions { min: 0, max: 3 },
        flexible_from: Some(2),
    },
    ApiRow {
        key: ApiKey::DeleteGroups,
        name: "DeleteGroups",
        served: Versions { min: 0, max: 2 },
        advertised: Versions { min: 0, max: 2 },
        flexible_from: Some(2),
    },
    ApiRow {
        key: ApiKey::IncrementalAlterConfigs,
        name: "IncrementalAlterConfigs",
        served: Versions { min: 0, max: 1 },
        advertised: Versions { min: 0, max: 1 },
        flexible_from: Some(1),
    },
    ApiRow {
        key: ApiKey::OffsetDelete,
        name: "OffsetDelete",
        served: Versions { min: 0, max: 0 },
        advertised: Versions { min: 0, max: 0 },
        flexible_from: None,
    },
    ApiRow {
        key: ApiKey::DescribeCluster,
        name: "DescribeCluster",
        served: Versions { min: 0, max: 1 },
        advertised: Versions { min: 0, max: 1 },
        flexible_from: Some(0),
    },
];

impl ApiKey {
    /// Its place in [`API_TABLE`].
    pub(crate) fn index(self) -> usize {
        match self {
            ApiKey::Produce => 0,
            ApiKey::Fetch => 1,
            ApiKey::ListOffsets => 2,
            ApiKey::Metadata => 3,
            ApiKey::OffsetCommit => 4,
            ApiKey::OffsetFetch => 5,
            ApiKey::FindCoordinator => 6,
            ApiKey::JoinGroup => 7,
            ApiKey::Heartbeat => 8,
            ApiKey::LeaveGroup => 9,
            ApiKey::SyncGroup => 10,
            ApiKey::DescribeGroups => 11,
            ApiKey::ListGroups => 12,
            ApiKey::ApiVersions => 13,
            ApiKey::CreateTopics => 14,
            ApiKey::DeleteTopics => 15,
            ApiKey::DeleteRecords => 16,
            ApiKey::InitProducerId => 17,
            ApiKey::OffsetForLeaderEpoch => 18,
            ApiKey::DescribeConfigs => 19,
            ApiKey::AlterConfigs => 20,
            ApiKey::CreatePartitions => 21,
            ApiKey::DeleteGroups => 22,
            ApiKey::IncrementalAlterConfigs => 23,
            ApiKey::OffsetDelete => 24,
            ApiKey::DescribeCluster => 25,
        }
    }
}
