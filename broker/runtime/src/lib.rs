//! Tackboard's habits of glommio: how an executor is started, kept awake, reached from other threads and wired to sockets.
//!
//! Owns: executor start-up on a pinned CPU, the watchdog thread with its waker kick, the inbox of a core, core-local
//! notification, duplicated socket halves and vectored sends.
//!
//! Not here: anything of Tackboard's own (no protocol, no storage, no settings). The cores of the broker, the client's
//! glommio transport and the load generator all run on it.
//!
//! Invariants:
//! 1. An executor that has work never sleeps for long: see [`watchdog`], which exists because an executor can park
//!    while a task is runnable.
//! 2. No lock and no blocking call on an executor.
//! 3. Foreign threads wake only long-lived tasks (the kick task and the inbox reader).
//!
//! Start reading at [`executor::spawn`].

pub mod cpus;
pub mod executor;
pub mod inbox;
mod memory;
pub mod net;
pub mod notify;
mod panics;
pub mod watchdog;

pub use cpus::allowed_cpus;
pub use executor::{Core, CoreHandle, CoreSettings, spawn};
pub use inbox::{InboxReceiver, InboxSender, inbox};
pub use memory::keep_freed_memory;
pub use notify::Notify;
pub use panics::die_of_any_panic;
pub use watchdog::{Observer, Progress, Watchdog};
