//! A proxy between clients and a broker that sees every frame, and may hold or change the answers.
//!
//! Two plain threads a connection, one a direction, and a frame at a time: what it adds by itself is some tens of
//! microseconds.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use tackboard_client::Protocol;
use tackboard_schema::frame::{Frame, PREFIX_LENGTH, Parsed, parse};
use tackboard_schema::kafka::LENGTH_PREFIX_BYTES;

/// Longest frame that passes: the broker's own bound.
const FRAME_BYTES_MAX: u32 = 16 << 20;

/// What happens to frames on their way. Called from many threads.
pub trait Road: Send + Sync + 'static {
    /// A request has come from a client; it is passed on when this returns.
    fn request(&self, _connection: u64, _frame: &Frame<'_>) {}

    /// The same of a request in Kafka's protocol, with the four bytes of its length.
    fn kafka_request(&self, _connection: u64, _frame: &[u8]) {}

    /// An answer has come from the broker; it is passed on, as it is then, when this returns.
    fn answer(&self, _connection: u64, _frame: &mut [u8]) {}
}

/// Listens until it is dropped.
pub struct Proxy {
    addresses: Vec<SocketAddr>,
    is_over: Arc<AtomicBool>,
    listeners: Vec<JoinHandle<()>>,
}

impl Proxy {
    /// Listens at the first address of each pair and connects to the second; this is what is spoken there.
    pub fn start(
        addresses: Vec<(SocketAddr, SocketAddr)>,
        protocol: Protocol,
        road: Arc<dyn Road>,
    ) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let connections = Arc::new(AtomicU64::new(0));
        let listen = |&(here, there): &(SocketAddr, SocketAddr)| {
            let listener = TcpListener::bind(here).unwrap();
            let (road, is_over, connections) = (road.clone(), is_over.clone(), connections.clone());
            std::thread::spawn(move || {
                for client in listener.incoming() {
                    if is_over.load(Ordering::SeqCst) {
                        return;
                    }
                    let number = connections.fetch_add(1, Ordering::SeqCst);
                    let (client, broker) = (client.unwrap(), TcpStream::connect(there).unwrap());
                    connect(number, client, broker, protocol, &road).unwrap();
                }
            })
        };
        Self {
            listeners: addresses.iter().map(listen).collect(),
            addresses: addresses.into_iter().map(|(here, _)| here).collect(),
            is_over,
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        for (address, listener) in self.addresses.iter().zip(self.listeners.drain(..)) {
            // A last connection that nobody serves wakes it.
            let _ = TcpStream::connect(address);
            let _ = listener.join();
        }
    }
}

/// Starts both directions of a connection. They end when either side does.
fn connect(
    number: u64,
    client: TcpStream,
    broker: TcpStream,
    protocol: Protocol,
    road: &Arc<dyn Road>,
) -> io::Result<()> {
    client.set_nodelay(true)?;
    broker.set_nodelay(true)?;
    let (from_client, to_client) = (client.try_clone()?, client);
    let (from_broker, to_broker) = (broker.try_clone()?, broker);
    let requests = road.clone();
    std::thread::spawn(move || {
        pass(from_client, to_broker, protocol, |bytes| {
            if protocol == Protocol::Kafka {
                return requests.kafka_request(number, bytes);
            }
            let Ok(Parsed::Frame(frame, _)) = parse(bytes, FRAME_BYTES_MAX) else {
                panic!("a client sends whole frames")
            };
            requests.request(number, &frame);
        })
    });
    let answers = road.clone();
    std::thread::spawn(move || {
        pass(from_broker, to_client, protocol, |bytes| {
            answers.answer(number, bytes)
        })
    });
    Ok(())
}

/// Passes frames on until the source ends or the target does.
fn pass(
    mut from: TcpStream,
    mut to: TcpStream,
    protocol: Protocol,
    mut each: impl FnMut(&mut [u8]),
) {
    let mut bytes = Vec::new();
    while read_frame(&mut from, protocol, &mut bytes).is_ok() {
        each(&mut bytes);
        if to.write_all(&bytes).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
    let _ = from.shutdown(Shutdown::Both);
}

fn read_frame(from: &mut TcpStream, protocol: Protocol, bytes: &mut Vec<u8>) -> io::Result<()> {
    let prefix = match protocol {
        Protocol::Native => PREFIX_LENGTH,
        Protocol::Kafka => LENGTH_PREFIX_BYTES,
    };
    bytes.resize(prefix, 0);
    from.read_exact(bytes)?;
    let length = bytes[..4].try_into().expect("four bytes");
    // Ours counts itself, Kafka's does not.
    let length = match protocol {
        Protocol::Native => u32::from_le_bytes(length),
        Protocol::Kafka => u32::from_be_bytes(length) + LENGTH_PREFIX_BYTES as u32,
    };
    assert!(length <= FRAME_BYTES_MAX && length as usize >= prefix);
    bytes.resize(length as usize, 0);
    from.read_exact(&mut bytes[prefix..])
}
