//! How long requests to a coordinator are, and what is cut off before they travel to it.
//!
//! A request that is longer than anything a coordinator keeps is known to be refused where it comes in; its bytes need not
//! lie in another core's inbox before that. What is refused is said by the coordinator all the same, where somebody else
//! has to learn of it.

use tackboard_schema::ErrorCode;

use super::interface::{CommitEntry, Join, NamedPartition, Sync};
use super::state::{COMMIT_BYTES_MAX, MEMBER_BYTES_MAX, OFFSET_BYTES};

impl Join {
    /// Bytes that it carries.
    pub fn byte_length(&self) -> usize {
        let protocols = self.protocols.iter();
        let protocols = protocols.map(|(name, told)| name.len() + told.len());
        let names = [
            &self.group,
            &self.member_id,
            &self.client_id,
            &self.protocol_type,
        ];
        let names = names.into_iter().chain(&self.instance).map(String::len);
        names.chain(protocols).sum()
    }

    /// Whether no group has room for it.
    ///
    /// # Errors
    /// `GROUP_MAX_SIZE_REACHED`.
    pub fn check_length(&self) -> Result<(), ErrorCode> {
        match self.byte_length() > MEMBER_BYTES_MAX {
            true => Err(ErrorCode::GroupMaxSizeReached),
            false => Ok(()),
        }
    }
}

impl Sync {
    /// Bytes of its assignments.
    pub fn byte_length(&self) -> usize {
        let assignments = self.assignments.iter();
        assignments.map(|(id, part)| id.len() + part.len()).sum()
    }

    /// Leaves assignments out that no group has room for. The coordinator is to hear of it: others wait for them.
    pub fn shorten(&mut self) {
        let assigned = self.assignments.iter().map(|(_, part)| part.len());
        if assigned.sum::<usize>() > MEMBER_BYTES_MAX {
            self.refused = Some(ErrorCode::GroupMaxSizeReached);
            self.assignments = Vec::new();
        }
    }
}

/// Bytes of an entry of a commit, or of a partition that is asked about, about.
pub fn partition_bytes(partition: &NamedPartition) -> usize {
    OFFSET_BYTES + partition.topic.len()
}

/// Bytes of the entries of a commit, about.
pub fn commit_bytes(entries: &[CommitEntry]) -> usize {
    let bytes = |entry: &CommitEntry| partition_bytes(&entry.partition) + entry.metadata.len();
    entries.iter().map(bytes).sum()
}

/// Refuses entries whose metadata is too long by itself, and those that are too much for one commit to `group`; what they
/// carry is left out.
pub fn shorten_commit(group: &str, entries: &mut [CommitEntry], metadata_bytes_max: usize) {
    let mut length = 0;
    for entry in entries {
        let code = if entry.metadata.len() > metadata_bytes_max {
            ErrorCode::OffsetMetadataTooLarge
        } else {
            length += group.len() + partition_bytes(&entry.partition) + entry.metadata.len();
            if length <= COMMIT_BYTES_MAX {
                continue;
            }
            ErrorCode::InvalidCommitOffsetSize
        };
        entry.refused = entry.refused.or(Some(code));
        entry.metadata = String::new();
    }
}
