//! DescribeConfigs, versions 1-4: every setting of a topic or of this broker, with what would hold without it (KIP-226),
//! its type and what it means (KIP-569). A resource that a request names twice is told once.
//!
//! An empty list of settings asks for all of them, as a missing one does.

use std::collections::BTreeSet;

use tackboard_schema::{
    ErrorCode,
    kafka::{
        DescribeConfigsRequest, DescribeConfigsRequestResource, DescribeConfigsResponse,
        DescribeConfigsResponseConfig, DescribeConfigsResponseResult,
        DescribeConfigsResponseSynonym,
    },
};

use super::{
    codes::kafka_code,
    configs::{Resource, Shown, advertised_listener, of_broker, of_topic},
    handlers::Call,
};
use crate::shard::{placed::find_topic, request::Failure, state::State};

pub(super) fn handle(call: Call<'_>, request: DescribeConfigsRequest) {
    let mut named = BTreeSet::new();
    let mut response = DescribeConfigsResponse::default();
    for resource in request.resources {
        if !named.insert((resource.resource_type, resource.resource_name.clone())) {
            continue;
        }
        let told = match settings(call.state, &resource) {
            Ok(shown) => {
                let keys = resource.configuration_keys.filter(|keys| !keys.is_empty());
                let keys = keys.map(|keys| keys.into_iter().collect::<BTreeSet<_>>());
                let is_wanted = |shown: &Shown<'_>| {
                    (keys.as_ref()).is_none_or(|keys| keys.contains(shown.name))
                };
                let tell = |shown| {
                    told(
                        shown,
                        request.include_synonyms,
                        request.include_documentation,
                    )
                };
                DescribeConfigsResponseResult {
                    configs: shown.into_iter().filter(is_wanted).map(tell).collect(),
                    ..DescribeConfigsResponseResult::default()
                }
            }
            Err(failure) => DescribeConfigsResponseResult {
                error_code: kafka_code(failure.code),
                error_message: Some(failure.message.as_str().into()),
                ..DescribeConfigsResponseResult::default()
            },
        };
        response.results.push(DescribeConfigsResponseResult {
            resource_type: resource.resource_type,
            resource_name: resource.resource_name,
            ..told
        });
    }
    call.respond(&response);
}

fn settings<'a>(
    state: &'a State,
    resource: &DescribeConfigsRequestResource,
) -> Result<Vec<Shown<'a>>, Failure> {
    let config = &*state.config;
    let name = resource.resource_name.as_str();
    match Resource::from_code(resource.resource_type) {
        Some(Resource::Topic) => Ok(of_topic(config, &*find_topic(state, name).1?)),
        Some(Resource::Broker) if name.is_empty() => Ok(Vec::new()),
        Some(Resource::Broker) if name == config.broker_id.to_string() => {
            let listener = state.kafka_endpoint.as_ref().map(advertised_listener);
            Ok(of_broker(config).into_iter().chain(listener).collect())
        }
        Some(Resource::Broker) => Err(Failure::new(
            ErrorCode::InvalidRequest,
            format!("this is broker {}", config.broker_id),
        )),
        None => Err(Failure::new(
            ErrorCode::InvalidRequest,
            "of this kind of resource there are no settings",
        )),
    }
}

fn told(
    shown: Shown<'_>,
    include_synonyms: bool,
    include_documentation: bool,
) -> DescribeConfigsResponseConfig {
    let (value, source) = (shown.value().into(), shown.source());
    let synonyms = shown.synonyms.into_iter().filter(|_| include_synonyms);
    let synonym = |synonym: super::configs::Synonym<'_>| DescribeConfigsResponseSynonym {
        name: synonym.name.into(),
        value: Some(synonym.value.into()),
        source: synonym.source.code(),
    };
    DescribeConfigsResponseConfig {
        name: shown.name.into(),
        value: Some(value),
        read_only: shown.read_only,
        config_source: source.code(),
        is_sensitive: false,
        synonyms: synonyms.map(synonym).collect(),
        config_type: shown.config_type,
        documentation: include_documentation.then(|| shown.text.into()),
    }
}
