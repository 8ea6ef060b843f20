//! The ledger: what is proven of the logs of one core. It lets recovery tell a torn tail from corruption.
//!
//! A ledger is one of two files, `ledger/<run>-<core>.a` and `.b`: a header of 4096 bytes, then
//! blocks of 4096 bytes, each complete in itself. Blocks are only ever appended. When a ledger has grown,
//! and at every start, its content is written in short form to the other file under the next generation:
//! blocks first, synced, then the header, synced, which is the moment from which it counts.
//!
//! Invariants:
//! 1. A record is written only after the sync that proved what it says.
//! 2. A block is believed only if its generation is the header's and its sequence number is its place, so
//!    that what an earlier use left in the file is never believed.
//! 3. Nothing is appended to a ledger that a former run wrote: a block that this run did not write might lie
//!    behind a torn one and would come back to life. Each run begins with a generation of its own.
//!
//! Not here: when to write, sync and shorten; see `logic`.

mod block;
mod header;
mod record;
mod scan;

pub use block::{BLOCK_PAYLOAD_LENGTH_MAX, BlockBuilder, LedgerBlock};
pub use header::{LedgerHeader, choose};
pub use record::{LedgerRecord, RECORD_LENGTH_MAX};
pub use scan::LedgerScan;
