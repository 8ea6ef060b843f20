//! The broker of `support` behind sockets: two listeners, a thread per connection.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tackboard_client::Protocol;
use tackboard_client::protocol::FrameReader;

use super::Broker;

/// How long an empty fetch is kept.
const FETCH_WAIT: Duration = Duration::from_millis(20);

#[derive(Clone)]
pub struct Server {
    pub broker: Arc<Mutex<Broker>>,
    pub address: SocketAddr,
    connections: Arc<Mutex<Vec<TcpStream>>>,
    is_stopped: Arc<AtomicBool>,
}

impl Server {
    pub fn start(mut broker: Broker) -> Self {
        let listeners = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let [any_core, core] = [0, 1].map(|index: usize| listeners[index].local_addr().unwrap());
        broker.host = "127.0.0.1".into();
        (broker.port, broker.core_port) = (any_core.port(), core.port());
        let server = Self {
            broker: Arc::new(Mutex::new(broker)),
            address: any_core,
            connections: Arc::default(),
            is_stopped: Arc::default(),
        };
        for listener in listeners {
            let server = server.clone();
            std::thread::spawn(move || {
                for stream in listener.incoming() {
                    let stream = stream.unwrap();
                    if server.is_stopped.load(Ordering::Relaxed) {
                        return;
                    }
                    server
                        .connections
                        .lock()
                        .unwrap()
                        .push(stream.try_clone().unwrap());
                    let server = server.clone();
                    std::thread::spawn(move || server.serve(stream));
                }
            });
        }
        server
    }

    /// Ends every connection that there is.
    pub fn cut(&self) {
        for stream in self.connections.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    fn serve(&self, mut stream: TcpStream) {
        let mut reader = FrameReader::new(Protocol::Native, 64 << 20);
        loop {
            match stream.read(reader.space()) {
                Ok(0) | Err(_) => return,
                Ok(count) => reader.filled(count),
            }
            while let Some(request) = reader.next_frame().unwrap() {
                let deadline = Instant::now() + FETCH_WAIT;
                let answer = loop {
                    let answer = self.broker.lock().unwrap().answer(&request);
                    match answer {
                        Some(answer) if answer.is_empty_fetch && Instant::now() < deadline => {
                            std::thread::sleep(Duration::from_millis(1));
                        }
                        answer => break answer,
                    }
                };
                if let Some(answer) = answer
                    && stream.write_all(&answer.frame).is_err()
                {
                    return;
                }
            }
        }
    }
}
