//! What goes into a core's logic and what comes out of it.
//!
//! [`Shard::step`](super::Shard::step) is total and synchronous. The driver carries out effects strictly in the
//! order given: memory effects at once; I/O is started in that order and may complete in any. It brings each
//! completion back as an [`Input`]. Completions carry ids that are never used twice, and logs and chunks carry
//! generations, so a late completion is recognised and dropped.
//!
//! - `input.rs`: [`Input`], every request, completion and passage of time; start here.
//! - `effect.rs`: [`Effect`], everything that is to be done about it.
//! - `answer.rs`: what requests are answered with. `refusal.rs`: why they are not.
//! - `names.rs`: ids of logs, chunks, operations. `configuration.rs`: what governs a log and a core.
//! - `report.rs`: how a log and a core stand.
//!
//! Not here: bytes. Logic owns positions and ids; the driver owns payloads and chunks.
//!
//! Conventions: offsets that end something are exclusive; `_us` is microseconds of a monotonic clock; `file_at`
//! is a byte position in a segment's file, `at` one in a chunk.

mod answer;
mod configuration;
mod effect;
mod input;
mod names;
mod refusal;
mod report;

pub use answer::{
    CachedSlice, DiskRead, FetchAnswer, FetchData, Produced, TimestampScan, Truncated,
};
pub use configuration::{LogConfig, RetentionClock, ShardConfig, SyncCosts, SyncScope};
pub use effect::{Effect, Effects, LedgerFile, Reopen};
pub use input::{AdvanceLogStart, Append, FetchEntry, Input, OpenLog, Truncate};
pub use names::{
    BLOCK_BYTES, ChunkId, LogId, Now, PayloadId, SegmentBase, SyncId, Ticket, WriteId,
};
pub use refusal::{Refusal, RefusalDetail, StorageFault};
pub use report::{LogDescription, LogSpace, ShardStats, Unwritten};
