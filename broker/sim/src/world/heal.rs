//! How it must end: once nothing fails any more, everything makes progress and all that was promised is there.

use tackboard_logic::log::limits::BUDGET_ROLL_BYTES_MIN;
use tackboard_logic::shard::interface::{LogId, LogSpace};

use super::{Event, World, trace};
use crate::coverage::Event as Seen;

/// Virtual time within which everything must be well again.
const HEALED_WITHIN_US: u64 = 20 * 60 * 1_000_000;

/// Virtual time within which every group has come to rest: a client that went before its first rebalance is waited for
/// five minutes, and what else is waited for takes seconds.
const GROUPS_STABLE_WITHIN_US: u64 = 6 * 60 * 1_000_000;

/// Longest pause of producers and consumers while groups come to rest, which takes its time-outs.
const HEALING_PAUSE_US: u64 = 200_000;

impl World {
    /// Stops all faults, restarts what is impaired, and reads everything back.
    pub(super) fn heal_and_audit(&mut self) {
        trace!(self, "faults stop");
        self.chaos = false;
        self.rest_until_us = 0;
        self.disk.set_capacity(u64::MAX);
        self.options.pause_us_max = self.options.pause_us_max.min(1_000);
        match self.rng.below(3) {
            0 => self.kill(),
            1 => self.lose_power(),
            _ if self
                .process
                .as_ref()
                .is_some_and(|process| process.out_of_service.is_empty()) =>
            {
                self.shut_down();
            }
            _ => self.kill(),
        }
        let before = self.incarnation;
        let deadline = self.clock.now_us() + HEALED_WITHIN_US;
        self.run_until(deadline, "a process comes up", |world| {
            world.incarnation != before && world.process.is_some()
                || world.give_up_on_stuck_io(before)
        });
        self.run_until(deadline, "a process comes up after stuck I/O", |world| {
            world
                .process
                .as_ref()
                .is_some_and(|process| !process.shutting_down)
        });
        self.producing = false;
        self.run_until(deadline, "every batch is acknowledged", |world| {
            world.producers_are_content()
        });
        self.heal_groups();
        self.run_until(deadline, "the logs are within their budget", |world| {
            world.is_within_budget()
        });
        self.sweep_deleted();
        self.audit(deadline);
        self.shut_down();
        self.run_until(deadline, "the process shuts down", |world| {
            world.process.is_none()
        });
        self.see(Seen::Audit);
    }

    /// Members agree, and coordinators write anew what is too long.
    fn heal_groups(&mut self) {
        if self.members.is_empty() {
            return;
        }
        let pause_us_max = std::mem::replace(&mut self.options.pause_us_max, HEALING_PAUSE_US);
        self.settle_static_names();
        let deadline = self.clock.now_us() + GROUPS_STABLE_WITHIN_US;
        self.run_until(deadline, "every group is stable", |world| {
            world.groups_are_stable()
        });
        self.run_until(deadline, "the logs of groups are short", |world| {
            world.group_logs_are_short()
        });
        self.options.pause_us_max = pause_us_max;
    }

    /// A shutdown that waits for I/O that never completes is cut short, as its deadline does.
    fn give_up_on_stuck_io(&mut self, before: u32) -> bool {
        let waits = self.incarnation == before
            && self.coverage.count(Seen::StuckIo) > 0
            && self
                .process
                .as_ref()
                .is_some_and(|process| process.shutting_down)
            && self.rng.one_in(5_000);
        if waits {
            self.kill();
        }
        waits
    }

    /// Within the budget of all logs, or as near to it as may be: all that could go has gone.
    fn is_within_budget(&mut self) -> bool {
        let Some(budget_bytes) = self.options.log_budget_bytes else {
            return true;
        };
        let Some(process) = &self.process else {
            return false;
        };
        let all: LogSpace = (process.hosts.iter())
            .map(|host| host.shard.log_space())
            .sum();
        let has_given = |(number, (core, log)): (&u32, &(usize, LogId))| {
            let yields = self.partitions[*number as usize].config.yields_to_budget;
            let log = process.hosts[*core].shard.describe(*log);
            let log = log.expect("it is open");
            !yields || log.segment_count == 1 && log.size_bytes < BUDGET_ROLL_BYTES_MIN
        };
        all.bytes <= budget_bytes || process.open.iter().all(has_given)
    }

    fn audit(&mut self, deadline: u64) {
        let numbers: Vec<u32> = self.live_partitions().collect();
        let auditors: Vec<usize> = numbers
            .into_iter()
            .map(|number| self.add_auditor(number))
            .collect();
        self.run_until(deadline, "everything is read", |world| {
            auditors
                .iter()
                .all(|auditor| world.auditor_is_done(*auditor))
        });
    }

    fn run_until(&mut self, deadline: u64, what: &str, mut done: impl FnMut(&mut Self) -> bool) {
        while !done(self) {
            assert!(
                self.clock.now_us() < deadline,
                "no progress: {what}, but not in time"
            );
            if self.process.is_none() && self.queue.is_empty() {
                self.schedule(0, Event::Boot);
            }
            self.next_event();
        }
    }
}
