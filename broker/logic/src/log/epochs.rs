//! Where leader epochs end: what a client compares with what it has read, to learn that a log was cut below it (KIP-320).

use tackboard_schema::{LeaderEpoch, Offset};

/// The end of a leader epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpochEnd {
    /// The greatest epoch with events that is not above the one asked for; or the one asked for, if it lies wholly below
    /// what the log holds.
    pub leader_epoch: LeaderEpoch,
    /// Its end, exclusive.
    pub end_offset: Offset,
}

/// The end of `asked` in a log that ends at `log_end_offset`; `None`: its leader has not heard of so late an epoch.
/// `epochs` are those that the log holds, each with its start, in order; the last one goes on.
pub(super) fn epoch_end(
    epochs: &[(LeaderEpoch, Offset)],
    log_end_offset: Offset,
    asked: LeaderEpoch,
) -> Option<EpochEnd> {
    let (last, _) = epochs.last()?;
    if asked > *last || asked.0 < 0 {
        return None;
    }
    let above = epochs.partition_point(|(epoch, _)| *epoch <= asked);
    let found = above.checked_sub(1).map(|index| epochs[index].0);
    Some(EpochEnd {
        leader_epoch: found.unwrap_or(asked),
        end_offset: epochs
            .get(above)
            .map_or(log_end_offset, |(_, start)| *start),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_ends_where_the_next_one_begins_and_the_last_where_the_log_does() {
        let held = [(3, 10), (5, 20), (6, 30)].map(|(epoch, at)| (LeaderEpoch(epoch), Offset(at)));
        let end = |asked| {
            let end = epoch_end(&held, Offset(40), LeaderEpoch(asked))?;
            Some((end.leader_epoch.0, end.end_offset.0))
        };
        assert_eq!(end(6), Some((6, 40)));
        assert_eq!(end(5), Some((5, 30)));
        // Nothing was appended in it.
        assert_eq!(end(4), Some((3, 20)));
        assert_eq!(end(3), Some((3, 20)));
        // Retention has taken all of it.
        assert_eq!(end(2), Some((2, 10)));
        assert_eq!(end(7), None);
        assert_eq!(end(-1), None);
    }
}
