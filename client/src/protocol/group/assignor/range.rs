//! Each topic by itself: its partitions in runs, one a member, the first members' longer by one where they don't divide.

use super::{Candidate, Shares, Sizes, give, in_order, no_shares};

pub(super) fn assign(members: &[Candidate], sizes: &Sizes) -> Shares {
    let mut shares = no_shares(members);
    let order = in_order(members);
    for (topic, size) in sizes {
        let wanting = order.iter().map(|index| &members[*index]);
        let wanting: Vec<&Candidate> = wanting
            .filter(|member| member.topics.contains(topic))
            .collect();
        if wanting.is_empty() {
            continue;
        }
        let (run, longer) = (size / wanting.len(), size % wanting.len());
        let mut next = 0;
        for (place, member) in wanting.into_iter().enumerate() {
            let end = next + run + usize::from(place < longer);
            (next..end).for_each(|partition| give(&mut shares, member, topic, partition));
            next = end;
        }
    }
    shares
}
