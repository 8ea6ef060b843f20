//! AlterConfigs, versions 0-2, and IncrementalAlterConfigs, versions 0-1 (KIP-339): settings of topics.
//!
//! The changes of one topic are made together or not at all, and hold for what is produced and fetched once they are
//! answered. AlterConfigs gives every setting that it does not name back to the broker.
//!
//! Not offered: settings of brokers, which change at the next start, and of anything else.

use tackboard_logic::metadata::{AlterTopic, Command, ConfigChange, MetadataRefusal, TopicSetting};
use tackboard_schema::{
    ErrorCode,
    kafka::{
        AlterConfigsRequest, AlterConfigsResponse, AlterConfigsResponseResource,
        IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse,
        IncrementalAlterConfigsResponseResource, Str,
    },
};

use super::{
    changes::{self, Change, refused},
    configs::Resource,
    handlers::Call,
};

pub(super) fn handle(call: Call<'_>, request: AlterConfigsRequest) {
    let asked = request.resources.into_iter().map(|resource| {
        let changes = resource.configs.iter().map(|config| {
            let value = given(config.value.as_ref())?;
            Ok((key(&config.name), ConfigChange::Set(value)))
        });
        let changes = changes.collect();
        alter(
            resource.resource_type,
            resource.resource_name,
            true,
            changes,
        )
    });
    let asked = asked.collect();
    changes::propose(call, asked, request.validate_only);
}

pub(super) fn handle_incremental(call: Call<'_>, request: IncrementalAlterConfigsRequest) {
    let asked = request.resources.into_iter().map(|resource| {
        let changes = resource.configs.iter().map(|config| {
            let value = || given(config.value.as_ref());
            let change = match config.config_operation {
                0 => ConfigChange::Set(value()?),
                1 => ConfigChange::Reset,
                2 => ConfigChange::Append(value()?),
                3 => ConfigChange::Subtract(value()?),
                _ => return refused(ErrorCode::InvalidRequest, "an operation that is not known"),
            };
            Ok((key(&config.name), change))
        });
        let changes = changes.collect();
        alter(
            resource.resource_type,
            resource.resource_name,
            false,
            changes,
        )
    });
    let asked = asked.collect();
    changes::propose(call, asked, request.validate_only);
}

fn key(name: &str) -> String {
    TopicSetting::key_from_kafka(name).to_owned()
}

fn given(value: Option<&Str>) -> Result<String, MetadataRefusal> {
    match value {
        Some(value) => Ok(value.to_string()),
        None => refused(ErrorCode::InvalidRequest, "a setting without a value"),
    }
}

fn alter(
    resource_type: i8,
    name: Str,
    resets_others: bool,
    changes: Result<Vec<(String, ConfigChange)>, MetadataRefusal>,
) -> (Change, Result<Command, MetadataRefusal>) {
    let command = match Resource::from_code(resource_type) {
        Some(Resource::Topic) => changes.map(|changes| {
            Command::AlterTopic(AlterTopic {
                name: name.to_string(),
                resets_others,
                changes,
            })
        }),
        Some(Resource::Broker) => refused(
            ErrorCode::InvalidRequest,
            "settings of the broker change at its next start: in its file, or with --set",
        ),
        None => refused(
            ErrorCode::InvalidRequest,
            "of this kind of resource there are no settings",
        ),
    };
    let change = Change {
        resource_type,
        ..Change::of(name)
    };
    (change, command)
}

/// The answer to AlterConfigs, once every topic is decided.
pub(super) fn answer(changes: Vec<Change>) -> AlterConfigsResponse {
    let responses = changes.into_iter().map(|change| {
        let (error_code, error_message) = change.told();
        AlterConfigsResponseResource {
            error_code,
            error_message,
            resource_type: change.resource_type,
            resource_name: change.name.unwrap_or_default(),
        }
    });
    AlterConfigsResponse {
        responses: responses.collect(),
        ..AlterConfigsResponse::default()
    }
}

/// The answer to IncrementalAlterConfigs, once every topic is decided.
pub(super) fn answer_incremental(changes: Vec<Change>) -> IncrementalAlterConfigsResponse {
    let responses = changes.into_iter().map(|change| {
        let (error_code, error_message) = change.told();
        IncrementalAlterConfigsResponseResource {
            error_code,
            error_message,
            resource_type: change.resource_type,
            resource_name: change.name.unwrap_or_default(),
        }
    });
    IncrementalAlterConfigsResponse {
        responses: responses.collect(),
        ..IncrementalAlterConfigsResponse::default()
    }
}
