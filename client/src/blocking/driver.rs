//! Drives a machine with threads: two per connection, one that reads and one that writes, and one that keeps time.
//!
//! Owns: the lock around the machine, the sockets, the threads.
//! Not here: any decision; they are the machine's.
//!
//! Invariants:
//! 1. The machine is touched only under the lock, and nothing waits for a socket while holding it.
//! 2. After every report to the machine, and before the lock is released, the machine advances and its actions are
//!    carried out.
//! 3. A thread that holds the lock again and again (a sender) stands back for those that wait with news from a broker.

use std::collections::VecDeque;
use std::io::{ErrorKind, IoSlice, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ahash::AHashMap;
use bytes::{Buf, Bytes};

use super::ambient::deadline_after;
use super::dial::dial;
use crate::config::ClientConfig;
use crate::error::{Error, Result};
use crate::protocol::{Action, ConnectionId, FrameReader, Machine, Now};
use crate::system::{disconnected, end_of_stream};

/// Slices that one write passes to the system; the kernel takes no more (UIO_MAXIOV).
const SLICES_PER_WRITE_MAX: usize = 1024;

/// How often a sender stands back for others before it goes on regardless.
const YIELDS_MAX: usize = 100;

/// The time keeper's shortest sleep: what is due lets others have the lock first.
const PAUSE_MIN: Duration = Duration::from_micros(100);

/// A machine with what its callers keep beside it.
pub(super) trait Driven: Send + 'static {
    type Machine: Machine;

    fn machine(&mut self) -> &mut Self::Machine;

    /// Called under the lock whenever the machine has advanced. Says whether callers that wait may find news (beside
    /// those of the cluster, which the driver sees), and whether [`Driven::take_work`] has something.
    fn advanced(&mut self) -> News;

    /// Work for the time keeper's thread, to be done without the lock.
    fn take_work(&mut self) -> Option<Box<dyn FnOnce() + Send>> {
        None
    }

    /// The work that was taken is done.
    fn work_done(&mut self) {}
}

/// See [`Driven::advanced`].
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct News {
    pub(super) for_callers: bool,
    pub(super) for_keeper: bool,
}

pub(super) struct Inner<D> {
    pub(super) driven: D,
    pub(super) is_closing: bool,
    /// The view of the cluster that callers were last woken for.
    seen_revision: u64,
    peers: AHashMap<ConnectionId, Peer>,
    /// Callers that wait on `changed`.
    waiting: usize,
    /// The time keeper sleeps until then.
    keeper_wakes_at: Option<Now>,
}

/// A connection as its threads see it.
struct Peer {
    outbox: Arc<Outbox>,
    /// Absent while it is being dialled.
    stream: Option<TcpStream>,
}

/// Tells the writing thread that the machine has something to send.
#[derive(Default)]
struct Outbox {
    state: Mutex<OutboxState>,
    changed: Condvar,
}

#[derive(Default)]
struct OutboxState {
    has_output: bool,
    is_closed: bool,
}

pub(super) struct Shared<D> {
    inner: Mutex<Inner<D>>,
    changed: Condvar,
    keeper: Condvar,
    urgent: AtomicUsize,
    started: Instant,
    config: ClientConfig,
}

/// The handle that a client holds; dropping it ends connections and threads.
pub(super) struct Driver<D: Driven> {
    pub(super) shared: Arc<Shared<D>>,
    keeper: Option<JoinHandle<()>>,
}

impl<D: Driven> Driver<D> {
    /// Starts the threads, and waits until a broker has told of the cluster, or none can be reached.
    pub(super) fn start(driven: D, config: ClientConfig) -> Result<Self> {
        let inner = Inner {
            driven,
            is_closing: false,
            seen_revision: 0,
            peers: AHashMap::new(),
            waiting: 0,
            keeper_wakes_at: None,
        };
        let shared = Arc::new(Shared {
            inner: Mutex::new(inner),
            changed: Condvar::new(),
            keeper: Condvar::new(),
            urgent: AtomicUsize::new(0),
            started: Instant::now(),
            config,
        });
        let for_keeper = shared.clone();
        let keeper = spawn("tackboard-timer", move || for_keeper.keep_time())?;
        let driver = Self {
            shared,
            keeper: Some(keeper),
        };
        driver
            .shared
            .wait("the broker", |driven| match driven.machine().is_up() {
                true => Some(Ok(())),
                false => driven.machine().unreachable().map(Err),
            })?;
        Ok(driver)
    }

    /// Ends connections and threads. What was not delivered is lost.
    pub(super) fn stop(&mut self) {
        let Some(keeper) = self.keeper.take() else {
            return;
        };
        let mut inner = self.shared.lock_urgent();
        inner.is_closing = true;
        for (_, peer) in inner.peers.drain() {
            peer.end();
        }
        drop(inner);
        self.shared.keeper.notify_all();
        self.shared.changed.notify_all();
        // A callback may be what drops the client.
        if keeper.thread().id() != std::thread::current().id() {
            let _ = keeper.join();
        }
    }
}

impl<D: Driven> Drop for Driver<D> {
    fn drop(&mut self) {
        self.stop();
    }
}

impl<D: Driven> Shared<D> {
    /// The time now, as the machine counts it.
    pub(super) fn now(&self) -> Now {
        Now(self.started.elapsed())
    }

    /// For those that call again and again.
    pub(super) fn lock(&self) -> MutexGuard<'_, Inner<D>> {
        for _ in 0..YIELDS_MAX {
            if self.urgent.load(Ordering::Relaxed) == 0 {
                break;
            }
            std::thread::yield_now();
        }
        self.inner
            .lock()
            .expect("no thread panics while it holds the lock")
    }

    /// For those that bring news.
    fn lock_urgent(&self) -> MutexGuard<'_, Inner<D>> {
        self.urgent.fetch_add(1, Ordering::Relaxed);
        let inner = self
            .inner
            .lock()
            .expect("no thread panics while it holds the lock");
        self.urgent.fetch_sub(1, Ordering::Relaxed);
        inner
    }

    /// Lets the machine advance, and does what it asks for.
    pub(super) fn turn(self: &Arc<Self>, inner: &mut Inner<D>) {
        let now = self.now();
        inner.driven.machine().advance(now);
        while let Some(action) = inner.driven.machine().next_action() {
            match action {
                Action::Open {
                    connection,
                    address,
                } => self.open(inner, connection, address),
                Action::Write { connection } => {
                    if let Some(peer) = inner.peers.get(&connection) {
                        peer.outbox.notify(|state| state.has_output = true);
                    }
                }
                Action::Close { connection } => {
                    if let Some(peer) = inner.peers.remove(&connection) {
                        peer.end();
                    }
                }
            }
        }
        let revision = inner.driven.machine().revision();
        let is_new_view = revision != std::mem::replace(&mut inner.seen_revision, revision);
        let news = inner.driven.advanced();
        if (news.for_callers || is_new_view) && inner.waiting > 0 {
            self.changed.notify_all();
        }
        let next = inner.driven.machine().next_deadline();
        let is_earlier =
            next.is_some_and(|next| inner.keeper_wakes_at.is_none_or(|planned| next < planned));
        if is_earlier || news.for_keeper {
            inner.keeper_wakes_at = next;
            self.keeper.notify_one();
        }
    }

    /// Waits until `look` finds something, at most as long as a call may take.
    pub(super) fn wait<T>(
        self: &Arc<Self>,
        what: &str,
        mut look: impl FnMut(&mut D) -> Option<Result<T>>,
    ) -> Result<T> {
        let timeout = self.config.call_timeout;
        let waited = self.wait_until(deadline_after(timeout), &mut look);
        waited.unwrap_or_else(|| {
            Err(Error::TimedOut {
                what: what.into(),
                waited: timeout,
                last: None,
            })
        })
    }

    /// Waits until `look` finds something; `None` when the deadline comes first. After each look the machine advances.
    pub(super) fn wait_until<T>(
        self: &Arc<Self>,
        deadline: Instant,
        mut look: impl FnMut(&mut D) -> Option<Result<T>>,
    ) -> Option<Result<T>> {
        let mut inner = self.lock();
        loop {
            if inner.is_closing {
                return Some(Err(Error::Closed));
            }
            let found = look(&mut inner.driven);
            // Looking may have asked for something, and taking something makes room.
            self.turn(&mut inner);
            // The turn may have brought what was looked for, and nobody else would tell.
            let found = found.or_else(|| look(&mut inner.driven));
            if found.is_some() {
                return found;
            }
            let left = deadline
                .checked_duration_since(Instant::now())
                .filter(|left| !left.is_zero())?;
            inner.waiting += 1;
            inner = self
                .changed
                .wait_timeout(inner, left)
                .expect("no thread panics while it holds the lock")
                .0;
            inner.waiting -= 1;
        }
    }

    /// The time keeper: advances the machine when something is due, and does work that must not be done under the lock.
    fn keep_time(self: Arc<Self>) {
        let mut inner = self.lock_urgent();
        while !inner.is_closing {
            self.turn(&mut inner);
            if let Some(work) = inner.driven.take_work() {
                inner = self.do_work(inner, work);
                continue;
            }
            let next = inner.driven.machine().next_deadline();
            inner.keeper_wakes_at = next;
            let pause = next.map(|next| next.since(self.now()).max(PAUSE_MIN));
            inner = match pause {
                Some(pause) => self.keeper.wait_timeout(inner, pause).expect("as above").0,
                None => self.keeper.wait(inner).expect("as above"),
            };
        }
        // What became of everything is told before the end.
        while let Some(work) = inner.driven.take_work() {
            inner = self.do_work(inner, work);
        }
    }

    fn do_work<'a>(
        &'a self,
        inner: MutexGuard<'a, Inner<D>>,
        work: Box<dyn FnOnce() + Send>,
    ) -> MutexGuard<'a, Inner<D>> {
        drop(inner);
        work();
        let mut inner = self.lock_urgent();
        inner.driven.work_done();
        if inner.waiting > 0 {
            self.changed.notify_all();
        }
        inner
    }

    fn open(self: &Arc<Self>, inner: &mut Inner<D>, connection: ConnectionId, address: Arc<str>) {
        let outbox = Arc::new(Outbox::default());
        inner.peers.insert(
            connection,
            Peer {
                outbox: outbox.clone(),
                stream: None,
            },
        );
        let shared = self.clone();
        let for_thread = address.clone();
        let spawned = spawn("tackboard-read", move || {
            let fault = shared.run_connection(connection, &for_thread, outbox);
            shared.ended(connection, fault);
        });
        if let Err(fault) = spawned {
            inner.peers.remove(&connection);
            inner.driven.machine().closed(connection, fault, self.now());
        }
    }

    fn ended(self: &Arc<Self>, connection: ConnectionId, fault: Error) {
        let mut inner = self.lock_urgent();
        if let Some(peer) = inner.peers.remove(&connection) {
            peer.end();
        }
        if !inner.is_closing {
            inner.driven.machine().closed(connection, fault, self.now());
            self.turn(&mut inner);
        }
    }

    /// Dials, then reads until the connection ends; returns why it did.
    fn run_connection(
        self: &Arc<Self>,
        connection: ConnectionId,
        address: &Arc<str>,
        outbox: Arc<Outbox>,
    ) -> Error {
        let stream = match dial(address, self.config.connect_timeout) {
            Ok(stream) => stream,
            Err(fault) => return fault,
        };
        let clones = stream
            .try_clone()
            .and_then(|writer| Ok((writer, stream.try_clone()?)));
        let (writer, for_peer) = match clones {
            Ok(clones) => clones,
            Err(error) => return disconnected(address, &error),
        };
        let shared = self.clone();
        let for_writer = outbox.clone();
        if let Err(fault) = spawn("tackboard-write", move || {
            shared.write(connection, &writer, &for_writer)
        }) {
            return fault;
        }
        {
            let mut inner = self.lock_urgent();
            match inner.peers.get_mut(&connection) {
                Some(peer) => peer.stream = Some(for_peer),
                // The machine has closed it meanwhile.
                None => {
                    outbox.notify(|state| state.is_closed = true);
                    return Error::Closed;
                }
            }
            inner.driven.machine().opened(connection, self.now());
            self.turn(&mut inner);
        }
        self.read(connection, address, stream)
    }

    fn read(
        self: &Arc<Self>,
        connection: ConnectionId,
        address: &Arc<str>,
        mut stream: TcpStream,
    ) -> Error {
        let mut reader = FrameReader::new(self.config.protocol, self.config.frame_bytes_max);
        let mut frames = Vec::new();
        loop {
            match stream.read(reader.space()) {
                Ok(0) => return disconnected(address, &end_of_stream()),
                Ok(count) => reader.filled(count),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return disconnected(address, &error),
            }
            loop {
                match reader.next_frame() {
                    Ok(Some(frame)) => frames.push(frame),
                    Ok(None) => break,
                    Err(fault) => {
                        return Error::Protocol {
                            address: address.clone(),
                            what: fault.to_string().into(),
                        };
                    }
                }
            }
            if frames.is_empty() {
                continue;
            }
            let mut inner = self.lock_urgent();
            let now = self.now();
            frames
                .drain(..)
                .for_each(|frame| inner.driven.machine().received(connection, frame, now));
            self.turn(&mut inner);
        }
    }

    /// Writes what the machine has to send until the connection ends.
    fn write(self: &Arc<Self>, connection: ConnectionId, mut stream: &TcpStream, outbox: &Outbox) {
        let mut output = VecDeque::new();
        while outbox.wait() {
            {
                let mut inner = self.lock_urgent();
                inner.driven.machine().take_output(connection, &mut output);
                self.turn(&mut inner);
            }
            if write_all(&mut stream, &mut output).is_err() {
                // The reading thread notices, and reports it.
                let _ = stream.shutdown(Shutdown::Both);
                return;
            }
        }
    }
}

fn write_all(stream: &mut &TcpStream, output: &mut VecDeque<Bytes>) -> std::io::Result<()> {
    while !output.is_empty() {
        let slices: Vec<_> = output
            .iter()
            .take(SLICES_PER_WRITE_MAX)
            .map(|bytes| IoSlice::new(bytes))
            .collect();
        let mut written = match stream.write_vectored(&slices) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        while let Some(front) = output.front_mut() {
            if written < front.len() {
                front.advance(written);
                break;
            }
            written -= front.len();
            output.pop_front();
        }
    }
    Ok(())
}

impl Peer {
    fn end(&self) {
        self.outbox.notify(|state| state.is_closed = true);
        if let Some(stream) = &self.stream {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Outbox {
    fn notify(&self, change: impl FnOnce(&mut OutboxState)) {
        change(
            &mut self
                .state
                .lock()
                .expect("no thread panics while it holds the lock"),
        );
        self.changed.notify_one();
    }

    /// Waits for something to write; false at the end.
    fn wait(&self) -> bool {
        let mut state = self
            .state
            .lock()
            .expect("no thread panics while it holds the lock");
        loop {
            if state.is_closed {
                return false;
            }
            if std::mem::take(&mut state.has_output) {
                return true;
            }
            state = self
                .changed
                .wait(state)
                .expect("no thread panics while it holds the lock");
        }
    }
}

fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
    let spawned = std::thread::Builder::new().name(name.into()).spawn(body);
    spawned.map_err(|error| Error::System {
        what: "could not start a thread",
        detail: error.to_string().into(),
    })
}
