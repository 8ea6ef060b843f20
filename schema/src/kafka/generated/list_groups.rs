// Made from schema/kafka/messages/list_groups.kmsg by schema/regenerate. Changes go there.

use crate::kafka::wire::prelude::*;

/// Request: ListGroups, versions 0-5.
///
/// Lists the groups that this broker coordinates.
///
/// 4: by state (KIP-518). 5: by type (KIP-848).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListGroupsRequest {
    /// The states; empty for all. Versions 4+.
    pub states_filter: Vec<Str>,
    /// The types; empty for all. Versions 5+.
    pub types_filter: Vec<Str>,
}

impl Value for ListGroupsRequest {
    fn bytes_min(form: Form) -> usize {
        let version = form.version;
        let mut bytes = form.tags_bytes_min();
        if version >= 4 {
            bytes += <Vec<Str>>::bytes_min(form);
        }
        if version >= 5 {
            bytes += <Vec<Str>>::bytes_min(form);
        }
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let version = from.form().version;
        let read = Self {
            states_filter: if version >= 4 { from.field("states_filter")? } else { Vec::new() },
            types_filter: if version >= 5 { from.field("types_filter")? } else { Vec::new() },
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        let version = to.form().version;
        if version >= 4 {
            to.field("states_filter", &self.states_filter)?;
        }
        if version >= 5 {
            to.field("types_filter", &self.types_filter)?;
        }
        to.no_tags();
        Ok(())
    }
}

impl Message for ListGroupsRequest {
    const API: ApiKey = ApiKey::ListGroups;
}

/// Response: ListGroups, versions 0-5.
///
/// Lists the groups that this broker coordinates.
///
/// 4: by state (KIP-518). 5: by type (KIP-848).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListGroupsResponse {
    /// How long the client was held back for its quota. Versions 1+.
    pub throttle_time_ms: i32,
    /// A fault of the whole request.
    pub error_code: i16,
    /// The groups.
    pub groups: Vec<ListGroupsResponseGroup>,
}

impl Value for ListGroupsResponse {
    fn bytes_min(form: Form) -> usize {
        let version = form.version;
        let mut bytes = form.tags_bytes_min();
        if version >= 1 {
            bytes += <i32>::bytes_min(form);
        }
        bytes += <i16>::bytes_min(form);
        bytes += <Vec<ListGroupsResponseGroup>>::bytes_min(form);
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let version = from.form().version;
        let read = Self {
            throttle_time_ms: if version >= 1 { from.field("throttle_time_ms")? } else { 0 },
            error_code: from.field("error_code")?,
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
        to.field("error_code", &self.error_code)?;
        to.field("groups", &self.groups)?;
        to.no_tags();
        Ok(())
    }
}

/// One of [`ListGroupsResponse::groups`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListGroupsResponseGroup {
    /// Its id.
    pub group_id: Str,
    /// The type of its protocol.
    pub protocol_type: Str,
    /// Its state. Versions 4+.
    pub group_state: Str,
    /// `classic`, or `consumer` for the newer protocol. Versions 5+.
    pub group_type: Str,
}

impl Value for ListGroupsResponseGroup {
    fn bytes_min(form: Form) -> usize {
        let version = form.version;
        let mut bytes = form.tags_bytes_min();
        bytes += <Str>::bytes_min(form);
        bytes += <Str>::bytes_min(form);
        if version >= 4 {
            bytes += <Str>::bytes_min(form);
        }
        if version >= 5 {
            bytes += <Str>::bytes_min(form);
        }
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let version = from.form().version;
        let read = Self {
            group_id: from.field("group_id")?,
            protocol_type: from.field("protocol_type")?,
            group_state: if version >= 4 { from.field("group_state")? } else { Str::default() },
            group_type: if version >= 5 { from.field("group_type")? } else { Str::default() },
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        let version = to.form().version;
        to.field("group_id", &self.group_id)?;
        to.field("protocol_type", &self.protocol_type)?;
        if version >= 4 {
            to.field("group_state", &self.group_state)?;
        }
        if version >= 5 {
            to.field("group_type", &self.group_type)?;
        }
        to.no_tags();
        Ok(())
    }
}

impl Message for ListGroupsResponse {
    const API: ApiKey = ApiKey::ListGroups;
}

impl Request for ListGroupsRequest {
    type Response = ListGroupsResponse;
}

impl Response for ListGroupsResponse {}
