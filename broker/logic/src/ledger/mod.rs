//! The ledger of one core: what proves how far each log was durable, so that recovery can tell a torn tail from
//! corruption (S5).
//!
//! - [`LedgerImage`], [`replay`]: what the ledgers of a data folder say, read at start.
//! - [`writer`]: what is recorded, and how a ledger is kept short.
//!
//! The bytes stand in [`tackboard_schema::storage::ledger`]. What is due to be recorded, and when, is decided in
//! [`crate::shard`].

mod image;
mod replay;
pub mod writer;

pub use image::{EPOCHS_PER_LOG_MAX, LedgerImage, LedgerLog, LedgerStart, ProvenEnd, note_epoch};
pub use replay::{LedgerFault, LedgerFiles, replay};
pub use writer::LEDGER_RESERVED_BYTES;
