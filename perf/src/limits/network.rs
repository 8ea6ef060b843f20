//! What loopback gives: ping-pong of small messages, and one stream as fast as it goes.

use std::{
    io::{self, IoSlice, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    thread,
    time::{Duration, Instant},
};

use serde::Serialize;
use tackboard_runtime::{Watchdog, net};

use super::executor;
use crate::{
    figure::{Latencies, Percentiles},
    machine::pin,
};

/// A message of the ping-pong: a small request.
const MESSAGE: usize = 100;
/// A send of the stream.
const CHUNK: usize = 128 << 10;

/// Round trips between two ends.
#[derive(Clone, Debug, Serialize)]
pub struct PingPong {
    /// What the two ends are.
    pub ends: &'static str,
    /// Round trips that were measured.
    pub count: u64,
    /// Of a round trip.
    pub latency: Percentiles,
    /// Every one, for the picture.
    #[serde(skip)]
    pub all: Latencies,
}

/// A blocking thread at both ends, each on its own CPU.
///
/// # Errors
/// What the kernel said.
pub fn ping_pong_blocking(cpus: (usize, usize), lasting: Duration) -> io::Result<PingPong> {
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    let address = listener.local_addr()?;
    let server = thread::spawn(move || {
        pin(cpus.0)?;
        let (mut stream, _) = listener.accept()?;
        stream.set_nodelay(true)?;
        let mut message = [0; MESSAGE];
        while stream.read_exact(&mut message).is_ok() {
            stream.write_all(&message)?;
        }
        io::Result::Ok(())
    });
    let client = thread::spawn(move || blocking_client(address, cpus.1, lasting));
    let result = client.join().expect("the client does not panic");
    server.join().expect("the server does not panic")?;
    result.map(|latencies| shown("blocking thread / blocking thread", latencies))
}

fn blocking_client(
    address: SocketAddr,
    cpu: usize,
    lasting: Duration,
) -> io::Result<(u64, Latencies)> {
    pin(cpu)?;
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    let (mut message, mut latencies, mut count) = ([7; MESSAGE], Latencies::new(), 0);
    let started = Instant::now();
    while started.elapsed() < lasting {
        let begun = Instant::now();
        stream.write_all(&message)?;
        stream.read_exact(&mut message)?;
        latencies.record(begun.elapsed());
        count += 1;
    }
    Ok((count, latencies))
}

/// An executor serves, a blocking thread asks: how the broker is reached by the drivers of `run`.
///
/// # Errors
/// What the kernel said.
pub fn ping_pong_runtime(cpus: (usize, usize), lasting: Duration) -> io::Result<PingPong> {
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let (socket, address) = net::reserve(any)?;
    let watchdog = Watchdog::start();
    let server = executor::start(cpus.0, &watchdog, move |core| async move {
        let listener = net::adopt(socket);
        let stream = net::accept(&listener, |_| {}).await;
        net::prepare(&stream, Duration::from_secs(30))?;
        let (mut reader, mut writer) = net::split(stream)?;
        let mut buffer = vec![0; CHUNK];
        loop {
            let got = reader.read(&mut buffer).await?;
            if got == 0 {
                return io::Result::Ok(());
            }
            core.progress.turn();
            writer.send(&mut [IoSlice::new(&buffer[..got])]).await?;
        }
    })?;
    let client = thread::spawn(move || blocking_client(address, cpus.1, lasting));
    let result = client.join().expect("the client does not panic");
    server.join()??;
    result.map(|latencies| shown("executor / blocking thread", latencies))
}

fn shown(ends: &'static str, (count, latencies): (u64, Latencies)) -> PingPong {
    PingPong {
        ends,
        count,
        latency: latencies.percentiles(),
        all: latencies,
    }
}

/// Bytes per second of so many streams at the same time, each between two blocking threads that run on any CPU.
///
/// # Errors
/// What the kernel said.
pub fn streams(count: usize, lasting: Duration) -> io::Result<f64> {
    let threads: Vec<_> = (0..count)
        .map(|_| thread::spawn(move || one_stream(None, lasting)))
        .collect();
    let rates = threads
        .into_iter()
        .map(|thread| thread.join().expect("a stream does not panic"));
    rates.sum()
}

/// Bytes per second of one stream between two blocking threads, each on its own CPU.
///
/// # Errors
/// What the kernel said.
pub fn stream(cpus: (usize, usize), lasting: Duration) -> io::Result<f64> {
    one_stream(Some(cpus), lasting)
}

fn one_stream(cpus: Option<(usize, usize)>, lasting: Duration) -> io::Result<f64> {
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    let address = listener.local_addr()?;
    let receiver = thread::spawn(move || {
        cpus.map_or(Ok(()), |cpus| pin(cpus.0))?;
        let (mut stream, _) = listener.accept()?;
        let mut buffer = vec![0; CHUNK];
        let (mut bytes, started) = (0u64, Instant::now());
        loop {
            match stream.read(&mut buffer)? {
                0 => return io::Result::Ok(bytes as f64 / started.elapsed().as_secs_f64()),
                got => bytes += got as u64,
            }
        }
    });
    send(address, cpus.map(|cpus| cpus.1), lasting)?;
    receiver.join().expect("the receiver does not panic")
}

fn send(address: SocketAddr, cpu: Option<usize>, lasting: Duration) -> io::Result<()> {
    let sender = thread::spawn(move || {
        cpu.map_or(Ok(()), pin)?;
        let mut stream = TcpStream::connect(address)?;
        let chunk = vec![7; CHUNK];
        let started = Instant::now();
        while started.elapsed() < lasting {
            stream.write_all(&chunk)?;
        }
        Ok(())
    });
    sender.join().expect("the sender does not panic")
}
