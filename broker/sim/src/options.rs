//! What kind of world a seed makes: every seed draws its own mixture, so that each fault is rare in some runs, common in others
//! and absent in many.

use tackboard_logic::group::interface::GroupSettings;
use tackboard_logic::shard::interface::{LogConfig, RetentionClock, ShardConfig, SyncCosts};
use tackboard_schema::{Acks, CoreId, Durability};

use crate::rng::Rng;

/// Chances of injected faults; each is "once in so many", 0 for never.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// A write fails; any part of it may have landed.
    pub write_error: u64,
    /// A write is short.
    pub write_short: u64,
    /// A sync fails.
    pub sync_error: u64,
    /// A read fails.
    pub read_error: u64,
    /// I/O takes up to a second.
    pub slow: u64,
    /// I/O takes longer than anybody waits, or for ever.
    pub stuck: u64,
    /// Whether ledger I/O may fail too: the process then stops.
    pub in_ledger: bool,
}

/// What there is of groups.
#[derive(Clone, Debug)]
pub struct GroupOptions {
    /// Coordinators, each with its partition of the internal topic; 0: no groups.
    pub coordinators: u64,
    /// Groups.
    pub groups: u64,
    /// Members of all groups.
    pub members: u64,
    /// Their settings.
    pub settings: GroupSettings,
    /// A batch of a coordinator's records is ended when it is so long.
    pub batch_bytes: usize,
    /// Segments of the internal topic.
    pub segment_bytes: u64,
    /// A byte of the internal topic counts for so many when it is decided whether to write a log anew: no run appends as
    /// much as a broker waits for.
    pub rewrite_scale: u64,
}

impl GroupOptions {
    fn draw(rng: &mut Rng) -> Self {
        let segment_bytes = rng.pick(&[16 << 10, 64 << 10]);
        Self {
            coordinators: rng.pick(&[0, 0, 1, 2]),
            groups: rng.between(1, 4),
            members: rng.between(1, 10),
            settings: GroupSettings {
                session_timeout_min_ms: 1,
                initial_rebalance_delay_ms: rng.pick(&[0, 100, 3_000]),
                offsets_retention_ms: rng.pick(&[2_000, 3_600_000, 7 * 24 * 3_600_000]),
                offsets_retention_check_ms: rng.pick(&[100, 600_000]),
                ..GroupSettings::default()
            },
            batch_bytes: rng.pick(&[1, 300, 256 << 10]),
            segment_bytes,
            // What lies in the segment with the new beginning stays.
            rewrite_scale: (8 << 20) / segment_bytes / rng.pick(&[1, 2]),
        }
    }

    /// What governs the internal topic's logs, whatever else would: nothing is old for its age or place, and everything
    /// is durable.
    pub fn internal_log(&self, own: LogConfig) -> LogConfig {
        LogConfig {
            retention_ms: None,
            retention_bytes: None,
            yields_to_budget: false,
            segment_bytes: self.segment_bytes,
            batch_bytes_max: 1 << 20,
            durability: Durability::Fsync,
            ..own
        }
    }
}

/// The mixture of one seed.
#[derive(Clone, Debug)]
pub struct Options {
    /// Cores at the first start.
    pub cores: u64,
    /// Most cores at any start.
    pub cores_max: u64,
    /// Logs at any time.
    pub partitions: u64,
    /// Producers at any time.
    pub producers: u64,
    /// Consumers at any time.
    pub consumers: u64,
    /// Longest pause between two actions of a client, in microseconds.
    pub pause_us_max: u64,
    /// Storage faults.
    pub faults: Faults,
    /// Events between two kills, on average; 0 for never.
    pub kill_every: u64,
    /// Events between two power losses.
    pub power_loss_every: u64,
    /// Events between two restarts in order.
    pub restart_every: u64,
    /// Who meets a full disk stops the process in order once in so many times; 0 for never.
    pub stop_when_full: u64,
    /// A step of coming up is cut short by a crash once in so many.
    pub crash_during_boot: u64,
    /// Events between two lulls, in which clients rest for up to a minute.
    pub lull_every: u64,
    /// Events between two jumps of the wall clock.
    pub clock_jump_every: u64,
    /// Events between two standstills of the whole process.
    pub standstill_every: u64,
    /// Events between two deletions of a topic.
    pub delete_every: u64,
    /// Events between two changes of a topic's settings.
    pub configure_every: u64,
    /// Events between two cuts of a log's end.
    pub truncate_every: u64,
    /// Events between two deletions of a log's oldest records.
    pub delete_records_every: u64,
    /// Events between two rotten bits; such a run has no other reasons for damage.
    pub bit_rot_every: u64,
    /// The size of the disk.
    pub disk_bytes: u64,
    /// Free space below which appends are refused.
    pub reserve_bytes: u64,
    /// Budget of all logs together.
    pub log_budget_bytes: Option<u64>,
    /// Sizes of the values, upper bound.
    pub value_bytes_max: u64,
    /// Memory of a core.
    pub append_bytes: u64,
    /// Memory of a core.
    pub tail_cache_bytes: u64,
    /// A log takes a checkpoint when it would have so many bytes to recover.
    pub checkpoint_bytes: u64,
    /// What syncs are believed to cost at first; without, the file system can't be synced as a whole.
    pub sync_costs: Option<SyncCosts>,
    /// Consumer groups.
    pub groups: GroupOptions,
}

impl Options {
    /// The mixture of a seed.
    pub fn draw(rng: &mut Rng) -> Self {
        let cores_max = rng.between(1, 4);
        let sometimes =
            |rng: &mut Rng, chances: &[u64]| if rng.one_in(3) { rng.pick(chances) } else { 0 };
        // Beyond eight busy logs a core no longer lets each write prove itself.
        let partitions = rng.pick(&[1, 2, 3, 4, 6, 12, 30]);
        let faults = Faults {
            write_error: sometimes(rng, &[200, 2_000, 10_000]),
            write_short: sometimes(rng, &[500, 5_000]),
            sync_error: sometimes(rng, &[100, 1_000, 5_000]),
            read_error: sometimes(rng, &[20, 500]),
            slow: sometimes(rng, &[5, 100]),
            stuck: sometimes(rng, &[500, 5_000]),
            in_ledger: rng.one_in(4),
        };
        Self {
            cores: rng.between(1, cores_max),
            cores_max,
            partitions,
            producers: rng.between(1, 10.max(2 * partitions)),
            consumers: rng.between(1, 5),
            pause_us_max: rng.pick(&[100, 1_000, 20_000]),
            faults,
            kill_every: rng.pick(&[0, 1_000, 4_000]),
            power_loss_every: rng.pick(&[0, 1_000, 4_000]),
            restart_every: rng.pick(&[0, 2_000, 8_000]),
            crash_during_boot: rng.pick(&[0, 10, 50]),
            lull_every: rng.pick(&[0, 1_000, 5_000]),
            clock_jump_every: sometimes(rng, &[1_000, 5_000]),
            delete_every: sometimes(rng, &[2_000, 8_000]),
            configure_every: sometimes(rng, &[500, 5_000]),
            truncate_every: sometimes(rng, &[300, 2_000]),
            bit_rot_every: if rng.one_in(8) { 2_000 } else { 0 },
            disk_bytes: rng.pick(&[3 << 20, 16 << 20, 1 << 30, 1 << 30]),
            reserve_bytes: rng.pick(&[0, 1 << 20]),
            value_bytes_max: rng.pick(&[16, 100, 1_000, 8_000, 60_000]),
            append_bytes: rng.pick(&[128 << 10, 1 << 20, 32 << 20]),
            tail_cache_bytes: rng.pick(&[0, 64 << 10, 1 << 20, 64 << 20]),
            // Drawn last: what was drawn before stays as it was.
            stop_when_full: rng.pick(&[0, 1, 4]),
            // From a copy: what is drawn after stays as well.
            sync_costs: (rng.clone().pick(&[None, Some(400), Some(2_000)])).map(|file_system_us| {
                SyncCosts {
                    file_us: 100,
                    file_system_us,
                }
            }),
            // The next draw of such a copy.
            log_budget_bytes: {
                let mut aside = rng.clone();
                aside.next_u64();
                aside.pick(&[None, None, Some(64 << 10), Some(2 << 20)])
            },
            // And the next but one.
            standstill_every: {
                let mut aside = rng.clone();
                aside.next_u64();
                aside.next_u64();
                aside.pick(&[0, 0, 2_000, 8_000])
            },
            // And the one behind.
            delete_records_every: {
                let mut aside = rng.clone();
                for _ in 0..3 {
                    aside.next_u64();
                }
                aside.pick(&[0, 0, 500, 3_000])
            },
            // And the one after that.
            checkpoint_bytes: {
                let mut aside = rng.clone();
                for _ in 0..4 {
                    aside.next_u64();
                }
                aside.pick(&[1, 4 << 10, 32 << 10, 1 << 20])
            },
            // A stream of its own.
            groups: GroupOptions::draw(&mut Rng::new(!rng.clone().next_u64())),
        }
    }

    /// The settings of a new log.
    pub fn draw_log(&self, rng: &mut Rng) -> LogConfig {
        LogConfig {
            acks_default: rng.pick(&[Acks::All, Acks::Count(1), Acks::Count(0)]),
            acks_min: rng.pick(&[Acks::Count(0), Acks::Count(0), Acks::Count(1)]),
            replicas: 1,
            durability: rng.pick(&[
                Durability::Fsync,
                Durability::Fsync,
                Durability::Interval,
                Durability::Written,
            ]),
            durability_interval_us: 100_000,
            durability_interval_bytes: rng.pick(&[8 << 10, 1 << 20]),
            segment_bytes: rng.pick(&[4 << 10, 16 << 10, 64 << 10, 512 << 10, 4 << 20]),
            segment_age_ms: rng.pick(&[5_000, 3_600_000, 12 * 3_600_000]),
            index_interval_bytes: rng.pick(&[1, 512, 4_096, 32 << 10]),
            retention_ms: rng.pick(&[None, Some(60_000), Some(7 * 24 * 3_600_000)]),
            retention_bytes: rng.pick(&[None, Some(32 << 10), Some(256 << 10)]),
            retention_clock: rng.pick(&[
                RetentionClock::Append,
                RetentionClock::Append,
                RetentionClock::Record,
            ]),
            batch_bytes_max: rng.pick(&[4_000, 100_000, 1_048_588]),
            yields_to_budget: self.log_budget_bytes.is_some() && !rng.one_in(4),
        }
    }

    /// Other settings for a log, its durability and its largest batch aside.
    pub fn redraw_log(&self, rng: &mut Rng, now: &LogConfig) -> LogConfig {
        LogConfig {
            durability: now.durability,
            batch_bytes_max: now.batch_bytes_max,
            segment_bytes: now.segment_bytes.max(64 << 10),
            ..self.draw_log(rng)
        }
    }

    /// The settings of a core.
    pub fn shard(&self, core: u16, broker_epoch: u64) -> ShardConfig {
        ShardConfig {
            cores: 1,
            core: CoreId(core),
            append_bytes: self.append_bytes,
            tail_cache_bytes: self.tail_cache_bytes,
            tail_cache_least_bytes: self.tail_cache_bytes / 16,
            index_bytes: 1 << 20,
            recovery_bytes: 0,
            checkpoint_bytes_min: self.checkpoint_bytes,
            reserve_bytes: self.reserve_bytes,
            sync_costs: self.sync_costs,
            log_budget_bytes: self.log_budget_bytes,
            directory_id: [7; 16],
            broker_epoch,
        }
    }
}
