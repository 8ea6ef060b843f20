//! What a transport sees of a machine, be it a producer's or a consumer's.

use std::collections::VecDeque;

use bytes::Bytes;

use super::cluster::Action;
use super::connection::ConnectionId;
use super::frames::InFrame;
use super::time::Now;
use crate::error::Error;

/// A client without its sockets.
///
/// The transport carries out every [`Action`] and reports what comes of it, each report with the time. After every
/// report it calls [`advance`](Machine::advance), then takes actions until there are none, and sleeps until something
/// happens or [`next_deadline`](Machine::next_deadline) has come.
pub trait Machine {
    /// The connection stands.
    fn opened(&mut self, connection: ConnectionId, now: Now);

    /// The connection could not be made, or has ended. Nothing to do for one that is unknown or was closed before.
    fn closed(&mut self, connection: ConnectionId, fault: Error, now: Now);

    /// A frame arrived.
    fn received(&mut self, connection: ConnectionId, frame: InFrame, now: Now);

    /// Does whatever is due or has become possible.
    fn advance(&mut self, now: Now);

    /// When [`advance`](Machine::advance) has something to do next, unless something happens before.
    fn next_deadline(&self) -> Option<Now>;

    /// What the transport has to do next.
    fn next_action(&mut self) -> Option<Action>;

    /// Moves what is to be sent on a connection to the end of `out`. Take it only when it can be sent: what was not
    /// taken yet holds back further requests. Call [`advance`](Machine::advance) afterwards.
    fn take_output(&mut self, connection: ConnectionId, out: &mut VecDeque<Bytes>);

    /// Changes whenever the view of the cluster did: a connection began or ended, metadata arrived.
    fn revision(&self) -> u64;

    /// Whether a broker has been reached and has told of the cluster.
    fn is_up(&self) -> bool;

    /// Why none can be reached, when each that was named at the start has been tried in vain.
    fn unreachable(&self) -> Option<Error>;
}
