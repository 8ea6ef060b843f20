//! One member of a group.

use std::sync::Arc;

use super::interface::{Join, Opaque, Waiter};

/// A new member that waits for its first rebalance is dropped after so long, whatever its session time-out, in
/// microseconds: its client may have given up and come back under another id. Kafka's number.
pub const NEW_MEMBER_PATIENCE_US: u64 = 300_000_000;

/// What a member takes besides what it says of itself, in bytes, about.
pub const MEMBER_BYTES: usize = 256;

/// A member, from its first join on.
#[derive(Clone, Debug)]
pub struct Member {
    pub id: Arc<str>,
    pub instance: Option<Arc<str>>,
    pub client_id: String,
    pub client_host: String,
    pub session_timeout_ms: i32,
    pub rebalance_timeout_ms: i32,
    /// What it can do, dearest first.
    pub protocols: Vec<(Arc<str>, Opaque)>,
    /// Its part in the present generation.
    pub assignment: Opaque,
    /// Who waits for the rebalance to end.
    pub joining: Option<Waiter>,
    /// Who waits for the assignment.
    pub syncing: Option<Waiter>,
    /// When it is given up unless it is heard from.
    pub session_until_us: u64,
    /// It waits for its first rebalance.
    pub is_new: bool,
}

impl Member {
    pub fn new(id: Arc<str>, join: &Join) -> Self {
        let mut member = Self {
            id,
            instance: join.instance.as_deref().map(Arc::from),
            client_id: String::new(),
            client_host: String::new(),
            session_timeout_ms: 0,
            rebalance_timeout_ms: 0,
            protocols: Vec::new(),
            assignment: Opaque::default(),
            joining: None,
            syncing: None,
            session_until_us: u64::MAX,
            is_new: true,
        };
        member.take_over(join);
        member
    }

    /// Believes everything that the member says of itself now.
    pub fn take_over(&mut self, join: &Join) {
        self.client_id.clone_from(&join.client_id);
        self.client_host.clone_from(&join.client_host);
        self.session_timeout_ms = join.session_timeout_ms;
        self.rebalance_timeout_ms = join.rebalance_timeout_ms;
        let protocols = join.protocols.iter();
        self.protocols = protocols
            .map(|(name, metadata)| (Arc::from(name.as_str()), metadata.clone()))
            .collect();
    }

    /// Whether it says the same of itself as before.
    pub fn says_the_same(&self, join: &Join) -> bool {
        let before = self.protocols.iter().map(|(name, told)| (&**name, told));
        before.eq(join
            .protocols
            .iter()
            .map(|(name, told)| (name.as_str(), told)))
    }

    /// What it told an assignor.
    pub fn subscription(&self, protocol: &str) -> Opaque {
        let known = self.protocols.iter().find(|(name, _)| &**name == protocol);
        known.map_or_else(Opaque::default, |(_, told)| told.clone())
    }

    /// The same, to look at.
    pub fn told(&self, protocol: &str) -> &[u8] {
        let known = self.protocols.iter().find(|(name, _)| &**name == protocol);
        known.map_or(&[], |(_, told)| told)
    }

    /// Bytes that it takes, its assignment left out, which the group counts by itself.
    pub fn bytes(&self) -> usize {
        let names = self.id.len() + self.client_id.len() + self.client_host.len();
        let instance = self.instance.as_ref().map_or(0, |name| name.len());
        let protocols = self.protocols.iter();
        let protocols = protocols.map(|(name, told)| name.len() + told.len());
        MEMBER_BYTES + names + instance + protocols.sum::<usize>()
    }

    /// The first of these that it knows.
    pub fn dearest(&self, of: &[Arc<str>]) -> Option<Arc<str>> {
        let mut known = self.protocols.iter().map(|(name, _)| name);
        known.find(|name| of.contains(name)).cloned()
    }

    /// It was heard from.
    pub fn heard(&mut self, now_us: u64) {
        self.session_until_us = now_us.saturating_add(ms_as_us(self.session_timeout_ms));
    }

    /// Whether it waits for the coordinator, which then has no right to complain of its silence.
    pub fn waits(&self) -> bool {
        self.joining.is_some() || self.syncing.is_some()
    }
}

/// Microseconds of a client's milliseconds; 0 for negative ones.
pub fn ms_as_us(ms: i32) -> u64 {
    u64::try_from(ms).unwrap_or(0) * 1_000
}
