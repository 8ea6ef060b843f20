// Made from schema/kafka/messages/delete_groups.kmsg by schema/regenerate. Changes go there.

use crate::kafka::wire::prelude::*;

/// Request: DeleteGroups, versions 0-2.
///
/// Deletes groups that have no members.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeleteGroupsRequest {
    /// The groups.
    pub groups_names: Vec<Str>,
}

impl Value for DeleteGroupsRequest {
    fn bytes_min(form: Form) -> usize {
        let mut bytes = form.tags_bytes_min();
        bytes += <Vec<Str>>::bytes_min(form);
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let read = Self {
            groups_names: from.field("groups_names")?,
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        to.field("groups_names", &self.groups_names)?;
        to.no_tags();
        Ok(())
    }
}

impl Message for DeleteGroupsRequest {
    const API: ApiKey = ApiKey::DeleteGroups;
}

/// Response: DeleteGroups, versions 0-2.
///
/// Deletes groups that have no members.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeleteGroupsResponse {
    /// How long the client was held back for its quota.
    pub throttle_time_ms: i32,
    /// The groups, as they were asked.
    pub results: Vec<DeleteGroupsResponseGroup>,
}

impl Value for DeleteGroupsResponse {
    fn bytes_min(form: Form) -> usize {
        let mut bytes = form.tags_bytes_min();
        bytes += <i32>::bytes_min(form);
        bytes += <Vec<DeleteGroupsResponseGroup>>::bytes_min(form);
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let read = Self {
            throttle_time_ms: from.field("throttle_time_ms")?,
            results: from.field("results")?,
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        to.field("throttle_time_ms", &self.throttle_time_ms)?;
        to.field("results", &self.results)?;
        to.no_tags();
        Ok(())
    }
}

/// One of [`DeleteGroupsResponse::results`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeleteGroupsResponseGroup {
    /// Its id.
    pub group_id: Str,
    /// Whether it was deleted.
    pub error_code: i16,
}

impl Value for DeleteGroupsResponseGroup {
    fn bytes_min(form: Form) -> usize {
        let mut bytes = form.tags_bytes_min();
        bytes += <Str>::bytes_min(form);
        bytes += <i16>::bytes_min(form);
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let read = Self {
            group_id: from.field("group_id")?,
            error_code: from.field("error_code")?,
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        to.field("group_id", &self.group_id)?;
        to.field("error_code", &self.error_code)?;
        to.no_tags();
        Ok(())
    }
}

impl Message for DeleteGroupsResponse {
    const API: ApiKey = ApiKey::DeleteGroups;
}

impl Request for DeleteGroupsRequest {
    type Response = DeleteGroupsResponse;
}

impl Response for DeleteGroupsResponse {}
