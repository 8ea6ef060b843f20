//! Seeded simulator of Tackboard's logic over a fake clock and disk.
