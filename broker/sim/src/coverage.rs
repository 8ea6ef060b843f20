//! What a run went through. A run that never met a torn tail, a roll or a cold read has shown nothing about them, so the
//! counters decide too whether a long run counts.

use std::fmt;

macro_rules! events {
    ($($(#[doc = $doc:literal])+ $event:ident $(= $required:ident)?,)+) => {
        /// Something that happened in a run.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Event { $($(#[doc = $doc])+ $event,)+ }

        /// Every event, with whether a long run must have met it.
        const EVENTS: &[(Event, &str, bool)] = &[
            $((Event::$event, stringify!($event), events!(@$($required)?)),)+
        ];
    };
    (@required) => { true };
    (@) => { false };
}

events! {
    /// An input was given to a shard.
    Step,
    /// A process was killed; the machine stayed up.
    Kill = required,
    /// The machine lost power.
    PowerLoss = required,
    /// A process shut down in order.
    CleanShutdown = required,
    /// A process came up.
    Boot = required,
    /// A process died while it was coming up.
    CrashDuringBoot = required,
    /// A process came up with another number of cores.
    CoresChanged = required,
    /// A write failed.
    WriteError = required,
    /// A write was short.
    WriteShort = required,
    /// A sync failed.
    SyncError = required,
    /// A read failed.
    ReadError = required,
    /// The disk had no room for a write or an allocation.
    NoSpace = required,
    /// The process stopped in order, with events in memory that a full disk did not take.
    StoppedFull = required,
    /// Such a process was followed by one that found more space.
    SpaceMade = required,
    /// I/O took long.
    SlowIo = required,
    /// I/O took longer than anybody waits, or never completed.
    StuckIo = required,
    /// A bit rotted below what was proven durable.
    BitRot = required,
    /// The wall clock jumped.
    ClockJump = required,
    /// The process stood still while time went on.
    Standstill = required,
    /// A power loss undid a write.
    WriteLost = required,
    /// A power loss tore a write.
    WriteTorn = required,
    /// A power loss left garbage in a fresh sector.
    SectorCorrupted = required,
    /// A power loss undid a change to a folder.
    EntryLost = required,
    /// Recovery cut off a torn tail.
    TornTail = required,
    /// Recovery reported damage.
    DamageReported = required,
    /// A log was fenced.
    Fenced = required,
    /// The process stopped itself.
    Abort = required,
    /// An append was refused, whatever for.
    Refused = required,
    /// An append was refused since the disk was full.
    StorageFull = required,
    /// A batch that was appended could not be written, since the disk was full.
    StorageFullAfterAppend = required,
    /// An append was refused since its memory was used up.
    OverBudget = required,
    /// A batch was acknowledged.
    Acknowledged = required,
    /// A batch was acknowledged as synced.
    AcknowledgedFsync = required,
    /// A log that is always synced was synced by a sync of its own, not by writes that prove themselves.
    SyncOfFsyncLog = required,
    /// One sync of the file system proved several logs.
    SyncOfFileSystem = required,
    /// A batch was acknowledged as written.
    AcknowledgedWritten = required,
    /// A retry was recognised.
    Duplicate = required,
    /// A gap in a producer's sequence was refused.
    OutOfOrder = required,
    /// A producer's old epoch was refused.
    StaleEpoch = required,
    /// Acknowledgement timed out.
    TimedOut = required,
    /// A batch was read back.
    Read = required,
    /// A fetch was answered from memory.
    ReadCached = required,
    /// A fetch was answered from disk.
    ReadCold = required,
    /// Of these, one whose stretches other readers may share.
    ReadShared = required,
    /// A read of history waited for its turn.
    ReadWaited = required,
    /// Bad bytes were found by a read, and not served.
    ReadDamage = required,
    /// A fetch waited for data.
    Parked = required,
    /// An offset was looked up by time and found.
    TimeFound = required,
    /// An offset was looked up by time and there is none.
    TimeNotFound = required,
    /// A segment was followed by another.
    Roll = required,
    /// A segment was sealed.
    Sealed = required,
    /// A checkpoint was written.
    CheckpointWritten = required,
    /// A start read on from a checkpoint.
    CheckpointTaken = required,
    /// A checkpoint was not believed.
    CheckpointRejected = required,
    /// Retention deleted a segment.
    SegmentDeleted = required,
    /// Segments went for the budget of all logs.
    BudgetDrop = required,
    /// A topic was deleted.
    TopicDeleted = required,
    /// A topic's settings changed.
    Configured = required,
    /// The end of a log was cut off.
    Truncated = required,
    /// A batch went with a cut that had been acknowledged.
    AcknowledgedCut = required,
    /// A cut was refused.
    TruncationRefused = required,
    /// A process died while a log was cut, and the next one made the cut good.
    TruncationRecovered = required,
    /// Oldest records were deleted on request.
    RecordsDeleted = required,
    /// Batches were lost that nothing promised to keep.
    LegitimateLoss = required,
    /// A coordinator of groups has read back what it had stored.
    GroupsLoaded = required,
    /// A coordinator's log was written anew, and begins there.
    GroupsRewritten = required,
    /// A member was told of a generation.
    GroupJoined = required,
    /// A member was told its part.
    GroupSynced = required,
    /// A commit was acknowledged.
    OffsetCommitted = required,
    /// A commit was refused.
    CommitRefused = required,
    /// Offsets were deleted on request.
    OffsetsDeleted = required,
    /// So was a group.
    GroupDeleted = required,
    /// Offsets were forgotten for their age, or for their topic.
    OffsetsExpired = required,
    /// An append of a coordinator failed.
    StoreFailed = required,
    /// A ledger write.
    LedgerWrite,
    /// A ledger was written anew into its other file.
    LedgerSwitched = required,
    /// Everything was read and compared at the end of a seed.
    Audit = required,
}

/// How often each event happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coverage {
    counts: [u64; EVENTS.len()],
}

impl Default for Coverage {
    fn default() -> Self {
        Self {
            counts: [0; EVENTS.len()],
        }
    }
}

impl Coverage {
    /// Counts one.
    #[inline]
    pub fn hit(&mut self, event: Event) {
        self.counts[event as usize] += 1;
    }

    /// How often it happened.
    pub fn count(&self, event: Event) -> u64 {
        self.counts[event as usize]
    }

    /// Adds what another run went through.
    pub fn add(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(other.counts) {
            *count += more;
        }
    }

    /// What a long run should have met and this one did not.
    pub fn missing(&self) -> Vec<&'static str> {
        let missing = EVENTS
            .iter()
            .filter(|(event, _, required)| *required && self.count(*event) == 0);
        missing.map(|(_, name, _)| *name).collect()
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (event, name, _) in EVENTS {
            writeln!(f, "  {name:<20} {:>12}", self.count(*event))?;
        }
        Ok(())
    }
}
