// Made from schema/kafka/messages/ by schema/regenerate. Changes go there.

/// Calls a macro with every API: its name, its request and its response.
macro_rules! for_every_api {
    ($each:ident) => {
        $each! {
            Produce, ProduceRequest, ProduceResponse;
            Fetch, FetchRequest, FetchResponse;
            ListOffsets, ListOffsetsRequest, ListOffsetsResponse;
            Metadata, MetadataRequest, MetadataResponse;
            OffsetCommit, OffsetCommitRequest, OffsetCommitResponse;
            OffsetFetch, OffsetFetchRequest, OffsetFetchResponse;
            FindCoordinator, FindCoordinatorRequest, FindCoordinatorResponse;
            JoinGroup, JoinGroupRequest, JoinGroupResponse;
            Heartbeat, HeartbeatRequest, HeartbeatResponse;
            LeaveGroup, LeaveGroupRequest, LeaveGroupResponse;
            SyncGroup, SyncGroupRequest, SyncGroupResponse;
            DescribeGroups, DescribeGroupsRequest, DescribeGroupsResponse;
            ListGroups, ListGroupsRequest, ListGroupsResponse;
            ApiVersions, ApiVersionsRequest, ApiVersionsResponse;
            CreateTopics, CreateTopicsRequest, CreateTopicsResponse;
            DeleteTopics, DeleteTopicsRequest, DeleteTopicsResponse;
            DeleteRecords, DeleteRecordsRequest, DeleteRecordsResponse;
            InitProducerId, InitProducerIdRequest, InitProducerIdResponse;
            OffsetForLeaderEpoch, OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse;
            DescribeConfigs, DescribeConfigsRequest, DescribeConfigsResponse;
            AlterConfigs, AlterConfigsRequest, AlterConfigsResponse;
            CreatePartitions, CreatePartitionsRequest, CreatePartitionsResponse;
            DeleteGroups, DeleteGroupsRequest, DeleteGroupsResponse;
            IncrementalAlterConfigs, IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse;
            OffsetDelete, OffsetDeleteRequest, OffsetDeleteResponse;
            DescribeCluster, DescribeClusterRequest, DescribeClusterResponse;
        }
    };
}
