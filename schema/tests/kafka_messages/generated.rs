// Made from schema/kafka/messages/ by schema/regenerate. Changes go there.

use tackboard_schema::{TopicId, kafka::*};

use super::invent::{Invent, Inventor};

impl Invent for ProduceRequest {
    fn invent(by: &mut Inventor) -> Self {
        Self {
            transactional_id: by.value(),
            acks: by.value(),
            timeout_ms: by.value(),
            topic_data: by.value(),
        }
    }
}

impl Invent for ProduceRequestTopic {
    fn invent(by: &mut Inventor) -> Self {
        Self {
            name: by.value(),
            partition_data: by.value(),
        }
    }
}

impl Invent for ProduceRequestPartition {
    fn invent(by: &mut Inventor) -> Self {
        Self {
            index: by.value(),
            records: by.value(),
        }
    }
}

impl Invent for ProduceResponse {
    fn invent(by: &mut Inventor) -> Self {
        let version = by.version;
        Self {
            responses: by.value(),
            throttle_time_ms: by.value(),
            node_endpoints: if version >= 10 { by.value() } else { Vec::new() },
        }
    }
}

impl Invent for ProduceResponseTopic {
    fn invent(by: &mut Inventor) -> Self {
        Self {
            name: by.value(),
            partition_responses: by.value(),
        }
    }
}

impl Invent for ProduceResponsePartition {
    fn invent(by: &mut Inventor) -> Self {
        let version = by.version;
        Self {
            index: by.value(),
            error_code: by.value(),
            base_offset: by.value(),
            log_append_time_ms: by.value(),
            log_start_offset: if version >= 5 { by.value() } else { -1 },
            record_errors: if version >= 8 { by.value() } else { Vec::new() },
            error_message: if version >= 8 { by.value() } else { None },
            current_leader: if version >= 10 { by.value() } else { ProduceResponseCurrentLeader::default() },
        }
    }
}

impl Invent for ProduceResponseRecordError {
    fn invent(by: &mut Inventor) -> Self {
        Self {
            batch_index: by.value(),
            batch_index_error_message: by.value(),
        }
    }
}

impl Invent for ProduceResponseCurrentLeader {
    fn invent(by: &mut Inventor) -> Self {
        Self {
            leader_id: by.value(),
            leader_epoch: by.value(),
        }
    }
}

impl Invent for ProduceResponseNodeEndpoint {
    fn invent(by: &mut Inventor) -> Self {
        Self {
            node_id: by.value(),
            host: by.value(),
            port: by.value(),
            rack: by.value(),
        }
    }
}

impl Invent for FetchRequest {
    fn invent(by: &mut Inventor) -> Self {
        let version = by.version;
        Self {
            cluster_id: if version >= 12 { by.value() } else { None },
            replica_id: if version <= 14 { by.value() } else { -1 },
            replica_state: if version >= 15 { by.value() } else { FetchRequestReplicaState::default() },
            max_wait_ms: by.value(),
            min_bytes: by.value(),
            max_bytes: by.value(),
            isolation_level: by.value(),
            session_id: if version >= 7 { by.value() } else { 0 },
            session_epoch: if version >= 7 { by.value() } else { -1 },
            topics: by.value(),
            forgotten_topics_data: if version >= 7 { by.value() } else { Vec::new() },
            rack_id: if version >= 11 { by.value() } else { Str::default() },
        }
    }
}

impl Invent for FetchRequestReplicaState {
    fn invent(by: &mut Inventor) -> Self {
        Self {
            replica_id: by.value(),
            replica_epoch: by.value(),
        }
    }
}

impl Invent for FetchRequestTopic {
    fn invent(by: &mut Inventor) -> Self {
        let version = by.version;
        Self {
            topic: if version <= 12 { by.value() } else { Str::default() },
            topic_id: if version >= 13 { by.value() } else { TopicId::default() },
            partitions: by.value(),
        }
    }
}

impl Invent for FetchRequestPartition {
    fn invent(by: &mut Inventor) -> Self {
        let version = by.version;
        Self {
            partition: by.value(),
            current_leader_epoch: if version >= 9 { by.value() } else { -1 },
            fetch_offset: by.value(),
            last_fetched_epoch: if version >= 12 { by.value() } else { -1 },
            log_start_offset: if version >= 5 { by.value() } else { -1 },
            partition_max_bytes: by.value(),
            replica_directory_id: if version >= 17 { by.value() } else { TopicId::default() },
        }
    }
}

impl Invent for FetchRequestForgottenTopic {
    fn invent(by: &mut Inventor) -> Self {
        let version = by.version;
        Self {
            topic: if version <= 12 { by.value() } else { Str::default() },
            topic_id: if version >= 13 { by.value() } else { TopicId::default() },
            partitions: by.value(),
        }
    }
}

impl Invent for FetchResponse {
    fn invent(by: &mut Inventor) -> Self {
        let version = by.version;
        Self {
            throttle_time_ms: by.value(),
            error_code: if version >= 7 { by.value() } else { 0 },
            session_id: if version >= 7 { by.value() } else { 0 },
            responses: by.value(),
            node_endpoints: if version >= 16 { by.value() } else { Vec::new() },
        }
    }
}

impl Invent for FetchResponseTopic {
    fn invent(by: &mut Inventor) -> Self {
        let version = by.version;
        Self {
            topic: if version <= 12 { by.value() } else { Str::default() },
            topic_id: if version >= 13 { by.value() } else { TopicId::default() },
            partitions: by.value(),
        }
    }
}

impl Invent for FetchResponsePartition {
    fn invent(by: &mut Inventor) -> Self {
        let version = by.version;
        Self {
            partition_index: by.value(),
            error_code: by.value(),
            high_watermark: by.value(),
            last_stable_offset: by.value(),
            log_start_offset: if version >= 5 { by.value() } else { -1 },
            diverging_epoch: if version >= 12 { by.value() } else { FetchResponseDivergingEpoch::default() },
            current_leader: if version >= 12 { by.value() } else { FetchResponseCurrentLeader::default() },
            snapshot_id: if version >= 12 { by.value() } else { FetchResponseSnapshotId::default() },
            aborted_transactions: by.value(),
            preferred_read_replica: if version >= 11 { by.value() } else { -1 },
            records: by.value(),
        }
    }
}

impl Invent for FetchResponseDivergingEpoch {
    fn invent(by: &mut Inventor) -> Self {
        Self {
            epoch: by.value(),
            end_offset: by.value(),
        }
    }
}

impl Invent for FetchResponseCurrentLeader {
    fn invent(by: &mut Inventor) -> Self {
        Self {
            leader_id: by.value(),
            leader_epoch: by.value(),
        }
    }
}

impl Invent for FetchResponseSnapshotId {
    fn invent(by: &mut Inventor) -> Self {
        Self {
            end_offset: by.value(),
            epoch: by.value(),
        }
    }
}

impl Invent for FetchResponseAbortedTransaction {
    fn invent(by: &mut Inventor) -> Self {
        Self {
            producer_id: by.value(),
            first_offset: by.value(),
        }
    }
}

impl Invent for FetchResponseNodeEndpoint {
    fn invent(by: &mut Inventor) -> Self {
        Self {
            node_id: by.value(),
            host: by.value(),
            port: by.value(),
            rack: by.value(),
        }
    }
}

impl Invent for ListOffsetsRequest {
    fn invent(by: &mut Inventor) -> Self {
        let version = by.version;
        Self {
            replica_id: by.value(),
            isolation_level: if version >= 2 { by.value() } else { 0 },
            topics: by.value(),
            timeout_ms: if version >= 10 { by.value() } else { 0 },
        }
    }
}

impl Invent for ListOffsetsRequestTopic {
    fn invent(by: &mut Inventor) -> Self {
        Self {
            name: by.value(),
            partitions: by.value(),
        }
    }
}

impl Invent for ListOffsetsRequestPartition {
    fn invent(by: &mut Inventor) -> Self {
        let version = by.version;
        Self {
            partition_index: by.value(),
            current_leader_epoch: if version >= 4 { by.value() } else { -1 },
            timestamp: by.value(),
        }
    }
}

impl Invent for ListOffsetsResponse {
    fn invent(by: &mut Inventor) -> Self {
        let version = by.version;
        Self {
            throttle_time_ms: if version >= 2 { by.value() } else { 0 },
            topics: by.value(),
        }
    }
}

impl Invent for ListOffsetsResponseTopic {
    fn invent(by: &mut Inventor) -> Self {
        Self {
            name: by.value(),
            partitions: by.value(),
        }
    }
}

impl Invent for ListOffsetsResponsePartition {
    fn invent(by: &mut Inventor) -> Self {
        let version = by.version;
        Self {
            partition_index: by.value(),
            error_code: by.value(),
            timestamp: by.value(),
            offset: by.value(),
            leader_epoch: if version >= 4 { by.value() } else { -1 },
        }
    }
}

impl Invent for MetadataRequest {
    fn invent(by: &mut Inventor) -> Self {
        let version = by.version;
        Self {
            topics: if version >= 1 { by.value() } else { Some(by.value()) },
            allow_auto_topic_creation: if version >= 4 { by.value() } else { true },
            include_cluster_authorized_operations: if (8..=10).contains(&version) { by.value() } else { false },
            include_topic_authorized_operations: if version >= 8 { by.value() } else { false },
        }
    }
}

impl Invent for MetadataRequestTopic {
    fn invent(by: &mut Inventor) -> Self {
        let version = by.version;
        Self {
            topic_id: if version >= 10 { by.value() } else { TopicId::default() },
            name: if version >= 10 { by.value() } else { Some(by.value()) },
        }
    }
}

impl Invent for MetadataResponse {
    fn invent(by: &mut Inventor) -> Self {
        let version = by.version;
        Self {
            throttle_time_ms: if version >= 3 { by.value() } else { 0 },
            brokers: by.value(),
            cluster_id: if version >= 2 { by.value() } else { None },
            controller_id: if version >= 1 { by.value() } else { -1 },
            topics: by.value(),
            cluster_authorized_operations: if (8..=10).contains(&version) { by.value() } else { -2147483648 },
        }
    }
}

impl Invent for MetadataResponseBroker {
    fn invent(by: &mut Inventor) -> Self {
        let version = by.version;
        Self {
            node_id: by.value(),
            host: by.value(),
            port: by.value(),
            rack: if version >= 1 { by.value() } else { None },
        }
    }
}

impl Invent for MetadataResponseTopic {
    fn invent(by: &mut Inventor) -> Self {
        let version = by.version;
        Self {
            error_code: by.value(),
            name: if version >= 12 { by.value() } else { Some(by.value()) },
            topic_id: if version >= 10 { by.value() } else { TopicId::default() },
            is_internal: if version >= 1 { by.value() } else { false },
            partitions: by.value(),
            topic_authorized_operations: if version >= 8 { by.value() } else { -2147483648 },
        }
    }
}

impl Invent for MetadataResponsePartition {
    fn invent(by: &mut Inventor) -> Self {
        let version = by.version;
        Self {
            error_code: by.value(),
            partition_index: by.value(),
            leader_id: by.value(),
            leader_epoch: if version >= 7 { by.value() } else { -1 },
            replica_nodes: by.value(),
            isr_nodes: by.value(),
            offline_replicas: if version >= 5 { by.value() } else { Vec::new() },
        }
    }
}

impl Invent for OffsetCommitRequest {
    fn invent(by: &mut Inventor) -> Self {
        let version = by.version;
        Self {
            group_id: by.value(),
            generation_id_or_member_epoch: by.value(),
            member_id: by.value(),
            group_instance_id: if version >= 7 { by.value() } else { None },
            retention_time_ms: if version <= 4 { by.value() } else { -1 },
            topics: by.value(),
        }
    }
}

impl Invent for OffsetCommitRequestTopic {
    fn invent(by: &mut Inventor) -> Self {
        Self {
            name: by.value(),
            partitions: by.value(),
        }
    }
}

impl Invent for OffsetCommitRequestPartition {
    fn invent(by: &mut Inventor) -> Self {
        let version = by.version;
        Self {
            partition_index: by.value(),
            committed_offset: by.value(),
            committed_leader_epoch: if version >= 6 { by.value() } else { -1 },
            committed_metadata: by.value(),
        }
    }
}

impl Invent for OffsetCommitResponse {
    fn invent(by: &mut Inventor) -> Self {
        let version = by.version;
        Self {
            throttle_time_ms: if version >= 3 { by.value() } else { 0 },
            topics: by.value(),
        }
    }
}

impl Invent for OffsetCommitResponseTopic {
    fn invent(by: &mut Inventor) -> Self {
        Self {
            name: by.value(),
            partitions: by.value(),
        }
    }
}

impl Invent for OffsetCommitResponsePartition {
    fn invent(by: &mut Inventor) -> Self {
        Self {
            partition_index: by.value(),
            error_code: by.value(),
        }
    }
}

impl Invent for OffsetFetchRequest {
    fn invent(by: &mut Inventor) -> Self {
        let version = by.version;
        Self {
            group_id: if version <= 7 { by.value() } else { Str::default() },
            topics: if version <= 7 { if version >= 2 { by.value() } else { Some(by.value()) } } else { Some(Vec::new()) },
            groups: if version >= 8 { by.value() } else { Vec::new() },
            require_stable: if version >= 7 { by.value() } else { false },
        }
    }
}

impl Invent for OffsetFetchRequestTopic {
    fn invent(by: &mut Inventor) -> Self {
        Self {
            name: by.value(),
            partition_indexes: by.value(),
        }
    }
}

impl Invent for OffsetFetchRequestGroup {
    fn invent(by: &mut Inventor) -> Self {
        let version = by.version;
        Self {
            group_id: by.value(),
            member_id: if version >= 9 { by.value() } else { None },
            member_epoch: if version >= 9 { by.value() } else { -1 },
            topics: by.value(),
        }
    }
}

impl Invent for OffsetFetchRequestGroupTopic {
    fn invent(by: &mut Inventor) -> Self {
        Self {
            name: by.value(),
            partition_indexes: by.value(),
        }
    }
}

impl Invent for OffsetFetchResponse {
    fn invent(by: &mut Inventor) -> Self {
        let version = by.version;
        Self {
            throttle_time_ms: if version >= 3 { by.value() } else { 0 },
            topics: if version <= 7 { by.value() } else { Vec::new() },
            error_code: if (2..=7).contains(&version) { by.value() } else { 0 },
            groups: if version >= 8 { by.value() } else { Vec::new() },
        }
    }
}

impl Invent for OffsetFetchResponseTopic {
    fn invent(by: &mut Inventor) -> Self {
        Self {
            name: by.value(),
            partitions: by.value(),
        }
    }
}

impl Invent for OffsetFetchResponsePartition {
    fn invent(by: &mut Inventor) -> Self {
        let version = by.version;
        Self {
            partition_index: by.value(),
            committed_offset: by.value(),
            committed_leader_epoch: if (5..=7).contains(&version) { by.value() } else { -1 },
            metadata: by.value(),
            error_code: by.value(),
        }
    }
}

impl Invent for OffsetFetchResponseGroup {
    fn invent(by: &mut Inventor) -> Self {
        Self {
            group_id: by.value(),
            topics: by.value(),
            error_code: by.value(),
        }
    }
}

impl Invent for OffsetFetchResponseGroupTopic {
    fn invent(by: &mut Inventor) -> Self {
        Self {
            name: by.value(),
            partitions: by.value(),
        }
    }
}

impl Invent for OffsetFetchResponseGroupPartition {
    fn invent(by: &mut Inventor) -> Self {
        Self {
            partition_index: by.value(),
            committed_offset: by.value(),
            committed_leader_epoch: by.value(),
            metadata: by.value(),
            error_code: by.value(),
        }
    }
}

impl Invent for FindCoordinatorRequest {
    fn invent(by: &mut Inventor) -> Self {
        let version = by.version;
        Self {
            key: if version <= 3 { by.value() } else { Str::default() },
            key_type: if version >= 1 { by.value() } else { 0 },
            coordinator_keys: if version >= 4 { by.value() } else { Vec::new() },
        }
    }
}

impl Invent for FindCoordinatorResponse {
    fn invent(by: &mut Inventor) -> Self {
        let version = by.version;
        Self {
            throttle_time_ms: if version >= 1 { by.value() } else { 0 },
            error_code: if version <= 3 { by.value() } else { 0 },
            error_message: if (1..=3).contains(&version) { by.value() } else { Some(Str::default()) },
            node_id: if version <= 3 { by.value() } else { 0 },
            host: if version <= 3 { by.value() } else { Str::default() },
            port: if version <= 3 { by.value() } else { 0 },
            coordinators: if version >= 4 { by.value() } else { Vec::new() },
        }
    }
}

impl Invent for FindCoordinatorResponseCoordinator {
    fn invent(by: &mut Inventor) -> Self {
        Self {
            key: by.value(),
            node_id: by.value(),
            host: by.value(),
            port: by.value(),
            error_code: by.value(),
            error_message: by.value(),
        }
    }
}

impl Invent for JoinGroupRequest {
    fn invent(by: &mut Inventor) -> Self {
        let version = by.version;
        Self {
            group_id: by.value(),
            session_timeout_ms: by.value(),
            rebalance_timeout_ms: if version >= 1 { by.value() } else { -1 },
            member_id: by.value(),
            group_instance_id: if version >= 5 { by.value() } else { None },
            protocol_type: by.value(),
            protocols: by.value(),
            reason: if version >= 8 { by.value() } else { None },
        }
    }
}

impl Invent for JoinGroupRequestProtocol {
    fn invent(by: &mut Inventor) -> Self {
        Self {
            name: by.value(),
            metadata: by.value(),
        }
    }
}

impl Invent for JoinGroupResponse {
    fn invent(by: &mut Inventor) -> Self {
        let version = by.version;
        Self {
            throttle_time_ms: if version >= 2 { by.value() } else { 0 },
            error_code: by.value(),
            generation_id: by.value(),
            protocol_type: if version >= 7 { by.value() } else { None },
            protocol_name: if version >= 7 { by.value() } else { Some(by.value()) },
            leader: by.value(),
            skip_assignment: if version >= 9 { by.value() } else { false },
            member_id: by.value(),
            members: by.value(),
        }
    }
}

impl Invent for JoinGroupResponseMember {
    fn invent(by: &mut Inventor) -> Self {
        let version = by.version;
        Self {
            member_id: by.value(),
            group_instance_id: if version >= 5 { by.value() } else { None },
            metadata: by.value(),
        }
    }
}

impl Invent for HeartbeatRequest {
    fn invent(by: &mut Inventor) -> Self {
        let version = by.version;
        Self {
            group_id: by.value(),
            generation_id: by.value(),
            member_id: by.value(),
            group_instance_id: if version >= 3 { by.value() } else { None },
        }
    }
}

impl Invent for HeartbeatResponse {
    fn invent(by: &mut Inventor) -> Self {
        let version = by.version;
        Self {
            throttle_time_ms: if version >= 1 { by.value() } else { 0 },
            error_code: by.value(),
        }
    }
}

impl Invent for LeaveGroupRequest {
    fn invent(by: &mut Inventor) -> Self {
        let version = by.version;
        Self {
            group_id: by.value(),
            member_id: if version <= 2 { by.value() } else { Str::default() },
            members: if version >= 3 { by.value() } else { Vec::new() },
        }
    }
}

impl Invent for LeaveGroupRequestMember {
    fn invent(by: &mut Inventor) -> Self {
        let version = by.version;
        Self {
            member_id: by.value(),
            group_instance_id: by.value(),
            reason: if version >= 5 { by.value() } else { None },
        }
    }
}

impl Invent for LeaveGroupResponse {
    fn invent(by: &mut Inventor) -> Self {
        let version = by.version;
        Self {
            throttle_time_ms: if version >= 1 { by.value() } else { 0 },
            error_code: by.value(),
            members: if version >= 3 { by.value() } else { Vec::new() },
        }
    }
}

impl Invent for LeaveGroupResponseMember {
    fn invent(by: &mut Inventor) -> Self {
        Self {
            member_id: by.value(),
            group_instance_id: by.value(),
            error_code: by.value(),
        }
    }
}

impl Invent for SyncGroupRequest {
    fn invent(by: &mut Inventor) -> Self {
        let version = by.version;
        Self {
            group_id: by.value(),
            generation_id: by.value(),
            member_id: by.value(),
            group_instance_id: if version >= 3 { by.value() } else { None },
            protocol_type: if version >= 5 { by.value() } else { None },
            protocol_name: if version >= 5 { by.value() } else { None },
            assignments: by.value(),
        }
    }
}

impl Invent for SyncGroupRequestAssignment {
    fn invent(by: &mut Inventor) -> Self {
        Self {
            member_id: by.value(),
            assignment: by.value(),
        }
    }
}

impl Invent for SyncGroupResponse {
    fn invent(by: &mut Inventor) -> Self {
        let version = by.version;
        Self {
            throttle_time_ms: if version >= 1 { by.value() } else { 0 },
            error_code: by.value(),
            protocol_type: if version >= 5 { by.value() } else { None },
            protocol_name: if version >= 5 { by.value() } else { None },
            assignment: by.value(),
        }
    }
}

impl Invent for DescribeGroupsRequest {
    fn invent(by: &mut Inventor) -> Self {
        let version = by.version;
        Self {
            groups: by.value(),
            include_authorized_operations: if version >= 3 { by.value() } else { false },
        }
    }
}

impl Invent for DescribeGroupsResponse {
    fn invent(by: &mut Inventor) -> Self {
        let version = by.version;
        Self {
            throttle_time_ms: if version >= 1 { by.value() } else { 0 },
            groups: by.value(),
        }
    }
}

impl Invent for DescribeGroupsResponseGroup {
    fn invent(by: &mut Inventor) -> Self {
        let version = by.version;
        Self {
            error_code: by.value(),
            group_id: by.value(),
            group_state: by.value(),
            protocol_type: by.value(),
            protocol_data: by.value(),
            members: by.value(),
            authorized_operations: if version >= 3 { by.value() } else { -2147483648 },
        }
    }
}

impl Invent for DescribeGroupsResponseMember {
    fn invent(by: &mut Inventor) -> Self {
        let version = by.version;
        Self {
            member_id: by.value(),
            group_instance_id: if version >= 4 { by.value() } else { None },
            client_id: by.value(),
            client_host: by.value(),
            member_metadata: by.value(),
            member_assignment: by.value(),
        }
    }
}

impl Invent for ListGroupsRequest {
    fn invent(by: &mut Inventor) -> Self {
        let version = by.version;
        Self {
            states_filter: if version >= 4 { by.value() } else { Vec::new() },
            types_filter: if version >= 5 { by.value() } else { Vec::new() },
        }
    }
}

impl Invent for ListGroupsResponse {
    fn invent(by: &mut Inventor) -> Self {
        let version = by.version;
        Self {
            throttle_time_ms: if version >= 1 { by.value() } else { 0 },
            error_code: by.value(),
            groups: by.value(),
        }
    }
}

impl Invent for ListGroupsResponseGroup {
    fn invent(by: &mut Inventor) -> Self {
        let version = by.version;
        Self {
            group_id: by.value(),
            protocol_type: by.value(),
            group_state: if version >= 4 { by.value() } else { Str::default() },
            group_type: if version >= 5 { by.value() } else { Str::default() },
        }
    }
}

impl Invent for ApiVersionsRequest {
    fn invent(by: &mut Inventor) -> Self {
        let version = by.version;
        Self {
            client_software_name: if version >= 3 { by.value() } else { Str::default() },
            client_software_version: if version >= 3 { by.value() } else { Str::default() },
        }
    }
}

impl Invent for ApiVersionsResponse {
    fn invent(by: &mut Inventor) -> Self {
        let version = by.version;
        Self {
            error_code: by.value(),
            api_keys: by.value(),
            throttle_time_ms: if version >= 1 { by.value() } else { 0 },
            supported_features: if version >= 3 { by.value() } else { Vec::new() },
            finalized_features_epoch: if version >= 3 { by.value() } else { -1 },
            finalized_features: if version >= 3 { by.value() } else { Vec::new() },
            zk_migration_ready: if version >= 3 { by.value() } else { false },
        }
    }
}

impl Invent for ApiVersionsResponseApiVersion {
    fn invent(by: &mut Inventor) -> Self {
        Self {
            api_key: by.value(),
            min_version: by.value(),
            max_version: by.value(),
        }
    }
}

impl Invent for ApiVersionsResponseSupportedFeature {
    fn invent(by: &mut Inventor) -> Self {
        Self {
            name: by.value(),
            min_version: by.value(),
            max_version: by.value(),
        }
    }
}

impl Invent for ApiVersionsResponseFinalizedFeature {
    fn invent(by: &mut Inventor) -> Self {
        Self {
            name: by.value(),
            max_version_level: by.value(),
            min_version_level: by.value(),
        }
    }
}

impl Invent for CreateTopicsRequest {
    fn invent(by: &mut Inventor) -> Self {
        Self {
            topics: by.value(),
            timeout_ms: by.value(),
            validate_only: by.value(),
        }
    }
}

impl Invent for CreateTopicsRequestTopic {
    fn invent(by: &mut Inventor) -> Self {
        Self {
            name: by.value(),
            num_partitions: by.value(),
            replication_factor: by.value(),
            assignments: by.value(),
            configs: by.value(),
        }
    }
}

impl Invent for CreateTopicsRequestAssignment {
    fn invent(by: &mut Inventor) -> Self {
        Self {
            partition_index: by.value(),
            broker_ids: by.value(),
        }
    }
}

impl Invent for CreateTopicsRequestConfig {
    fn invent(by: &mut Inventor) -> Self {
        Self {
            name: by.value(),
            value: by.value(),
        }
    }
}

impl Invent for CreateTopicsResponse {
    fn invent(by: &mut Inventor) -> Self {
        Self {
            throttle_time_ms: by.value(),
            topics: by.value(),
        }
    }
}

impl Invent for CreateTopicsResponseTopic {
    fn invent(by: &mut Inventor) -> Self {
        let version = by.version;
        Self {
            name: by.value(),
            topic_id: if version >= 7 { by.value() } else { TopicId::default() },
            error_code: by.value(),
            error_message: by.value(),
            topic_config_error_code: if version >= 5 { by.value() } else { 0 },
            num_partitions: if version >= 5 { by.value() } else { -1 },
            replication_factor: if version >= 5 { by.value() } else { -1 },
            configs: if version >= 5 { by.value() } else { Some(Vec::new()) },
        }
    }
}

impl Invent for CreateTopicsResponseConfig {
    fn invent(by: &mut Inventor) -> Self {
        Self {
            name: by.value(),
            value: by.value(),
            read_only: by.value(),
            config_source: by.value(),
            is_sensitive: by.value(),
        }
    }
}

impl Invent for DeleteTopicsRequest {
    fn invent(by: &mut Inventor) -> Self {
        let version = by.version;
        Self {
            topics: if version >= 6 { by.value() } else { Vec::new() },
            topic_names: if version <= 5 { by.value() } else { Vec::new() },
            timeout_ms: by.value(),
        }
    }
}

impl Invent for DeleteTopicsRequestTopic {
    fn invent(by: &mut Inventor) -> Self {
        Self {
            name: by.value(),
            topic_id: by.value(),
        }
    }
}

impl Invent for DeleteTopicsResponse {
    fn invent(by: &mut Inventor) -> Self {
        Self {
            throttle_time_ms: by.value(),
            responses: by.value(),
        }
    }
}

impl Invent for DeleteTopicsResponseTopic {
    fn invent(by: &mut Inventor) -> Self {
        let version = by.version;
        Self {
            name: if version >= 6 { by.value() } else { Some(by.value()) },
            topic_id: if version >= 6 { by.value() } else { TopicId::default() },
            error_code: by.value(),
            error_message: if version >= 5 { by.value() } else { None },
        }
    }
}

impl Invent for DeleteRecordsRequest {
    fn invent(by: &mut Inventor) -> Self {
        Self {
            topics: by.value(),
            timeout_ms: by.value(),
        }
    }
}

impl Invent for DeleteRecordsRequestTopic {
    fn invent(by: &mut Inventor) -> Self {
        Self {
            name: by.value(),
            partitions: by.value(),
        }
    }
}

impl Invent for DeleteRecordsRequestPartition {
    fn invent(by: &mut Inventor) -> Self {
        Self {
            partition_index: by.value(),
            offset: by.value(),
        }
    }
}

impl Invent for DeleteRecordsResponse {
    fn invent(by: &mut Inventor) -> Self {
        Self {
            throttle_time_ms: by.value(),
            topics: by.value(),
        }
    }
}

impl Invent for DeleteRecordsResponseTopic {
    fn invent(by: &mut Inventor) -> Self {
        Self {
            name: by.value(),
            partitions: by.value(),
        }
    }
}

impl Invent for DeleteRecordsResponsePartition {
    fn invent(by: &mut Inventor) -> Self {
        Self {
            partition_index: by.value(),
            low_watermark: by.value(),
            error_code: by.value(),
        }
    }
}

impl Invent for InitProducerIdRequest {
    fn invent(by: &mut Inventor) -> Self {
        let version = by.version;
        Self {
            transactional_id: by.value(),
            transaction_timeout_ms: by.value(),
            producer_id: if version >= 3 { by.value() } else { -1 },
            producer_epoch: if version >= 3 { by.value() } else { -1 },
        }
    }
}

impl Invent for InitProducerIdResponse {
    fn invent(by: &mut Inventor) -> Self {
        Self {
            throttle_time_ms: by.value(),
            error_code: by.value(),
            producer_id: by.value(),
            producer_epoch: by.value(),
        }
    }
}

impl Invent for OffsetForLeaderEpochRequest {
    fn invent(by: &mut Inventor) -> Self {
        let version = by.version;
        Self {
            replica_id: if version >= 3 { by.value() } else { -2 },
            topics: by.value(),
        }
    }
}

impl Invent for OffsetForLeaderEpochRequestTopic {
    fn invent(by: &mut Inventor) -> Self {
        Self {
            topic: by.value(),
            partitions: by.value(),
        }
    }
}

impl Invent for OffsetForLeaderEpochRequestPartition {
    fn invent(by: &mut Inventor) -> Self {
        Self {
            partition: by.value(),
            current_leader_epoch: by.value(),
            leader_epoch: by.value(),
        }
    }
}

impl Invent for OffsetForLeaderEpochResponse {
    fn invent(by: &mut Inventor) -> Self {
        Self {
            throttle_time_ms: by.value(),
            topics: by.value(),
        }
    }
}

impl Invent for OffsetForLeaderEpochResponseTopic {
    fn invent(by: &mut Inventor) -> Self {
        Self {
            topic: by.value(),
            partitions: by.value(),
        }
    }
}

impl Invent for OffsetForLeaderEpochResponsePartition {
    fn invent(by: &mut Inventor) -> Self {
        Self {
            error_code: by.value(),
            partition: by.value(),
            leader_epoch: by.value(),
            end_offset: by.value(),
        }
    }
}

impl Invent for DescribeConfigsRequest {
    fn invent(by: &mut Inventor) -> Self {
        let version = by.version;
        Self {
            resources: by.value(),
            include_synonyms: by.value(),
            include_documentation: if version >= 3 { by.value() } else { false },
        }
    }
}

impl Invent for DescribeConfigsRequestResource {
    fn invent(by: &mut Inventor) -> Self {
        Self {
            resource_type: by.value(),
            resource_name: by.value(),
            configuration_keys: by.value(),
        }
    }
}

impl Invent for DescribeConfigsResponse {
    fn invent(by: &mut Inventor) -> Self {
        Self {
            throttle_time_ms: by.value(),
            results: by.value(),
        }
    }
}

impl Invent for DescribeConfigsResponseResult {
    fn invent(by: &mut Inventor) -> Self {
        Self {
            error_code: by.value(),
            error_message: by.value(),
            resource_type: by.value(),
            resource_name: by.value(),
            configs: by.value(),
        }
    }
}

impl Invent for DescribeConfigsResponseConfig {
    fn invent(by: &mut Inventor) -> Self {
        let version = by.version;
        Self {
            name: by.value(),
            value: by.value(),
            read_only: by.value(),
            config_source: by.value(),
            is_sensitive: by.value(),
            synonyms: by.value(),
            config_type: if version >= 3 { by.value() } else { 0 },
            documentation: if version >= 3 { by.value() } else { Some(Str::default()) },
        }
    }
}

impl Invent for DescribeConfigsResponseSynonym {
    fn invent(by: &mut Inventor) -> Self {
        Self {
            name: by.value(),
            value: by.value(),
            source: by.value(),
        }
    }
}

impl Invent for AlterConfigsRequest {
    fn invent(by: &mut Inventor) -> Self {
        Self {
            resources: by.value(),
            validate_only: by.value(),
        }
    }
}

impl Invent for AlterConfigsRequestResource {
    fn invent(by: &mut Inventor) -> Self {
        Self {
            resource_type: by.value(),
            resource_name: by.value(),
            configs: by.value(),
        }
    }
}

impl Invent for AlterConfigsRequestConfig {
    fn invent(by: &mut Inventor) -> Self {
        Self {
            name: by.value(),
            value: by.value(),
        }
    }
}

impl Invent for AlterConfigsResponse {
    fn invent(by: &mut Inventor) -> Self {
        Self {
            throttle_time_ms: by.value(),
            responses: by.value(),
        }
    }
}

impl Invent for AlterConfigsResponseResource {
    fn invent(by: &mut Inventor) -> Self {
        Self {
            error_code: by.value(),
            error_message: by.value(),
            resource_type: by.value(),
            resource_name: by.value(),
        }
    }
}

impl Invent for CreatePartitionsRequest {
    fn invent(by: &mut Inventor) -> Self {
        Self {
            topics: by.value(),
            timeout_ms: by.value(),
            validate_only: by.value(),
        }
    }
}

impl Invent for CreatePartitionsRequestTopic {
    fn invent(by: &mut Inventor) -> Self {
        Self {
            name: by.value(),
            count: by.value(),
            assignments: by.value(),
        }
    }
}

impl Invent for CreatePartitionsRequestAssignment {
    fn invent(by: &mut Inventor) -> Self {
        Self {
            broker_ids: by.value(),
        }
    }
}

impl Invent for CreatePartitionsResponse {
    fn invent(by: &mut Inventor) -> Self {
        Self {
            throttle_time_ms: by.value(),
            results: by.value(),
        }
    }
}

impl Invent for CreatePartitionsResponseTopic {
    fn invent(by: &mut Inventor) -> Self {
        Self {
            name: by.value(),
            error_code: by.value(),
            error_message: by.value(),
        }
    }
}

impl Invent for DeleteGroupsRequest {
    fn invent(by: &mut Inventor) -> Self {
        Self {
            groups_names: by.value(),
        }
    }
}

impl Invent for DeleteGroupsResponse {
    fn invent(by: &mut Inventor) -> Self {
        Self {
            throttle_time_ms: by.value(),
            results: by.value(),
        }
    }
}

impl Invent for DeleteGroupsResponseGroup {
    fn invent(by: &mut Inventor) -> Self {
        Self {
            group_id: by.value(),
            error_code: by.value(),
        }
    }
}

impl Invent for IncrementalAlterConfigsRequest {
    fn invent(by: &mut Inventor) -> Self {
        Self {
            resources: by.value(),
            validate_only: by.value(),
        }
    }
}

impl Invent for IncrementalAlterConfigsRequestResource {
    fn invent(by: &mut Inventor) -> Self {
        Self {
            resource_type: by.value(),
            resource_name: by.value(),
            configs: by.value(),
        }
    }
}

impl Invent for IncrementalAlterConfigsRequestConfig {
    fn invent(by: &mut Inventor) -> Self {
        Self {
            name: by.value(),
            config_operation: by.value(),
            value: by.value(),
        }
    }
}

impl Invent for IncrementalAlterConfigsResponse {
    fn invent(by: &mut Inventor) -> Self {
        Self {
            throttle_time_ms: by.value(),
            responses: by.value(),
        }
    }
}

impl Invent for IncrementalAlterConfigsResponseResource {
    fn invent(by: &mut Inventor) -> Self {
        Self {
            error_code: by.value(),
            error_message: by.value(),
            resource_type: by.value(),
            resource_name: by.value(),
        }
    }
}

impl Invent for OffsetDeleteRequest {
    fn invent(by: &mut Inventor) -> Self {
        Self {
            group_id: by.value(),
            topics: by.value(),
        }
    }
}

impl Invent for OffsetDeleteRequestTopic {
    fn invent(by: &mut Inventor) -> Self {
        Self {
            name: by.value(),
            partitions: by.value(),
        }
    }
}

impl Invent for OffsetDeleteRequestPartition {
    fn invent(by: &mut Inventor) -> Self {
        Self {
            partition_index: by.value(),
        }
    }
}

impl Invent for OffsetDeleteResponse {
    fn invent(by: &mut Inventor) -> Self {
        Self {
            error_code: by.value(),
            throttle_time_ms: by.value(),
            topics: by.value(),
        }
    }
}

impl Invent for OffsetDeleteResponseTopic {
    fn invent(by: &mut Inventor) -> Self {
        Self {
            name: by.value(),
            partitions: by.value(),
        }
    }
}

impl Invent for OffsetDeleteResponsePartition {
    fn invent(by: &mut Inventor) -> Self {
        Self {
            partition_index: by.value(),
            error_code: by.value(),
        }
    }
}

impl Invent for DescribeClusterRequest {
    fn invent(by: &mut Inventor) -> Self {
        let version = by.version;
        Self {
            include_cluster_authorized_operations: by.value(),
            endpoint_type: if version >= 1 { by.value() } else { 1 },
        }
    }
}

impl Invent for DescribeClusterResponse {
    fn invent(by: &mut Inventor) -> Self {
        let version = by.version;
        Self {
            throttle_time_ms: by.value(),
            error_code: by.value(),
            error_message: by.value(),
            endpoint_type: if version >= 1 { by.value() } else { 1 },
            cluster_id: by.value(),
            controller_id: by.value(),
            brokers: by.value(),
            cluster_authorized_operations: by.value(),
        }
    }
}

impl Invent for DescribeClusterResponseBroker {
    fn invent(by: &mut Inventor) -> Self {
        Self {
            broker_id: by.value(),
            host: by.value(),
            port: by.value(),
            rack: by.value(),
        }
    }
}
