//! A core that stood still (its process stopped, its machine suspended) doesn't blame its disk for it.

mod support;

use support::{World, batch, partition};
use tackboard_logic::log::limits::{IO_TIMEOUT_US, STANDSTILL_US};
use tackboard_logic::log::recovery::RestartClass;
use tackboard_logic::shard::interface::*;

const SECOND_US: u64 = 1_000_000;

/// A core with one log, a write of which is in flight; with `ledger`, a write of the ledger too.
fn writing(ledger: bool) -> (World, LogId) {
    let mut world = World::new(ShardConfig::default(), 5);
    let log = world.open(partition(0), LogConfig::default(), RestartClass::Clean);
    if !ledger {
        world.complete_all();
    }
    world.append(log, batch(&[b"a"], None, 0));
    world.step(Input::TurnEnd);
    assert!(!world.pending.is_empty());
    (world, log)
}

#[test]
fn a_standstill_is_not_held_against_what_was_in_flight() {
    for ledger in [false, true] {
        let (mut world, log) = writing(ledger);
        for _ in 0..3 {
            // The time is heard before the completions that have waited to be read.
            world.advance(IO_TIMEOUT_US + 3 * SECOND_US);
            assert!(world.fenced.is_empty() && world.aborted.is_none());
        }
        world.complete_all();
        let ticket = world.append(log, batch(&[b"b"], None, 0));
        world.step(Input::TurnEnd);
        world.complete_all();
        assert!(world.produced[&ticket].is_ok());
    }
}

#[test]
fn what_stays_in_flight_after_a_standstill_is_given_up_by_the_bound() {
    for ledger in [false, true] {
        let (mut world, _) = writing(ledger);
        let gave_up = |world: &World| !world.fenced.is_empty() || world.aborted.is_some();
        world.advance(IO_TIMEOUT_US);
        let mut waited_us = 0;
        while !gave_up(&world) {
            assert!(waited_us < IO_TIMEOUT_US);
            world.advance(STANDSTILL_US);
            waited_us += STANDSTILL_US;
        }
        assert_eq!(waited_us, IO_TIMEOUT_US);
    }
}
