//! What the cores count, and the one table that says what each number means.
//!
//! Owns: one block of counters and gauges per core, and the name, kind, text and suggested action
//! of each. `/metrics` and the metric table of `docs/operations.md` are both made from it.
//!
//! Not here: the text format and the HTTP server (`control::http`), histograms (the load generator
//! measures latency from outside, where it is felt).
//!
//! Invariants:
//! 1. A counter has one writer: the core that owns the block (or, for [`WatchdogMetrics`], whoever
//!    mirrors the watchdog). So a bump is a plain load and store, no locked instruction.
//! 2. No two cores' blocks share a cache line (128 bytes: adjacent lines are fetched in pairs).
//! 3. Readers see each number a moment late and never torn; numbers of one moment need not agree
//!    with each other.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A number that only rises, written by one thread.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds `amount`. Only the block's owner may call this: a second writer would lose counts.
    #[inline]
    pub fn add(&self, amount: u64) {
        let value = self.0.load(Ordering::Relaxed).wrapping_add(amount);
        self.0.store(value, Ordering::Relaxed);
    }

    /// Adds one.
    #[inline]
    pub fn increment(&self) {
        self.add(1);
    }

    /// The value now, from any thread.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A number that rises and falls, written by one thread.
#[derive(Debug, Default)]
pub struct Gauge(AtomicU64);

impl Gauge {
    /// Replaces the value.
    #[inline]
    pub fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// Raises the value.
    #[inline]
    pub fn add(&self, amount: u64) {
        self.set(self.get().wrapping_add(amount));
    }

    /// The value now, from any thread.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Whether a metric only rises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// Only rises; starts at zero with the process.
    Counter,
    /// Rises and falls.
    Gauge,
}

/// One row of the table: what a metric is called and what to do about it.
#[derive(Debug)]
pub struct MetricDescription {
    /// Name without the prefix `tackboard_` and without `_total`.
    pub name: &'static str,
    /// Whether it only rises.
    pub kind: MetricKind,
    /// What it counts, one sentence.
    pub help: &'static str,
    /// What its value suggests to whoever watches it.
    pub action: &'static str,
    /// Reads it out of a core's block.
    pub read: fn(&CoreMetrics) -> u64,
}

impl MetricDescription {
    /// The name as `/metrics` shows it.
    pub fn exposed_name(&self) -> String {
        let suffix = match self.kind {
            MetricKind::Counter => "_total",
            MetricKind::Gauge => "",
        };
        format!("tackboard_{}{suffix}", self.name)
    }
}

macro_rules! core_metrics {
    ($( $field:ident: $kind:ident, $help:literal, $action:literal; )*) => {
        /// The numbers of one core. Fields are named as the metric is.
        #[derive(Debug, Default)]
        #[repr(align(128))]
        pub struct CoreMetrics {
            $( #[doc = $help] pub $field: $kind, )*
            /// Mirrored from the watchdog when metrics are read; on cache lines of its own.
            pub watchdog: WatchdogMetrics,
        }

        /// Every metric of a core, in the order in which it is shown.
        pub const CORE_METRICS: &[MetricDescription] = &[
            $( MetricDescription {
                name: stringify!($field),
                kind: MetricKind::$kind,
                help: $help,
                action: $action,
                read: |core| core.$field.get(),
            }, )*
            MetricDescription {
                name: "watchdog_kicks",
                kind: MetricKind::Counter,
                help: "Times the watchdog woke this core because it had work and stood still.",
                action: "A few per second are normal on a busy host; a steady rise means other processes hold this CPU: give the core its own.",
                read: |core| core.watchdog.kicks.get(),
            },
            MetricDescription {
                name: "stuck_seconds",
                kind: MetricKind::Gauge,
                help: "Whole seconds since this core last made progress while it had work; 0 when all is well.",
                action: "Above 0: the core's thread is starved or its disk does not answer. Look at the device first, then at what else runs on the CPU.",
                read: |core| core.watchdog.stuck_seconds.get(),
            },
        ];
    };
}

/// The part of a core's numbers that the core does not write itself: it would stand still when it
/// matters.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct WatchdogMetrics {
    /// Times the watchdog woke the core.
    pub kicks: Counter,
    /// Whole seconds without progress while there was work.
    pub stuck_seconds: Gauge,
}

core_metrics! {
    requests: Counter,
        "Requests read from clients' connections of this core.",
        "The load. Compare cores: a lopsided split means clients that do not connect to the owning core, or few partitions.";
    requests_refused: Counter,
        "Requests answered with an error code.",
        "A jump after a deployment is usually a client with wrong settings; at level debug the log names each code.";
    connections_open: Gauge,
        "Clients' connections open on this core now.",
        "Near `native.connections_max` new clients are refused: raise it, or look for clients that never close.";
    connections_accepted: Counter,
        "Clients' connections accepted since the start.",
        "Rising much faster than `connections_open`: clients reconnect for every request; let them keep their connection.";
    connections_refused: Counter,
        "Clients' connections closed at once because `native.connections_max` was reached.",
        "Any rise: raise `native.connections_max` or find the client that leaks connections.";
    connections_refused_per_address: Counter,
        "Clients' connections closed at once because their address has `native.connections_per_address_max`.",
        "Any rise: the log names an address now and then; raise the bound, or stop that client.";
    frames_broken: Counter,
        "Connections closed because framing was lost (wrong checksum, length or kind).",
        "Any rise: something that does not speak the protocol connects, or the network damages bytes.";
    frames_over_budget: Counter,
        "Connections closed because the sockets' share of `memory.total` had no room for a large frame.",
        "Any rise: raise `memory.total`, or lower `native.frame_bytes_max` or the clients' batch sizes.";
    requests_in_flight: Gauge,
        "Requests of this core's connections that are not answered yet, parked fetches included.",
        "Connections times `native.requests_in_flight_max` is the most: near it clients wait for their answers, look at the disk.";
    request_bytes_in_flight: Gauge,
        "Bytes of requests of this core's connections that are not answered yet.",
        "High for long: the disk does not keep up with the producers; each connection stops at `native.request_bytes_in_flight_max`.";
    socket_bytes_in: Counter,
        "Bytes received on clients' connections.",
        "With `socket_bytes_out`: compare with what the network card can carry.";
    socket_bytes_out: Counter,
        "Bytes sent on clients' connections.",
        "See `socket_bytes_in`.";
    produce_batches: Counter,
        "Record batches appended.",
        "Divide `produce_records` by it: single-digit records per batch cost throughput; raise the producers' linger or batch size.";
    produce_bytes: Counter,
        "Bytes of record batches appended.",
        "The rate at which the disk fills; times the retention is the space that is needed.";
    produce_records: Counter,
        "Records appended.",
        "The ingest rate in events.";
    produce_batches_duplicate: Counter,
        "Retried batches answered with the offset of the first attempt.",
        "A rise means that answers get lost or late: look at the network and at request timeouts.";
    produce_batches_refused: Counter,
        "Batches refused (corrupt, too large, out of order, not enough replicas, storage full).",
        "Any rise: at level debug the log names the code; `STORAGE_FULL` needs space, `CORRUPT_MESSAGE` a look at the client.";
    fetch_bytes: Counter,
        "Bytes of record batches sent to consumers.",
        "More than `produce_bytes` times the number of consumers: somebody reads the history.";
    fetches_parked: Gauge,
        "Fetches that wait for new records now.",
        "About one per idle consumer and core: good. Zero with many consumers: they poll without a wait.";
    cache_hits: Counter,
        "Fetches served from the tail in memory.",
        "The share of hits is near 1 while consumers keep up.";
    cache_misses: Counter,
        "Fetches that read the disk.",
        "A rise without anybody reading history: consumers lag; give the broker more memory (`memory.total`) or add consumers.";
    disk_read_bytes: Counter,
        "Bytes read from log segments.",
        "Competes with writes on a slow disk; see `cache_misses`.";
    cold_read_hits: Counter,
        "Stretches of history that were found in memory: read for another reader, or ahead.",
        "With consumers that catch up, most of what they read; else `memory.total` is small for as many.";
    cold_reads_joined: Counter,
        "Stretches of history that were being read already when a reader asked for them.",
        "Many beside `cold_read_hits`: consumers are faster than the disk.";
    read_ahead_bytes: Counter,
        "Bytes of history that were read before anybody asked for them.",
        "Near none while consumers catch up: the disk is busy with writes, or `memory.total` is small.";
    read_ahead_wasted_bytes: Counter,
        "Of these, bytes that went without having been asked for.",
        "More than a tenth of `read_ahead_bytes`: too many consumers read history at once; give the broker more memory (`memory.total`).";
    disk_writes: Counter,
        "Write operations on log segments.",
        "`produce_bytes` divided by it is the write size; well under 16 KiB at high load means many partitions with little traffic each.";
    disk_write_bytes: Counter,
        "Bytes written to log segments, block padding included.",
        "Well above `produce_bytes`: small batches under `fsync` rewrite the tail block often; batch more.";
    disk_syncs: Counter,
        "Times data was forced to the medium.",
        "With `fsync` the bound of small loads; the ratio to `produce_batches` shows how well syncs are shared.";
    disk_file_system_syncs: Counter,
        "Of these, syncs of the whole file system, each for all logs that waited (`storage.syncfs`).",
        "Slow ones, seen in `disk_syncs` standing still: something else writes much to the file system; give the data folder its own.";
    disk_errors: Counter,
        "Failed operations on log segments, a full disk apart. A failed write or sync fences its partition.",
        "Any rise: read the kernel log, save the disk. Fenced partitions return after a restart, if the device works.";
    partitions: Gauge,
        "Partitions that this core owns.",
        "Near `storage.partitions_per_core_max` new topics are refused.";
    partitions_fenced: Gauge,
        "Partitions that refuse appends after a disk error.",
        "Above 0 someone must act: the log names them and tells why. The third one of a core stops the broker.";
    recovery_scanned_bytes: Counter,
        "Bytes of logs that this run read and checked before it served.",
        "Explains a long start. Much after every stop: the broker is killed instead of stopped, or `shutdown.deadline` is too short.";
    recovery_torn_tails: Counter,
        "Logs whose torn tail this run cut when it started: what a crash had left half written.",
        "Expected after a crash. Above 0 after a clean stop: save the disk, and report it.";
    recovery_damaged_ranges: Counter,
        "Ranges of offsets that this run found damaged when it started: kept on the disk, not served.",
        "Above 0: the log names each; save the disk and restore from a copy.";
    partitions_unproven: Gauge,
        "Partitions that this run recovered without a ledger to prove how far they were durable (`storage.missing_ledger`).",
        "Above 0: compare them with a copy or with what consumers saw; the next start is proven again.";
    groups: Gauge,
        "Consumer groups that this core coordinates.",
        "A rise without an end: consumers that make up a new group for each run. `groups.per_partition_max` bounds them, `offsets.retention.ms` forgets them.";
    group_members: Gauge,
        "Members of these groups.",
        "Fewer than the consumers that run: some have lost their place; see whether they poll in time.";
    group_state_bytes: Gauge,
        "Memory of these groups: their members and the offsets that they have committed.",
        "Near `groups.bytes_per_partition_max` times the partitions of __consumer_offsets on this core: new offsets are about to be refused.";
    group_rebalances: Counter,
        "Rebalances that ended with a new generation.",
        "A steady rise: members come and go, or take longer between polls than their time-outs allow.";
    offsets_committed: Counter,
        "Offsets that groups have committed, each partition of a commit for itself.",
        "Many per second for each member: consumers commit every record; every commit is a write to the disk.";
    log_bytes: Gauge,
        "Bytes of all log segments of this core's partitions.",
        "Compare with the free space; lower `log.retention.ms` or add a disk before the reserve is reached.";
    log_yielding_bytes: Gauge,
        "Of these, bytes of topics whose oldest segments may go for `log.budget.bytes`.",
        "Small beside `log_bytes`: topics that are exempt from the budget leave little that can go.";
    log_budget_dropped_bytes: Counter,
        "Bytes of log segments that went because all logs together exceeded `log.budget.bytes`, or free space came near the reserve.",
        "A steady rise is the budget at work. Events go before `log.retention.ms` is over: raise the budget if that is not wanted.";
    producers_await_room: Gauge,
        "1 while connections of producers are not read until the oldest segments have gone (`log.budget.bytes`).",
        "Often 1: load comes faster than the disk gives space back. Lower the budget, so that more of the disk is free.";
    log_segments: Gauge,
        "Log segments of this core's partitions.",
        "Very many small ones: raise `log.segment.bytes` or `log.roll.ms`.";
    cross_core_messages: Counter,
        "Questions to other cores and answers to theirs.",
        "Near `requests`: clients ignore the core ports; native clients connect to the owning core.";
    cross_core_bytes_lent: Counter,
        "Bytes of fetched batches that another core sent, because the consumer's connection was there.",
        "As `cross_core_messages`: let consumers connect to the owning core.";
    cross_core_bytes_copied: Counter,
        "Of fetched batches for a connection on another core, bytes that were copied because that core held too many unsent.",
        "Above 0: very many consumers take their answers slowly; let them connect to the owning core.";
    memory_append_bytes: Gauge,
        "Memory held by append buffers.",
        "At its share of `memory.total` producers are slowed: the disk does not keep up, or the budget is small.";
    memory_tail_cache_bytes: Gauge,
        "Memory held by the tail cache.",
        "From 16 MiB a core it grows as far as readers look back, up to its budget, and shrinks when they have caught up. At the budget with `cache_misses` rising: raise `memory.total`, or let consumers follow more closely.";
    memory_cold_read_bytes: Gauge,
        "Memory held by reads of history until they are sent.",
        "At its share of `memory.total` further ones are refused with `OVER_BUDGET` and tried again: too many consumers read history at once.";
    memory_cold_kept_bytes: Gauge,
        "Memory that holds history for the next reader, within the same share of `memory.total`.",
        "It gives way to reads, so it needs no action.";
    memory_socket_bytes: Gauge,
        "Memory held by frames that are larger than a connection's read buffer.",
        "Near its share of `memory.total` connections are closed: see `frames_over_budget`.";
    memory_index_bytes: Gauge,
        "Memory held by the indexes of log segments.",
        "At its share of `memory.total` the indexes of the oldest segments are thinned out: reads of history read a little more.";
}

/// The blocks of all cores; index = core.
#[derive(Clone, Debug)]
pub struct Metrics {
    cores: Arc<[CoreMetrics]>,
}

impl Metrics {
    /// One block per core, all zero.
    pub fn new(core_count: usize) -> Self {
        Self {
            cores: (0..core_count).map(|_| CoreMetrics::default()).collect(),
        }
    }

    /// The block of one core. Panics if there is no such core: cores are counted at the start.
    pub fn core(&self, core: usize) -> &CoreMetrics {
        &self.cores[core]
    }

    /// All blocks; index = core.
    pub fn cores(&self) -> &[CoreMetrics] {
        &self.cores
    }

    /// The sum of one metric over all cores.
    pub fn sum(&self, read: fn(&CoreMetrics) -> u64) -> u64 {
        self.cores.iter().map(read).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_two_cores_share_no_cache_line_pair() {
        let metrics = Metrics::new(2);
        let first = std::ptr::from_ref(metrics.core(0)) as usize;
        let second = std::ptr::from_ref(metrics.core(1)) as usize;
        assert_eq!(first % 128, 0);
        assert_eq!((second - first) % 128, 0);
    }

    #[test]
    fn every_row_reads_its_own_field() {
        let metrics = Metrics::new(2);
        metrics.core(1).requests.add(3);
        metrics.core(1).watchdog.kicks.increment();
        let read = |name: &str| {
            let row = CORE_METRICS
                .iter()
                .find(|row| row.name == name)
                .expect("metric exists");
            metrics.sum(row.read)
        };
        assert_eq!(read("requests"), 3);
        assert_eq!(read("watchdog_kicks"), 1);
        assert_eq!(read("disk_syncs"), 0);
    }
}
