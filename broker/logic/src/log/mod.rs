//! One partition's log.

mod read;
pub mod recovery;

pub use read::{Damage, FoundRecord, RecordSearch, find_record, trim_read};
