//! The history that a core holds in memory: what logic decides about ([`ColdReads`]), in the buffers that were read.
//!
//! Owns: the buffer, or the read in flight, of everything that logic holds. A [`Hold`] is one user of it and goes with the
//! bytes to the socket, so what a slow client doesn't take counts until it has.
//!
//! Not here: which stretches there are, which are shared, which are read ahead: logic says it.

use std::{
    cell::RefCell,
    future::poll_fn,
    rc::Rc,
    task::{Poll, Waker},
};

use ahash::AHashMap;
use glommio::io::ReadResult;
use tackboard_logic::{
    log::{StretchCut, position::StreamByte, stretch::Stretch},
    shard::{
        cold::{Ahead, ColdReads, ColdStats, Demand, HeldId, turns_of_read},
        interface::{DiskRead, LogId, SegmentBase, StorageFault},
    },
};

use super::{Shard, request::Piece};

/// A read, in flight or done.
#[derive(Default)]
struct Landing {
    result: Option<Result<ReadResult, StorageFault>>,
    /// Who waits for it: each request that reads ([`super::launch::READS_IN_FLIGHT_MAX`]) for one at a time.
    waiting: Vec<Waker>,
}

struct Held {
    logic: ColdReads,
    landings: AHashMap<HeldId, Landing>,
    /// Empty between two decisions; kept for its memory.
    gone: Vec<HeldId>,
}

impl Held {
    /// Lets logic decide, and lets go of what it names.
    fn decide<T>(&mut self, decide: impl FnOnce(&mut ColdReads, &mut Vec<HeldId>) -> T) -> T {
        let decision = decide(&mut self.logic, &mut self.gone);
        for id in self.gone.drain(..) {
            self.landings.remove(&id);
        }
        decision
    }

    fn begin(&mut self, id: HeldId) {
        self.landings.insert(id, Landing::default());
    }
}

/// The history in one core's memory, shared by the tasks of that core.
#[derive(Clone)]
pub struct History(Rc<RefCell<Held>>);

impl History {
    /// Nothing held, within `budget` bytes.
    pub fn new(budget: u64) -> Self {
        History(Rc::new(RefCell::new(Held {
            logic: ColdReads::new(budget),
            landings: AHashMap::new(),
            gone: Vec::new(),
        })))
    }

    /// Whether reads have not landed yet.
    pub fn is_reading(&self) -> bool {
        self.0.borrow().logic.is_reading()
    }

    /// A stretch that somebody waits for, and whether it is to be read now; `None`: there is no room for it.
    fn demand(&self, stretch: Stretch, wanted: u32) -> Option<(Hold, bool)> {
        let held = &mut *self.0.borrow_mut();
        match held.decide(|logic, gone| logic.demand(stretch, wanted, gone)) {
            Demand::Held(id) | Demand::Joined(id) => Some((self.hold(id), false)),
            Demand::Read(id) => {
                held.begin(id);
                Some((self.hold(id), true))
            }
            Demand::NoRoom => None,
        }
    }

    /// Room for bytes that nobody shares, which are to be read now; `None`: there is none.
    pub(super) fn demand_alone(&self, bytes: u64) -> Option<Hold> {
        let held = &mut *self.0.borrow_mut();
        let id = held.decide(|logic, gone| logic.demand_alone(bytes, gone))?;
        held.begin(id);
        Some(self.hold(id))
    }

    /// A read is over: whoever waits for it goes on.
    pub(super) fn landed(&self, id: HeldId, result: Result<ReadResult, StorageFault>) {
        let held = &mut *self.0.borrow_mut();
        let is_good = result.is_ok();
        let landing = held.landings.get_mut(&id);
        let landing = landing.expect("what is being read does not go");
        landing.result = Some(result);
        landing.waiting.drain(..).for_each(Waker::wake);
        held.decide(|logic, gone| logic.landed(id, is_good, gone));
    }

    /// A log, or with `segment` one of its segments, is cut or deleted: nothing of it is shared any more.
    pub(super) fn forget(&self, log: LogId, segment: Option<SegmentBase>) {
        let held = &mut *self.0.borrow_mut();
        held.decide(|logic, gone| logic.forget(log, segment, gone));
    }

    /// Bytes in use, bytes kept for whoever may come, and what was done so far.
    pub(super) fn report(&self) -> (u64, u64, ColdStats) {
        let logic = &self.0.borrow().logic;
        (logic.bytes_in_use(), logic.kept_bytes(), logic.stats())
    }

    fn hold(&self, id: HeldId) -> Hold {
        Hold {
            id,
            history: self.clone(),
        }
    }
}

/// One user of something that is held. Dropped, it is given back.
pub struct Hold {
    id: HeldId,
    history: History,
}

impl Hold {
    /// What is used.
    pub(super) fn id(&self) -> HeldId {
        self.id
    }

    /// The bytes, as soon as they are there.
    async fn bytes(&self) -> Result<ReadResult, StorageFault> {
        poll_fn(|context| {
            let held = &mut *self.history.0.borrow_mut();
            let landing = held.landings.get_mut(&self.id);
            let landing = landing.expect("what is used is held");
            match &landing.result {
                Some(result) => Poll::Ready(result.clone()),
                None => {
                    landing.waiting.push(context.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }

    fn spoiled(&self) {
        self.history.0.borrow_mut().logic.spoiled(self.id);
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let held = &mut *self.history.0.borrow_mut();
        held.decide(|logic, gone| logic.released(self.id, gone));
    }
}

impl Shard {
    /// What answers `read`, from stretches that it shares with other readers. `None`: it has to be read for this one alone,
    /// because it lies at the end of the log, there is no room, or something is wrong there, which that read will name.
    pub(super) async fn read_shared(
        self: &Rc<Self>,
        log: LogId,
        read: &DiskRead,
    ) -> Option<Vec<Piece>> {
        let stretches = self.state.borrow().machine.stretches(log, read);
        let mut shared = Vec::with_capacity(stretches.len());
        for stretch in stretches {
            let Some((hold, is_new)) = self.history.demand(stretch, read.length) else {
                break;
            };
            if is_new {
                self.begin_read(hold.id(), stretch, true);
            }
            shared.push((stretch, hold));
        }
        let mut cut = StretchCut::new(read);
        let mut pieces = Vec::with_capacity(shared.len());
        let mut passed = None;
        for (stretch, hold) in shared {
            let Ok(bytes) = hold.bytes().await else {
                break;
            };
            let Ok(range) = cut.cut(&bytes, stretch.file_at) else {
                hold.spoiled();
                break;
            };
            if !range.is_empty() {
                passed = Some(stretch.start.plus(range.end as u64));
                let slice = ReadResult::slice(&bytes, range.start, range.len());
                let slice = slice.expect("logic cuts within the bytes it was given");
                pieces.push(Piece::Read(slice, hold));
            }
            if cut.is_done() {
                break;
            }
        }
        let passed = passed.filter(|_| !self.was_cut_since(log, read.leader_epoch))?;
        self.read_ahead(log, read, &cut, passed);
        Some(pieces)
    }

    /// Has read what comes behind `read`, which was answered up to `passed`, if whoever asked for it reads on and on.
    fn read_ahead(
        self: &Rc<Self>,
        log: LogId,
        read: &DiskRead,
        cut: &StretchCut,
        passed: StreamByte,
    ) {
        for (id, stretch) in self.choose_ahead(log, read, cut, passed) {
            self.begin_read(id, stretch, false);
        }
    }

    fn choose_ahead(
        &self,
        log: LogId,
        read: &DiskRead,
        cut: &StretchCut,
        passed: StreamByte,
    ) -> Vec<(HeldId, Stretch)> {
        let state = self.state.borrow();
        let is_busy = state.stopping || state.machine.is_appended_to(state.now);
        let reads_of = (log, read.leader_epoch);
        let held = &mut *self.history.0.borrow_mut();
        let (reader, window) =
            (held.logic).passed(reads_of, read.fetch_offset, cut.next_offset(), passed);
        let mut at = passed;
        let mut left = window;
        let mut chosen = Vec::new();
        while left > 0
            && let Some(stretch) = state.machine.stretch_ahead(log, at)
        {
            at = stretch.end();
            if stretch.start < passed {
                // The rest of the last one.
                continue;
            }
            left -= 1;
            match held.decide(|logic, gone| logic.read_ahead(reader, stretch, is_busy, gone)) {
                Ahead::Read(id) => {
                    held.begin(id);
                    chosen.push((id, stretch));
                }
                Ahead::There => {}
                Ahead::No => break,
            }
        }
        chosen
    }

    /// How many turns a read takes that somebody waits for.
    fn turns_of_read(&self) -> usize {
        let state = self.state.borrow();
        turns_of_read(state.machine.is_appended_to(state.now))
    }

    /// Starts to read a stretch. What somebody waits for takes its turn among its like; logic bounds the others.
    fn begin_read(self: &Rc<Self>, id: HeldId, stretch: Stretch, is_awaited: bool) {
        let shard = self.clone();
        self.spawn_net_detached(async move {
            let turn = match is_awaited {
                true => Some(shard.stretch_reads.take(shard.turns_of_read()).await),
                false => None,
            };
            let Stretch {
                log,
                segment,
                file_at,
                length,
                ..
            } = stretch;
            let read = shard.read_all(log, segment, file_at, length).await;
            drop(turn);
            let whole = read.and_then(|bytes| match bytes.len() {
                got if got == length as usize => Ok(bytes),
                got => Err(StorageFault::Short {
                    wanted: length,
                    got: got as u32,
                }),
            });
            if whole.is_ok() {
                shard.metrics().disk_read_bytes.add(u64::from(length));
            }
            shard.history.landed(id, whole);
        });
    }
}
