//! Drives a machine with tasks of one executor: two per connection, one that reads and one that writes, and timers.
//!
//! Owns: the machine, the sockets, the tasks.
//! Not here: any decision; they are the machine's.
//!
//! Invariants:
//! 1. The machine is borrowed only between two awaits, and never while a task is started (a new task runs at once,
//!    inside the one that starts it).
//! 2. After every report to the machine it advances, and its actions are carried out.
//! 3. A timer is armed only for a deadline before all that are armed, so there are few; each is awaited alone, since
//!    polling a pending one again leaks an entry in glommio 0.12.
//! 4. No read or write is abandoned half way: a connection ends by shutting its socket down, and its tasks see it.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::net::{SocketAddr, ToSocketAddrs};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use ahash::AHashMap;
use bytes::Bytes;
use glommio::net::TcpStream;
use glommio::timer::sleep;
use tackboard_runtime::net::{self, Reader, Shutter, Writer};
use tackboard_runtime::{Notify, Progress};

use crate::config::ClientConfig;
use crate::error::{Error, Result};
use crate::protocol::{Action, ConnectionId, FrameReader, Machine, Now, earliest};
use crate::system::{disconnected, end_of_stream, unreachable};

/// No timer sleeps longer, so that a client that was dropped leaves none behind for long.
const TIMER_MAX: Duration = Duration::from_secs(1);

/// The shortest sleep of a timer: what is due lets others run first.
const TIMER_MIN: Duration = Duration::from_micros(100);

/// A machine with what its callers keep beside it.
pub(super) trait Driven: 'static {
    type Machine: Machine;

    fn machine(&mut self) -> &mut Self::Machine;

    /// Called whenever the machine has advanced; says whether callers that wait may find news.
    fn advanced(&mut self) -> bool;
}

pub(super) struct Shared<D: Driven> {
    pub(super) driven: RefCell<D>,
    peers: RefCell<AHashMap<ConnectionId, Peer>>,
    /// Callers that wait, and until when at most.
    waiting: RefCell<Vec<(Waker, Option<Now>)>>,
    /// Deadlines for which a timer sleeps.
    armed: RefCell<Vec<Now>>,
    /// Connections whose tasks have not let go of the socket yet.
    open_sockets: Cell<usize>,
    is_closing: Cell<bool>,
    started: Instant,
    config: ClientConfig,
    progress: Option<Arc<Progress>>,
}

/// A connection as others than its own tasks see it.
struct Peer {
    wake_writer: Rc<Notify>,
    /// Absent while it is being dialled; the entry goes before the reader that it was made from does.
    shutter: Option<Shutter>,
}

/// The handle that a client holds; dropping it ends the connections.
pub(super) struct Driver<D: Driven> {
    pub(super) shared: Rc<Shared<D>>,
}

impl<D: Driven> Driver<D> {
    /// Starts, and waits until a broker has told of the cluster, or none can be reached.
    pub(super) async fn start(
        driven: D,
        config: ClientConfig,
        progress: Option<Arc<Progress>>,
    ) -> Result<Self> {
        let shared = Rc::new(Shared {
            driven: RefCell::new(driven),
            peers: RefCell::default(),
            waiting: RefCell::default(),
            armed: RefCell::default(),
            open_sockets: Cell::new(0),
            is_closing: Cell::new(false),
            started: Instant::now(),
            config,
            progress,
        });
        let driver = Self { shared };
        let up = driver
            .shared
            .wait("the broker", |driven| match driven.machine().is_up() {
                true => Some(Ok(())),
                false => driven.machine().unreachable().map(Err),
            });
        up.await?;
        Ok(driver)
    }

    /// Ends the connections and waits until their tasks are done with their sockets.
    pub(super) async fn stop(&self) {
        self.shared.end();
        poll_fn(|context| {
            if self.shared.open_sockets.get() == 0 {
                return Poll::Ready(());
            }
            self.shared.wait_for_news(context.waker(), None);
            Poll::Pending
        })
        .await;
    }
}

impl<D: Driven> Drop for Driver<D> {
    fn drop(&mut self) {
        self.shared.end();
    }
}

impl<D: Driven> Shared<D> {
    /// The time now, as the machine counts it.
    pub(super) fn now(&self) -> Now {
        Now(self.started.elapsed())
    }

    /// Whether the client has ended.
    pub(super) fn is_closing(&self) -> bool {
        self.is_closing.get()
    }

    fn end(&self) {
        self.is_closing.set(true);
        for (_, peer) in self.peers.borrow_mut().drain() {
            peer.end();
        }
        self.wake_all();
    }

    /// Wakes a task when there is news, or at the deadline. A task waits for one thing at a time.
    fn wait_for_news(&self, waker: &Waker, deadline: Option<Now>) {
        let mut waiting = self.waiting.borrow_mut();
        match waiting.iter_mut().find(|(known, _)| known.will_wake(waker)) {
            Some(entry) => entry.1 = deadline,
            None => waiting.push((waker.clone(), deadline)),
        }
    }

    fn wake_all(&self) {
        let waiting = std::mem::take(&mut *self.waiting.borrow_mut());
        waiting.into_iter().for_each(|(waker, _)| waker.wake());
    }

    /// Lets the machine advance, and does what it asks for.
    pub(super) fn turn(self: &Rc<Self>) {
        if self.is_closing.get() {
            return;
        }
        if let Some(progress) = &self.progress {
            progress.turn();
        }
        let now = self.now();
        self.driven.borrow_mut().machine().advance(now);
        loop {
            // Not under the borrow: a task that is started runs at once.
            let action = self.driven.borrow_mut().machine().next_action();
            match action {
                Some(Action::Open {
                    connection,
                    address,
                }) => self.open(connection, address),
                Some(Action::Write { connection }) => {
                    if let Some(peer) = self.peers.borrow().get(&connection) {
                        peer.wake_writer.notify();
                    }
                }
                Some(Action::Close { connection }) => {
                    if let Some(peer) = self.peers.borrow_mut().remove(&connection) {
                        peer.end();
                    }
                }
                None => break,
            }
        }
        let has_news = self.driven.borrow_mut().advanced();
        let is_due =
            |(_, deadline): &(Waker, Option<Now>)| deadline.is_some_and(|deadline| deadline <= now);
        if has_news || self.waiting.borrow().iter().any(is_due) {
            self.wake_all();
        }
        self.arm();
    }

    /// Makes sure that somebody wakes up at the next deadline.
    fn arm(self: &Rc<Self>) {
        let waiting = self
            .waiting
            .borrow()
            .iter()
            .filter_map(|(_, deadline)| *deadline)
            .min();
        let Some(next) = earliest(self.driven.borrow_mut().machine().next_deadline(), waiting)
        else {
            return;
        };
        let now = self.now();
        let next = next.max(now.after(TIMER_MIN)).min(now.after(TIMER_MAX));
        if self.armed.borrow().iter().any(|armed| *armed <= next) {
            return;
        }
        self.armed.borrow_mut().push(next);
        let shared = Rc::downgrade(self);
        glommio::spawn_local(async move {
            sleep(next.since(now)).await;
            if let Some(shared) = Weak::upgrade(&shared) {
                shared.armed.borrow_mut().retain(|armed| *armed != next);
                shared.turn();
            }
        })
        .detach();
    }

    /// Waits until `look` finds something, at most as long as a call may take.
    pub(super) async fn wait<T>(
        self: &Rc<Self>,
        what: &str,
        look: impl FnMut(&mut D) -> Option<Result<T>>,
    ) -> Result<T> {
        let timeout = self.config.call_timeout;
        let found = self.wait_until(Some(self.now().after(timeout)), look).await;
        found.unwrap_or_else(|| {
            Err(Error::TimedOut {
                what: what.into(),
                waited: timeout,
                last: None,
            })
        })
    }

    /// Waits until `look` finds something; `None` when the deadline comes first. After each look the machine advances.
    pub(super) async fn wait_until<T>(
        self: &Rc<Self>,
        deadline: Option<Now>,
        mut look: impl FnMut(&mut D) -> Option<Result<T>>,
    ) -> Option<Result<T>> {
        poll_fn(move |context| {
            if self.is_closing.get() {
                return Poll::Ready(Some(Err(Error::Closed)));
            }
            let found = look(&mut self.driven.borrow_mut());
            // Looking may have asked for something, taking something makes room, and the turn may have brought what
            // was looked for.
            self.turn();
            let found = found.or_else(|| look(&mut self.driven.borrow_mut()));
            if found.is_some() || deadline.is_some_and(|deadline| deadline <= self.now()) {
                return Poll::Ready(found);
            }
            self.wait_for_news(context.waker(), deadline);
            self.arm();
            Poll::Pending
        })
        .await
    }

    fn open(self: &Rc<Self>, connection: ConnectionId, address: Arc<str>) {
        let wake_writer = Rc::new(Notify::new());
        self.peers.borrow_mut().insert(
            connection,
            Peer {
                wake_writer: wake_writer.clone(),
                shutter: None,
            },
        );
        let shared = self.clone();
        glommio::spawn_local(async move {
            let fault = match dial(&address).await {
                Ok(stream) => {
                    shared
                        .run_connection(connection, &address, stream, wake_writer)
                        .await
                }
                Err(error) => unreachable(&address, &error),
            };
            shared.ended(connection, fault);
        })
        .detach();
    }

    fn ended(self: &Rc<Self>, connection: ConnectionId, fault: Error) {
        self.peers.borrow_mut().remove(&connection);
        if !self.is_closing.get() {
            let now = self.now();
            self.driven
                .borrow_mut()
                .machine()
                .closed(connection, fault, now);
            self.turn();
        }
    }

    /// Reads until the connection ends; returns why it did. The sockets are closed by then.
    async fn run_connection(
        self: &Rc<Self>,
        connection: ConnectionId,
        address: &Arc<str>,
        stream: TcpStream,
        wake_writer: Rc<Notify>,
    ) -> Error {
        let (mut reader, writer) = match net::split(stream) {
            Ok(halves) => halves,
            Err(error) => return disconnected(address, &error),
        };
        match self.peers.borrow_mut().get_mut(&connection) {
            Some(peer) => peer.shutter = Some(reader.shutter()),
            // The machine has closed it meanwhile, or the client has ended.
            None => return Error::Closed,
        }
        self.open_sockets.set(self.open_sockets.get() + 1);
        let shared = self.clone();
        let for_writer = wake_writer.clone();
        let writing =
            glommio::spawn_local(async move { shared.write(connection, writer, for_writer).await });
        let now = self.now();
        self.driven.borrow_mut().machine().opened(connection, now);
        self.turn();
        let fault = self.read(connection, address, &mut reader).await;
        // The entry goes first, and with it what others could do to the descriptor; then the writer, so that no write
        // outlives its buffer.
        self.peers.borrow_mut().remove(&connection);
        reader.shutter().stop();
        wake_writer.notify();
        writing.await;
        drop(reader);
        self.open_sockets.set(self.open_sockets.get() - 1);
        if self.is_closing.get() {
            self.wake_all();
        }
        fault
    }

    async fn read(
        self: &Rc<Self>,
        connection: ConnectionId,
        address: &Arc<str>,
        reader: &mut Reader,
    ) -> Error {
        let mut frames = FrameReader::new(self.config.frame_bytes_max);
        loop {
            match reader.read(frames.space()).await {
                Ok(0) => return disconnected(address, &end_of_stream()),
                Ok(count) => frames.filled(count),
                Err(error) => return disconnected(address, &error),
            }
            if let Some(progress) = &self.progress {
                progress.socket_moved();
            }
            let now = self.now();
            let mut has_any = false;
            loop {
                match frames.next_frame() {
                    Ok(Some(frame)) => self
                        .driven
                        .borrow_mut()
                        .machine()
                        .received(connection, frame, now),
                    Ok(None) => break,
                    Err(fault) => {
                        return Error::Protocol {
                            address: address.clone(),
                            what: fault.to_string().into(),
                        };
                    }
                }
                has_any = true;
            }
            if has_any {
                self.turn();
            }
        }
    }

    /// Writes what the machine has to send until the connection ends.
    async fn write(
        self: &Rc<Self>,
        connection: ConnectionId,
        mut writer: Writer,
        wake: Rc<Notify>,
    ) {
        let mut output = VecDeque::new();
        loop {
            wake.wait().await;
            loop {
                let is_known = self.peers.borrow().contains_key(&connection);
                if !is_known {
                    return;
                }
                self.driven
                    .borrow_mut()
                    .machine()
                    .take_output(connection, &mut output);
                if output.is_empty() {
                    break;
                }
                self.turn();
                let sent = send_all(&mut writer, &mut output).await;
                if let Some(progress) = &self.progress {
                    progress.socket_moved();
                }
                if sent.is_err() {
                    // The reading task notices, and reports it.
                    if let Some(shutter) = self
                        .peers
                        .borrow()
                        .get(&connection)
                        .and_then(|peer| peer.shutter)
                    {
                        shutter.stop();
                    }
                    return;
                }
            }
        }
    }
}

async fn send_all(writer: &mut Writer, output: &mut VecDeque<Bytes>) -> io::Result<()> {
    let sent = {
        let mut slices: Vec<IoSlice<'_>> = output.iter().map(|bytes| IoSlice::new(bytes)).collect();
        writer.send(&mut slices).await
    };
    output.clear();
    sent
}

impl Peer {
    fn end(&self) {
        self.wake_writer.notify();
        if let Some(shutter) = self.shutter {
            shutter.stop();
        }
    }
}

/// Connects to the first of the name's addresses that answers.
async fn dial(address: &Arc<str>) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for candidate in resolve(address).await? {
        match net::connect(candidate).await {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// A numeric address needs no look-up; a name is looked up on the executor's blocking thread.
async fn resolve(address: &Arc<str>) -> io::Result<Vec<SocketAddr>> {
    if let Ok(address) = address.parse() {
        return Ok(vec![address]);
    }
    let address = address.clone();
    let look_up = move || address.to_socket_addrs().map(Iterator::collect);
    glommio::executor().spawn_blocking(look_up).await
}
