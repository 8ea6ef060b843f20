// Made from schema/kafka/messages/join_group.kmsg by schema/regenerate. Changes go there.

use crate::kafka::wire::prelude::*;

/// Request: JoinGroup, versions 0-9.
///
/// Makes a client a member of a group, or keeps it one; answered when the group's next generation begins.
///
/// 0: its session timeout serves as rebalance timeout. 4: a member without an id is given one, with error 79, and joins
/// again (KIP-394). 5: static members (KIP-345). 7: the protocol's type is answered (KIP-559). 8: why it joins (KIP-800).
/// 9: a leader may be told to leave the assignment as it is (KIP-814).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinGroupRequest {
    /// The group.
    pub group_id: Str,
    /// How long it may be silent.
    pub session_timeout_ms: i32,
    /// How long it may take to join again. Versions 1+. Default: -1.
    pub rebalance_timeout_ms: i32,
    /// Its id, or empty.
    pub member_id: Str,
    /// The static member's own name. Versions 5+. Default: null.
    pub group_instance_id: Option<Str>,
    /// `consumer`, for consumers.
    pub protocol_type: Str,
    /// The assignors it knows, best first.
    pub protocols: Vec<JoinGroupRequestProtocol>,
    /// Why it joins. Versions 8+. Default: null.
    pub reason: Option<Str>,
}

impl Default for JoinGroupRequest {
    fn default() -> Self {
        Self {
            group_id: Str::default(),
            session_timeout_ms: 0,
            rebalance_timeout_ms: -1,
            member_id: Str::default(),
            group_instance_id: None,
            protocol_type: Str::default(),
            protocols: Vec::new(),
            reason: None,
        }
    }
}

impl Value for JoinGroupRequest {
    fn bytes_min(form: Form) -> usize {
        let version = form.version;
        let mut bytes = form.tags_bytes_min();
        bytes += <Str>::bytes_min(form);
        bytes += <i32>::bytes_min(form);
        if version >= 1 {
            bytes += <i32>::bytes_min(form);
        }
        bytes += <Str>::bytes_min(form);
        if version >= 5 {
            bytes += <Option<Str>>::bytes_min(form);
        }
        bytes += <Str>::bytes_min(form);
        bytes += <Vec<JoinGroupRequestProtocol>>::bytes_min(form);
        if version >= 8 {
            bytes += <Option<Str>>::bytes_min(form);
        }
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let version = from.form().version;
        let read = Self {
            group_id: from.field("group_id")?,
            session_timeout_ms: from.field("session_timeout_ms")?,
            rebalance_timeout_ms: if version >= 1 { from.field("rebalance_timeout_ms")? } else { -1 },
            member_id: from.field("member_id")?,
            group_instance_id: if version >= 5 { from.field("group_instance_id")? } else { None },
            protocol_type: from.field("protocol_type")?,
            protocols: from.field("protocols")?,
            reason: if version >= 8 { from.field("reason")? } else { None },
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        let version = to.form().version;
        to.field("group_id", &self.group_id)?;
        to.field("session_timeout_ms", &self.session_timeout_ms)?;
        if version >= 1 {
            to.field("rebalance_timeout_ms", &self.rebalance_timeout_ms)?;
        }
        to.field("member_id", &self.member_id)?;
        if version >= 5 {
            to.field("group_instance_id", &self.group_instance_id)?;
        }
        to.field("protocol_type", &self.protocol_type)?;
        to.field("protocols", &self.protocols)?;
        if version >= 8 {
            to.field("reason", &self.reason)?;
        }
        to.no_tags();
        Ok(())
    }
}

/// One of [`JoinGroupRequest::protocols`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JoinGroupRequestProtocol {
    /// Its name.
    pub name: Str,
    /// What the leader needs to know of the member.
    pub metadata: Bytes,
}

impl Value for JoinGroupRequestProtocol {
    fn bytes_min(form: Form) -> usize {
        let mut bytes = form.tags_bytes_min();
        bytes += <Str>::bytes_min(form);
        bytes += <Bytes>::bytes_min(form);
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let read = Self {
            name: from.field("name")?,
            metadata: from.field("metadata")?,
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        to.field("name", &self.name)?;
        to.field("metadata", &self.metadata)?;
        to.no_tags();
        Ok(())
    }
}

impl Message for JoinGroupRequest {
    const API: ApiKey = ApiKey::JoinGroup;
}

/// Response: JoinGroup, versions 0-9.
///
/// Makes a client a member of a group, or keeps it one; answered when the group's next generation begins.
///
/// 0: its session timeout serves as rebalance timeout. 4: a member without an id is given one, with error 79, and joins
/// again (KIP-394). 5: static members (KIP-345). 7: the protocol's type is answered (KIP-559). 8: why it joins (KIP-800).
/// 9: a leader may be told to leave the assignment as it is (KIP-814).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinGroupResponse {
    /// How long the client was held back for its quota. Versions 2+.
    pub throttle_time_ms: i32,
    /// Whether it is a member.
    pub error_code: i16,
    /// The generation. Default: -1.
    pub generation_id: i32,
    /// The type of the protocol. Versions 7+. Default: null.
    pub protocol_type: Option<Str>,
    /// The assignor that was chosen. Null: versions 7+.
    pub protocol_name: Option<Str>,
    /// The member that assigns.
    pub leader: Str,
    /// Whether the leader leaves the assignment as it is. Versions 9+.
    pub skip_assignment: bool,
    /// The member's id.
    pub member_id: Str,
    /// For the leader, every member; otherwise none.
    pub members: Vec<JoinGroupResponseMember>,
}

impl Default for JoinGroupResponse {
    fn default() -> Self {
        Self {
            throttle_time_ms: 0,
            error_code: 0,
            generation_id: -1,
            protocol_type: None,
            protocol_name: Some(Str::default()),
            leader: Str::default(),
            skip_assignment: false,
            member_id: Str::default(),
            members: Vec::new(),
        }
    }
}

impl Value for JoinGroupResponse {
    fn bytes_min(form: Form) -> usize {
        let version = form.version;
        let mut bytes = form.tags_bytes_min();
        if version >= 2 {
            bytes += <i32>::bytes_min(form);
        }
        bytes += <i16>::bytes_min(form);
        bytes += <i32>::bytes_min(form);
        if version >= 7 {
            bytes += <Option<Str>>::bytes_min(form);
        }
        bytes += <Option<Str>>::bytes_min(form);
        bytes += <Str>::bytes_min(form);
        if version >= 9 {
            bytes += <bool>::bytes_min(form);
        }
        bytes += <Str>::bytes_min(form);
        bytes += <Vec<JoinGroupResponseMember>>::bytes_min(form);
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let version = from.form().version;
        let read = Self {
            throttle_time_ms: if version >= 2 { from.field("throttle_time_ms")? } else { 0 },
            error_code: from.field("error_code")?,
            generation_id: from.field("generation_id")?,
            protocol_type: if version >= 7 { from.field("protocol_type")? } else { None },
            protocol_name: if version >= 7 { from.field("protocol_name")? } else { Some(from.field("protocol_name")?) },
            leader: from.field("leader")?,
            skip_assignment: if version >= 9 { from.field("skip_assignment")? } else { false },
            member_id: from.field("member_id")?,
            members: from.field("members")?,
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        let version = to.form().version;
        if version >= 2 {
            to.field("throttle_time_ms", &self.throttle_time_ms)?;
        }
        to.field("error_code", &self.error_code)?;
        to.field("generation_id", &self.generation_id)?;
        if version >= 7 {
            to.field("protocol_type", &self.protocol_type)?;
        }
        to.nullable("protocol_name", &self.protocol_name, version >= 7)?;
        to.field("leader", &self.leader)?;
        if version >= 9 {
            to.field("skip_assignment", &self.skip_assignment)?;
        }
        to.field("member_id", &self.member_id)?;
        to.field("members", &self.members)?;
        to.no_tags();
        Ok(())
    }
}

/// One of [`JoinGroupResponse::members`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JoinGroupResponseMember {
    /// Its id.
    pub member_id: Str,
    /// The static member's own name. Versions 5+. Default: null.
    pub group_instance_id: Option<Str>,
    /// What it sent when it joined.
    pub metadata: Bytes,
}

impl Value for JoinGroupResponseMember {
    fn bytes_min(form: Form) -> usize {
        let version = form.version;
        let mut bytes = form.tags_bytes_min();
        bytes += <Str>::bytes_min(form);
        if version >= 5 {
            bytes += <Option<Str>>::bytes_min(form);
        }
        bytes += <Bytes>::bytes_min(form);
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let version = from.form().version;
        let read = Self {
            member_id: from.field("member_id")?,
            group_instance_id: if version >= 5 { from.field("group_instance_id")? } else { None },
            metadata: from.field("metadata")?,
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        let version = to.form().version;
        to.field("member_id", &self.member_id)?;
        if version >= 5 {
            to.field("group_instance_id", &self.group_instance_id)?;
        }
        to.field("metadata", &self.metadata)?;
        to.no_tags();
        Ok(())
    }
}

impl Message for JoinGroupResponse {
    const API: ApiKey = ApiKey::JoinGroup;
}

impl Request for JoinGroupRequest {
    type Response = JoinGroupResponse;
}

impl Response for JoinGroupResponse {}
