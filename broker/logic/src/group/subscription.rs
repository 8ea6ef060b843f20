//! What consumers tell each other of their subscriptions, as far as the coordinator needs to know.
//!
//! Kafka's `ConsumerProtocolSubscription`: a version, the topics' names, and more that only assignors read.

use std::collections::BTreeSet;

use super::state::Group;

/// The topics that a group's members read.
pub struct Reads<'a>(Option<BTreeSet<&'a str>>);

impl<'a> Reads<'a> {
    /// Reads every subscription once.
    pub fn of(group: &'a Group) -> Self {
        let protocol = group.protocol.as_deref().unwrap_or_default();
        let mut all = BTreeSet::new();
        for member in group.members.values() {
            let Some(topics) = topics(member.told(protocol)) else {
                return Self(None);
            };
            all.extend(topics);
        }
        Self(Some(all))
    }

    /// Whether a member reads the topic. One whose subscription can't be read may read anything.
    pub fn contains(&self, topic: &str) -> bool {
        self.0.as_ref().is_none_or(|topics| topics.contains(topic))
    }
}

/// The names of the topics; `None` if this is no subscription.
fn topics(subscription: &[u8]) -> Option<Vec<&str>> {
    let (_version, rest) = subscription.split_first_chunk::<2>()?;
    let (count, mut rest) = rest.split_first_chunk::<4>()?;
    let count = usize::try_from(i32::from_be_bytes(*count)).ok()?;
    // A name takes two bytes at least.
    if count > rest.len() / 2 {
        return None;
    }
    let mut topics = Vec::with_capacity(count);
    for _ in 0..count {
        let (length, after) = rest.split_first_chunk::<2>()?;
        let length = usize::try_from(i16::from_be_bytes(*length)).ok()?;
        let (name, after) = after.split_at_checked(length)?;
        topics.push(std::str::from_utf8(name).ok()?);
        rest = after;
    }
    Some(topics)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_are_read_and_nothing_else_is_believed() {
        let told = b"\0\x01\0\0\0\x02\0\x01a\0\x02bc\xff\xff\xff\xff";
        assert_eq!(topics(told), Some(vec!["a", "bc"]));
        for length in 0..11 {
            assert_eq!(topics(&told[..length]), None, "{length}");
        }
        assert_eq!(topics(b"\0\0\x7f\xff\xff\xff\0\0"), None);
        assert_eq!(topics(b"\0\0\xff\xff\xff\xff"), None);
    }
}
