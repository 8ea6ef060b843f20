//! Sockets for a client machine on one glommio executor: dials, reads and writes what the machine says, and tells it what
//! came of it. Everything on one core, no locks, no threads.
//!
//! Owns: the connections of one machine. One task reads each connection and one writes it; what they bring is told to the
//! task that owns the machine by a function that it passes in, and that task then calls [`Pump::turn`].
//! Not here: any decision, they are the machine's (`protocol`); producers and consumers with a life of their own, as the
//! blocking transport has: whoever runs an executor drives the machine from a task of its own, and decides there when to
//! sleep. `tackboard-loadgen` is written that way. Administration is seldom and small: use the blocking `Admin` on another
//! thread.
//!
//! Invariants:
//! 1. The machine is never borrowed across an await, and never while a task is started (a new task runs at once, inside the
//!    one that starts it).
//! 2. A connection that ended is reported to the machine once, whichever side ended it.
//! 3. No read or write is abandoned half way: a connection ends by shutting its socket down, and its tasks see it.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt;
use std::io::{self, IoSlice};
use std::net::{SocketAddr, ToSocketAddrs};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ahash::AHashMap;
use bytes::Bytes;
use glommio::spawn_local;
use tackboard_runtime::net::{self, Reader, SLICES_PER_SEND_MAX, Shutter, Writer};
use tackboard_runtime::{Notify, Progress};

use crate::config::{ClientConfig, Protocol};
use crate::error::Error;
use crate::protocol::{Action, ConnectionId, FrameReader, Machine, Now};
use crate::system::{disconnected, end_of_stream, unreachable};

/// Longest time that closing waits for a broker to take what is still queued.
const SEND_REST_MAX: Duration = Duration::from_secs(2);

/// How often closing looks whether it was taken.
const SEND_REST_PAUSE: Duration = Duration::from_millis(1);

/// A machine with its sockets. [`Pump::close`] it before the executor ends: its tasks hold the sockets.
pub struct Pump<M> {
    shared: Rc<Shared<M>>,
}

struct Shared<M> {
    machine: RefCell<M>,
    sockets: RefCell<AHashMap<ConnectionId, Rc<Socket>>>,
    /// Tasks that still hold a socket.
    tasks: Cell<usize>,
    task_ended: Notify,
    /// Connections that were lost and have not been made again, be it to another port.
    lost: Cell<u64>,
    /// Connections that were made after others were lost.
    reconnects: Cell<u64>,
    on_news: Box<dyn Fn()>,
    progress: Arc<Progress>,
    protocol: Protocol,
    frame_bytes_max: u32,
    started: Instant,
}

#[derive(Default)]
struct Socket {
    has_output: Notify,
    /// Something was queued that is not with the kernel yet.
    is_writing: Cell<bool>,
    ended: Cell<bool>,
    /// While there is a writer, whose descriptor it uses.
    shutter: Cell<Option<Shutter>>,
}

impl Socket {
    /// Ends both tasks of the connection.
    fn end(&self) {
        self.ended.set(true);
        if let Some(shutter) = self.shutter.take() {
            shutter.stop();
        }
        self.has_output.notify();
    }
}

impl<M: Machine + 'static> Pump<M> {
    /// A pump for a machine that has not done anything yet. `on_news` is called when sockets have brought something; it
    /// wakes the task that owns the pump and must not call the pump itself. `progress` are the counters by which the
    /// watchdog sees that this core moves.
    pub fn new(
        machine: M,
        config: &ClientConfig,
        progress: Arc<Progress>,
        on_news: impl Fn() + 'static,
    ) -> Self {
        let shared = Shared {
            machine: RefCell::new(machine),
            sockets: RefCell::default(),
            tasks: Cell::new(0),
            task_ended: Notify::new(),
            lost: Cell::new(0),
            reconnects: Cell::new(0),
            on_news: Box::new(on_news),
            progress,
            protocol: config.protocol,
            frame_bytes_max: config.frame_bytes_max,
            started: Instant::now(),
        };
        Self {
            shared: Rc::new(shared),
        }
    }

    /// Calls the machine; not to be held across an await. Call [`Pump::turn`] after it.
    pub fn with<T>(&self, call: impl FnOnce(&mut M, Now) -> T) -> T {
        call(&mut self.shared.machine.borrow_mut(), self.shared.now())
    }

    /// Lets the machine do what is due and carries out what it says. Returns after what time it wants to be called again,
    /// if no news come before.
    pub fn turn(&self) -> Option<Duration> {
        self.shared.turn();
        let deadline = self.shared.machine.borrow().next_deadline();
        deadline.map(|deadline| deadline.since(self.shared.now()))
    }

    /// How many connections were lost and made again.
    pub fn reconnects(&self) -> u64 {
        self.shared.reconnects.get()
    }

    /// Sends what is queued, ends all connections and waits until no task holds one any more.
    pub async fn close(self) {
        let shared = &self.shared;
        let give_up = shared.started.elapsed() + SEND_REST_MAX;
        let is_writing = || {
            let sockets = shared.sockets.borrow();
            sockets.values().any(|socket| socket.is_writing.get())
        };
        // Without acknowledgements, this is all that makes sure that the last records leave.
        while is_writing() && shared.started.elapsed() < give_up {
            glommio::timer::sleep(SEND_REST_PAUSE).await;
        }
        let sockets = std::mem::take(&mut *shared.sockets.borrow_mut());
        sockets.values().for_each(|socket| socket.end());
        while shared.tasks.get() > 0 {
            shared.task_ended.wait().await;
        }
    }
}

impl<M> fmt::Debug for Pump<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pump").finish_non_exhaustive()
    }
}

impl<M: Machine + 'static> Shared<M> {
    fn now(&self) -> Now {
        Now(self.started.elapsed())
    }

    fn turn(self: &Rc<Self>) {
        self.machine.borrow_mut().advance(self.now());
        // One borrow for each action: a task that is started runs at once.
        loop {
            let action = self.machine.borrow_mut().next_action();
            match action {
                None => break,
                Some(action) => self.carry_out(action),
            }
        }
    }

    fn carry_out(self: &Rc<Self>, action: Action) {
        match action {
            Action::Open {
                connection,
                address,
            } => {
                let socket = Rc::new(Socket::default());
                self.sockets.borrow_mut().insert(connection, socket.clone());
                self.tasks.set(self.tasks.get() + 1);
                let shared = self.clone();
                spawn_local(async move { shared.connection(connection, address, socket).await })
                    .detach();
            }
            Action::Write { connection } => {
                if let Some(socket) = self.sockets.borrow().get(&connection) {
                    socket.is_writing.set(true);
                    socket.has_output.notify();
                }
            }
            Action::Close { connection } => {
                let socket = self.sockets.borrow_mut().remove(&connection);
                if let Some(socket) = socket {
                    socket.end();
                }
            }
        }
    }

    /// The life of a connection.
    async fn connection(self: Rc<Self>, id: ConnectionId, address: Arc<str>, socket: Rc<Socket>) {
        let fault = match dial(&address).await {
            Err(error) => unreachable(&address, &error),
            Ok(_) if socket.ended.get() => Error::Closed,
            Ok((reader, writer)) => {
                socket.shutter.set(Some(writer.shutter()));
                self.note_made();
                self.machine.borrow_mut().opened(id, self.now());
                (self.on_news)();
                self.tasks.set(self.tasks.get() + 1);
                spawn_local(self.clone().write(id, writer, socket.clone())).detach();
                let fault = self.read(id, &address, reader, &socket).await;
                if !socket.ended.get() {
                    self.lost.set(self.lost.get() + 1);
                }
                fault
            }
        };
        socket.is_writing.set(false);
        if !socket.ended.get() {
            self.sockets.borrow_mut().remove(&id);
            self.machine.borrow_mut().closed(id, fault, self.now());
        }
        socket.end();
        self.task_ended();
    }

    fn note_made(&self) {
        if let Some(left) = self.lost.get().checked_sub(1) {
            self.lost.set(left);
            self.reconnects.set(self.reconnects.get() + 1);
        }
    }

    fn task_ended(&self) {
        self.tasks.set(self.tasks.get() - 1);
        self.task_ended.notify();
        (self.on_news)();
    }

    /// Reads frames until the connection ends; returns why it did.
    async fn read(
        &self,
        id: ConnectionId,
        address: &Arc<str>,
        mut reader: Reader,
        socket: &Socket,
    ) -> Error {
        let mut frames = FrameReader::new(self.protocol, self.frame_bytes_max);
        loop {
            match reader.read(frames.space()).await {
                Ok(0) => return disconnected(address, &end_of_stream()),
                Ok(_) if socket.ended.get() => return Error::Closed,
                Ok(count) => frames.filled(count),
                Err(error) => return disconnected(address, &error),
            }
            self.progress.socket_moved();
            let now = self.now();
            let mut machine = self.machine.borrow_mut();
            loop {
                match frames.next_frame() {
                    Ok(Some(frame)) => machine.received(id, frame, now),
                    Ok(None) => break,
                    Err(fault) => {
                        return Error::Protocol {
                            address: address.clone(),
                            what: fault.to_string().into(),
                        };
                    }
                }
            }
            drop(machine);
            (self.on_news)();
        }
    }

    /// Writes what the machine has to send until the connection ends.
    async fn write(self: Rc<Self>, id: ConnectionId, mut writer: Writer, socket: Rc<Socket>) {
        let mut output = VecDeque::new();
        while !socket.ended.get() {
            self.machine.borrow_mut().take_output(id, &mut output);
            if output.is_empty() {
                socket.is_writing.set(false);
                socket.has_output.wait().await;
                continue;
            }
            // What was taken may have held back more.
            self.turn();
            if send(&mut writer, &output).await.is_err() {
                // The reading side sees the same end and reports it.
                if let Some(shutter) = socket.shutter.take() {
                    shutter.stop();
                }
                break;
            }
            self.progress.socket_moved();
            output.clear();
        }
        self.task_ended();
    }
}

async fn send(writer: &mut Writer, output: &VecDeque<Bytes>) -> io::Result<()> {
    let mut slices = Vec::with_capacity(output.len().min(SLICES_PER_SEND_MAX));
    slices.extend(output.iter().map(|bytes| IoSlice::new(bytes)));
    writer.send(&mut slices).await
}

/// Connects to the first of the name's addresses that answers.
async fn dial(address: &Arc<str>) -> io::Result<(Reader, Writer)> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for candidate in resolve(address).await? {
        match net::connect(candidate).await {
            Ok(stream) => return net::split(stream),
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
