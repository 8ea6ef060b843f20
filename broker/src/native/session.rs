//! The two tasks of a connection: one reads and hands frames over, one sends answers.

use std::{io::IoSlice, net::IpAddr, rc::Rc};

use glommio::net::TcpStream;
use tackboard_logic::request::{
    account::{AccountLimits, Outgoing},
    entries::ENTRIES_PER_CONNECTION_PAUSE,
    read_buffer::{READ_BUFFER_BYTES_MAX, READ_BUFFER_BYTES_MIN, ReadBuffer},
};
use tackboard_runtime::net::{Reader, Writer, split};
use tackboard_schema::frame::{self, ApiKey, Parsed};

use super::{
    connection::{Connection, Door, OUTBOX_BYTES_PAUSE, OutFrame, PINNED_BYTES_PAUSE},
    handlers,
};
use crate::{
    kafka::{self, session::FrameFault},
    shard::{ReadBytes, Shard},
};

/// Frames handed over between two chances for other tasks.
pub const FRAMES_PER_TURN_MAX: usize = 256;

/// Serves a connection from `address` until the client, an error or the shutdown ends it. Returns when both halves are done.
pub async fn serve(shard: Rc<Shard>, stream: TcpStream, address: IpAddr, door: Door) {
    let (reader, writer) = match split(stream) {
        Ok(halves) => halves,
        Err(error) => {
            tracing::warn!(%error, "a connection could not be split; closed");
            return shard.connection_closed(address, None);
        }
    };
    let limits = AccountLimits {
        requests_in_flight_max: shard.config.requests_in_flight_max,
        request_bytes_in_flight_max: shard.config.request_bytes_in_flight_max,
        entries_pause: ENTRIES_PER_CONNECTION_PAUSE,
        outbox_bytes_pause: OUTBOX_BYTES_PAUSE,
        pinned_bytes_pause: PINNED_BYTES_PAUSE,
    };
    let connection = Connection::new(writer.shutter(), limits, door, address);
    let place = shard.connection_opened(&connection);
    let sender = shard.spawn_net(send_answers(shard.clone(), connection.clone(), writer));
    if let Err(end) = read_requests(&shard, &connection, reader).await {
        tracing::debug!(%end, "connection closed");
    }
    shard.client_gone(&connection);
    sender.await;
    connection.close();
    shard.connection_closed(address, Some(place));
}

/// Why a connection ends before its client ends it.
#[derive(Debug, thiserror::Error)]
enum End {
    #[error("{0}")]
    Io(#[from] std::io::Error),
    #[error("framing lost: {0}")]
    Frame(#[from] frame::FrameError),
    #[error("Kafka's protocol: {0}")]
    Kafka(#[from] FrameFault),
    #[error("no memory left in the sockets' budget for a frame of {needed} bytes")]
    OverBudget { needed: usize },
}

async fn read_requests(
    shard: &Rc<Shard>,
    connection: &Rc<Connection>,
    mut reader: Reader,
) -> Result<(), End> {
    let result = read_loop(shard, connection, &mut reader).await;
    if matches!(result, Err(End::Frame(_) | End::Kafka(_))) {
        shard.metrics().frames_broken.increment();
    }
    if matches!(result, Err(End::OverBudget { .. })) {
        shard.metrics().frames_over_budget.increment();
    }
    connection.reader_ended();
    result
}

async fn read_loop(
    shard: &Rc<Shard>,
    connection: &Rc<Connection>,
    reader: &mut Reader,
) -> Result<(), End> {
    let mut buffer = vec![0; READ_BUFFER_BYTES_MIN];
    let mut sizing = ReadBuffer::default();
    let mut filled = 0;
    let mut held = ReadBytes::default();
    loop {
        let mut taken = 0;
        loop {
            if connection.is_closed() || shard.is_stopping() {
                return Ok(());
            }
            if !connection.has_room() {
                connection.room.wait().await;
                continue;
            }
            let bytes = &buffer[taken..filled];
            let (used, more) = match connection.kafka() {
                None => hand_over(shard, connection, bytes)?,
                Some(_) => kafka::session::hand_over(shard, connection, bytes)?,
            };
            taken += used;
            match more {
                Next::NoAppendRoom => shard.wait_for_append_room(connection).await,
                Next::MoreFrames => glommio::executor().yield_if_needed().await,
                Next::MoreBytes(needed) => {
                    buffer.copy_within(taken..filled, 0);
                    filled -= taken;
                    // `needed` is bounded by `frame_bytes_max`, and the length before a frame.
                    let length = sizing.length(buffer.len(), filled, needed);
                    let extra = length.saturating_sub(READ_BUFFER_BYTES_MAX);
                    if !shard.hold_read_bytes(&mut held, extra) {
                        return Err(End::OverBudget { needed });
                    }
                    buffer.resize(length, 0);
                    buffer.shrink_to(length);
                    break;
                }
            }
        }
        // A client that sends without a pause always has bytes there, and reading them never waits: others get their
        // turn here. The preemption timer would be too late, since taking in one buffer may take milliseconds.
        glommio::executor().yield_now().await;
        let got = reader.read(&mut buffer[filled..]).await?;
        if got == 0 {
            return Ok(());
        }
        filled += got;
        sizing.note(got);
        shard.socket_received(got);
    }
}

/// What the reader does after handing frames over.
pub enum Next {
    /// There may be whole frames left: a budget of the connection or the turn's bound was reached.
    MoreFrames,
    /// The next frame is an append, and there is no room for it.
    NoAppendRoom,
    /// The frame that begins here needs so many bytes.
    MoreBytes(usize),
}

/// Hands over the whole frames at the start of `bytes`, as one turn of logic.
fn hand_over(
    shard: &Rc<Shard>,
    connection: &Rc<Connection>,
    bytes: &[u8],
) -> Result<(usize, Next), frame::FrameError> {
    let mut taken = 0;
    let frame_bytes_max = shard.config.frame_bytes_max;
    shard
        .enter(|state| {
            for _ in 0..FRAMES_PER_TURN_MAX {
                if !connection.has_room() {
                    break;
                }
                match frame::parse(&bytes[taken..], frame_bytes_max)? {
                    Parsed::Frame(frame, _)
                        if frame.prefix.api_key == ApiKey::Produce.key()
                            && !state.has_append_room() =>
                    {
                        return Ok(Next::NoAppendRoom);
                    }
                    Parsed::Frame(frame, length) => {
                        handlers::handle(state, connection, &frame);
                        taken += length;
                    }
                    Parsed::NeedMore(needed) => return Ok(Next::MoreBytes(needed)),
                }
            }
            Ok(Next::MoreFrames)
        })
        .map(|next| (taken, next))
}

async fn send_answers(shard: Rc<Shard>, connection: Rc<Connection>, mut writer: Writer) {
    send_all(&shard, &connection, &mut writer).await;
    connection.writer_ended();
}

/// Sends what the outbox holds until the connection is closed, or the reader has ended and nothing is owed any more.
async fn send_all(shard: &Shard, connection: &Connection, writer: &mut Writer) {
    let mut frames = Vec::new();
    loop {
        connection.take_outbox(&mut frames);
        if frames.is_empty() {
            if connection.is_closed()
                || (!connection.is_reading() && connection.requests_in_flight() == 0)
            {
                return;
            }
            connection.to_send.wait().await;
            continue;
        }
        let outgoing: Outgoing = frames.iter().map(OutFrame::outgoing).sum();
        let answers = frames.iter().map(|frame| frame.answers).sum();
        let sent = send_frames(writer, &frames).await;
        frames.clear();
        connection.sent(outgoing, answers);
        if let Err(error) = sent {
            tracing::debug!(%error, "answers could not be sent; connection closed");
            connection.close();
            return;
        }
        shard.socket_sent(outgoing.bytes);
    }
}

async fn send_frames(writer: &mut Writer, frames: &[OutFrame]) -> std::io::Result<()> {
    let mut slices = Vec::with_capacity(frames.len() * 2);
    for frame in frames {
        slices.push(IoSlice::new(&frame.head));
        slices.extend(frame.body.iter().map(|piece| IoSlice::new(piece.bytes())));
        if !frame.padding.is_empty() {
            slices.push(IoSlice::new(frame.padding));
        }
    }
    slices.retain(|slice| !slice.is_empty());
    writer.send(&mut slices).await
}
