//! What a connection holds: its outbox and its budgets.

use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
    net::IpAddr,
    rc::Rc,
};

use glommio::io::DmaBuffer;
use tackboard_logic::{
    log::limits::CHUNK_BYTES_MAX,
    request::account::{Account, AccountLimits, Held, Outgoing},
};
use tackboard_runtime::{Notify, net::Shutter};

use crate::{
    kafka::answers::Answers,
    shard::{request::Piece, slab::Key},
};

/// Bytes waiting to be sent above which a connection's requests are left unread.
pub const OUTBOX_BYTES_PAUSE: usize = 4 << 20;
/// The same for the append buffers in which they lie: a few bytes keep a whole one from being used again.
pub const PINNED_BYTES_PAUSE: usize = 4 * OUTBOX_BYTES_PAUSE;

/// A frame, or several without a body, on the way out.
#[derive(Default)]
pub struct OutFrame {
    /// Prefix, head and padding; several frames in a row when none of them has a body.
    pub head: Vec<u8>,
    /// The body in pieces, sent from where they lie.
    pub body: Vec<Piece>,
    /// Padding after the body.
    pub padding: &'static [u8],
    /// Requests that these bytes answer.
    pub answers: u32,
    /// Bytes of all parts.
    pub length: usize,
    /// What of the buffers in which its body lies counts for this frame.
    pub pinned_bytes: usize,
}

impl OutFrame {
    /// What it holds until it is sent.
    pub fn outgoing(&self) -> Outgoing {
        Outgoing {
            bytes: self.length,
            pinned_bytes: self.pinned_bytes,
        }
    }
}

/// Counts the append buffers that pieces pin, each once as long as the pieces of it follow on each other, as answers in a
/// row mostly lie in one.
struct Pinned {
    last: Cell<*const DmaBuffer>,
}

impl Default for Pinned {
    fn default() -> Self {
        Pinned {
            last: Cell::new(std::ptr::null()),
        }
    }
}

impl Pinned {
    /// What a piece pins that the one before did not. Reads of history have a budget of their own. How long another
    /// core's buffer is isn't known here: it counts as a longest one.
    fn by(&self, piece: &Piece) -> usize {
        match piece {
            Piece::Chunk(buffer, _) => {
                let buffer_at = Rc::as_ptr(buffer);
                match self.last.replace(buffer_at) == buffer_at {
                    true => 0,
                    false => buffer.len(),
                }
            }
            Piece::Lent(..) => CHUNK_BYTES_MAX as usize,
            Piece::Read(..) | Piece::Owned(_) => 0,
        }
    }

    /// The last one may be gone, and its place in memory another's.
    fn forget(&self) {
        self.last.set(std::ptr::null());
    }
}

/// Which protocol is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Door {
    /// Our own.
    Native,
    /// Kafka's.
    Kafka,
}

/// A client's connection, shared by its reader, its writer and the requests it waits for. All on one core.
pub struct Connection {
    outbox: RefCell<VecDeque<OutFrame>>,
    account: Cell<Account>,
    /// Requests that may wait for others to do something: `native.requests_in_flight_max` of them at most.
    patient: RefCell<Vec<Key>>,
    pinned: Pinned,
    /// Wakes the writer.
    pub to_send: Notify,
    /// Wakes the reader when a budget has room again.
    pub room: Notify,
    closed: Cell<bool>,
    /// Until the writer ends: then its descriptor goes, and the number may belong to another connection a moment later.
    shutter: Cell<Option<Shutter>>,
    reading: Cell<bool>,
    /// What it owes, if its client speaks Kafka's protocol.
    kafka: Option<Answers>,
    address: IpAddr,
}

impl Connection {
    /// A connection whose socket `shutter` shuts.
    pub fn new(shutter: Shutter, limits: AccountLimits, door: Door, address: IpAddr) -> Rc<Self> {
        Rc::new(Connection {
            outbox: RefCell::default(),
            account: Cell::new(Account::new(limits)),
            patient: RefCell::default(),
            pinned: Pinned::default(),
            to_send: Notify::new(),
            room: Notify::new(),
            closed: Cell::new(false),
            shutter: Cell::new(Some(shutter)),
            reading: Cell::new(true),
            kafka: (door == Door::Kafka).then(Answers::default),
            address,
        })
    }

    /// What it owes, if its client speaks Kafka's protocol.
    pub fn kafka(&self) -> Option<&Answers> {
        self.kafka.as_ref()
    }

    /// Where its client is.
    pub fn address(&self) -> IpAddr {
        self.address
    }

    fn account_for(&self, change: impl FnOnce(&mut Account)) {
        let mut account = self.account.get();
        change(&mut account);
        self.account.set(account);
    }

    /// Counts a request that was read.
    pub fn take_in(&self, held: Held) {
        self.account_for(|account| account.request_read(held));
    }

    /// The request's answer is known: what it held no longer counts.
    pub fn release(&self, held: Held) {
        self.account_for(|account| account.released(held));
        self.room.notify();
    }

    /// Entries of its requests that are unanswered.
    pub fn entries(&self) -> usize {
        self.account.get().entries()
    }

    /// A request was completed that gets no answer.
    pub fn release_request(&self) {
        self.account_for(|account| account.requests_done(1));
        self.answers_left();
    }

    /// Wakes whom fewer requests in flight may set going.
    fn answers_left(&self) {
        self.room.notify();
        // The writer of a connection whose reader has ended goes once nothing is owed.
        self.to_send.notify();
    }

    /// Remembers a request that may wait for others to do something.
    pub fn request_waits(&self, request: Key) {
        self.patient.borrow_mut().push(request);
    }

    /// Such a request waits no more.
    pub fn request_waited(&self, request: Key) {
        let mut patient = self.patient.borrow_mut();
        if let Some(place) = patient.iter().position(|one| *one == request) {
            patient.swap_remove(place);
        }
    }

    /// The requests that wait for others to do something.
    pub fn waiting_requests(&self) -> Vec<Key> {
        self.patient.borrow().clone()
    }

    /// Counts a call to another core for a fetch.
    pub fn fetch_call_made(&self) {
        self.account_for(Account::fetch_call_made);
    }

    /// That core has answered.
    pub fn fetch_call_answered(&self) {
        self.account_for(Account::fetch_call_answered);
    }

    /// Calls to other cores that fetches of this connection hold.
    pub fn fetch_calls(&self) -> usize {
        self.account.get().fetch_calls()
    }

    /// Whether the next request may be read.
    pub fn has_room(&self) -> bool {
        self.account.get().has_room()
    }

    /// Whether the client leaves so much unread that nothing more is held for it.
    pub fn is_congested(&self) -> bool {
        self.account.get().is_congested()
    }

    /// Requests that were read and not answered.
    pub fn requests_in_flight(&self) -> u32 {
        self.account.get().requests()
    }

    /// Bytes of their bodies, of those whose answers are not known.
    pub fn request_bytes_in_flight(&self) -> u64 {
        self.account.get().request_bytes()
    }

    /// Queues frames without bodies: `write` appends them to bytes that are sent as one.
    pub fn send_head(&self, write: impl FnOnce(&mut Vec<u8>)) {
        let mut outbox = self.outbox.borrow_mut();
        if outbox.back().is_none_or(|last| !last.body.is_empty()) {
            outbox.push_back(OutFrame::default());
        }
        let last = outbox.back_mut().expect("just pushed");
        write(&mut last.head);
        last.answers += 1;
        let grown = last.head.len() - last.length;
        last.length = last.head.len();
        self.account_for(|account| {
            account.queued(Outgoing {
                bytes: grown,
                pinned_bytes: 0,
            });
        });
        self.to_send.notify();
    }

    /// Queues a frame with a body.
    pub fn send(&self, mut frame: OutFrame) {
        self.answer_known(&mut frame);
        self.send_known(frame);
    }

    /// Counts an answer that waits for its turn, its bytes and what they pin.
    pub fn answer_known(&self, frame: &mut OutFrame) {
        frame.pinned_bytes = frame.body.iter().map(|piece| self.pinned.by(piece)).sum();
        self.account_for(|account| account.queued(frame.outgoing()));
    }

    /// Queues a frame with a body that was [counted](Self::answer_known) before.
    pub fn send_known(&self, frame: OutFrame) {
        self.outbox.borrow_mut().push_back(frame);
        self.to_send.notify();
    }

    /// Takes everything that waits to be sent.
    pub fn take_outbox(&self, into: &mut Vec<OutFrame>) {
        into.extend(self.outbox.borrow_mut().drain(..));
    }

    /// These bytes were sent.
    pub fn sent(&self, frames: Outgoing, answers: u32) {
        self.account_for(|account| account.sent(frames, answers));
        self.pinned.forget();
        self.answers_left();
    }

    /// Ends the connection: no more is read or sent.
    pub fn close(&self) {
        if !self.closed.replace(true) {
            if let Some(shutter) = self.shutter.get() {
                shutter.stop();
            }
            self.to_send.notify();
            self.room.notify();
        }
    }

    /// Asks the reader to stop; what was read is still answered.
    pub fn stop_reading(&self) {
        if let Some(shutter) = self.shutter.get() {
            shutter.stop_reading();
        }
        self.room.notify();
    }

    /// No more requests come.
    pub fn reader_ended(&self) {
        self.reading.set(false);
        self.to_send.notify();
    }

    /// The writer is about to drop the socket that the shutter shuts.
    pub fn writer_ended(&self) {
        self.shutter.set(None);
    }

    /// Whether the reader still runs.
    pub fn is_reading(&self) -> bool {
        self.reading.get()
    }

    /// Whether [`Connection::close`] was called.
    pub fn is_closed(&self) -> bool {
        self.closed.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use glommio::{LocalExecutor, allocate_dma_buffer};

    #[test]
    fn a_few_bytes_of_a_buffer_count_as_all_of_it_and_more_of_the_same_as_nothing() {
        LocalExecutor::default().run(async {
            let [one, other] = [(); 2].map(|()| Rc::new(allocate_dma_buffer(256 << 10)));
            let piece = |buffer: &Rc<DmaBuffer>, at| Piece::Chunk(buffer.clone(), at..at + 10);
            let pinned = Pinned::default();
            assert_eq!(pinned.by(&piece(&one, 0)), 256 << 10);
            assert_eq!(pinned.by(&piece(&one, 10)), 0);
            assert_eq!(pinned.by(&piece(&other, 0)), 256 << 10);
            assert_eq!(pinned.by(&piece(&one, 20)), 256 << 10);
            pinned.forget();
            assert_eq!(pinned.by(&piece(&one, 30)), 256 << 10);
        });
    }
}
