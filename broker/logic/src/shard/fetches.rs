//! Fetches over logs of this core: answered at once, or parked until there is enough.

use tackboard_schema::{ErrorCode, Offset};

use super::Shard;
use super::interface::{Effect, Effects, FetchAnswer, FetchData, FetchEntry, LogId, Now, Ticket};
use crate::log::Located;
use crate::request::parked::{ParkedFetch, ParkedId};

impl Shard {
    /// `bytes`: least and most.
    pub(super) fn fetch(
        &mut self,
        now: Now,
        ticket: Ticket,
        entries: Vec<FetchEntry>,
        bytes: (u32, u32),
        deadline_us: u64,
        out: &mut Effects,
    ) {
        let (bytes_min, bytes_max) = bytes;
        let mut fetch = ParkedFetch {
            ticket,
            entries,
            bytes_min,
            bytes_max,
            deadline_us,
            bytes_visible: 0,
        };
        let ready = self.is_ready(&mut fetch);
        if ready || deadline_us <= now.monotonic_us || self.admission.shutting_down {
            self.answer_fetch(&fetch, out);
            return;
        }
        let logs: Vec<LogId> = fetch.entries.iter().map(|entry| entry.log).collect();
        let id = self.parked.park(fetch);
        for log in logs {
            if let Some(log) = self.log_mut(log) {
                log.parked.insert(id);
            }
        }
    }

    /// Whether a fetch can be answered: enough is visible, or an entry has an error to report.
    fn is_ready(&self, fetch: &mut ParkedFetch) -> bool {
        let mut has_error = false;
        fetch.bytes_visible = 0;
        for entry in &fetch.entries {
            match self.locate(entry, entry.bytes_max) {
                Located::Refused(_) => has_error = true,
                located => fetch.bytes_visible += located.bytes(),
            }
        }
        has_error || fetch.bytes_visible >= u64::from(fetch.bytes_min)
    }

    fn locate(&self, entry: &FetchEntry, bytes_max: u32) -> Located {
        match self.log(entry.log) {
            Some(log) => log.locate(entry.offset, bytes_max),
            None => Located::Refused(ErrorCode::UnknownTopicOrPartition),
        }
    }

    /// Spends the byte budget over the entries in order. The first one that has anything gets at least one batch.
    fn answer_fetch(&mut self, fetch: &ParkedFetch, out: &mut Effects) {
        let mut left = u64::from(fetch.bytes_max);
        let mut is_first = true;
        let mut answers = Vec::with_capacity(fetch.entries.len());
        for entry in &fetch.entries {
            let bytes_max = u64::from(entry.bytes_max).min(left) as u32;
            let located = match self.locate(entry, bytes_max) {
                located if located.bytes() > left && !is_first => Located::Nothing,
                Located::Cached { .. } | Located::Disk(_) if left == 0 && !is_first => {
                    Located::Nothing
                }
                located => located,
            };
            is_first &= located.bytes() == 0;
            left = left.saturating_sub(located.bytes());
            answers.push(self.answer_entry(entry, located, out));
        }
        self.stats.fetches += 1;
        out.push(Effect::AnswerFetch {
            ticket: fetch.ticket,
            answers,
        });
    }

    fn answer_entry(
        &mut self,
        entry: &FetchEntry,
        located: Located,
        out: &mut Effects,
    ) -> FetchAnswer {
        let Some(log) = self.log(entry.log) else {
            return FetchAnswer {
                log: entry.log,
                error: ErrorCode::UnknownTopicOrPartition,
                high_watermark: Offset(-1),
                log_start_offset: Offset(-1),
                data: FetchData::Empty,
            };
        };
        let answer = log.fetch_answer(located, out);
        match located {
            Located::Nothing | Located::Refused(_) => {}
            Located::Cached { from, .. } => {
                let depth = log.depth_in_cache(from, self.memory.cache_bytes());
                self.memory.depth.hit(depth);
                self.stats.fetched_cached += 1;
            }
            Located::Disk(read) => {
                let distance = log.distance_to_end(&read);
                self.memory.depth.missed(distance);
                self.stats.fetched_disk += 1;
            }
        }
        answer
    }

    pub(super) fn hurry_fetch(&mut self, ticket: Ticket, out: &mut Effects) {
        if let Some(id) = self.parked.find(ticket) {
            self.answer_parked(id, out);
        }
    }

    pub(super) fn drop_fetch(&mut self, ticket: Ticket) {
        if let Some(id) = self.parked.find(ticket) {
            self.unpark(id);
        }
    }

    pub(super) fn answer_parked(&mut self, id: ParkedId, out: &mut Effects) {
        if let Some(fetch) = self.unpark(id) {
            self.answer_fetch(&fetch, out);
        }
    }

    fn unpark(&mut self, id: ParkedId) -> Option<ParkedFetch> {
        let fetch = self.parked.take(id)?;
        for entry in &fetch.entries {
            if let Some(log) = self.log_mut(entry.log) {
                log.parked.remove(&id);
            }
        }
        Some(fetch)
    }

    /// `bytes` more of a log are visible.
    pub(super) fn wake_parked(&mut self, log: LogId, bytes: u64, out: &mut Effects) {
        let Some(waiting) = self.log_mut(log).map(|log| std::mem::take(&mut log.parked)) else {
            return;
        };
        let mut waiting = waiting;
        let ready: Vec<ParkedId> = (waiting.iter().copied())
            .filter(|id| self.parked.note_visible(*id, bytes))
            .collect();
        for id in ready {
            waiting.remove(&id);
            self.answer_parked(id, out);
        }
        if let Some(log) = self.log_mut(log) {
            log.parked = waiting;
        }
    }

    pub(super) fn log_mut(&mut self, id: LogId) -> Option<&mut crate::log::Log> {
        let place = self.slots.get_mut(id.slot as usize)?;
        if place.generation == id.generation {
            place.log.as_deref_mut()
        } else {
            None
        }
    }
}
