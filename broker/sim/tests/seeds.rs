//! Replays the seeds that failed once, and runs some more.
//!
//! `SIM_SEED` and `SIM_STEPS` choose what else is run.

use tackboard_sim::runner::{Run, STEPS_PER_SEED, print_seed_on_panic, run_seeds};

fn from_environment(name: &str, default: u64) -> u64 {
    std::env::var(name)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(default)
}

#[test]
fn seeds_that_failed_once() {
    print_seed_on_panic();
    for line in include_str!("../seeds.txt").lines() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let mut words = line.split_whitespace();
        let mut number = || words.next().and_then(|word| word.parse().ok());
        let (Some(seed), Some(steps)) = (number(), number()) else {
            panic!("seeds.txt: {line:?} doesn't begin with a seed and a number of steps");
        };
        Run {
            seed,
            steps,
            traced: false,
        }
        .run();
    }
}

#[test]
fn some_seeds() {
    print_seed_on_panic();
    let first = from_environment("SIM_SEED", 1_000_000);
    let steps = from_environment("SIM_STEPS", 60_000);
    run_seeds(first, steps, STEPS_PER_SEED.min(steps));
}
