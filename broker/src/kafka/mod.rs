//! Kafka's door: its listener, and one handler an API.
//!
//! Follow a request from [`session`] (socket to frame) through [`handlers`] (frame to request) into the file of its API
//! and from there into `shard`; and its answer back through the same file into [`answers`], which keep the order of the
//! requests.
//!
//! Not here: the messages themselves (`tackboard_schema::kafka`), and what happens to them behind the door, which is the
//! same as for the native one.

mod alter_configs;
pub mod answers;
pub mod changes;
pub mod codes;
mod configs;
mod create_partitions;
mod create_topics;
pub mod delete_records;
mod delete_topics;
mod describe_cluster;
mod describe_configs;
pub mod fetch;
pub mod handlers;
pub mod init_producer_id;
pub mod list_offsets;
mod metadata;
pub mod offset_for_leader_epoch;
pub mod produce;
pub mod session;
