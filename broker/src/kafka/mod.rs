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
#[cfg(test)]
mod compatibility_test;
mod configs;
mod create_partitions;
mod create_topics;
mod delete_groups;
pub mod delete_records;
mod delete_topics;
mod describe_cluster;
mod describe_configs;
mod describe_groups;
pub mod fetch;
mod find_coordinator;
pub mod groups;
pub mod handlers;
mod heartbeat;
pub mod init_producer_id;
mod join_group;
mod leave_group;
mod list_groups;
pub mod list_offsets;
mod metadata;
mod offset_commit;
mod offset_delete;
mod offset_fetch;
pub mod offset_for_leader_epoch;
pub mod produce;
pub mod session;
mod sync_group;
