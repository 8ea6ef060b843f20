//! How much one request is told of groups: no more than a frame holds.
//!
//! A short request may name many groups, and each of them may have much to say. What does not fit is refused group by
//! group, so that whoever asked can ask for the rest. It counts twice: on each core, which looks at nothing more once the
//! room is used up, and for all cores together before the answer is written.

use tackboard_logic::group::{GroupListing, GroupView, interface::NamedPartition};
use tackboard_schema::{ErrorCode, storage::group_record::CommittedOffset};

use super::{GroupAnswer, GroupRequest};
use crate::shard::request::{Entry, Failure};

/// Bytes around each thing that an answer names, in either door's words, at most: lengths, codes, tables, padding.
const FRAMING_BYTES: usize = 128;

/// What is left of the room for an answer.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    bytes_max: usize,
    left: usize,
}

impl Room {
    /// Room for an answer in a frame of so many bytes.
    pub fn new(frame_bytes_max: u32) -> Self {
        let bytes_max = frame_bytes_max as usize;
        Self {
            bytes_max,
            left: bytes_max,
        }
    }

    /// The same without what is told of each question whatever its answer.
    pub fn beside<'q>(self, questions: impl Iterator<Item = &'q GroupRequest>) -> Self {
        let framing = |question: &GroupRequest| FRAMING_BYTES + question.named_group().len();
        let framing: usize = questions.map(framing).sum();
        let bytes_max = self.bytes_max.saturating_sub(framing);
        Self {
            bytes_max,
            left: bytes_max,
        }
    }

    /// Takes so many bytes, if they are left.
    ///
    /// # Errors
    /// `OVER_BUDGET` if they would be in an answer about less, `POLICY_VIOLATION` if in none. Once something has not
    /// fitted, nothing does.
    fn take(&mut self, bytes: usize, is_divisible: bool) -> Result<(), Failure> {
        if let Some(left) = self.left.checked_sub(bytes) {
            self.left = left;
            return Ok(());
        }
        if !is_divisible || bytes > self.bytes_max {
            let message = format!(
                "{bytes} bytes would be told; native.frame_bytes_max leaves room for {}",
                self.bytes_max
            );
            return Err(Failure::new(ErrorCode::PolicyViolation, message));
        }
        self.left = 0;
        Err(used_up())
    }

    /// Whether there is none for anything more.
    ///
    /// # Errors
    /// `OVER_BUDGET`.
    pub(super) fn look(&self) -> Result<(), Failure> {
        match self.left {
            0 => Err(used_up()),
            _ => Ok(()),
        }
    }

    /// Takes what would be told of these offsets.
    ///
    /// # Errors
    /// As said above.
    pub(super) fn take_offsets<'o>(
        &mut self,
        offsets: impl Iterator<Item = (&'o NamedPartition, Option<&'o CommittedOffset>)>,
    ) -> Result<(), Failure> {
        let bytes = |(partition, value): (&NamedPartition, Option<&CommittedOffset>)| {
            let metadata = value.map_or(0, |value| value.metadata.len());
            FRAMING_BYTES + partition.topic.len() + metadata
        };
        self.take(offsets.map(bytes).sum(), true)
    }

    /// Takes what would be told of a group.
    ///
    /// # Errors
    /// As said above.
    pub(super) fn take_view(&mut self, view: &GroupView) -> Result<(), Failure> {
        let names = view.protocol_type.len() + view.protocol.len();
        let members = view.members.iter().map(|member| {
            let instance = member.instance.as_ref().map_or(0, |name| name.len());
            let names = member.member_id.len() + member.client_id.len() + member.client_host.len();
            let told = member.subscription.len() + member.assignment.len();
            2 * FRAMING_BYTES + instance + names + told
        });
        self.take(names + members.sum::<usize>(), true)
    }

    /// Takes what would be told of a coordinator's groups. Nobody can ask for some of them.
    fn take_list(&mut self, groups: &[GroupListing]) -> Result<(), Failure> {
        let bytes =
            |group: &GroupListing| FRAMING_BYTES + group.group.len() + group.protocol_type.len();
        self.take(groups.iter().map(bytes).sum(), false)
    }

    /// Refuses those of a request's answers that have no room beside the ones before them.
    pub fn bound(mut self, entries: &mut [Entry<GroupAnswer>]) {
        self.left = self.bytes_max;
        for entry in entries {
            let taken = match &entry.outcome {
                Some(Ok(GroupAnswer::Offsets(offsets))) => {
                    let offsets = offsets.iter();
                    self.take_offsets(offsets.map(|(partition, value)| (partition, value.as_ref())))
                }
                Some(Ok(GroupAnswer::Described(Some(view)))) => self.take_view(view),
                Some(Ok(GroupAnswer::Listed(groups))) => self.take_list(groups),
                // What the others say is bounded by what was asked, or by what one group may hold.
                _ => Ok(()),
            };
            if let Err(failure) = taken {
                entry.outcome = Some(Err(failure));
            }
        }
    }
}

fn used_up() -> Failure {
    let message = "the answer is as long as native.frame_bytes_max allows; ask for less at a time";
    Failure::new(ErrorCode::OverBudget, message)
}
