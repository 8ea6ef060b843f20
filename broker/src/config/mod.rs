//! Settings: one table of names, types, bounds and texts, and the [`Config`] made from it.
//!
//! Owns: what settings exist (`settings`), how they are read from a file and the command line
//! (`load`), how they are checked together and filled in from the host (`resolve`), and how they
//! are shown (`render`: `config/broker.toml`, `docs/configuration.md`, `tackboard config explain`).
//!
//! Not here: topic settings. They are replicated state; their table and parser live in
//! `logic::metadata`.
//!
//! Start reading at `settings`.

mod fault;
pub mod host;
mod load;
mod model;
pub mod open_files;
pub mod quantity;
pub mod render;
mod resolve;
pub mod settings;
pub mod similar;
mod value;

pub use fault::{Fault, Faults, Origin};
pub use host::Host;
pub use load::{Sources, load, load_for};
pub use model::{
    Config, CoreMemory, DirectIo, LogFormat, Logging, MemoryBudget, MissingLedger, Stated, SyncFs,
};
