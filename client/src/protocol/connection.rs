//! One connection as the protocol sees it: correlation ids, requests without an answer, frames to be sent.
//!
//! Owns: the table of requests in flight and the queue of bytes to send.
//! Not here: the socket; which request goes to which connection (`cluster`).
//!
//! Invariants:
//! 1. No more requests, and no more bytes of them, are in flight than the broker said it takes (one request is always
//!    allowed, however large).
//! 2. A correlation id is never used twice on one connection; where the wire has too few of them, not before all others
//!    were used (`wire`).

use std::collections::VecDeque;
use std::sync::Arc;

use ahash::AHashMap;
use bytes::Bytes;
use tackboard_schema::CorrelationId;
use tackboard_schema::frame::ApiKey;
use tackboard_schema::native::HeadBuilder;

use super::frames::InFrame;
use super::messages::{Context, Welcome};
use super::time::Now;
use super::wire::{Question, Unaskable, Wire};
use crate::error::Result;

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
    /// The version of it that was asked in.
    version: i16,
    bytes: u64,
    deadline: Now,
}

impl<T> InFlight<T> {
    /// What its answer is about.
    pub(crate) fn context(&self, address: &Arc<str>) -> Context {
        Context::new(self.api, address).version(self.version)
    }
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
    wire: Wire,
    /// When dialling is given up, should the transport not do so itself.
    dial_deadline: Now,
    next_correlation_id: u64,
    in_flight: AHashMap<CorrelationId, InFlight<T>>,
    in_flight_bytes: u64,
    output: VecDeque<Bytes>,
    output_bytes: u64,
}

impl<T> Connection<T> {
    pub(crate) fn new(address: Arc<str>, wire: Wire, dial_deadline: Now) -> Self {
        Self {
            address,
            wire,
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
    /// One that can't be written comes back.
    pub(crate) fn send(
        &mut self,
        question: &Question<'_>,
        heads: &mut HeadBuilder,
        tag: Option<T>,
        deadline: Now,
    ) -> Result<(), (Unaskable, Option<T>)> {
        let id = CorrelationId(self.next_correlation_id);
        let version = match self.wire.write(&mut self.output, heads, question, id) {
            Ok(version) => version,
            Err(refused) => return Err((refused, tag)),
        };
        self.next_correlation_id += 1;
        let bytes = question.body_length() as u64;
        self.output_bytes += bytes;
        if let Some(tag) = tag {
            self.in_flight_bytes += bytes;
            self.in_flight.insert(
                id,
                InFlight {
                    tag,
                    api: question.api(),
                    version,
                    bytes,
                    deadline,
                },
            );
        }
        Ok(())
    }

    /// Takes in the answer to the greeting, by which requests are written from now on.
    pub(crate) fn greeted(&mut self, context: &Context, frame: &InFrame) -> Result<Welcome> {
        self.wire.read_hello(context, frame)
    }

    /// The request that an answer with this id belongs to.
    pub(crate) fn answered(&mut self, id: CorrelationId) -> Option<InFlight<T>> {
        let id = self.wire.request_id(id, self.next_correlation_id);
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
