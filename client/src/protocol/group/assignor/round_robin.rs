//! All partitions of all topics in order, to the members in turn; whoever doesn't want one is passed over for it.

use super::{Candidate, Shares, Sizes, give, in_order, no_shares};

pub(super) fn assign(members: &[Candidate], sizes: &Sizes) -> Shares {
    let mut shares = no_shares(members);
    let order = in_order(members);
    let mut turn = 0;
    for (topic, size) in sizes {
        if !members.iter().any(|member| member.topics.contains(topic)) {
            continue;
        }
        for partition in 0..*size {
            // Somebody wants it, so this ends within a round.
            while !members[order[turn % order.len()]].topics.contains(topic) {
                turn += 1;
            }
            give(
                &mut shares,
                &members[order[turn % order.len()]],
                topic,
                partition,
            );
            turn += 1;
        }
    }
    shares
}
