// Made from schema/kafka/messages/sync_group.kmsg by schema/regenerate. Changes go there.

use crate::kafka::wire::prelude::*;

/// Request: SyncGroup, versions 0-5.
///
/// Brings the leader's assignment, and answers each member with its own.
///
/// 1: throttle time. 3: static members (KIP-345). 5: type and name of the protocol are checked (KIP-559).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SyncGroupRequest {
    /// The group.
    pub group_id: Str,
    /// The generation.
    pub generation_id: i32,
    /// The member.
    pub member_id: Str,
    /// The static member's own name. Versions 3+. Default: null.
    pub group_instance_id: Option<Str>,
    /// The type of the protocol. Versions 5+. Default: null.
    pub protocol_type: Option<Str>,
    /// The assignor. Versions 5+. Default: null.
    pub protocol_name: Option<Str>,
    /// From the leader, for every member; otherwise none.
    pub assignments: Vec<SyncGroupRequestAssignment>,
}

impl Value for SyncGroupRequest {
    fn bytes_min(form: Form) -> usize {
        let version = form.version;
        let mut bytes = form.tags_bytes_min();
        bytes += <Str>::bytes_min(form);
        bytes += <i32>::bytes_min(form);
        bytes += <Str>::bytes_min(form);
        if version >= 3 {
            bytes += <Option<Str>>::bytes_min(form);
        }
        if version >= 5 {
            bytes += <Option<Str>>::bytes_min(form);
        }
        if version >= 5 {
            bytes += <Option<Str>>::bytes_min(form);
        }
        bytes += <Vec<SyncGroupRequestAssignment>>::bytes_min(form);
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let version = from.form().version;
        let read = Self {
            group_id: from.field("group_id")?,
            generation_id: from.field("generation_id")?,
            member_id: from.field("member_id")?,
            group_instance_id: if version >= 3 { from.field("group_instance_id")? } else { None },
            protocol_type: if version >= 5 { from.field("protocol_type")? } else { None },
            protocol_name: if version >= 5 { from.field("protocol_name")? } else { None },
            assignments: from.field("assignments")?,
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        let version = to.form().version;
        to.field("group_id", &self.group_id)?;
        to.field("generation_id", &self.generation_id)?;
        to.field("member_id", &self.member_id)?;
        if version >= 3 {
            to.field("group_instance_id", &self.group_instance_id)?;
        }
        if version >= 5 {
            to.field("protocol_type", &self.protocol_type)?;
        }
        if version >= 5 {
            to.field("protocol_name", &self.protocol_name)?;
        }
        to.field("assignments", &self.assignments)?;
        to.no_tags();
        Ok(())
    }
}

/// One of [`SyncGroupRequest::assignments`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SyncGroupRequestAssignment {
    /// The member.
    pub member_id: Str,
    /// What it gets.
    pub assignment: Bytes,
}

impl Value for SyncGroupRequestAssignment {
    fn bytes_min(form: Form) -> usize {
        let mut bytes = form.tags_bytes_min();
        bytes += <Str>::bytes_min(form);
        bytes += <Bytes>::bytes_min(form);
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let read = Self {
            member_id: from.field("member_id")?,
            assignment: from.field("assignment")?,
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        to.field("member_id", &self.member_id)?;
        to.field("assignment", &self.assignment)?;
        to.no_tags();
        Ok(())
    }
}

impl Message for SyncGroupRequest {
    const API: ApiKey = ApiKey::SyncGroup;
}

/// Response: SyncGroup, versions 0-5.
///
/// Brings the leader's assignment, and answers each member with its own.
///
/// 1: throttle time. 3: static members (KIP-345). 5: type and name of the protocol are checked (KIP-559).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SyncGroupResponse {
    /// How long the client was held back for its quota. Versions 1+.
    pub throttle_time_ms: i32,
    /// Whether it is a member.
    pub error_code: i16,
    /// The type of the protocol. Versions 5+. Default: null.
    pub protocol_type: Option<Str>,
    /// The assignor. Versions 5+. Default: null.
    pub protocol_name: Option<Str>,
    /// What the member gets.
    pub assignment: Bytes,
}

impl Value for SyncGroupResponse {
    fn bytes_min(form: Form) -> usize {
        let version = form.version;
        let mut bytes = form.tags_bytes_min();
        if version >= 1 {
            bytes += <i32>::bytes_min(form);
        }
        bytes += <i16>::bytes_min(form);
        if version >= 5 {
            bytes += <Option<Str>>::bytes_min(form);
        }
        if version >= 5 {
            bytes += <Option<Str>>::bytes_min(form);
        }
        bytes += <Bytes>::bytes_min(form);
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let version = from.form().version;
        let read = Self {
            throttle_time_ms: if version >= 1 { from.field("throttle_time_ms")? } else { 0 },
            error_code: from.field("error_code")?,
            protocol_type: if version >= 5 { from.field("protocol_type")? } else { None },
            protocol_name: if version >= 5 { from.field("protocol_name")? } else { None },
            assignment: from.field("assignment")?,
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        let version = to.form().version;
        if version >= 1 {
            to.field("throttle_time_ms", &self.throttle_time_ms)?;
        }
        to.field("error_code", &self.error_code)?;
        if version >= 5 {
            to.field("protocol_type", &self.protocol_type)?;
        }
        if version >= 5 {
            to.field("protocol_name", &self.protocol_name)?;
        }
        to.field("assignment", &self.assignment)?;
        to.no_tags();
        Ok(())
    }
}

impl Message for SyncGroupResponse {
    const API: ApiKey = ApiKey::SyncGroup;
}

impl Request for SyncGroupRequest {
    type Response = SyncGroupResponse;
}

impl Response for SyncGroupResponse {}
