//! How a process ends: killed, by power loss, in order.

use tackboard_logic::log::recovery::RestartClass;
use tackboard_logic::shard::interface::Input;

use super::io::reaction_us;
use super::process::Process;
use super::{Event, World, trace};
use crate::check;
use crate::coverage::Event as Seen;
use crate::disk::FolderName;

impl World {
    pub(super) fn process_mut(&mut self) -> &mut Process {
        self.process.as_mut().expect("there is a process")
    }

    /// `kill -9`: what was issued may land, what wasn't is gone.
    pub(super) fn kill(&mut self) {
        if self.process.is_none() {
            return;
        }
        trace!(self, "killed");
        self.see(Seen::Kill);
        self.end_process();
        self.worsen_exit(RestartClass::ProcessCrash);
    }

    /// The machine loses power.
    pub(super) fn lose_power(&mut self) {
        trace!(self, "power loss");
        self.see(Seen::PowerLoss);
        if let Some(process) = &self.process {
            let disk_works = !self.faults_were_injected() && self.options.faults.slow == 0;
            for number in process.open.keys().filter(|_| disk_works) {
                let partition = &mut self.partitions[*number as usize];
                check::promise_what_is_old(partition, self.clock.now_us());
            }
            self.end_process();
        }
        self.lose_power_of_disk();
    }

    pub(super) fn lose_power_of_disk(&mut self) {
        self.worsen_exit(RestartClass::HostCrash);
        for partition in &mut self.partitions {
            partition.lost_power = true;
        }
        self.disk.lose_power(&mut self.rng, &mut self.coverage);
    }

    /// Asks for a shutdown in order; the process ends when every core is drained.
    pub(super) fn shut_down(&mut self) {
        let Some(process) = &mut self.process else {
            return;
        };
        if std::mem::replace(&mut process.shutting_down, true) {
            return;
        }
        trace!(self, "shutdown");
        for core in 0..self.process_mut().hosts.len() {
            self.post(core, Input::Shutdown);
        }
    }

    /// Every core is drained.
    pub(super) fn finish_shutdown(&mut self) {
        trace!(self, "shut down");
        let process = self.process_mut();
        let failed = process.out_of_service.clone();
        let in_flight = process
            .operations
            .values()
            .find(|operation| operation.must_be_awaited());
        assert!(
            in_flight.is_none() || !failed.is_empty(),
            "drained with {in_flight:?} in flight"
        );
        let is_written = process.drained_clean;
        let open: Vec<u32> = process.open.keys().copied().collect();
        self.end_process();
        if !is_written {
            // What was promised survives all the same, and not more.
            self.see(Seen::StoppedFull);
            self.worsen_exit(RestartClass::ProcessCrash);
            if self.chaos && self.rng.coin() {
                self.make_space();
            }
            return;
        }
        for number in open.into_iter().filter(|number| !failed.contains(number)) {
            let partition = self.partition(number);
            partition.survives_kill = partition.end;
            partition.survives_power_loss = partition.end;
        }
        if failed.is_empty() {
            self.see(Seen::CleanShutdown);
            self.last_exit = RestartClass::Clean;
        } else {
            self.worsen_exit(RestartClass::ProcessCrash);
        }
        if self.chaos && self.rng.one_in(4) {
            // What was shut down in order survives this as well.
            self.lose_power();
        }
    }

    /// The disk grows before the next start.
    fn make_space(&mut self) {
        let more = self.rng.between(64 << 10, 2 << 20);
        trace!(self, "the disk grows by {more} bytes");
        self.see(Seen::SpaceMade);
        self.disk.set_capacity(self.disk.capacity_bytes() + more);
    }

    /// The process is gone, and with it all that was in memory.
    fn end_process(&mut self) {
        self.land_operations();
        self.process = None;
        self.forget_connections();
        self.forget_in_flight();
        let delay = reaction_us(&mut self.rng);
        self.schedule(delay, Event::Boot);
    }

    /// No process has any file open.
    pub(super) fn forget_in_flight(&mut self) {
        for number in self.live_partitions().collect::<Vec<_>>() {
            self.disk.folder(FolderName::Log(number)).forget_in_flight();
        }
        self.disk.folder(FolderName::Ledger).forget_in_flight();
    }

    /// A machine that lost power is not less lost for a kill thereafter.
    fn worsen_exit(&mut self, class: RestartClass) {
        let rank = |class| match class {
            RestartClass::Clean => 0,
            RestartClass::ProcessCrash => 1,
            RestartClass::HostCrash => 2,
            RestartClass::DirReplaced => 3,
        };
        if rank(class) > rank(self.last_exit) {
            self.last_exit = class;
        }
    }

    /// The files of a deleted topic are taken away.
    pub(super) fn move_to_trash(&mut self, number: u32) {
        self.disk.remove_folder(FolderName::Log(number));
    }
}
