//! Administration of groups as single calls.

use tackboard_schema::Offset;

use super::calls::Call;
use super::frames::InFrame;
use super::group::{CommittedOffset, NamedPartition};
use super::messages::Context;
use super::wire::groups::{self, GroupQuestion, Identity};
use super::wire::{Question, group_admin};
use crate::admin::{GroupDescription, GroupSummary};
use crate::error::Result;

pub(crate) struct ListGroups;
pub(crate) struct DescribeGroup<'a>(pub(crate) &'a str);
pub(crate) struct DeleteGroup<'a>(pub(crate) &'a str);
pub(crate) struct GroupOffsets<'a>(pub(crate) &'a str);
pub(crate) struct SetGroupOffsets<'a>(
    pub(crate) &'a str,
    pub(crate) &'a [(NamedPartition, Offset)],
);
pub(crate) struct DeleteGroupOffsets<'a>(pub(crate) &'a str, pub(crate) &'a [NamedPartition]);

impl Call for ListGroups {
    type Output = Vec<GroupSummary>;

    fn question(&self) -> Question<'_> {
        Question::Group(GroupQuestion::List)
    }

    fn read(&self, context: &Context, frame: &InFrame) -> Result<Vec<GroupSummary>> {
        group_admin::read_list(context, frame)
    }
}

impl Call for DescribeGroup<'_> {
    type Output = GroupDescription;

    fn question(&self) -> Question<'_> {
        Question::Group(GroupQuestion::Describe { group: self.0 })
    }

    fn read(&self, context: &Context, frame: &InFrame) -> Result<GroupDescription> {
        group_admin::read_describe(context, frame, self.0)
    }
}

impl Call for DeleteGroup<'_> {
    type Output = ();
    // It may be gone already; asked again, the call would say that there is none.
    const IS_REPEATABLE: bool = false;

    fn question(&self) -> Question<'_> {
        Question::Group(GroupQuestion::Delete { group: self.0 })
    }

    fn read(&self, context: &Context, frame: &InFrame) -> Result<()> {
        group_admin::read_delete(context, frame, self.0)
    }
}

impl Call for GroupOffsets<'_> {
    type Output = Vec<CommittedOffset>;

    fn question(&self) -> Question<'_> {
        Question::Group(GroupQuestion::Offsets {
            group: self.0,
            partitions: None,
        })
    }

    /// In the order of topics and partitions.
    fn read(&self, context: &Context, frame: &InFrame) -> Result<Vec<CommittedOffset>> {
        let mut offsets = groups::read_fetch(context, frame)?;
        offsets.sort_by(|one, other| one.partition.cmp(&other.partition));
        Ok(offsets)
    }
}

impl Call for SetGroupOffsets<'_> {
    type Output = ();

    /// As somebody who is no member: the coordinator takes it while the group has none.
    fn question(&self) -> Question<'_> {
        let who = Identity {
            group: self.0,
            member_id: "",
            instance: None,
            generation: -1,
        };
        Question::Group(GroupQuestion::Commit {
            who,
            offsets: self.1,
        })
    }

    fn read(&self, context: &Context, frame: &InFrame) -> Result<()> {
        let refused = groups::read_commit(context, frame)?;
        refused.into_values().next().map_or(Ok(()), Err)
    }
}

impl Call for DeleteGroupOffsets<'_> {
    type Output = ();

    fn question(&self) -> Question<'_> {
        Question::Group(GroupQuestion::DeleteOffsets {
            group: self.0,
            partitions: self.1,
        })
    }

    fn read(&self, context: &Context, frame: &InFrame) -> Result<()> {
        group_admin::read_delete_offsets(context, frame)
    }
}
