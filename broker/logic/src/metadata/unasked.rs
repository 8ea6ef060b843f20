//! Topics that clients ask for and that are not there, where the broker creates these unasked: which of them are proposed.
//!
//! A client asks again, many times a second, until its topic is there, and so do all the others that want it. Each proposal
//! is a record in the metadata log, with a sync, and a new image for every core: so a topic is proposed once, and one that
//! can't be created not at all.
//!
//! Owns: the names that one core has proposed, and those that were refused. Not here: the trial of a creation, which is
//! [`Machine::on_trial`](super::Machine::on_trial).
//!
//! Cores do not know of each other's proposals: a topic may be proposed once by each. All but the first find it there.

use std::collections::{BTreeMap, BTreeSet};

use tackboard_schema::ErrorCode;

/// Topics that one core may have proposed and that are not decided. Others are proposed when they are asked for again.
pub const CREATING_MAX: usize = 1_000;

/// Refused names that one core remembers. Before one more all are forgotten: they are tried, and warned of, anew.
pub const REFUSED_MAX: usize = 1_000;

/// The topics that clients of one core have asked for.
#[derive(Debug, Default)]
pub struct UnaskedTopics {
    creating: BTreeSet<String>,
    refused: BTreeMap<String, Refusal>,
}

#[derive(Clone, Copy, Debug)]
struct Refusal {
    code: ErrorCode,
    /// Of the image in which it was refused. Another one may have room for it.
    version: u64,
}

/// How a topic stands that is asked for and not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It is to be tried, and proposed.
    New,
    /// It is being created, or so many are that it has to wait.
    Creating,
    /// It can't be created as long as nothing changes.
    Refused(ErrorCode),
}

impl UnaskedTopics {
    /// How a topic stands in the image of that version.
    pub fn standing(&self, name: &str, version: u64) -> Standing {
        if self.creating.contains(name) || self.creating.len() >= CREATING_MAX {
            return Standing::Creating;
        }
        let refusal = self.refused.get(name);
        match refusal.filter(|refusal| refusal.version == version) {
            Some(refusal) => Standing::Refused(refusal.code),
            None => Standing::New,
        }
    }

    /// A topic is proposed.
    pub fn proposed(&mut self, name: &str) {
        self.creating.insert(name.to_owned());
    }

    /// A proposal is decided, if only to be [refused](Self::refused).
    pub fn decided(&mut self, name: &str) {
        self.creating.remove(name);
    }

    /// A topic can't be created in the image of that version. True: nobody was told so before.
    pub fn refused(&mut self, name: &str, code: ErrorCode, version: u64) -> bool {
        let refusal = Refusal { code, version };
        if let Some(known) = self.refused.get_mut(name) {
            return std::mem::replace(known, refusal).code != code;
        }
        if self.refused.len() >= REFUSED_MAX {
            self.refused.clear();
        }
        self.refused.insert(name.to_owned(), refusal);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_is_proposed_once_however_often_it_is_asked_for() {
        let mut topics = UnaskedTopics::default();
        assert_eq!(topics.standing("t", 1), Standing::New);
        topics.proposed("t");
        assert_eq!(topics.standing("t", 1), Standing::Creating);
        assert_eq!(topics.standing("t", 2), Standing::Creating);
        assert_eq!(topics.standing("u", 2), Standing::New);
        topics.decided("t");
        // It is there now, or was lost on the way: the image says which.
        assert_eq!(topics.standing("t", 2), Standing::New);
    }

    #[test]
    fn a_refusal_holds_as_long_as_nothing_changes_and_is_news_once() {
        let mut topics = UnaskedTopics::default();
        let code = ErrorCode::PolicyViolation;
        assert!(topics.refused("t", code, 7));
        assert_eq!(topics.standing("t", 7), Standing::Refused(code));
        assert_eq!(topics.standing("t", 8), Standing::New);
        assert!(!topics.refused("t", code, 8));
        assert_eq!(topics.standing("t", 8), Standing::Refused(code));
        assert!(topics.refused("t", ErrorCode::InvalidTopicException, 9));
        assert!(topics.refused("u", code, 9));
    }

    #[test]
    fn so_many_names_are_remembered_and_no_more() {
        let mut topics = UnaskedTopics::default();
        for index in 0..CREATING_MAX {
            let name = format!("t{index}");
            assert_eq!(topics.standing(&name, 1), Standing::New);
            topics.proposed(&name);
        }
        assert_eq!(topics.standing("one more", 1), Standing::Creating);
        topics.decided("t0");
        assert_eq!(topics.standing("one more", 1), Standing::New);
        for index in 0..=REFUSED_MAX {
            assert!(topics.refused(&format!("r{index}"), ErrorCode::PolicyViolation, 1));
        }
        assert_eq!(topics.refused.len(), 1);
    }
}
