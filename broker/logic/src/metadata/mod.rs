//! Cluster metadata as a deterministic machine: brokers, topics, partitions, blocks of producer ids.
//!
//! A change is a [`Command`]. The control thread writes it to the metadata log and then applies it here; every broker that
//! applies the same commands in the same order has the same state, byte for byte. What comes out is an [`Image`]: immutable,
//! shared by reference with every core.
//!
//! Owns: the rules for names, counts and settings, the assignment of partitions to brokers and cores, leader epochs, the byte
//! encoding of commands and snapshots, which topics are proposed that clients expect to appear.
//! Not here: the log that keeps the commands and its checksums, consensus, who may propose what, defaults of the broker.
//!
//! Invariants:
//! 1. The machine reads no clock and draws no random numbers: the proposer supplies ids and times.
//! 2. A refused command changes nothing but the version.
//! 3. A leader epoch never repeats: whatever a broker led is under a new epoch each time a process of it registers.
//! 4. A topic id is never used twice, not even after deletion, as long as its tombstone is kept.
//!
//! Start reading at [`Machine::apply`].

mod assignment;
mod codec;
mod command;
mod image;
mod machine;
mod snapshot;
mod topic_settings;
mod unasked;

pub use codec::{COMMAND_BYTES_MAX, decode_command, encode_command};
pub use command::{
    AlterTopic, Command, CreateTopic, Endpoint, IncarnationId, MetadataRefusal, Outcome,
    PRODUCER_IDS_PER_BLOCK, RegisterBroker,
};
pub use image::{Broker, ClusterId, Image, Partition, TOMBSTONES_MAX, Tombstone, Topic};
pub use machine::{CORES_MAX, Machine, PARTITIONS_MAX};
pub use snapshot::{decode_snapshot, encode_snapshot};
pub use topic_settings::{
    ConfigChange, ConfigFault, ConfigFaults, FixedForm, Limit, RetentionBudget, RetentionClock,
    SettingKind, TOPIC_SETTINGS, TopicConfig, TopicSetting, parse_topic_config,
};
pub use unasked::{CREATING_MAX, REFUSED_MAX, Standing, UnaskedTopics};

#[cfg(test)]
mod machine_test;

#[cfg(test)]
mod codec_test;
