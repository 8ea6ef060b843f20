//! One connection as the protocol sees it: correlation ids, requests without an answer, frames to be sent.
//!
//! Owns: the table of requests in flight and the queue of bytes to send.
//! Not here: the socket; which request goes to which connection (`cluster`).
//!
//! Invariants:
//! 1. No more requests, and no more bytes of them, are in flight than the broker said it takes (one request is always
//!    allowed, however large).
//! 2. A correlation id is never used twice on one connection.

use std::collections::VecDeque;
use std::sync::Arc;

use ahash::AHashMap;
use bytes::Bytes;
use tackboard_schema::CorrelationId;
use tackboard_schema::frame::{ApiKey, Kind, encode_head, padding};

use super::messages::Welcome;
use super::time::Now;

/// Names a connection among all that one client ever makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u64);

/// How far a connection has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ConnectionState {
    /// The transport is dialling.
    Dialling,
    /// Hello was sent.
    Greeting,
    /// Requests may be sent, within these bounds.
    Ready(Welcome),
}

/// A request that has no answer yet.
#[derive(Debug)]
pub(crate) struct InFlight<T> {
    pub(crate) tag: T,
    pub(crate) api: ApiKey,
    bytes: u64,
    deadline: Now,
}

/// See [`Connection::overdue`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Overdue {
    Dial,
    Request(ApiKey),
}

#[derive(Debug)]
pub(crate) struct Connection<T> {
    pub(crate) address: Arc<str>,
    pub(crate) state: ConnectionState,
    /// When dialling is given up, should the transport not do so itself.
    dial_deadline: Now,
    next_correlation_id: u64,
    in_flight: AHashMap<CorrelationId, InFlight<T>>,
    in_flight_bytes: u64,
    output: VecDeque<Bytes>,
    output_bytes: u64,
}

/// A request to be sent: its head, and the pieces of its body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request<'a> {
    pub(crate) api: ApiKey,
    pub(crate) head: &'a [u8],
    pub(crate) body: &'a [Bytes],
}

impl<T> Connection<T> {
    pub(crate) fn new(address: Arc<str>, dial_deadline: Now) -> Self {
        Self {
            address,
            state: ConnectionState::Dialling,
            dial_deadline,
            next_correlation_id: 1,
            in_flight: AHashMap::new(),
            in_flight_bytes: 0,
            output: VecDeque::new(),
            output_bytes: 0,
        }
    }

    /// The broker's bounds, once it has told them.
    pub(crate) fn welcome(&self) -> Option<&Welcome> {
        match &self.state {
            ConnectionState::Ready(welcome) => Some(welcome),
            _ => None,
        }
    }

    /// Whether a request with a body of so many bytes may be sent now.
    pub(crate) fn has_room(&self, body_bytes: usize) -> bool {
        let Some(welcome) = self.welcome() else {
            return false;
        };
        // A broker that states no bound at all is taken to allow one request at a time.
        let requests_max = (welcome.requests_in_flight_max as usize).max(1);
        // Requests without an answer (acks 0) are bounded by what the transport has not sent yet.
        let bytes = self.in_flight_bytes.max(self.output_bytes) + body_bytes as u64;
        (self.in_flight.is_empty() && self.output.is_empty())
            || (self.in_flight.len() < requests_max && bytes <= welcome.request_bytes_in_flight_max)
    }

    /// Queues a request. Without a tag no answer is expected.
    pub(crate) fn send(&mut self, request: Request<'_>, tag: Option<T>, deadline: Now) {
        let id = CorrelationId(self.next_correlation_id);
        self.next_correlation_id += 1;
        let body_length = request.body.iter().map(Bytes::len).sum();
        let mut head = Vec::new();
        encode_head(
            &mut head,
            Kind::Request,
            request.api,
            id,
            request.head,
            body_length,
        );
        self.output.push_back(head.into());
        self.output.extend(request.body.iter().cloned());
        match padding(body_length) {
            [] => {}
            zeros => self.output.push_back(Bytes::from_static(zeros)),
        }
        let bytes = body_length as u64;
        self.output_bytes += bytes;
        if let Some(tag) = tag {
            self.in_flight_bytes += bytes;
            self.in_flight.insert(
                id,
                InFlight {
                    tag,
                    api: request.api,
                    bytes,
                    deadline,
                },
            );
        }
    }

    /// The request that an answer with this id belongs to.
    pub(crate) fn answered(&mut self, id: CorrelationId) -> Option<InFlight<T>> {
        let request = self.in_flight.remove(&id)?;
        self.in_flight_bytes -= request.bytes;
        Some(request)
    }

    /// When the first request in flight, or the dialling, runs out of time.
    pub(crate) fn deadline(&self) -> Option<Now> {
        let dial = (self.state == ConnectionState::Dialling).then_some(self.dial_deadline);
        self.in_flight
            .values()
            .map(|request| request.deadline)
            .chain(dial)
            .min()
    }

    /// What has run out of time, if anything has.
    pub(crate) fn overdue(&self, now: Now) -> Option<Overdue> {
        if self.state == ConnectionState::Dialling && self.dial_deadline <= now {
            return Some(Overdue::Dial);
        }
        let overdue = self
            .in_flight
            .values()
            .find(|request| request.deadline <= now);
        overdue.map(|request| Overdue::Request(request.api))
    }

    /// All requests without an answer, oldest first, when there will be none.
    pub(crate) fn lose(&mut self) -> Vec<T> {
        let mut lost: Vec<_> = self.in_flight.drain().collect();
        lost.sort_by_key(|(id, _)| *id);
        lost.into_iter().map(|(_, request)| request.tag).collect()
    }

    pub(crate) fn has_output(&self) -> bool {
        !self.output.is_empty()
    }

    /// Moves what is to be sent to the end of `out`.
    pub(crate) fn take_output(&mut self, out: &mut VecDeque<Bytes>) {
        out.append(&mut self.output);
        self.output_bytes = 0;
    }
}
