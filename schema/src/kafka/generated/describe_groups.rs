// Made from schema/kafka/messages/describe_groups.kmsg by schema/regenerate. Changes go there.

use crate::kafka::wire::prelude::*;

/// Request: DescribeGroups, versions 0-5.
///
/// Describes groups and their members.
///
/// 3: operations that the client may do. 4: static members (KIP-345).
/// States are named Empty, PreparingRebalance, CompletingRebalance, Stable and Dead.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DescribeGroupsRequest {
    /// The groups.
    pub groups: Vec<Str>,
    /// Whether to name the operations allowed on them. Versions 3+.
    pub include_authorized_operations: bool,
}

impl Value for DescribeGroupsRequest {
    fn bytes_min(form: Form) -> usize {
        let version = form.version;
        let mut bytes = form.tags_bytes_min();
        bytes += <Vec<Str>>::bytes_min(form);
        if version >= 3 {
            bytes += <bool>::bytes_min(form);
        }
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let version = from.form().version;
        let read = Self {
            groups: from.field("groups")?,
            include_authorized_operations: if version >= 3 { from.field("include_authorized_operations")? } else { false },
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        let version = to.form().version;
        to.field("groups", &self.groups)?;
        if version >= 3 {
            to.field("include_authorized_operations", &self.include_authorized_operations)?;
        }
        to.no_tags();
        Ok(())
    }
}

impl Message for DescribeGroupsRequest {
    const API: ApiKey = ApiKey::DescribeGroups;
}

/// Response: DescribeGroups, versions 0-5.
///
/// Describes groups and their members.
///
/// 3: operations that the client may do. 4: static members (KIP-345).
/// States are named Empty, PreparingRebalance, CompletingRebalance, Stable and Dead.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DescribeGroupsResponse {
    /// How long the client was held back for its quota. Versions 1+.
    pub throttle_time_ms: i32,
    /// The groups, as they were asked.
    pub groups: Vec<DescribeGroupsResponseGroup>,
}

impl Value for DescribeGroupsResponse {
    fn bytes_min(form: Form) -> usize {
        let version = form.version;
        let mut bytes = form.tags_bytes_min();
        if version >= 1 {
            bytes += <i32>::bytes_min(form);
        }
        bytes += <Vec<DescribeGroupsResponseGroup>>::bytes_min(form);
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let version = from.form().version;
        let read = Self {
            throttle_time_ms: if version >= 1 { from.field("throttle_time_ms")? } else { 0 },
            groups: from.field("groups")?,
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        let version = to.form().version;
        if version >= 1 {
            to.field("throttle_time_ms", &self.throttle_time_ms)?;
        }
        to.field("groups", &self.groups)?;
        to.no_tags();
        Ok(())
    }
}

/// One of [`DescribeGroupsResponse::groups`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescribeGroupsResponseGroup {
    /// Whether it can be described.
    pub error_code: i16,
    /// Its id.
    pub group_id: Str,
    /// Its state.
    pub group_state: Str,
    /// The type of its protocol.
    pub protocol_type: Str,
    /// The assignor that was chosen.
    pub protocol_data: Str,
    /// Its members.
    pub members: Vec<DescribeGroupsResponseMember>,
    /// A bit for each operation; the default: not asked for. Versions 3+. Default: -2147483648.
    pub authorized_operations: i32,
}

impl Default for DescribeGroupsResponseGroup {
    fn default() -> Self {
        Self {
            error_code: 0,
            group_id: Str::default(),
            group_state: Str::default(),
            protocol_type: Str::default(),
            protocol_data: Str::default(),
            members: Vec::new(),
            authorized_operations: -2147483648,
        }
    }
}

impl Value for DescribeGroupsResponseGroup {
    fn bytes_min(form: Form) -> usize {
        let version = form.version;
        let mut bytes = form.tags_bytes_min();
        bytes += <i16>::bytes_min(form);
        bytes += <Str>::bytes_min(form);
        bytes += <Str>::bytes_min(form);
        bytes += <Str>::bytes_min(form);
        bytes += <Str>::bytes_min(form);
        bytes += <Vec<DescribeGroupsResponseMember>>::bytes_min(form);
        if version >= 3 {
            bytes += <i32>::bytes_min(form);
        }
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let version = from.form().version;
        let read = Self {
            error_code: from.field("error_code")?,
            group_id: from.field("group_id")?,
            group_state: from.field("group_state")?,
            protocol_type: from.field("protocol_type")?,
            protocol_data: from.field("protocol_data")?,
            members: from.field("members")?,
            authorized_operations: if version >= 3 { from.field("authorized_operations")? } else { -2147483648 },
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        let version = to.form().version;
        to.field("error_code", &self.error_code)?;
        to.field("group_id", &self.group_id)?;
        to.field("group_state", &self.group_state)?;
        to.field("protocol_type", &self.protocol_type)?;
        to.field("protocol_data", &self.protocol_data)?;
        to.field("members", &self.members)?;
        if version >= 3 {
            to.field("authorized_operations", &self.authorized_operations)?;
        }
        to.no_tags();
        Ok(())
    }
}

/// One of [`DescribeGroupsResponseGroup::members`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DescribeGroupsResponseMember {
    /// Its id.
    pub member_id: Str,
    /// The static member's own name. Versions 4+. Default: null.
    pub group_instance_id: Option<Str>,
    /// What the client calls itself.
    pub client_id: Str,
    /// Where it comes from.
    pub client_host: Str,
    /// What it sent when it joined.
    pub member_metadata: Bytes,
    /// What it was given.
    pub member_assignment: Bytes,
}

impl Value for DescribeGroupsResponseMember {
    fn bytes_min(form: Form) -> usize {
        let version = form.version;
        let mut bytes = form.tags_bytes_min();
        bytes += <Str>::bytes_min(form);
        if version >= 4 {
            bytes += <Option<Str>>::bytes_min(form);
        }
        bytes += <Str>::bytes_min(form);
        bytes += <Str>::bytes_min(form);
        bytes += <Bytes>::bytes_min(form);
        bytes += <Bytes>::bytes_min(form);
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let version = from.form().version;
        let read = Self {
            member_id: from.field("member_id")?,
            group_instance_id: if version >= 4 { from.field("group_instance_id")? } else { None },
            client_id: from.field("client_id")?,
            client_host: from.field("client_host")?,
            member_metadata: from.field("member_metadata")?,
            member_assignment: from.field("member_assignment")?,
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        let version = to.form().version;
        to.field("member_id", &self.member_id)?;
        if version >= 4 {
            to.field("group_instance_id", &self.group_instance_id)?;
        }
        to.field("client_id", &self.client_id)?;
        to.field("client_host", &self.client_host)?;
        to.field("member_metadata", &self.member_metadata)?;
        to.field("member_assignment", &self.member_assignment)?;
        to.no_tags();
        Ok(())
    }
}

impl Message for DescribeGroupsResponse {
    const API: ApiKey = ApiKey::DescribeGroups;
}

impl Request for DescribeGroupsRequest {
    type Response = DescribeGroupsResponse;
}

impl Response for DescribeGroupsResponse {}
