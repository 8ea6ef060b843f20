//! DeleteGroups.

use tackboard_schema::kafka::{
    DeleteGroupsRequest, DeleteGroupsResponse, DeleteGroupsResponseGroup, Str,
};

use super::{
    groups::{Named, Outcome, ask, code_of, each_once, find},
    handlers::Call,
};
use crate::shard::groups::GroupRequest;

pub(super) fn handle(mut call: Call<'_>, request: DeleteGroupsRequest) {
    let groups: Vec<Str> = each_once(request.groups_names, |group| group).collect();
    let questions = groups.iter().map(|group| {
        let wanted = GroupRequest::Delete(group.to_string());
        find(&mut call, group, wanted)
    });
    let questions = questions.collect();
    ask(call, Named::Groups(groups), questions);
}

pub(super) fn told(
    groups: Vec<Str>,
    outcomes: impl Iterator<Item = Outcome>,
) -> DeleteGroupsResponse {
    let groups = groups.into_iter().zip(outcomes);
    let results = groups.map(|(group_id, outcome)| DeleteGroupsResponseGroup {
        group_id,
        error_code: code_of(Some(outcome)),
    });
    DeleteGroupsResponse {
        results: results.collect(),
        ..DeleteGroupsResponse::default()
    }
}
