//! ListGroups, versions 0-5: every coordinator of the broker is asked.
//!
//! The code of the whole answer says that a coordinator's groups are missing: it does not serve, or they do not fit.

use tackboard_logic::group::GroupListing;
use tackboard_schema::{
    ErrorCode,
    kafka::{ListGroupsRequest, ListGroupsResponse, ListGroupsResponseGroup},
};

use super::{
    codes::kafka_code,
    groups::{Named, Outcome, ask},
    handlers::Call,
};
use crate::shard::groups::{GroupAnswer, GroupRequest};

pub(super) fn handle(call: Call<'_>, request: &ListGroupsRequest) {
    let coordinators = call.state.every_coordinator();
    if coordinators.is_empty() {
        return call.respond(&ListGroupsResponse::default());
    }
    let filter = Filter {
        states: request
            .states_filter
            .iter()
            .map(|state| state.to_lowercase())
            .collect(),
        types: request
            .types_filter
            .iter()
            .map(|kind| kind.to_lowercase())
            .collect(),
    };
    let questions = coordinators.into_iter();
    let questions = questions.map(|(index, place)| (index, place, GroupRequest::List));
    let questions = questions.collect();
    ask(call, Named::Listed(filter), questions);
}

/// Which groups are wanted; empty: all.
#[derive(Default)]
pub struct Filter {
    states: Vec<String>,
    types: Vec<String>,
}

impl Filter {
    fn takes(&self, group: &GroupListing) -> bool {
        let state = group.state.name().to_lowercase();
        (self.states.is_empty() || self.states.contains(&state))
            && (self.types.is_empty() || self.types.iter().any(|kind| kind == "classic"))
    }
}

pub(super) fn told(filter: &Filter, outcomes: impl Iterator<Item = Outcome>) -> ListGroupsResponse {
    let mut response = ListGroupsResponse::default();
    for outcome in outcomes {
        let groups = match outcome {
            Ok(GroupAnswer::Listed(groups)) => groups,
            Ok(_) => {
                response.error_code = ErrorCode::UnknownServerError.code();
                continue;
            }
            Err(code) => {
                response.error_code = kafka_code(code);
                continue;
            }
        };
        let wanted = groups.into_iter().filter(|group| filter.takes(group));
        response
            .groups
            .extend(wanted.map(|group| ListGroupsResponseGroup {
                group_id: (*group.group).into(),
                protocol_type: (*group.protocol_type).into(),
                group_state: group.state.name().into(),
                group_type: "classic".into(),
            }));
    }
    response
}
