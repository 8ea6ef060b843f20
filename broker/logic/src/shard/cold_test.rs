use super::*;

const LOG: LogId = LogId {
    slot: 0,
    generation: 0,
};
const EPOCH: LeaderEpoch = LeaderEpoch(1);

/// The `number`-th stretch of a log whose stretches are all of one size, in segments of four.
fn stretch_of(log: LogId, number: u64) -> Stretch {
    Stretch {
        log,
        leader_epoch: EPOCH,
        start: StreamByte(number * STRETCH_BYTES),
        length: STRETCH_BYTES as u32,
        segment: SegmentBase(Offset((number / 4 * 4) as i64)),
        file_at: number % 4 * STRETCH_BYTES,
    }
}

fn stretch(number: u64) -> Stretch {
    stretch_of(LOG, number)
}

fn room_for(stretches: u64) -> ColdReads {
    ColdReads::new(stretches * STRETCH_BYTES)
}

impl ColdReads {
    /// Somebody asks for all of a stretch.
    fn whole(&mut self, stretch: Stretch, gone: &mut Vec<HeldId>) -> Demand {
        self.demand(stretch, stretch.length, gone)
    }

    /// Somebody reads a stretch that is not held, and is done with it.
    fn read_once(&mut self, stretch: Stretch) -> HeldId {
        let Demand::Read(id) = self.whole(stretch, &mut Vec::new()) else {
            panic!("it is not held, and there is room");
        };
        self.landed(id, true, &mut Vec::new());
        self.released(id, &mut Vec::new());
        id
    }

    /// A reader that has read up to the start of stretch `number`, one offset a stretch.
    fn reader_at(&mut self, from: i64, number: u64) -> (ReaderId, u32) {
        let at = StreamByte(number * STRETCH_BYTES);
        self.passed((LOG, EPOCH), Offset(from), Offset(number as i64), at)
    }

    fn check(&self) {
        let all: u64 = self.held.values().map(|held| held.bytes).sum();
        let kept = self.held.iter().filter(|(_, held)| held.is_kept());
        let kept: Vec<_> = kept.map(|(id, held)| (held.used, *id)).collect();
        let kept_bytes = kept.iter().map(|(_, id)| self.held[id].bytes).sum::<u64>();
        let ahead = kept.iter().map(|(_, id)| self.held[id].ahead_bytes()).sum();
        assert!(all <= self.budget, "the budget holds");
        assert_eq!(
            (self.held_bytes, self.kept_bytes, self.ahead_bytes),
            (all, kept_bytes, ahead)
        );
        assert!(
            self.kept.iter().all(|entry| kept.contains(entry)) && self.kept.len() == kept.len()
        );
        for (stretch, id) in &self.found {
            assert_eq!(self.held[id].stretch, Some(*stretch));
        }
        let reading = self.held.values().filter(|held| !held.is_read);
        let (ahead, waited): (Vec<_>, Vec<_>) = reading.partition(|held| held.started_ahead);
        assert_eq!(ahead.len(), self.ahead_in_flight);
        assert_eq!(waited.len(), self.reads_in_flight);
        assert!(ahead.len() <= READ_AHEAD_IN_FLIGHT_MAX && self.readers.len() <= READERS_MAX);
    }
}

#[test]
fn a_stretch_is_read_once_for_all_who_ask_while_it_is_read_or_held() {
    let mut cold = room_for(4);
    let gone = &mut Vec::new();
    let Demand::Read(id) = cold.whole(stretch(0), gone) else {
        panic!("nothing is held yet");
    };
    assert_eq!(cold.whole(stretch(0), gone), Demand::Joined(id));
    cold.landed(id, true, gone);
    assert_eq!(cold.whole(stretch(0), gone), Demand::Held(id));
    for _ in 0..3 {
        assert_eq!(cold.bytes_in_use(), STRETCH_BYTES);
        cold.released(id, gone);
    }
    assert_eq!((cold.bytes_in_use(), cold.kept_bytes()), (0, STRETCH_BYTES));
    assert_eq!(cold.whole(stretch(0), gone), Demand::Held(id));
    assert_eq!((cold.stats().hits, cold.stats().joined), (2, 1));
    assert!(gone.is_empty());
    cold.check();
}

#[test]
fn what_a_slow_socket_holds_counts_and_what_is_kept_gives_way() {
    let mut cold = room_for(2);
    let gone = &mut Vec::new();
    let kept = cold.read_once(stretch(0));
    let Demand::Read(slow) = cold.whole(stretch(1), gone) else {
        panic!("there is room");
    };
    cold.landed(slow, true, gone);
    assert!(gone.is_empty());
    let Demand::Read(third) = cold.whole(stretch(2), gone) else {
        panic!("what is kept gives way");
    };
    assert_eq!(*gone, [kept]);
    assert_eq!(cold.whole(stretch(3), gone), Demand::NoRoom);
    assert_eq!(cold.demand_alone(1, gone), None);
    cold.landed(third, true, gone);
    cold.released(slow, gone);
    let alone = cold.demand_alone(STRETCH_BYTES, gone).expect("room again");
    assert_eq!(*gone, [kept, slow]);
    cold.landed(alone, true, gone);
    cold.released(alone, gone);
    assert_eq!(*gone, [kept, slow, alone], "nobody finds it, so it goes");
    cold.check();
}

#[test]
fn who_wants_little_of_many_stretches_leaves_half_of_the_budget() {
    let mut cold = room_for(4);
    let gone = &mut Vec::new();
    let kept = cold.read_once(stretch(9));
    for number in 0..2 {
        let demand = cold.demand(stretch(number), 1000, gone);
        assert!(matches!(demand, Demand::Read(_)));
    }
    for number in [2, 9] {
        assert_eq!(cold.demand(stretch(number), 1000, gone), Demand::NoRoom);
    }
    assert!(cold.demand_alone(4096, gone).is_some());
    let shared = cold.demand(stretch(0), 1000, gone);
    assert!(matches!(shared, Demand::Joined(_)), "it costs nothing");
    assert_eq!(cold.whole(stretch(9), gone), Demand::Held(kept));
    cold.check();
}

#[test]
fn a_failed_read_and_damaged_bytes_are_there_for_their_users_and_nobody_else() {
    let mut cold = room_for(4);
    let gone = &mut Vec::new();
    let Demand::Read(failed) = cold.whole(stretch(0), gone) else {
        panic!("nothing is held yet");
    };
    cold.landed(failed, false, gone);
    let Demand::Read(damaged) = cold.whole(stretch(0), gone) else {
        panic!("a failure is not kept");
    };
    cold.landed(damaged, true, gone);
    cold.spoiled(damaged);
    cold.spoiled(damaged);
    assert!(matches!(cold.whole(stretch(0), gone), Demand::Read(_)));
    assert!(gone.is_empty());
    cold.released(failed, gone);
    cold.released(damaged, gone);
    assert_eq!(*gone, [failed, damaged]);
    cold.check();
}

#[test]
fn nothing_of_a_log_or_a_segment_that_was_forgotten_is_found() {
    let other = LogId { slot: 1, ..LOG };
    let mut cold = room_for(16);
    let gone = &mut Vec::new();
    let first = cold.read_once(stretch(0));
    let Demand::Read(in_flight) = cold.whole(stretch(1), gone) else {
        panic!("nothing is held yet");
    };
    let later = cold.read_once(stretch(4));
    let others = cold.read_once(stretch_of(other, 0));
    cold.forget(LOG, Some(stretch(0).segment), gone);
    assert_eq!(*gone, [first]);
    cold.landed(in_flight, true, gone);
    assert!(matches!(cold.whole(stretch(1), gone), Demand::Read(_)));
    assert_eq!(cold.whole(stretch(4), gone), Demand::Held(later));
    cold.released(later, gone);
    cold.released(in_flight, gone);
    assert_eq!(*gone, [first, in_flight]);
    cold.forget(LOG, None, gone);
    assert!(matches!(cold.whole(stretch(4), gone), Demand::Read(_)));
    let found = cold.whole(stretch_of(other, 0), gone);
    assert_eq!(found, Demand::Held(others));
    cold.check();
}

#[test]
fn who_reads_on_where_it_ended_has_twice_as_much_read_ahead_each_time() {
    let mut cold = room_for(100);
    let (reader, window) = cold.reader_at(0, 1);
    assert_eq!(window, 0, "a first read tells nothing");
    let windows: Vec<u32> = (1..7)
        .map(|number| {
            let (same, window) = cold.reader_at(number, number as u64 + 1);
            assert_eq!(same, reader);
            window
        })
        .collect();
    assert_eq!(windows, [1, 2, 4, 8, 8, 8]);
    assert_ne!(cold.reader_at(50, 51).0, reader, "that one is elsewhere");
    let cut = cold.passed((LOG, LeaderEpoch(2)), Offset(7), Offset(8), StreamByte(8));
    assert_ne!(cut.0, reader, "nor is that the same log any more");
}

#[test]
fn read_ahead_yields_to_reads_and_to_writes_and_is_few_at_a_time() {
    let mut cold = room_for(100);
    let gone = &mut Vec::new();
    let (reader, _) = cold.reader_at(0, 1);
    assert_eq!(cold.read_ahead(reader, stretch(1), true, gone), Ahead::No);
    let mut reads = Vec::new();
    for number in 0..READS_BEFORE_READ_AHEAD_MAX as u64 {
        let Demand::Read(id) = cold.whole(stretch(20 + number), gone) else {
            panic!("there is room");
        };
        reads.push(id);
    }
    assert_eq!(cold.read_ahead(reader, stretch(1), false, gone), Ahead::No);
    cold.landed(reads[0], true, gone);
    for number in 1..=READ_AHEAD_IN_FLIGHT_MAX as u64 {
        let ahead = cold.read_ahead(reader, stretch(number), false, gone);
        assert!(matches!(ahead, Ahead::Read(_)));
        let again = cold.read_ahead(reader, stretch(number), false, gone);
        assert_eq!(again, Ahead::There);
    }
    assert_eq!(cold.read_ahead(reader, stretch(9), false, gone), Ahead::No);
    cold.check();
}

#[test]
fn read_ahead_takes_no_more_than_its_share_and_its_window_falls() {
    let mut cold = room_for(6);
    let gone = &mut Vec::new();
    cold.reader_at(0, 1);
    cold.reader_at(1, 2);
    let (reader, window) = cold.reader_at(2, 3);
    assert_eq!(window, 2);
    for number in 3..6 {
        let Ahead::Read(id) = cold.read_ahead(reader, stretch(number), false, gone) else {
            panic!("its share is free");
        };
        cold.landed(id, true, gone);
    }
    assert_eq!(cold.read_ahead(reader, stretch(6), false, gone), Ahead::No);
    assert_eq!(cold.reader_at(3, 4).1, 2, "halved, then doubled");
    // Once it was asked for and sent, it is the budget's again.
    let Demand::Held(id) = cold.whole(stretch(3), gone) else {
        panic!("it was read ahead");
    };
    assert_eq!(cold.read_ahead(reader, stretch(6), false, gone), Ahead::No);
    cold.released(id, gone);
    let ahead = cold.read_ahead(reader, stretch(6), false, gone);
    assert!(matches!(ahead, Ahead::Read(_)));
    cold.check();
}

#[test]
fn what_every_reader_has_passed_goes_before_what_one_is_behind() {
    let mut cold = room_for(3);
    let gone = &mut Vec::new();
    // One reader is at stretch 1, another at 3.
    cold.reader_at(90, 1);
    cold.reader_at(91, 3);
    let awaited = cold.read_once(stretch(1));
    let passed = cold.read_once(stretch(0));
    let other = cold.read_once(stretch(2));
    assert!(matches!(cold.whole(stretch(5), gone), Demand::Read(_)));
    assert_eq!(*gone, [passed]);
    // A read that somebody waits for takes the oldest then; read-ahead takes nothing that is awaited.
    assert!(matches!(cold.whole(stretch(6), gone), Demand::Read(_)));
    assert_eq!(*gone, [passed, awaited]);
    assert_eq!(cold.whole(stretch(2), gone), Demand::Held(other));
    cold.check();
}

#[test]
fn read_ahead_takes_the_place_only_of_what_all_readers_have_passed() {
    let mut cold = room_for(4);
    let gone = &mut Vec::new();
    let (reader, _) = cold.reader_at(92, 6);
    let (_, _) = cold.reader_at(90, 1);
    for number in 1..5 {
        cold.read_once(stretch(number));
    }
    assert_eq!(cold.read_ahead(reader, stretch(6), false, gone), Ahead::No);
    assert!(gone.is_empty());
    // A reader that is not heard of any more keeps nothing.
    for _ in 0..READER_SILENT_AFTER {
        cold.reader_at(6, 6);
    }
    let (reader, _) = cold.reader_at(6, 6);
    let ahead = cold.read_ahead(reader, stretch(6), false, gone);
    assert!(matches!(ahead, Ahead::Read(_)), "{ahead:?}");
    assert_eq!(gone.len(), 1);
    cold.check();
}

#[test]
fn what_was_read_ahead_for_nothing_is_counted() {
    let mut cold = room_for(4);
    let gone = &mut Vec::new();
    let (reader, _) = cold.reader_at(0, 1);
    for number in 1..3 {
        let Ahead::Read(id) = cold.read_ahead(reader, stretch(number), false, gone) else {
            panic!("there is room");
        };
        cold.landed(id, true, gone);
    }
    assert!(matches!(cold.whole(stretch(1), gone), Demand::Held(_)));
    cold.forget(LOG, None, gone);
    let stats = cold.stats();
    assert_eq!(stats.ahead_bytes, 2 * STRETCH_BYTES);
    assert_eq!(stats.wasted_bytes, STRETCH_BYTES);
    cold.check();
}

/// Readers, reads, failures, cuts and deletions in any order, against files whose every byte is known.
mod at_random {
    use super::*;

    const LOGS: u64 = 3;
    const STRETCHES: u64 = 40;
    const READERS: usize = 6;

    struct Random(u64);

    impl Random {
        fn below(&mut self, bound: u64) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            self.0 % bound
        }
    }

    /// What stands for the bytes of a stretch: which, and how often its log was changed before it was read.
    type Content = (Stretch, u32);

    #[derive(Default)]
    struct Bytes {
        /// Reads in flight.
        reading: Vec<(HeldId, Content)>,
        /// Buffers, with what they hold; `None`: the read failed.
        buffers: BTreeMap<HeldId, Option<Content>>,
        /// Who uses which, and what it expects.
        users: Vec<(HeldId, Content)>,
    }

    #[test]
    fn the_budget_holds_and_every_byte_served_is_the_files() {
        let mut all = ColdStats::default();
        for seed in 1..=60 {
            let stats = run(seed);
            all.hits += stats.hits;
            all.joined += stats.joined;
            all.ahead_bytes += stats.ahead_bytes;
            all.wasted_bytes += stats.wasted_bytes;
        }
        let least = [all.hits, all.joined, all.ahead_bytes, all.wasted_bytes];
        assert!(least.iter().all(|seen| *seen > 0), "{all:?}");
    }

    fn run(seed: u64) -> ColdStats {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut cold = room_for(2 + random.below(12));
        let mut bytes = Bytes::default();
        let mut versions = [0_u32; LOGS as usize];
        let mut places = [(0_u64, 0_u64); READERS];
        for place in &mut places {
            *place = (random.below(LOGS), random.below(STRETCHES));
        }
        let mut served = 0;
        for _ in 0..3000 {
            let mut gone = Vec::new();
            match random.below(10) {
                0..=3 => {
                    let index = random.below(READERS as u64) as usize;
                    let (slot, number) = places[index];
                    let stretch = stretch_of(log(slot), number);
                    let content = (stretch, versions[slot as usize]);
                    let wanted = random.below(u64::from(stretch.length)) as u32;
                    match cold.demand(stretch, wanted, &mut gone) {
                        Demand::NoRoom => {}
                        Demand::Held(id) => bytes.users.push((id, content)),
                        Demand::Joined(id) => bytes.users.push((id, content)),
                        Demand::Read(id) => {
                            bytes.reading.push((id, content));
                            bytes.users.push((id, content));
                        }
                    }
                    let next = (number + 1) % STRETCHES;
                    places[index] = match random.below(8) {
                        0 => (random.below(LOGS), random.below(STRETCHES)),
                        _ => (slot, next),
                    };
                    let (reader, window) = cold.passed(
                        (log(slot), EPOCH),
                        Offset(number as i64),
                        Offset(next as i64),
                        StreamByte(next * STRETCH_BYTES),
                    );
                    for ahead in (next..STRETCHES).take(window as usize) {
                        let stretch = stretch_of(log(slot), ahead);
                        let is_busy = random.below(8) == 0;
                        match cold.read_ahead(reader, stretch, is_busy, &mut gone) {
                            Ahead::Read(id) => {
                                let content = (stretch, versions[slot as usize]);
                                bytes.reading.push((id, content));
                            }
                            Ahead::There => {}
                            Ahead::No => break,
                        }
                    }
                }
                4..=6 if !bytes.reading.is_empty() => {
                    let index = random.below(bytes.reading.len() as u64) as usize;
                    let (id, content) = bytes.reading.swap_remove(index);
                    let is_good = random.below(10) > 0;
                    bytes.buffers.insert(id, is_good.then_some(content));
                    cold.landed(id, is_good, &mut gone);
                }
                7..=8 if !bytes.users.is_empty() => {
                    let index = random.below(bytes.users.len() as u64) as usize;
                    let (id, wanted) = bytes.users[index];
                    // Who waits for a read goes on waiting.
                    if let Some(buffer) = bytes.buffers.get(&id) {
                        if let Some(content) = buffer {
                            assert_eq!(*content, wanted, "seed {seed}");
                            served += 1;
                            if random.below(20) == 0 {
                                cold.spoiled(id);
                            }
                        }
                        bytes.users.swap_remove(index);
                        cold.released(id, &mut gone);
                    }
                }
                9 if random.below(20) == 0 => {
                    let slot = random.below(LOGS);
                    versions[slot as usize] += 1;
                    cold.forget(log(slot), None, &mut gone);
                }
                _ => {}
            }
            for id in gone {
                assert!(bytes.users.iter().all(|(used, _)| *used != id));
                bytes.buffers.remove(&id).expect("it is let go once");
            }
            let all = bytes.buffers.len() + bytes.reading.len();
            assert_eq!(all, cold.held.len(), "no buffer is lost or forgotten");
            cold.check();
        }
        assert!(served > 200, "seed {seed}: only {served} were served");
        cold.stats()
    }

    fn log(slot: u64) -> LogId {
        LogId {
            slot: slot as u32,
            generation: 0,
        }
    }
}

#[test]
fn beside_producers_few_reads_fit_into_the_turns_and_alone_all_of_them() {
    assert_eq!(
        READS_IN_FLIGHT_MAX / turns_of_read(false),
        READS_IN_FLIGHT_MAX
    );
    assert_eq!(
        READS_IN_FLIGHT_MAX / turns_of_read(true),
        READS_BESIDE_PRODUCERS_MAX
    );
}

#[test]
fn what_is_forgotten_of_one_log_is_kept_of_those_beside_it() {
    let neighbours = [0, 1, 2].map(|slot| LogId {
        slot,
        generation: 3,
    });
    let mut cold = room_for(12);
    for log in neighbours {
        (0..2).for_each(|number| {
            cold.read_once(stretch_of(log, number));
        });
    }
    let mut gone = Vec::new();
    cold.forget(neighbours[1], None, &mut gone);
    assert_eq!(gone.len(), 2);
    for (log, is_left) in neighbours.into_iter().zip([true, false, true]) {
        for number in 0..2 {
            let found = cold.whole(stretch_of(log, number), &mut Vec::new());
            assert_eq!(matches!(found, Demand::Held(_)), is_left);
        }
    }
}
