//! Sockets of a core: listening, the two halves of a connection, vectored sends.
//!
//! Streams are unbuffered throughout: glommio's buffered ones reorder bytes after an abandoned read.

use std::{
    future::poll_fn,
    io::{self, IoSlice},
    net::SocketAddr,
    os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd},
    pin::Pin,
    time::Duration,
};

use futures_lite::io::{AsyncRead, AsyncWrite};
use glommio::net::{TcpListener, TcpStream};

/// The kernel takes no more slices in one call (UIO_MAXIOV).
pub const SLICES_PER_SEND_MAX: usize = 1024;
/// Connections the kernel queues for a listener before they are accepted.
pub const LISTEN_BACKLOG: i32 = 1024;
/// Pause after an accept that failed (no descriptors left, most often), so that the loop does not spin.
pub const ACCEPT_BACK_OFF: Duration = Duration::from_millis(100);

/// Listens on `address` so that a second process on the same port is refused, and only then lets more sockets of this
/// process share the port. Returns the socket, to be given to [`adopt`] on the first core that accepts, and the address
/// with the port that the system resolved.
///
/// # Errors
/// `AddrInUse` when any other process holds the port, whether it shares ports or not.
pub fn reserve(address: SocketAddr) -> io::Result<(OwnedFd, SocketAddr)> {
    let socket = stream_socket(address)?;
    // Restarting at once on a port whose old connections linger in TIME_WAIT is normal operation.
    set_option(&socket, libc::SO_REUSEADDR)?;
    bind(&socket, address)?;
    start_listening(&socket)?;
    // The conflict with anybody else has shown by now.
    set_option(&socket, libc::SO_REUSEPORT)?;
    let listener = std::net::TcpListener::from(socket);
    let resolved = listener.local_addr()?;
    Ok((listener.into(), resolved))
}

/// Makes a listener of this executor from a socket that [`reserve`] returned.
pub fn adopt(socket: OwnedFd) -> TcpListener {
    // SAFETY: the descriptor is a listening stream socket whose ownership moves into the listener.
    unsafe { TcpListener::from_raw_fd(socket.into_raw_fd()) }
}

/// Listens beside the socket that [`reserve`] made: the kernel spreads connections over all of them.
///
/// # Errors
/// Whatever the kernel says.
pub fn listen_beside(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = stream_socket(address)?;
    set_option(&socket, libc::SO_REUSEADDR)?;
    set_option(&socket, libc::SO_REUSEPORT)?;
    bind(&socket, address)?;
    start_listening(&socket)?;
    Ok(adopt(socket))
}

fn start_listening(socket: &OwnedFd) -> io::Result<()> {
    // SAFETY: no pointers.
    outcome(unsafe { libc::listen(socket.as_raw_fd(), LISTEN_BACKLOG) })
}

fn stream_socket(address: SocketAddr) -> io::Result<OwnedFd> {
    let domain = if address.is_ipv6() {
        libc::AF_INET6
    } else {
        libc::AF_INET
    };
    // SAFETY: no pointers; a descriptor that is returned is owned by nobody else.
    unsafe {
        let raw = libc::socket(domain, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0);
        if raw < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(OwnedFd::from_raw_fd(raw))
    }
}

fn set_option(socket: &OwnedFd, option: i32) -> io::Result<()> {
    let on: libc::c_int = 1;
    // SAFETY: the pointer and length describe `on`.
    let done = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            option,
            (&raw const on).cast(),
            size_of::<libc::c_int>() as u32,
        )
    };
    outcome(done)
}

fn bind(socket: &OwnedFd, address: SocketAddr) -> io::Result<()> {
    let raw = socket.as_raw_fd();
    // SAFETY: each structure is plain data, filled before its pointer and exact length are passed.
    let done = unsafe {
        match address {
            SocketAddr::V4(v4) => {
                let mut name: libc::sockaddr_in = std::mem::zeroed();
                name.sin_family = libc::AF_INET as u16;
                name.sin_port = v4.port().to_be();
                name.sin_addr.s_addr = u32::from_ne_bytes(v4.ip().octets());
                let length = size_of::<libc::sockaddr_in>() as u32;
                libc::bind(raw, (&raw const name).cast(), length)
            }
            SocketAddr::V6(v6) => {
                let mut name: libc::sockaddr_in6 = std::mem::zeroed();
                name.sin6_family = libc::AF_INET6 as u16;
                name.sin6_port = v6.port().to_be();
                name.sin6_addr.s6_addr = v6.ip().octets();
                name.sin6_scope_id = v6.scope_id();
                let length = size_of::<libc::sockaddr_in6>() as u32;
                libc::bind(raw, (&raw const name).cast(), length)
            }
        }
    };
    outcome(done)
}

fn outcome(done: libc::c_int) -> io::Result<()> {
    if done == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Accepts the next connection, backing off and going on when the kernel refuses.
///
/// Failures are reported through `on_error`, since a listener outlives them.
pub async fn accept(listener: &TcpListener, mut on_error: impl FnMut(&io::Error)) -> TcpStream {
    loop {
        match listener.accept().await {
            Ok(stream) => return stream,
            Err(error) => {
                let error = io::Error::from(error);
                if error.kind() != io::ErrorKind::Interrupted {
                    on_error(&error);
                    glommio::timer::sleep(ACCEPT_BACK_OFF).await;
                }
            }
        }
    }
}

/// Connects with Nagle's delay off.
///
/// # Errors
/// Whatever the kernel says, `ConnectionRefused` most often.
pub async fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Sets what a served connection needs: no delay, and an end when its peer is silent for `silent_max`, be it that its
/// machine has gone or that it takes nothing of what it was sent.
///
/// # Errors
/// Whatever the kernel says.
pub fn prepare(stream: &TcpStream, silent_max: Duration) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let seconds = silent_max.as_secs() as libc::c_int;
    let milliseconds = silent_max.as_millis() as libc::c_int;
    let options = [
        (libc::SOL_SOCKET, libc::SO_KEEPALIVE, 1),
        (libc::IPPROTO_TCP, libc::TCP_KEEPIDLE, seconds),
        (libc::IPPROTO_TCP, libc::TCP_KEEPINTVL, (seconds / 4).max(1)),
        (libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT, milliseconds),
    ];
    for (level, option, value) in options {
        let length = size_of::<libc::c_int>() as u32;
        // SAFETY: the pointer and length describe `value`, and the descriptor is open.
        let done = unsafe {
            libc::setsockopt(
                stream.as_raw_fd(),
                level,
                option,
                (&raw const value).cast(),
                length,
            )
        };
        outcome(done)?;
    }
    Ok(())
}

/// The reading half of a connection: its own descriptor.
pub struct Reader(TcpStream);

/// The writing half of a connection: its own descriptor.
pub struct Writer(TcpStream);

/// Splits a connection by duplicating its descriptor (close-on-exec), one stream each, so that a reading and a writing
/// task share nothing.
///
/// # Errors
/// When no descriptor is left.
pub fn split(stream: TcpStream) -> io::Result<(Reader, Writer)> {
    // SAFETY: the descriptor is open; the duplicate is owned by the new stream alone.
    let second = unsafe {
        let duplicate = libc::fcntl(stream.as_raw_fd(), libc::F_DUPFD_CLOEXEC, 0);
        if duplicate < 0 {
            return Err(io::Error::last_os_error());
        }
        TcpStream::from_raw_fd(duplicate)
    };
    Ok((Reader(stream), Writer(second)))
}

impl Reader {
    /// Reads what is there into `buffer`; 0 at the end of the stream.
    ///
    /// # Errors
    /// Whatever the kernel says, but `Interrupted`.
    pub async fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let got = poll_fn(|context| Pin::new(&mut self.0).poll_read(context, buffer)).await;
            match got {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => return other,
            }
        }
    }
}

/// Ends a connection whose halves may be parked in other tasks of the same core.
///
/// Must not be used once the writer is gone that it was made from.
#[derive(Clone, Copy)]
pub struct Shutter(i32);

impl Shutter {
    /// Shuts the socket for reading: a pending read ends with 0.
    pub fn stop_reading(self) {
        // SAFETY: shutdown on a descriptor has no memory effects; at worst it answers EBADF or ENOTCONN.
        unsafe { libc::shutdown(self.0, libc::SHUT_RD) };
    }

    /// Shuts the socket both ways: pending reads end, pending writes fail.
    pub fn stop(self) {
        // SAFETY: as above.
        unsafe { libc::shutdown(self.0, libc::SHUT_RDWR) };
    }
}

impl Writer {
    /// What ends the connection. It acts on the socket that both halves share, and a writer may be parked long after the
    /// reader has ended.
    pub fn shutter(&self) -> Shutter {
        Shutter(self.0.as_raw_fd())
    }

    /// Sends all of `slices`, in calls of at most [`SLICES_PER_SEND_MAX`] slices.
    ///
    /// # Errors
    /// Whatever the kernel says, but `Interrupted`; `WriteZero` when it takes nothing.
    pub async fn send(&mut self, mut slices: &mut [IoSlice<'_>]) -> io::Result<()> {
        while !slices.is_empty() {
            let sent = poll_fn(|context| {
                let take = slices.len().min(SLICES_PER_SEND_MAX);
                Pin::new(&mut self.0).poll_write_vectored(context, &slices[..take])
            })
            .await;
            match sent {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => IoSlice::advance_slices(&mut slices, count),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_that_another_holds_is_refused_even_if_it_shares() {
        let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
        let (held, address) = reserve(any).unwrap();
        let taken = io::ErrorKind::AddrInUse;
        assert_eq!(reserve(address).unwrap_err().kind(), taken);
        let join = glommio::LocalExecutorBuilder::default()
            .spawn(move || async move {
                let first = adopt(held);
                let second = listen_beside(address).unwrap();
                let refused = reserve(address).unwrap_err().kind();
                drop((first, second));
                refused
            })
            .unwrap();
        assert_eq!(join.join().unwrap(), taken);
        reserve(address).unwrap();
    }
}
