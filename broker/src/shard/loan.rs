//! Fetched batches that another core sends from where they lie.
//!
//! A consumer may be connected to any core. What it fetches lies in buffers of the core that owns the partition, which
//! other threads must not hold: their counts are not atomic, and freed they go back to the executor they came from. So
//! the owner keeps them in its [`Loans`], and the core of the connection gets a [`Loan`]: where the bytes lie, and the
//! duty to say when they are not needed any more, which dropping it does.
//!
//! Invariants:
//! 1. What is lent neither changes nor moves until it was given back: it lies in frozen append buffers, in finished
//!    reads, and in [`Bytes`].
//! 2. A core does not end while anything of it is lent ([`Loans::is_empty`]).
//! 3. No more than [`LOANS_PER_CORE_MAX`] to each other core, since that many answers have room in the inbox of this one.
//!    Beyond it the bytes are copied.
//!
//! Not here: which bytes are fetched, and the message that carries a loan ([`super::peers`]).

use std::{fmt, ptr::NonNull, rc::Rc};

use bytes::{Bytes, BytesMut};
use tackboard_logic::request::calls::CALLS_MAX;
use tackboard_runtime::InboxSender;
use tackboard_schema::CoreId;

use super::{
    request::{PeerMessage, Piece},
    slab::{Key, Slab},
};

/// Loans to one other core that were not given back.
pub const LOANS_PER_CORE_MAX: usize = CALLS_MAX;

/// What this core has lent to the others.
pub struct Loans {
    lent: Slab<(CoreId, Vec<Piece>)>,
    /// Loans to each core.
    counts: Vec<usize>,
    /// This core's own inbox, where loans come back.
    home: InboxSender<PeerMessage>,
}

impl Loans {
    /// Nothing lent yet to any of `cores` cores.
    pub fn new(cores: usize, home: InboxSender<PeerMessage>) -> Self {
        Loans {
            lent: Slab::default(),
            counts: vec![0; cores],
            home,
        }
    }

    /// Lends `pieces` to `borrower`, or copies them when it holds as many loans as it may.
    pub fn lend(&mut self, borrower: CoreId, pieces: Vec<Piece>) -> Loan {
        let count = &mut self.counts[usize::from(borrower.0)];
        if *count >= LOANS_PER_CORE_MAX {
            return Loan::copied(&pieces);
        }
        *count += 1;
        let slices = pieces.iter().map(|piece| Slice::of(piece.bytes()));
        let slices = slices.collect();
        let lender = Lender {
            key: self.lent.insert((borrower, pieces)),
            home: self.home.clone(),
        };
        Loan {
            slices,
            copy: None,
            _lender: Some(lender),
        }
    }

    /// A loan came back: its bytes may go.
    pub fn given_back(&mut self, key: Key) {
        if let Some((borrower, _)) = self.lent.remove(key) {
            self.counts[usize::from(borrower.0)] -= 1;
        }
    }

    /// Whether everything came back.
    pub fn is_empty(&self) -> bool {
        self.lent.is_empty()
    }
}

/// Bytes of another core.
pub struct Loan {
    /// One a piece, in order.
    slices: Vec<Slice>,
    /// What they point at, if it had to be copied.
    copy: Option<Bytes>,
    /// Dropped last, it tells the owner.
    _lender: Option<Lender>,
}

struct Lender {
    key: Key,
    home: InboxSender<PeerMessage>,
}

struct Slice {
    start: NonNull<u8>,
    length: usize,
}

impl Slice {
    fn of(bytes: &[u8]) -> Self {
        Slice {
            start: NonNull::from(bytes).cast(),
            length: bytes.len(),
        }
    }
}

// SAFETY: The slices are only read. What they point at lives until this value is dropped, on whichever thread: the owner frees
// it after it was told, and it is told through an inbox, which orders that after every read.
unsafe impl Send for Loan {}

impl Loan {
    fn copied(pieces: &[Piece]) -> Self {
        let length = pieces.iter().map(|piece| piece.bytes().len()).sum();
        let mut copy = BytesMut::with_capacity(length);
        for piece in pieces {
            copy.extend_from_slice(piece.bytes());
        }
        let copy = copy.freeze();
        let mut at = 0;
        let mut slices = Vec::with_capacity(pieces.len());
        for piece in pieces {
            let end = at + piece.bytes().len();
            slices.push(Slice::of(&copy[at..end]));
            at = end;
        }
        Loan {
            slices,
            copy: Some(copy),
            _lender: None,
        }
    }

    /// Bytes of all pieces.
    pub fn byte_length(&self) -> usize {
        self.slices.iter().map(|slice| slice.length).sum()
    }

    /// Whether they had to be copied.
    pub fn is_copy(&self) -> bool {
        self.copy.is_some()
    }

    /// One piece of it.
    pub fn piece(&self, index: usize) -> &[u8] {
        let slice = &self.slices[index];
        // SAFETY: see `Send`; the owner keeps the bytes as they are for as long as this value lives.
        unsafe { std::slice::from_raw_parts(slice.start.as_ptr(), slice.length) }
    }
}

impl Drop for Lender {
    fn drop(&mut self) {
        // There is room: see invariant 3. A core that has ended had nothing lent.
        let _ = self.home.send(PeerMessage::GivenBack { loan: self.key });
    }
}

impl fmt::Debug for Loan {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Loan of {} bytes", self.byte_length())
    }
}

/// The pieces of `loan` from `range`, each of which holds on to all of it.
pub fn pieces(loan: &Rc<Loan>, range: std::ops::Range<usize>) -> Vec<Piece> {
    range
        .map(|index| Piece::Lent(loan.clone(), index))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BORROWER: CoreId = CoreId(1);

    fn piece(text: &'static str) -> Piece {
        Piece::Owned(Bytes::from_static(text.as_bytes()))
    }

    fn given_back(message: PeerMessage) -> Key {
        match message {
            PeerMessage::GivenBack { loan } => loan,
            other => panic!("{other:?} is no loan that comes back"),
        }
    }

    #[test]
    fn the_owner_keeps_what_it_lent_until_another_thread_has_dropped_it() {
        let (home, inbox) = tackboard_runtime::inbox(4);
        let mut loans = Loans::new(2, home);
        let bytes = Bytes::from(b"tack".to_vec());
        let loan = loans.lend(BORROWER, vec![Piece::Owned(bytes.clone()), piece("board")]);
        assert!(!loan.is_copy() && loan.byte_length() == 9);
        std::thread::spawn(move || {
            let loan = Rc::new(loan);
            let second = pieces(&loan, 1..2);
            drop(loan);
            assert_eq!(second[0].bytes(), b"board");
        })
        .join()
        .unwrap();
        assert!(!bytes.is_unique() && !loans.is_empty());
        loans.given_back(given_back(inbox.take().expect("sent")));
        assert!(bytes.is_unique() && loans.is_empty());
        assert!(inbox.take().is_none(), "told once");
    }

    #[test]
    fn beyond_the_bound_bytes_are_copied_and_nothing_comes_back() {
        let (home, inbox) = tackboard_runtime::inbox(LOANS_PER_CORE_MAX);
        let mut loans = Loans::new(2, home);
        let lent: Vec<Loan> = (0..LOANS_PER_CORE_MAX)
            .map(|_| loans.lend(BORROWER, vec![piece("a")]))
            .collect();
        assert!(lent.iter().all(|loan| !loan.is_copy()));
        let copied = loans.lend(BORROWER, vec![piece("tack"), piece("board")]);
        assert!(copied.is_copy());
        assert_eq!(
            (copied.piece(0), copied.piece(1)),
            (&b"tack"[..], &b"board"[..])
        );
        drop(copied);
        assert!(inbox.take().is_none());
        assert!(
            !loans.lend(CoreId(0), vec![piece("a")]).is_copy(),
            "each core has its own"
        );
        drop(lent);
    }
}
