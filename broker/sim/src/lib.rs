//! Seeded simulator of Tackboard's logic over a fake clock and disk.
//!
//! It runs exactly the [`Shard`](tackboard_logic::shard::Shard), the recovery and the ledger that the broker runs, against a
//! [`disk`] that keeps only what it promised, clients that retry and fall silent, and a world that kills, cuts the power, fills the
//! disk and turns the clock. Every step is followed by the machine's own invariants and by the checkers in [`check`], which
//! know the truth ([`model`]) because they watch every placement and every answer.
//!
//! One seed decides everything, so a failure replays. Seeds that failed once are kept in `seeds.txt`.
//!
//! Not here: the broker's drivers (sockets, io_uring); processes are tested as processes.
//!
//! Start reading at [`runner`], then the `world` module.

pub mod check;
mod clock;
mod coverage;
pub mod disk;
pub mod model;
mod options;
mod rng;
pub mod runner;
mod world;

pub use coverage::{Coverage, Event};
pub use options::{Faults, Options};
pub use rng::Rng;
