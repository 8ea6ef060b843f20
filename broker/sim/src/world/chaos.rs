//! What happens out of the blue between two events.

use tackboard_logic::shard::interface::Input;

use super::{World, trace};
use crate::check;
use crate::coverage::Event as Seen;
use crate::disk::FolderName;

const HOUR_MS: u64 = 3_600_000;

impl World {
    /// Draws for every misfortune.
    pub(super) fn wreak_chaos(&mut self) {
        // What happens while coming up is drawn there; in between there is little left to break.
        if self.process.is_none() && !self.rng.one_in(100) {
            return;
        }
        if self.rng.one_in(self.options.kill_every) {
            self.kill();
        }
        if self.rng.one_in(self.options.power_loss_every) {
            self.lose_power();
        }
        if self.rng.one_in(self.options.restart_every) {
            self.shut_down();
        }
        if self.rng.one_in(self.options.lull_every) {
            self.rest();
        }
        if self.rng.one_in(self.options.clock_jump_every) {
            self.jump_clock();
        }
        if self.rng.one_in(self.options.standstill_every) {
            self.stand_still();
        }
        if self.rng.one_in(self.options.delete_every) {
            self.replace_a_topic();
        }
        if self.rng.one_in(self.options.configure_every) {
            self.change_settings();
        }
        if self.rng.one_in(self.options.truncate_every) {
            self.cut_a_log();
        }
        if self.rng.one_in(self.options.delete_records_every) {
            self.delete_records();
        }
        if self.rng.one_in(self.options.bit_rot_every) {
            self.rot_a_bit();
        }
        // Somebody looks after what is out of service.
        if self.is_impaired() && self.rng.one_in(1_000) {
            self.kill();
        }
    }

    /// Whether a log is out of service, or the process is about to stop for a fault.
    fn is_impaired(&self) -> bool {
        self.process.as_ref().is_some_and(|process| {
            // A shutdown that waits for stuck I/O ends at its deadline: by a kill.
            !process.out_of_service.is_empty() || process.shutting_down
        })
    }

    /// Whether a log may be fenced, or bytes be damaged, by what this world does.
    pub(super) fn faults_were_injected(&self) -> bool {
        let seen = [
            Seen::WriteError,
            Seen::WriteShort,
            Seen::SyncError,
            Seen::ReadError,
            Seen::StuckIo,
            Seen::NoSpace,
            Seen::BitRot,
        ];
        seen.iter().any(|event| self.coverage.count(*event) > 0)
    }

    /// Clients rest for up to a minute, so that what waits for time gets its turn.
    fn rest(&mut self) {
        let rest_us = self.rng.pick(&[200_000, 2_000_000, 60_000_000]);
        trace!(self, "clients rest for {rest_us} us");
        self.rest_until_us = self.clock.now_us() + rest_us;
    }

    /// The process is stopped and continued: it is told the time first, then what happened meanwhile.
    fn stand_still(&mut self) {
        let for_us = self.rng.pick(&[4_000_000, 33_000_000, 600_000_000]);
        trace!(self, "everything stands still for {for_us} us");
        self.see(Seen::Standstill);
        self.clock.advance_to(self.clock.now_us() + for_us);
        for partition in &mut self.partitions {
            check::forgive_standstill(partition, for_us);
        }
        let cores = self
            .process
            .as_ref()
            .map_or(0, |process| process.hosts.len());
        for core in 0..cores {
            // The first core's fault may have ended the process.
            if self.process.is_some() {
                self.give(core, Input::Tick);
                self.end_turn();
            }
        }
    }

    fn jump_clock(&mut self) {
        let by_ms = self.rng.pick(&[1_000, HOUR_MS, 30 * HOUR_MS]);
        let by_ms = self.rng.between(1, by_ms) as i64;
        let by_ms = if self.rng.coin() { by_ms } else { -by_ms };
        trace!(self, "wall clock jumps by {by_ms} ms");
        self.see(Seen::ClockJump);
        self.clock.jump_wall(by_ms);
    }

    /// A topic is deleted, and another one created.
    fn replace_a_topic(&mut self) {
        let Some(number) = self.pick_partition() else {
            return;
        };
        trace!(self, "partition {number} is deleted");
        self.partition(number).deleted = true;
        match self.serving(number) {
            Some((core, log)) => self.post(core, Input::Delete { log }),
            // Files of a topic that isn't open go when a process finds the tombstone.
            None => self.move_to_trash(number),
        }
        let number = self.add_partition();
        if self
            .process
            .as_ref()
            .is_some_and(|process| !process.shutting_down)
        {
            self.open_new_log(number);
        }
    }

    /// A topic gets other settings. What is sent from now on meets them: inputs keep their order.
    fn change_settings(&mut self) {
        let Some(number) = self.pick_partition() else {
            return;
        };
        let now = self.partition(number).config.clone();
        let config = self.options.redraw_log(&mut self.rng, &now);
        trace!(self, "partition {number} {config:?}");
        self.see(Seen::Configured);
        self.partition(number).configure(config.clone());
        if let Some((core, log)) = self.serving(number) {
            let config = Box::new(config);
            self.post(core, Input::Configure { log, config });
        }
    }

    /// A bit rots in a batch that is proven to be on the medium.
    fn rot_a_bit(&mut self) {
        let Some(number) = self.pick_partition() else {
            return;
        };
        let Some(proven) = self.proven_by_ledger(number) else {
            return;
        };
        let count = self.partitions[number as usize].index_from(proven) as u64;
        if count == 0 {
            return;
        }
        let index = self.rng.below(count) as usize;
        let partition = &mut self.partitions[number as usize];
        let Some((file, at)) = crate::check::locate(partition, index, &mut self.disk) else {
            return;
        };
        let placed = &mut partition.sequence[index];
        if !placed.seen_durable || placed.rotten {
            return;
        }
        placed.rotten = true;
        // Not the offset and the epoch: no checksum covers these.
        let byte = self.rng.between(21, placed.bytes.len() as u64 - 1);
        trace!(
            self,
            "a bit of partition {number} rots at offset {}", placed.base
        );
        file.borrow_mut()
            .flip_bit(at + byte, self.rng.below(8) as u8);
        self.see(Seen::BitRot);
    }

    /// The end of what the ledger on disk proves of a log. Above it a rotten bit looks like a torn tail.
    fn proven_by_ledger(&mut self, number: u32) -> Option<i64> {
        if self.process.as_ref()?.writes_ledger() {
            return None;
        }
        let (image, _) = self.read_ledgers().ok()?;
        let ledger = image.logs.get(&self.partition(number).id)?;
        Some(ledger.durable?.offset.0)
    }

    /// Whether a partition need not make progress: what rotted in it can't be mended on one broker.
    pub(super) fn is_excused(&self, number: u32) -> bool {
        let partition = &self.partitions[number as usize];
        let rotten = partition.sequence.iter().any(|placed| placed.rotten);
        partition.deleted || rotten || !partition.damaged.is_empty()
    }

    /// Files that a deleted topic may have left behind.
    pub(super) fn sweep_deleted(&mut self) {
        for number in 0..self.partitions.len() as u32 {
            let open = self.serving(number).is_some();
            if self.partition(number).deleted && !open {
                self.disk.remove_folder(FolderName::Log(number));
            }
        }
    }
}
