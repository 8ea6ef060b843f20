//! Reads of history take turns, as the broker's driver lets them: few of them stand before a producer's write.

use std::collections::VecDeque;

use tackboard_logic::shard::cold::{READS_IN_FLIGHT_MAX, turns_of_read};

use super::World;
use super::consuming::ReadFor;
use super::io::{Action, Completion};
use crate::check;
use crate::coverage::Event as Seen;
use crate::disk::OpenFile;

/// The reads of history of one core.
#[derive(Default)]
pub(super) struct History {
    in_flight: Vec<Turn>,
    waiting: VecDeque<(Turn, ReadFor, OpenFile)>,
}

/// What a read takes of what there is, decided when it is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Turn {
    turns: usize,
    /// So long before, the core had last placed a batch.
    appended_ago_us: Option<u64>,
}

impl World {
    /// A read that others may share is asked for.
    pub(super) fn wait_for_turn(&mut self, core: usize, read_for: ReadFor, file: OpenFile) {
        let now = self.clock.now();
        let now_us = self.clock.now_us();
        let host = self.host(core);
        let turns = turns_of_read(host.shard.is_appended_to(now));
        let appended_ago_us = host.appended_us.map(|appended_us| now_us - appended_us);
        let turn = Turn {
            turns,
            appended_ago_us,
        };
        host.history.waiting.push_back((turn, read_for, file));
        self.begin_reads(core);
        if !self.host(core).history.waiting.is_empty() {
            self.see(Seen::ReadWaited);
        }
    }

    /// Begins the reads for which there are turns, in the order in which they were asked for.
    fn begin_reads(&mut self, core: usize) {
        loop {
            let history = &mut self.host(core).history;
            let taken: usize = history.in_flight.iter().map(|turn| turn.turns).sum();
            let next = history.waiting.front();
            if next.is_none_or(|(turn, ..)| taken + turn.turns > READS_IN_FLIGHT_MAX) {
                return;
            }
            let (turn, read_for, file) = history.waiting.pop_front().expect("it was looked at");
            history.in_flight.push(turn);
            check::history(history.in_flight.iter().map(|turn| turn.appended_ago_us));
            let parts = read_for.parts();
            let script = parts.into_iter().map(|part| Action::Read {
                file: file.clone(),
                at: part.start,
                length: (part.end - part.start) as usize,
            });
            self.start(core, script.collect(), Completion::History(turn, read_for));
        }
    }

    /// A read is over, and the next one gets its turn.
    pub(super) fn end_turn_of_read(&mut self, core: usize, turn: Turn) {
        let in_flight = &mut self.host(core).history.in_flight;
        let at = in_flight.iter().position(|other| *other == turn);
        in_flight.swap_remove(at.expect("a read is over once"));
        self.begin_reads(core);
    }

    /// A core has placed a batch.
    pub(super) fn note_append(&mut self, core: usize) {
        let now_us = self.clock.now_us();
        self.host(core).appended_us = Some(now_us);
    }
}
