//! What one core runs: the loop that drives `tackboard_logic` and carries out its effects, and the mailbox between cores.
//!
//! Owns: the state of a core ([`state`]), the requests it has taken in ([`request`]), its I/O in flight ([`launch`]), its
//! part in starting and stopping ([`run`]).
//!
//! Not here: decisions. What is appended where, when it is written and synced, who is answered: logic says it.
//!
//! Invariants:
//! 1. Only this core touches its state; other threads reach it through its inboxes.
//! 2. Nothing awaits while the state is borrowed; I/O is started after the borrow has ended.
//! 3. Every queue has a bound: requests by the connections' budgets, their entries by
//!    [`EntryRoom`](tackboard_logic::request::entries::EntryRoom), calls by
//!    [`CALLS_MAX`](tackboard_logic::request::calls::CALLS_MAX), reads by
//!    [`launch::READS_IN_FLIGHT_MAX`] and [`STRETCH_READS_IN_FLIGHT_MAX`](tackboard_logic::shard::cold::READS_IN_FLIGHT_MAX), loans by [`loan::LOANS_PER_CORE_MAX`], writes and syncs by logic (of a log there is
//!    one sync in flight).
//!
//! Start reading at [`Shard::enter`].

pub mod cold;
pub mod control;
mod effects;
pub mod groups;
mod house;
mod launch;
pub mod loan;
mod open;
mod peers;
pub mod placed;
pub mod request;
pub mod run;
pub mod slab;
pub mod state;
pub mod topics;
pub mod work;

use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
    future::Future,
    net::IpAddr,
    path::PathBuf,
    rc::Rc,
    sync::Arc,
    time::Duration,
};

use glommio::{Latency, Shares, Task, TaskQueueHandle, spawn_local_into, sync::Semaphore};
use tackboard_logic::{
    request::connections::{ConnectionBound, ConnectionRefusal, ConnectionRoom},
    shard::interface::Input,
};
use tackboard_runtime::{Notify, Progress};

use crate::{
    bridge::{CoreMetrics, Metrics},
    config::Config,
    disk::{file::Access, paths::DataPaths},
    native::connection::Connection,
};
use cold::History;
use groups::TELLS_PER_TURN_MAX;
use launch::{LedgerWrite, Rider};
use slab::{Key, Slab};
use state::State;

/// One core's shard, shared by the tasks of that core.
pub struct Shard {
    /// The broker's settings.
    pub config: Arc<Config>,
    paths: DataPaths,
    access: Access,
    state: RefCell<State>,
    metrics: Metrics,
    core: usize,
    progress: Arc<Progress>,
    queues: Queues,
    connections: RefCell<Slab<Rc<Connection>>>,
    connection_room: RefCell<ConnectionRoom<IpAddr>>,
    ledger_queue: RefCell<VecDeque<LedgerWrite>>,
    ledger_wanted: Notify,
    /// Logs that wait for the next sync of the file system.
    riders: RefCell<Vec<Rider>>,
    riders_wait: Notify,
    tick_wanted: Notify,
    /// Producers wait for space on the disk.
    room_wanted: Notify,
    stopping: Cell<bool>,
    /// Nothing is asked of the long-lived tasks any more.
    ended: Cell<bool>,
    ledger_fault: Cell<Option<tackboard_logic::shard::interface::StorageFault>>,
    reads: Reads,
    stretch_reads: Reads,
    history: History,
    read_bytes: Rc<Cell<usize>>,
    /// Folders in the trash, and since when.
    trash: RefCell<Vec<(std::time::Instant, PathBuf)>>,
    /// Whose turn it is to open logs: none is opened twice.
    opening: Semaphore,
}

/// What one connection holds of the budget for frames that are larger than the usual buffer. Given back when dropped.
#[derive(Default)]
pub struct ReadBytes {
    bytes: usize,
    account: Option<Rc<Cell<usize>>>,
}

impl Drop for ReadBytes {
    fn drop(&mut self) {
        if let Some(account) = &self.account {
            account.set(account.get() - self.bytes);
        }
    }
}

/// Turns at reading segments.
struct Reads(Rc<Semaphore>);

impl Reads {
    fn new(most: usize) -> Self {
        Reads(Rc::new(Semaphore::new(most as u64)))
    }

    async fn take(&self, turns: usize) -> glommio::sync::Permit<'_> {
        let permit = self.0.acquire_permit(turns as u64).await;
        permit.expect("the semaphore is never closed")
    }
}

/// The task queues of a core.
#[derive(Clone, Copy)]
struct Queues {
    net: TaskQueueHandle,
    flush: TaskQueueHandle,
    background: TaskQueueHandle,
}

impl Queues {
    fn create() -> Self {
        let executor = glommio::executor();
        let soon = Latency::Matters(Duration::from_micros(500));
        Queues {
            net: executor.create_task_queue(Shares::Static(1000), soon, "net"),
            flush: executor.create_task_queue(Shares::Static(1000), soon, "flush"),
            background: executor.create_task_queue(
                Shares::Static(50),
                Latency::NotImportant,
                "background",
            ),
        }
    }
}

impl Shard {
    /// Runs `work` on this core's state, then starts the I/O that came of it.
    pub fn enter<T>(self: &Rc<Self>, work: impl FnOnce(&mut State) -> T) -> T {
        self.progress.turn();
        let (result, mut launches) = {
            let mut state = self.state.borrow_mut();
            state.read_clock();
            let result = work(&mut state);
            state.end_turn();
            if state.wants_time() {
                self.tick_wanted.notify();
            }
            if state.tell_awaited_room() {
                self.room_wanted.notify();
            }
            (result, std::mem::take(&mut state.launches))
        };
        for launch in launches.drain(..) {
            self.launch(launch);
        }
        let mut state = self.state.borrow_mut();
        if state.launches.is_empty() {
            // Keeps the grown vector for the next turn.
            state.launches = launches;
        }
        result
    }

    /// This core's counters.
    pub fn metrics(&self) -> &CoreMetrics {
        self.metrics.core(self.core)
    }

    // ---- tasks ----------------------------------------------------------------------------------------------------

    /// Spawns into the queue that serves sockets.
    pub fn spawn_net<T: 'static>(&self, task: impl Future<Output = T> + 'static) -> Task<T> {
        spawn_local_into(task, self.queues.net).expect("the queue lives as long as the executor")
    }

    fn spawn_net_detached(&self, task: impl Future<Output = ()> + 'static) {
        let progress = self.progress.clone();
        progress.work_started();
        self.spawn_net(async move {
            task.await;
            progress.work_done();
        })
        .detach();
    }

    fn spawn_flush(&self, task: impl Future<Output = ()> + 'static) {
        let progress = self.progress.clone();
        progress.work_started();
        let task = async move {
            task.await;
            progress.work_done();
        };
        spawn_local_into(task, self.queues.flush)
            .expect("the queue lives as long as the executor")
            .detach();
    }

    fn spawn_background(&self, task: impl Future<Output = ()> + 'static) {
        spawn_local_into(task, self.queues.background)
            .expect("the queue lives as long as the executor")
            .detach();
    }

    // ---- connections ----------------------------------------------------------------------------------------------

    /// Lets a connection in, or says why not.
    fn admit_connection(&self, address: IpAddr) -> bool {
        let now_us = self.state.borrow().started.elapsed().as_micros() as u64;
        let admitted = self.connection_room.borrow_mut().admit(address, now_us);
        let Err(ConnectionRefusal { bound, tell }) = admitted else {
            self.count_connections();
            return true;
        };
        let (refused, setting) = match bound {
            ConnectionBound::All => (
                &self.metrics().connections_refused,
                "native.connections_max",
            ),
            ConnectionBound::PerAddress => (
                &self.metrics().connections_refused_per_address,
                "native.connections_per_address_max",
            ),
        };
        refused.increment();
        if let Some(count) = tell {
            tracing::warn!(core = self.core, %address, setting, count, "connections were refused, this one last");
        }
        false
    }

    /// Registers a connection, which was let in.
    pub fn connection_opened(&self, connection: &Rc<Connection>) -> Key {
        self.metrics().connections_accepted.increment();
        self.connections.borrow_mut().insert(connection.clone())
    }

    /// Forgets a connection from `address`, which had `place` if it was registered.
    pub fn connection_closed(&self, address: IpAddr, place: Option<Key>) {
        place.map(|place| self.connections.borrow_mut().remove(place));
        self.connection_room.borrow_mut().ended(address);
        self.count_connections();
    }

    fn connection_count(&self) -> usize {
        self.connection_room.borrow().open() as usize
    }

    fn count_connections(&self) {
        let count = self.connection_count();
        self.progress.set_connections(count);
        self.metrics().connections_open.set(count as u64);
    }

    /// Changes what a connection holds for a large frame to `bytes`; false when the sockets' budget has no room for it.
    pub fn hold_read_bytes(&self, held: &mut ReadBytes, bytes: usize) -> bool {
        let others = self.read_bytes.get() - held.bytes;
        if bytes > held.bytes && (others + bytes) as u64 > self.config.memory.per_core.sockets {
            return false;
        }
        self.read_bytes.set(others + bytes);
        held.bytes = bytes;
        held.account.get_or_insert_with(|| self.read_bytes.clone());
        true
    }

    /// Answers what a connection's requests wait for: its client has gone.
    pub fn client_gone(self: &Rc<Self>, connection: &Rc<Connection>) {
        self.enter(|state| state.client_gone(connection));
    }

    /// Waits until appends are taken in again, or the connection or the broker ends.
    pub async fn wait_for_append_room(&self, connection: &Rc<Connection>) {
        let full = !self.state.borrow().has_append_room();
        if full {
            self.state.borrow_mut().wait_for_append_room(connection);
            self.tick_wanted.notify();
            connection.room.wait().await;
        }
    }

    /// Whether the broker is shutting down.
    pub fn is_stopping(&self) -> bool {
        self.stopping.get()
    }

    /// Counts what a socket received.
    pub fn socket_received(&self, bytes: usize) {
        self.progress.socket_moved();
        self.metrics().socket_bytes_in.add(bytes as u64);
    }

    /// Counts what a socket sent.
    pub fn socket_sent(&self, bytes: usize) {
        self.progress.socket_moved();
        self.metrics().socket_bytes_out.add(bytes as u64);
    }

    // ---- ledger ---------------------------------------------------------------------------------------------------

    fn queue_ledger(&self, write: LedgerWrite) {
        self.progress.work_started();
        self.ledger_queue.borrow_mut().push_back(write);
        self.ledger_wanted.notify();
    }

    // ---- syncs of the file system ---------------------------------------------------------------------------------

    fn queue_rider(&self, rider: Rider) {
        self.progress.work_started();
        self.riders.borrow_mut().push(rider);
        self.riders_wait.notify();
    }
}

impl State {
    /// Whether something waits for time that the look of once a second would meet too late.
    fn wants_time(&self) -> bool {
        // Another core may be the one that has no room, and does not say when it has.
        let waits = !self.waiting_for_room.is_empty();
        waits || self.machine.next_deadline_us().is_some() || self.groups_want_time()
    }

    /// Everything that had arrived was handed to logic: it says what is written now.
    fn end_turn(&mut self) {
        self.step(Input::TurnEnd, &[]);
        for _ in 0..TELLS_PER_TURN_MAX {
            if !self.tell_groups() {
                break;
            }
            // What coordinators have stored in return is written at once.
            self.step(Input::TurnEnd, &[]);
        }
        self.wake_waiting();
    }
}
