//! Which addresses there are, which of them are connected, and when a failing one may be dialled again.
//!
//! Owns: a connection's name by address, and the pauses.
//! Not here: the connections themselves (`cluster`).
//!
//! Invariant: at most one connection per address.

use std::sync::Arc;

use ahash::AHashMap;

use super::backoff::Backoff;
use super::connection::ConnectionId;
use super::random::Random;
use super::time::{Now, earliest};
use crate::config::setting;
use crate::error::Result;

#[derive(Debug)]
pub(crate) struct Addresses {
    /// Those the caller named.
    named: Vec<Arc<str>>,
    nodes: AHashMap<Arc<str>, Node>,
    /// Where the search for any broker goes on.
    rotation: usize,
    backoff: Backoff,
}

/// What is known of one address.
#[derive(Debug, Default)]
struct Node {
    connection: Option<ConnectionId>,
    /// Failures in a row.
    failures: u32,
    retry_at: Now,
}

impl Addresses {
    pub(crate) fn new(brokers: &[impl AsRef<str>], backoff: Backoff) -> Result<Self> {
        let named: Vec<Arc<str>> = brokers
            .iter()
            .map(|broker| broker.as_ref().into())
            .collect();
        let expected = "expected HOST:PORT, e.g. 127.0.0.1:7400";
        if named.is_empty() {
            return setting("brokers", "(none)", expected);
        }
        if let Some(broker) = named.iter().find(|broker| !is_host_and_port(broker)) {
            return setting("brokers", broker, expected);
        }
        Ok(Self {
            named,
            nodes: AHashMap::new(),
            rotation: 0,
            backoff,
        })
    }

    /// The first address that the caller named: where to look first, for people.
    pub(crate) fn first(&self) -> &Arc<str> {
        &self.named[0]
    }

    /// Whether each address that the caller named was tried in vain.
    pub(crate) fn have_all_failed(&self) -> bool {
        self.named.iter().all(|address| self.has_failed(address))
    }

    /// Whether the address failed the last time it was used.
    pub(crate) fn has_failed(&self, address: &str) -> bool {
        self.nodes
            .get(address)
            .is_some_and(|node| node.failures > 0)
    }

    /// The connection to this address, which may be just being made.
    pub(crate) fn connection(&self, address: &str) -> Option<ConnectionId> {
        self.nodes.get(address)?.connection
    }

    /// Whether its pause is over.
    pub(crate) fn may_dial(&self, address: &str, now: Now) -> bool {
        let node = self.nodes.get(address);
        node.is_none_or(|node| node.connection.is_none() && node.retry_at <= now)
    }

    pub(crate) fn dialled(&mut self, address: &Arc<str>, connection: ConnectionId) {
        self.nodes.entry(address.clone()).or_default().connection = Some(connection);
    }

    /// A broker has answered there.
    pub(crate) fn greeted(&mut self, address: &str) {
        if let Some(node) = self.nodes.get_mut(address) {
            node.failures = 0;
        }
    }

    /// The connection to this address could not be made, or has ended.
    pub(crate) fn ended(&mut self, address: &str, now: Now, random: &mut Random) {
        if let Some(node) = self.nodes.get_mut(address) {
            node.connection = None;
            node.failures = node.failures.saturating_add(1);
            node.retry_at = now.after(self.backoff.pause(node.failures, random));
        }
    }

    /// Where any broker may be found: what the caller named, and what brokers told.
    fn candidates<'k>(&self, known: impl Iterator<Item = &'k Arc<str>>) -> Vec<Arc<str>> {
        let new = known.filter(|address| !self.named.contains(address));
        let new: Vec<_> = new.cloned().collect();
        self.named.iter().cloned().chain(new).collect()
    }

    /// When any broker may be dialled; `None` while one is.
    pub(crate) fn dial_at<'k>(&self, known: impl Iterator<Item = &'k Arc<str>>) -> Option<Now> {
        let mut first = None;
        for address in self.candidates(known) {
            let node = self.nodes.get(&address);
            if node.is_some_and(|node| node.connection.is_some()) {
                return None;
            }
            let retry_at = node.map_or(Now::default(), |node| node.retry_at);
            first = earliest(first, Some(retry_at));
        }
        first
    }

    /// The next address at which to look for any broker, unless one is being dialled.
    pub(crate) fn next_candidate<'k>(
        &mut self,
        known: impl Iterator<Item = &'k Arc<str>> + Clone,
        now: Now,
    ) -> Option<Arc<str>> {
        self.dial_at(known.clone()).filter(|at| *at <= now)?;
        let candidates = self.candidates(known);
        let mut places =
            (0..candidates.len()).map(|step| (self.rotation + step) % candidates.len());
        let place = places.find(|place| self.may_dial(&candidates[*place], now))?;
        self.rotation = place + 1;
        Some(candidates[place].clone())
    }
}

fn is_host_and_port(address: &str) -> bool {
    address
        .rsplit_once(':')
        .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn brokers_are_tried_in_turn_with_pauses() {
        let backoff = Backoff {
            first: Duration::from_secs(1),
            max: Duration::from_secs(9),
        };
        let mut random = Random::new(1);
        let mut addresses = Addresses::new(&["a:1", "b:1"], backoff).unwrap();
        let known = ["b:1".into(), "c:1".into()];
        let mut now = Now::default();
        for (id, wanted) in ["a:1", "b:1", "c:1"].into_iter().enumerate() {
            assert_eq!(addresses.have_all_failed(), id == 2);
            let address = addresses.next_candidate(known.iter(), now).unwrap();
            assert_eq!(&*address, wanted);
            addresses.dialled(&address, ConnectionId(id as u64));
            let meanwhile = addresses.next_candidate(known.iter(), now);
            assert_eq!(meanwhile, None, "one at a time");
            addresses.ended(&address, now, &mut random);
        }
        assert_eq!(addresses.next_candidate(known.iter(), now), None);
        now = now.after(Duration::from_secs(1));
        let address = addresses.next_candidate(known.iter(), now).unwrap();
        assert_eq!(&*address, "a:1");
        addresses.greeted(&address);
        assert!(!addresses.has_failed("a:1") && addresses.has_failed("b:1"));
    }

    #[test]
    fn addresses_have_a_host_and_a_port() {
        let backoff = Backoff {
            first: Duration::ZERO,
            max: Duration::ZERO,
        };
        for brokers in [&["nonsense"][..], &[":1"], &["h:"], &["h:70000"], &[]] {
            assert!(Addresses::new(brokers, backoff).is_err(), "{brokers:?}");
        }
        assert!(Addresses::new(&["[::1]:7400"], backoff).is_ok());
    }
}
