// Made from schema/kafka/messages/leave_group.kmsg by schema/regenerate. Changes go there.

use crate::kafka::wire::prelude::*;

/// Request: LeaveGroup, versions 0-5.
///
/// Takes members out of a group.
///
/// 3: several members, static ones too, each with its own answer (KIP-345). 5: why (KIP-800).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeaveGroupRequest {
    /// The group.
    pub group_id: Str,
    /// The member. Versions 0-2.
    pub member_id: Str,
    /// The members. Versions 3+.
    pub members: Vec<LeaveGroupRequestMember>,
}

impl Value for LeaveGroupRequest {
    fn bytes_min(form: Form) -> usize {
        let version = form.version;
        let mut bytes = form.tags_bytes_min();
        bytes += <Str>::bytes_min(form);
        if version <= 2 {
            bytes += <Str>::bytes_min(form);
        }
        if version >= 3 {
            bytes += <Vec<LeaveGroupRequestMember>>::bytes_min(form);
        }
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let version = from.form().version;
        let read = Self {
            group_id: from.field("group_id")?,
            member_id: if version <= 2 { from.field("member_id")? } else { Str::default() },
            members: if version >= 3 { from.field("members")? } else { Vec::new() },
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        let version = to.form().version;
        to.field("group_id", &self.group_id)?;
        if version <= 2 {
            to.field("member_id", &self.member_id)?;
        }
        if version >= 3 {
            to.field("members", &self.members)?;
        }
        to.no_tags();
        Ok(())
    }
}

/// One of [`LeaveGroupRequest::members`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeaveGroupRequestMember {
    /// Its id, or empty for a static member.
    pub member_id: Str,
    /// The static member's own name. Default: null.
    pub group_instance_id: Option<Str>,
    /// Why it leaves. Versions 5+. Default: null.
    pub reason: Option<Str>,
}

impl Value for LeaveGroupRequestMember {
    fn bytes_min(form: Form) -> usize {
        let version = form.version;
        let mut bytes = form.tags_bytes_min();
        bytes += <Str>::bytes_min(form);
        bytes += <Option<Str>>::bytes_min(form);
        if version >= 5 {
            bytes += <Option<Str>>::bytes_min(form);
        }
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let version = from.form().version;
        let read = Self {
            member_id: from.field("member_id")?,
            group_instance_id: from.field("group_instance_id")?,
            reason: if version >= 5 { from.field("reason")? } else { None },
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        let version = to.form().version;
        to.field("member_id", &self.member_id)?;
        to.field("group_instance_id", &self.group_instance_id)?;
        if version >= 5 {
            to.field("reason", &self.reason)?;
        }
        to.no_tags();
        Ok(())
    }
}

impl Message for LeaveGroupRequest {
    const API: ApiKey = ApiKey::LeaveGroup;
}

/// Response: LeaveGroup, versions 0-5.
///
/// Takes members out of a group.
///
/// 3: several members, static ones too, each with its own answer (KIP-345). 5: why (KIP-800).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeaveGroupResponse {
    /// How long the client was held back for its quota. Versions 1+.
    pub throttle_time_ms: i32,
    /// A fault of the whole request.
    pub error_code: i16,
    /// The members, as they were asked. Versions 3+.
    pub members: Vec<LeaveGroupResponseMember>,
}

impl Value for LeaveGroupResponse {
    fn bytes_min(form: Form) -> usize {
        let version = form.version;
        let mut bytes = form.tags_bytes_min();
        if version >= 1 {
            bytes += <i32>::bytes_min(form);
        }
        bytes += <i16>::bytes_min(form);
        if version >= 3 {
            bytes += <Vec<LeaveGroupResponseMember>>::bytes_min(form);
        }
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let version = from.form().version;
        let read = Self {
            throttle_time_ms: if version >= 1 { from.field("throttle_time_ms")? } else { 0 },
            error_code: from.field("error_code")?,
            members: if version >= 3 { from.field("members")? } else { Vec::new() },
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
        if version >= 3 {
            to.field("members", &self.members)?;
        }
        to.no_tags();
        Ok(())
    }
}

/// One of [`LeaveGroupResponse::members`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaveGroupResponseMember {
    /// Its id.
    pub member_id: Str,
    /// The static member's own name.
    pub group_instance_id: Option<Str>,
    /// Whether it has left.
    pub error_code: i16,
}

impl Default for LeaveGroupResponseMember {
    fn default() -> Self {
        Self {
            member_id: Str::default(),
            group_instance_id: Some(Str::default()),
            error_code: 0,
        }
    }
}

impl Value for LeaveGroupResponseMember {
    fn bytes_min(form: Form) -> usize {
        let mut bytes = form.tags_bytes_min();
        bytes += <Str>::bytes_min(form);
        bytes += <Option<Str>>::bytes_min(form);
        bytes += <i16>::bytes_min(form);
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let read = Self {
            member_id: from.field("member_id")?,
            group_instance_id: from.field("group_instance_id")?,
            error_code: from.field("error_code")?,
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        to.field("member_id", &self.member_id)?;
        to.field("group_instance_id", &self.group_instance_id)?;
        to.field("error_code", &self.error_code)?;
        to.no_tags();
        Ok(())
    }
}

impl Message for LeaveGroupResponse {
    const API: ApiKey = ApiKey::LeaveGroup;
}

impl Request for LeaveGroupRequest {
    type Response = LeaveGroupResponse;
}

impl Response for LeaveGroupResponse {}
