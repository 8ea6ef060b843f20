//! Runs seeds and adds up what they went through.

use std::cell::Cell;
use std::panic;

use crate::coverage::{Coverage, Event};
use crate::world::World;

/// Steps of one seed before it heals, unless asked for otherwise.
pub const STEPS_PER_SEED: u64 = 20_000;

thread_local! {
    static RUNNING: Cell<Option<(u64, u64)>> = const { Cell::new(None) };
}

/// One run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Decides everything.
    pub seed: u64,
    /// Steps before the faults stop.
    pub steps: u64,
    /// Print every step to stderr.
    pub traced: bool,
}

impl Run {
    /// Runs it.
    ///
    /// # Panics
    /// If a property doesn't hold; what to call to see it again is printed.
    pub fn run(self) -> Coverage {
        RUNNING.set(Some((self.seed, self.steps)));
        let mut world = World::new(self.seed, self.traced);
        world.run(self.steps);
        RUNNING.set(None);
        world.coverage
    }
}

/// Makes a panic in a run say which seed it was.
pub fn print_seed_on_panic() {
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        before(info);
        if let Some((seed, steps)) = RUNNING.get() {
            eprintln!("SIM_SEED={seed} SIM_STEPS={steps} failed; to see every step of it:");
            eprintln!(
                "cargo run --release -p tackboard-sim -- --seed {seed} --steps-per-seed {steps} --seeds 1 --trace"
            );
        }
    }));
}

/// Runs seed after seed until so many steps were taken.
pub fn run_seeds(first_seed: u64, steps: u64, steps_per_seed: u64) -> (u64, Coverage) {
    let mut total = Coverage::default();
    let mut seed = first_seed;
    while total.count(Event::Step) < steps {
        let run = Run {
            seed,
            steps: steps_per_seed,
            traced: false,
        };
        total.add(&run.run());
        seed = seed.wrapping_add(1);
    }
    (seed.wrapping_sub(first_seed), total)
}
