//! The machine that a run happens on: its description, a temporary folder on a real disk, and signals.

pub mod file_system;
pub mod host;
pub mod interrupt;
pub mod temporary_folder;
