// Made from schema/kafka/messages/heartbeat.kmsg by schema/regenerate. Changes go there.

use crate::kafka::wire::prelude::*;

/// Request: Heartbeat, versions 0-4.
///
/// Keeps a member in its group, and tells it when to join again.
///
/// 1: throttle time. 3: static members (KIP-345).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeartbeatRequest {
    /// The group.
    pub group_id: Str,
    /// The generation.
    pub generation_id: i32,
    /// The member.
    pub member_id: Str,
    /// The static member's own name. Versions 3+. Default: null.
    pub group_instance_id: Option<Str>,
}

impl Value for HeartbeatRequest {
    fn bytes_min(form: Form) -> usize {
        let version = form.version;
        let mut bytes = form.tags_bytes_min();
        bytes += <Str>::bytes_min(form);
        bytes += <i32>::bytes_min(form);
        bytes += <Str>::bytes_min(form);
        if version >= 3 {
            bytes += <Option<Str>>::bytes_min(form);
        }
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let version = from.form().version;
        let read = Self {
            group_id: from.field("group_id")?,
            generation_id: from.field("generation_id")?,
            member_id: from.field("member_id")?,
            group_instance_id: if version >= 3 { from.field("group_instance_id")? } else { None },
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
        to.no_tags();
        Ok(())
    }
}

impl Message for HeartbeatRequest {
    const API: ApiKey = ApiKey::Heartbeat;
}

/// Response: Heartbeat, versions 0-4.
///
/// Keeps a member in its group, and tells it when to join again.
///
/// 1: throttle time. 3: static members (KIP-345).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeartbeatResponse {
    /// How long the client was held back for its quota. Versions 1+.
    pub throttle_time_ms: i32,
    /// Whether it is a member, and need not join again.
    pub error_code: i16,
}

impl Value for HeartbeatResponse {
    fn bytes_min(form: Form) -> usize {
        let version = form.version;
        let mut bytes = form.tags_bytes_min();
        if version >= 1 {
            bytes += <i32>::bytes_min(form);
        }
        bytes += <i16>::bytes_min(form);
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let version = from.form().version;
        let read = Self {
            throttle_time_ms: if version >= 1 { from.field("throttle_time_ms")? } else { 0 },
            error_code: from.field("error_code")?,
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
        to.no_tags();
        Ok(())
    }
}

impl Message for HeartbeatResponse {
    const API: ApiKey = ApiKey::Heartbeat;
}

impl Request for HeartbeatRequest {
    type Response = HeartbeatResponse;
}

impl Response for HeartbeatResponse {}
