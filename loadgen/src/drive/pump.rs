//! Sockets for a client machine: dials, reads and writes what the machine says, and tells it what came of it.
//!
//! Owns: the connections of one machine. One task reads each connection and one writes it; they wake the task that owns
//! the machine through its alarm.
//! Not here: any decision; those are the machine's.
//!
//! Invariants:
//! 1. The machine is never borrowed across an await.
//! 2. A connection that ended is reported to the machine once, whichever side ended it.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::net::{SocketAddr, ToSocketAddrs};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use ahash::AHashMap;
use bytes::Bytes;
use glommio::spawn_local;
use tackboard_client::Error;
use tackboard_client::protocol::{Action, ConnectionId, FrameReader, Machine, Now};
use tackboard_runtime::net::{self, Reader, SLICES_PER_SEND_MAX, Shutter, Writer};
use tackboard_runtime::{Notify, Progress};

use super::alarm::Alarm;
use crate::measure::clock::monotonic_ns;

/// Largest frame that is taken from a broker.
const FRAME_BYTES_MAX: u32 = 64 << 20;

/// Longest time that closing waits for a broker to take what is still queued.
const SEND_REST_NS_MAX: u64 = 2_000_000_000;

/// A machine with its sockets.
pub struct Pump<M> {
    shared: Rc<Shared<M>>,
}

struct Shared<M> {
    machine: RefCell<M>,
    sockets: RefCell<AHashMap<ConnectionId, Rc<Socket>>>,
    /// Tasks that still hold a socket.
    tasks: Cell<usize>,
    /// Connections that were lost and have not been made again, be it to another port.
    lost: Cell<u64>,
    /// Connections that were made after others were lost.
    reconnects: Cell<u64>,
    alarm: Rc<Alarm>,
    progress: Arc<Progress>,
    started_ns: u64,
}

#[derive(Default)]
struct Socket {
    has_output: Notify,
    /// Something was queued that is not with the kernel yet.
    is_writing: Cell<bool>,
    ended: Cell<bool>,
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
    /// A pump for a machine that has not done anything yet.
    pub fn new(machine: M, alarm: Rc<Alarm>, progress: Arc<Progress>) -> Self {
        let shared = Shared {
            machine: RefCell::new(machine),
            sockets: RefCell::default(),
            tasks: Cell::new(0),
            lost: Cell::new(0),
            reconnects: Cell::new(0),
            alarm,
            progress,
            started_ns: monotonic_ns(),
        };
        Self {
            shared: Rc::new(shared),
        }
    }

    /// Calls the machine; not to be held across an await.
    pub fn with<T>(&self, call: impl FnOnce(&mut M, Now) -> T) -> T {
        call(&mut self.shared.machine.borrow_mut(), self.shared.now())
    }

    /// Lets the machine do what is due and carries out what it says. Returns when it wants to be called again, ns of the
    /// monotonic clock.
    pub fn turn(&self) -> Option<u64> {
        let shared = &self.shared;
        shared.machine.borrow_mut().advance(shared.now());
        // One borrow per action: a connection task may run inside of `spawn_local`.
        loop {
            let action = shared.machine.borrow_mut().next_action();
            match action {
                None => break,
                Some(action) => self.carry_out(action),
            }
        }
        let deadline = shared.machine.borrow().next_deadline();
        deadline.map(|Now(at)| shared.started_ns.saturating_add(at.as_nanos() as u64))
    }

    fn carry_out(&self, action: Action) {
        let shared = &self.shared;
        match action {
            Action::Open {
                connection,
                address,
            } => {
                let socket = Rc::new(Socket::default());
                shared
                    .sockets
                    .borrow_mut()
                    .insert(connection, socket.clone());
                shared.tasks.set(shared.tasks.get() + 1);
                let shared = shared.clone();
                spawn_local(async move { shared.connection(connection, address, socket).await })
                    .detach();
            }
            Action::Write { connection } => {
                if let Some(socket) = shared.sockets.borrow().get(&connection) {
                    socket.is_writing.set(true);
                    socket.has_output.notify();
                }
            }
            Action::Close { connection } => {
                let socket = shared.sockets.borrow_mut().remove(&connection);
                if let Some(socket) = socket {
                    socket.end();
                }
            }
        }
    }

    /// Sends what is queued, ends all connections and waits until no task holds one any more. Tells how many connections
    /// were lost before and made again.
    pub async fn close(self) -> u64 {
        let give_up_ns = monotonic_ns() + SEND_REST_NS_MAX;
        // Without acknowledgements, this is all that makes sure that the last events leave.
        while monotonic_ns() < give_up_ns
            && self
                .shared
                .sockets
                .borrow()
                .values()
                .any(|socket| socket.is_writing.get())
        {
            self.shared
                .alarm
                .sleep(Some(monotonic_ns() + 1_000_000))
                .await;
        }
        let sockets = std::mem::take(&mut *self.shared.sockets.borrow_mut());
        sockets.values().for_each(|socket| socket.end());
        while self.shared.tasks.get() > 0 {
            self.shared.alarm.sleep(None).await;
        }
        self.shared.reconnects.get()
    }
}

impl<M: Machine + 'static> Shared<M> {
    fn now(&self) -> Now {
        Now(Duration::from_nanos(monotonic_ns() - self.started_ns))
    }

    /// The life of a connection.
    async fn connection(self: Rc<Self>, id: ConnectionId, address: Arc<str>, socket: Rc<Socket>) {
        let fault = match dial(&address).await {
            Err(error) => Error::Unreachable {
                address,
                detail: error.to_string().into(),
            },
            Ok(_) if socket.ended.get() => Error::Closed,
            Ok((reader, writer)) => {
                socket.shutter.set(Some(reader.shutter()));
                if self.lost.get() > 0 {
                    self.lost.set(self.lost.get() - 1);
                    self.reconnects.set(self.reconnects.get() + 1);
                }
                self.machine.borrow_mut().opened(id, self.now());
                self.alarm.ring();
                self.tasks.set(self.tasks.get() + 1);
                spawn_local(self.clone().write(id, writer, socket.clone())).detach();
                let detail = match self.read(id, reader, &socket).await {
                    Ok(()) => "the broker closed it".into(),
                    Err(error) => error.to_string().into(),
                };
                if !socket.ended.get() {
                    self.lost.set(self.lost.get() + 1);
                }
                Error::Disconnected { address, detail }
            }
        };
        socket.shutter.set(None);
        socket.is_writing.set(false);
        if !socket.ended.get() {
            self.sockets.borrow_mut().remove(&id);
            self.machine.borrow_mut().closed(id, fault, self.now());
        }
        socket.end();
        self.task_ended();
    }

    fn task_ended(&self) {
        self.tasks.set(self.tasks.get() - 1);
        self.alarm.ring();
    }

    /// Reads frames until the connection ends.
    async fn read(&self, id: ConnectionId, mut reader: Reader, socket: &Socket) -> io::Result<()> {
        let mut frames = FrameReader::new(FRAME_BYTES_MAX);
        loop {
            let count = reader.read(frames.space()).await?;
            self.progress.socket_moved();
            if count == 0 || socket.ended.get() {
                return Ok(());
            }
            frames.filled(count);
            let now = self.now();
            let mut machine = self.machine.borrow_mut();
            while let Some(frame) = frames.next_frame().map_err(io::Error::other)? {
                machine.received(id, frame, now);
            }
            drop(machine);
            self.alarm.ring();
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
            if send(&mut writer, &output).await.is_err() {
                // The reading side sees the same end and reports it.
                if let Some(shutter) = socket.shutter.get() {
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

async fn dial(address: &Arc<str>) -> io::Result<(Reader, Writer)> {
    net::split(net::connect(resolve(address.clone()).await?).await?)
}

/// Looks a name up on another thread; an address needs no looking up.
async fn resolve(address: Arc<str>) -> io::Result<SocketAddr> {
    if let Ok(address) = address.parse() {
        return Ok(address);
    }
    let look_up = move || {
        address
            .to_socket_addrs()?
            .next()
            .ok_or_else(|| io::Error::other("the name has no address"))
    };
    glommio::executor().spawn_blocking(look_up).await
}
