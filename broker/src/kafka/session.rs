//! Frames of Kafka's door: four bytes of length, and a request.

use std::rc::Rc;

use bytes::Bytes;
use tackboard_schema::kafka::{ApiKey, LENGTH_PREFIX_BYTES, RequestFault};

use super::handlers;
use crate::{
    native::{
        connection::Connection,
        handlers::ENTRIES_MAX,
        session::{FRAMES_PER_TURN_MAX, Next},
    },
    shard::Shard,
};

/// Why the framing or a request ends its connection.
#[derive(Debug, thiserror::Error)]
pub enum FrameFault {
    /// A length that no frame has.
    #[error("a frame of {length} bytes; at most {max} are allowed")]
    Length {
        /// What the client said.
        length: i32,
        /// `native.frame_bytes_max`.
        max: u32,
    },
    /// A request that names too much.
    #[error("{api} for {count} partitions or settings; at most {ENTRIES_MAX} are allowed")]
    Entries {
        /// Which.
        api: ApiKey,
        /// How many it names.
        count: usize,
    },
    /// A request that can't be read or is not served.
    #[error(transparent)]
    Request(#[from] RequestFault),
}

/// Hands over the whole frames at the start of `bytes`, as one turn of logic.
pub fn hand_over(
    shard: &Rc<Shard>,
    connection: &Rc<Connection>,
    bytes: &[u8],
) -> Result<(usize, Next), FrameFault> {
    let mut taken = 0;
    let frame_bytes_max = shard.config.frame_bytes_max;
    shard
        .enter(|state| {
            for _ in 0..FRAMES_PER_TURN_MAX {
                if !connection.has_room() {
                    break;
                }
                let rest = &bytes[taken..];
                let Some((length, after)) = rest.split_first_chunk::<LENGTH_PREFIX_BYTES>() else {
                    return Ok(Next::MoreBytes(LENGTH_PREFIX_BYTES));
                };
                let length = i32::from_be_bytes(*length);
                let fits = u32::try_from(length).is_ok_and(|length| length <= frame_bytes_max);
                if !fits {
                    let max = frame_bytes_max;
                    return Err(FrameFault::Length { length, max });
                }
                let length = length as usize;
                let Some(frame) = after.get(..length) else {
                    return Ok(Next::MoreBytes(LENGTH_PREFIX_BYTES + length));
                };
                if handlers::appends(frame) && !state.has_append_room() {
                    return Ok(Next::NoAppendRoom);
                }
                handlers::handle(state, connection, Bytes::copy_from_slice(frame))?;
                taken += LENGTH_PREFIX_BYTES + length;
            }
            Ok(Next::MoreFrames)
        })
        .map(|next| (taken, next))
}
