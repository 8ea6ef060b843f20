//! The life of a core: recover, serve, drain.

use std::{
    cell::{Cell, RefCell},
    net::SocketAddr,
    os::fd::OwnedFd,
    rc::{Rc, Weak},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use glommio::{net::TcpListener, sync::Semaphore, timer::sleep};
use tackboard_logic::{
    ledger::{LedgerImage, LedgerStart},
    log::recovery::RestartClass,
    metadata::{Endpoint, Image, UnaskedTopics},
    request::{
        calls::{CALLS_MAX, Calls},
        connections::ConnectionRoom,
        entries::EntryRoom,
        file_room::FileRoom,
        producer_ids::ProducerIds,
    },
    shard::{
        Shard as Machine,
        cold::READS_IN_FLIGHT_MAX as STRETCH_READS_MAX,
        interface::{Effects, Input, Now, ShardConfig, StorageFault, SyncCosts, Unwritten},
    },
};
use tackboard_runtime::{Core, InboxReceiver, InboxSender, Notify, net};
use tackboard_schema::{CoreId, TimestampMs, native::HeadBuilder};

use super::{
    Queues, Reads, Shard,
    cold::History,
    groups::Groups,
    house::{keep_house, make_room},
    launch::{LedgerWrite, READS_IN_FLIGHT_MAX},
    loan::Loans,
    request::PeerMessage,
    slab::Slab,
    state::State,
    topics::Topics,
};
use crate::{
    bridge::{Metrics, PartitionFault, ToControl, ToCore},
    config::Config,
    disk::{
        chunks::Chunks,
        file::Access,
        flusher::{CoreFlusher, Flusher},
        ledger::LedgerFiles,
        paths::DataPaths,
        segments::sync_folder,
    },
    native::{connection::Door, session},
};

/// Messages an inbox between two cores holds: every call that credit allows, its hurry and its answer, and the return of
/// every loan.
pub const PEER_INBOX_MAX: usize = 4 * CALLS_MAX;
/// Messages of other cores that are taken in one turn.
pub const MESSAGES_PER_TURN_MAX: usize = 256;
/// What a core's tail cache holds even when nobody reads so far back, if its budget allows: a tenth of a second at a good
/// rate. It grows when a reader asks for more.
pub const TAIL_CACHE_LEAST_BYTES: u64 = 16 << 20;
/// Bytes of active segments that a start after a crash should have to read at most, of all cores together: well below a
/// second of reading.
pub const RECOVERY_BYTES: u64 = 512 << 20;
/// What a log appends at least between two of its checkpoints.
pub const CHECKPOINT_BYTES_MIN: u64 = 512 << 10;
/// Logs that learn in one turn what came of a sync of the file system.
pub const RIDERS_PER_TURN_MAX: usize = 64;
/// What syncs are believed to cost before any was measured: those of one file as they are on a busy virtual disk, those
/// of the file system at its slow end there.
pub const SYNC_COSTS: SyncCosts = SyncCosts {
    file_us: 80,
    file_system_us: 4_000,
};
/// How often deadlines are looked at while any is armed.
pub const TICK: Duration = Duration::from_millis(10);
/// A client that takes nothing for so long, or whose machine has gone, loses its connection.
pub const PEER_SILENT_MAX: Duration = Duration::from_secs(60);
/// How long a core waits at its end for buffers that other cores were sending. Their connections are shut by then, so
/// only a core that stands still takes longer.
pub const LOANS_BACK_MAX: Duration = Duration::from_secs(10);
/// The time for shutting down, divided by this, is kept for writing and syncing after the last connection.
pub const FLUSH_SHARE_DIVISOR: u32 = 2;

/// Everything a core is started with.
pub struct Seed {
    /// Which core it is.
    pub core: CoreId,
    /// The broker's settings.
    pub config: Arc<Config>,
    /// Where things lie.
    pub paths: DataPaths,
    /// How its files are opened.
    pub access: Access,
    /// Syncs the whole file system, where that can be trusted.
    pub flusher: Option<Flusher>,
    /// Tells the folder from every other.
    pub directory_id: [u8; 16],
    /// All cores' counters.
    pub metrics: Metrics,
    /// The metadata it starts with.
    pub image: Arc<Image>,
    /// How the last process ended.
    pub restart: RestartClass,
    /// What the ledgers of the last process prove.
    pub ledger: Arc<LedgerImage>,
    /// What this core's new ledger begins with.
    pub ledger_start: LedgerStart,
    /// The reserved listener that any core may answer: its address, and the socket for the first core.
    pub any_core: Shared,
    /// The same for clients of Kafka, and where they are told to connect; `None`: there is no such listener.
    pub kafka: Option<(Shared, Endpoint)>,
    /// This core's own listener.
    pub own: OwnedFd,
    /// From the control thread.
    pub from_control: InboxReceiver<ToCore>,
    /// From the other cores.
    pub from_peers: InboxReceiver<PeerMessage>,
    /// To this core, for what it lends.
    pub own_inbox: InboxSender<PeerMessage>,
    /// To the other cores; none at its own place.
    pub peers: Vec<Option<InboxSender<PeerMessage>>>,
    /// To the control thread.
    pub control: flume::Sender<ToControl>,
    /// Says that recovery is done and the new ledger is on the medium.
    pub ready: std::sync::mpsc::Sender<Ready>,
    /// Says that every core is.
    pub go: flume::Receiver<()>,
    /// Cores that have drained their connections, and so ask nothing of other cores any more.
    pub drained: Arc<AtomicUsize>,
}

/// What recovery did, for people.
#[derive(Clone, Copy, Debug, Default)]
pub struct Recovered {
    /// Logs that were opened.
    pub logs: u64,
    /// Bytes that were read and checked.
    pub scanned_bytes: u64,
    /// Logs whose torn tail was cut.
    pub torn_tails: u64,
    /// Damaged ranges that were found.
    pub damaged: u64,
    /// Logs of which nothing told how far they were durable.
    pub unproven: u64,
}

impl Recovered {
    /// Adds what another log or core did.
    pub fn add(&mut self, other: &Recovered) {
        self.logs += other.logs;
        self.scanned_bytes += other.scanned_bytes;
        self.torn_tails += other.torn_tails;
        self.damaged += other.damaged;
        self.unproven += other.unproven;
    }
}

/// A core's report before it serves.
#[derive(Debug)]
pub struct Ready {
    /// Who.
    pub core: CoreId,
    /// Why it can't serve at all, or what it recovered and which partitions it could not open.
    pub outcome: Result<(Recovered, Vec<PartitionFault>), String>,
}

/// Runs one core. Returns whether everything was written and synced at the end.
pub async fn run(core: Core, seed: Seed) -> bool {
    let ready = seed.ready.clone();
    let core_id = seed.core;
    let control = seed.control.clone();
    let clean = match start(core, seed).await {
        Ok(Some(serving)) => serving.serve().await,
        // Another core did not come up: nothing was served.
        Ok(None) => false,
        Err(fault) => {
            let outcome = Err(format!(
                "core {core_id}: the ledger could not be written: {fault}"
            ));
            let _ = ready.send(Ready {
                core: core_id,
                outcome,
            });
            false
        }
    };
    let drained = ToControl::Drained {
        core: core_id,
        clean,
    };
    let _ = control.try_send(drained);
    clean
}

/// A core that has recovered.
struct Serving {
    shard: Rc<Shard>,
    stop: Rc<Stop>,
    listeners: Vec<(TcpListener, Door)>,
    drained_cores: Arc<AtomicUsize>,
    core_count: usize,
}

/// The order to shut down.
#[derive(Default)]
struct Stop {
    wanted: Notify,
    deadline: Cell<Option<Instant>>,
}

/// A core whose new ledger counts; it has no logs yet.
async fn start_ledger(core: Core, seed: &Seed) -> Result<Rc<Shard>, StorageFault> {
    let queues = Queues::create();
    let index = usize::from(seed.core.0);
    let generation = seed.ledger_start.generation;
    let ledger_files = LedgerFiles::create(
        &seed.paths.ledger(generation, index, 'a'),
        &seed.paths.ledger(generation, index, 'b'),
        seed.access,
    )
    .await?;
    let shard = Rc::new(make_shard(core, seed, queues));
    // Logic's first ledger writes were emitted when its machine was made.
    let written = Rc::new(Notify::new());
    let writer = write_ledgers(shard.clone(), ledger_files, written.clone());
    shard.spawn_net(writer).detach();
    shard.enter(|_| ());
    while !shard.state.borrow().machine.ledger_started() {
        written.wait().await;
        if let Some(fault) = shard.ledger_fault.get() {
            return Err(fault);
        }
    }
    Ok(shard)
}

/// A listener that cores share: its address, and the socket for the first of them.
pub type Shared = (SocketAddr, Option<OwnedFd>);

/// This core's listeners: its own, and those that all cores share.
fn listeners(own: OwnedFd, any_core: Shared, kafka: Option<Shared>) -> Vec<(TcpListener, Door)> {
    let mut listeners = vec![(net::adopt(own), Door::Native)];
    let shared = [(Door::Native, Some(any_core)), (Door::Kafka, kafka)];
    for (door, shared) in shared {
        let Some((address, socket)) = shared else {
            continue;
        };
        match socket {
            Some(socket) => listeners.push((net::adopt(socket), door)),
            None => match net::listen_beside(address) {
                Ok(listener) => listeners.push((listener, door)),
                Err(error) => {
                    tracing::warn!(%error, %address, ?door, "this core does not share a listener");
                }
            },
        }
    }
    listeners
}

/// Recovers, reports, and waits until every core has; `None` when one could not.
async fn start(core: Core, seed: Seed) -> Result<Option<Serving>, StorageFault> {
    let shard = start_ledger(core, &seed).await?;
    let core_count = seed.peers.len();
    let stop = Rc::new(Stop::default());
    let Seed {
        from_peers,
        from_control,
        flusher,
        ready,
        go,
        image,
        restart,
        ledger,
        any_core,
        kafka,
        own,
        drained,
        core: core_id,
        ..
    } = seed;
    let peers = read_peers(Rc::downgrade(&shard), from_peers);
    shard.spawn_net(peers).detach();
    if let Some(flusher) = flusher {
        let syncs = sync_file_system(shard.clone(), flusher.for_core());
        shard.spawn_net(syncs).detach();
    }
    let (faults, recovered) = shard.apply_image(image, restart, &ledger).await;
    let opening = (restart, ledger);
    let house = keep_house(Rc::downgrade(&shard), opening.clone());
    let control = read_control(Rc::downgrade(&shard), from_control, stop.clone(), opening);
    shard.spawn_net(control).detach();
    shard.spawn_net(tick(shard.clone())).detach();
    shard.spawn_net(make_room(shard.clone())).detach();
    shard.spawn_background(house);
    let listeners = listeners(own, any_core, kafka.map(|(shared, _)| shared));
    let _ = ready.send(Ready {
        core: core_id,
        outcome: Ok((recovered, faults)),
    });
    drop(ready);
    // Nothing is accepted before every core can answer for its partitions.
    if go.recv_async().await.is_err() {
        return Ok(None);
    }
    Ok(Some(Serving {
        shard,
        stop,
        listeners,
        drained_cores: drained,
        core_count,
    }))
}

fn make_shard(core: Core, seed: &Seed, queues: Queues) -> Shard {
    let mut effects = Effects::default();
    let memory = &seed.config.memory.per_core;
    let config = ShardConfig {
        core: seed.core,
        append_bytes: memory.append,
        tail_cache_bytes: memory.tail_cache,
        tail_cache_least_bytes: TAIL_CACHE_LEAST_BYTES,
        index_bytes: memory.indexes,
        recovery_bytes: RECOVERY_BYTES / seed.peers.len() as u64,
        checkpoint_bytes_min: CHECKPOINT_BYTES_MIN,
        reserve_bytes: seed.config.reserve_bytes,
        log_budget_bytes: seed.config.log_budget_bytes,
        cores: seed.peers.len() as u64,
        sync_costs: seed.flusher.is_some().then_some(SYNC_COSTS),
        directory_id: seed.directory_id,
        broker_epoch: seed.ledger_start.generation,
    };
    let machine = Machine::new(config, seed.ledger_start.clone(), &mut effects);
    let mut state = State {
        core: seed.core,
        config: seed.config.clone(),
        metrics: seed.metrics.clone(),
        machine,
        effects: Effects::default(),
        chunks: Chunks::default(),
        logs: Vec::new(),
        topics: Topics::new(seed.config.broker_id, seed.core, seed.image.clone()),
        requests: Slab::default(),
        tickets: Slab::default(),
        calls: Slab::default(),
        call_credit: Calls::default(),
        entry_room: EntryRoom::new(memory.sockets),
        peer_waits: Default::default(),
        peers: seed.peers.clone(),
        loans: Loans::new(seed.peers.len(), seed.own_inbox.clone()),
        launches: Vec::new(),
        follow_ups: Vec::new(),
        heads: HeadBuilder::new(),
        started: Instant::now(),
        now: Now {
            monotonic_us: 0,
            wall: TimestampMs(0),
        },
        waiting_for_room: Vec::new(),
        control: seed.control.clone(),
        proposals: Slab::default(),
        unasked: UnaskedTopics::default(),
        producer_ids: ProducerIds::default(),
        file_room: FileRoom::default(),
        progress: core.progress.clone(),
        stopping: false,
        drained: false,
        unwritten: Unwritten::default(),
        groups: Groups::default(),
        kafka_endpoint: seed.kafka.as_ref().map(|(_, endpoint)| endpoint.clone()),
        aborted: false,
    };
    state.read_clock();
    state.carry_out(&mut effects, &[]);
    Shard {
        config: seed.config.clone(),
        paths: seed.paths.clone(),
        access: seed.access,
        state: RefCell::new(state),
        metrics: seed.metrics.clone(),
        core: usize::from(seed.core.0),
        progress: core.progress,
        queues,
        connections: RefCell::default(),
        connection_room: RefCell::new(ConnectionRoom::new(
            seed.config.connections_max,
            seed.config.connections_per_address_max,
        )),
        ledger_queue: RefCell::default(),
        ledger_wanted: Notify::new(),
        riders: RefCell::default(),
        riders_wait: Notify::new(),
        tick_wanted: Notify::new(),
        room_wanted: Notify::new(),
        stopping: Cell::new(false),
        ended: Cell::new(false),
        ledger_fault: Cell::new(None),
        reads: Reads::new(READS_IN_FLIGHT_MAX),
        stretch_reads: Reads::new(STRETCH_READS_MAX),
        history: History::new(seed.config.memory.per_core.cold_reads),
        read_bytes: Rc::default(),
        trash: RefCell::default(),
        opening: Semaphore::new(1),
    }
}

impl Serving {
    async fn serve(self) -> bool {
        let accepting: Vec<_> = (self.listeners.into_iter())
            .map(|(listener, door)| {
                let accepting = accept(self.shard.clone(), listener, door);
                self.shard.spawn_net(accepting)
            })
            .collect();
        self.stop.wanted.wait().await;
        for task in accepting {
            // Nothing is lost with an accept that is abandoned: the connection was never answered.
            task.cancel().await;
        }
        let deadline = self.stop.deadline.get().unwrap_or_else(Instant::now);
        let clean = drain(&self.shard, deadline, &self.drained_cores, self.core_count).await;
        // Every core has shut its connections by now, and what they were sending comes back.
        let all_back = until(Instant::now() + LOANS_BACK_MAX, || {
            self.shard.state.borrow().loans.is_empty()
        });
        // Freeing what another core may read is worse than ending the process.
        assert!(
            all_back.await,
            "another core holds on to buffers of this one"
        );
        end_long_lived(&self.shard).await;
        clean
    }
}

async fn accept(shard: Rc<Shard>, listener: TcpListener, door: Door) {
    loop {
        let warn =
            |error: &std::io::Error| tracing::warn!(%error, "a connection could not be accepted");
        let stream = net::accept(&listener, warn).await;
        shard.progress.socket_moved();
        let Ok(peer) = stream.peer_addr() else {
            // It has gone already.
            continue;
        };
        let address = peer.ip().to_canonical();
        if !shard.admit_connection(address) {
            continue;
        }
        if let Err(error) = net::prepare(&stream, PEER_SILENT_MAX) {
            tracing::debug!(%error, "a socket option could not be set");
        }
        let served = session::serve(shard.clone(), stream, address, door);
        shard.spawn_net(served).detach();
    }
}

// ---- long-lived tasks ---------------------------------------------------------------------------------------------

/// Writes the ledger, one write after another: their order is what makes it a log.
async fn write_ledgers(shard: Rc<Shard>, files: LedgerFiles, written: Rc<Notify>) {
    while !shard.ended.get() {
        let next = shard.ledger_queue.borrow_mut().pop_front();
        let Some(LedgerWrite {
            sequence,
            file,
            at,
            bytes,
            cut_to,
        }) = next
        else {
            shard.ledger_wanted.wait().await;
            continue;
        };
        let result = files.write(file, at, &bytes, cut_to).await;
        shard.metrics().disk_syncs.increment();
        if let Err(fault) = &result {
            shard.ledger_fault.set(Some(*fault));
            tracing::error!(core = shard.core, ?file, at, %fault, "the ledger could not be written");
        }
        shard.enter(|state| state.step(Input::LedgerWritten { sequence, result }, &[]));
        shard.progress.work_done();
        written.notify();
    }
}

/// Syncs the file system whenever logs wait for it; what comes to wait meanwhile is for the next time.
async fn sync_file_system(shard: Rc<Shard>, mut flusher: CoreFlusher) {
    while !shard.ended.get() {
        let riders = std::mem::take(&mut *shard.riders.borrow_mut());
        if riders.is_empty() {
            shard.riders_wait.wait().await;
            continue;
        }
        let result = flusher.flush().await;
        shard.metrics().disk_syncs.increment();
        shard.metrics().disk_file_system_syncs.increment();
        let mut riders = riders.into_iter();
        while riders.len() > 0 {
            for rider in riders.by_ref().take(RIDERS_PER_TURN_MAX) {
                let input = shard.ridden(rider, result);
                shard.enter(|state| state.step(input, &[]));
                shard.progress.work_done();
            }
            glommio::executor().yield_if_needed().await;
        }
    }
}

/// Does not keep the shard: the inbox it waits on stays open for as long as any core has a way to it, this one included.
async fn read_peers(shard: Weak<Shard>, inbox: InboxReceiver<PeerMessage>) {
    while let Some(first) = inbox.next().await {
        let Some(shard) = shard.upgrade() else {
            return;
        };
        shard.enter(|state| {
            state.take_message(first);
            for message in (1..MESSAGES_PER_TURN_MAX).map_while(|_| inbox.take()) {
                state.take_message(message);
            }
        });
        glommio::executor().yield_if_needed().await;
    }
}

/// `opening` is what every log is opened with: one that could not be opened at the start is tried again with the same
/// proof, and a new one finds no entry in it. Does not keep the shard, as [`read_peers`].
async fn read_control(
    shard: Weak<Shard>,
    inbox: InboxReceiver<ToCore>,
    stop: Rc<Stop>,
    opening: (RestartClass, Arc<LedgerImage>),
) {
    let (restart, ledger) = opening;
    while let Some(message) = inbox.next().await {
        let Some(shard) = shard.upgrade() else {
            return;
        };
        match message {
            ToCore::Image(image) => {
                let version = image.version;
                let (faults, _) = shard.apply_image(image, restart, &ledger).await;
                let core = CoreId(shard.core as u16);
                let applied = ToControl::ImageApplied {
                    core,
                    version,
                    faults,
                };
                let control = shard.state.borrow().control.clone();
                let _ = control.try_send(applied);
            }
            ToCore::ProposalDone { call, result } => {
                shard.enter(|state| state.proposal_done(call, result));
            }
            ToCore::Shutdown { deadline } => {
                stop.deadline.set(Some(deadline));
                stop.wanted.notify();
            }
        }
    }
}

/// Tells logic the time while anything waits for it.
async fn tick(shard: Rc<Shard>) {
    let is_due = || shard.state.borrow().wants_time();
    while !shard.ended.get() {
        shard.tick_wanted.wait().await;
        shard.progress.set_deadlines(true);
        while is_due() && !shard.ended.get() {
            sleep(TICK).await;
            shard.enter(|state| {
                state.step(Input::Tick, &[]);
                state.meet_group_deadlines();
            });
        }
        shard.progress.set_deadlines(false);
    }
}

// ---- shutdown -----------------------------------------------------------------------------------------------------

/// Stops reading, answers what was asked, writes and syncs everything, closes the files.
async fn drain(
    shard: &Rc<Shard>,
    deadline: Instant,
    drained_cores: &AtomicUsize,
    core_count: usize,
) -> bool {
    shard.stopping.set(true);
    shard.enter(|state| {
        state.stopping = true;
        state.hurry_fetches();
        state.release_members();
    });
    let connections: Vec<_> = {
        let mut open = shard.connections.borrow_mut();
        let keys = open.keys();
        keys.into_iter()
            .filter_map(|key| open.get_mut(key).cloned())
            .collect()
    };
    for connection in &connections {
        connection.stop_reading();
    }
    // Logic that has given up takes no more input: nobody will be answered, and nothing is written.
    let aborted = || shard.state.borrow().aborted;
    let patience = deadline.saturating_duration_since(Instant::now()) / FLUSH_SHARE_DIVISOR;
    let answered_by = Instant::now() + patience;
    until(answered_by, || aborted() || shard.connection_count() == 0).await;
    for connection in &connections {
        connection.close();
    }
    drop(connections);
    // Other cores may still ask for what only this one can answer.
    drained_cores.fetch_add(1, Ordering::AcqRel);
    until(answered_by, || {
        aborted() || drained_cores.load(Ordering::Acquire) >= core_count
    })
    .await;

    shard.enter(|state| state.step(Input::Shutdown, &[]));
    let ended = until(deadline, || aborted() || shard.state.borrow().drained).await;
    if aborted() {
        return false;
    }
    if !ended {
        tracing::error!("the time for shutting down ran out before everything was written");
        return false;
    }
    // Reads of history that nobody waits for any more: until they have come back, their buffers are the kernel's.
    if !until(deadline, || !shard.history.is_reading()).await {
        tracing::error!("the time for shutting down ran out before every read had come back");
        return false;
    }
    close_files(shard).await;
    let Unwritten { logs, bytes } = shard.state.borrow().unwritten;
    if logs > 0 {
        tracing::error!(
            partitions = logs,
            bytes,
            "the disk is full: these partitions got no index, and these bytes of batches, none of them acknowledged, were not written"
        );
    }
    logs == 0
}

/// Waits for a condition, looking every few milliseconds; false when the time ran out.
async fn until(deadline: Instant, condition: impl Fn() -> bool) -> bool {
    while !condition() {
        if Instant::now() >= deadline {
            return false;
        }
        sleep(Duration::from_millis(2)).await;
    }
    true
}

/// Lets the tasks go that wait for work as long as the core lives. The executor would not: they hold the shard that they
/// wait on, and with it ledger files, buffers, and the way to the flusher.
async fn end_long_lived(shard: &Shard) {
    shard.ended.set(true);
    shard.ledger_wanted.notify();
    shard.riders_wait.notify();
    shard.tick_wanted.notify();
    shard.room_wanted.notify();
    // Turns for them to see it; one that waits for I/O or sleeps may take longer, and is left.
    sleep(TICK * 2).await;
}

async fn close_files(shard: &Rc<Shard>) {
    let files: Vec<_> = (shard.state.borrow_mut().logs.drain(..))
        .flatten()
        .flat_map(|log| log.files.borrow_mut().take_all())
        .collect();
    drop(files);
    if let Err(fault) = sync_folder(&shard.paths.logs()).await {
        tracing::warn!(%fault, "the folder of logs could not be synced");
    }
    // A last turn, so that what was closed leaves the rings before they go.
    sleep(Duration::from_millis(1)).await;
}

#[cfg(test)]
#[path = "truncate_test.rs"]
mod truncate_test;
