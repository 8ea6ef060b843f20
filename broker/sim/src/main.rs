//! `tackboard-sim`: runs seeds of the simulator and says what they went through.

use std::process::ExitCode;
use std::time::Instant;

use tackboard_sim::Event;
use tackboard_sim::runner::{Run, STEPS_PER_SEED, print_seed_on_panic, run_seeds};

/// A run of so many steps must have met everything that the simulator can do.
const STEPS_THAT_COVER: u64 = 2_000_000;

const USAGE: &str = "\
tackboard-sim [--seed N] [--steps N | --seeds N] [--steps-per-seed N] [--trace]

  --seed N            first seed (default: SIM_SEED, else 1)
  --steps N           run seeds until so many steps were taken (default: SIM_STEPS, else 1000000)
  --seeds N           run so many seeds instead
  --steps-per-seed N  steps of a seed before its faults stop (default 20000)
  --trace             print every step to stderr";

struct Arguments {
    seed: u64,
    steps: u64,
    seeds: Option<u64>,
    steps_per_seed: u64,
    traced: bool,
}

fn main() -> ExitCode {
    let arguments = match parse() {
        Ok(arguments) => arguments,
        Err(what) => {
            eprintln!("{what}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    print_seed_on_panic();
    let begun = Instant::now();
    let (seeds, coverage) = match arguments.seeds {
        None => run_seeds(arguments.seed, arguments.steps, arguments.steps_per_seed),
        Some(seeds) => {
            let mut total = tackboard_sim::Coverage::default();
            for seed in arguments.seed..arguments.seed + seeds {
                let run = Run {
                    seed,
                    steps: arguments.steps_per_seed,
                    traced: arguments.traced,
                };
                total.add(&run.run());
            }
            (seeds, total)
        }
    };
    let seconds = begun.elapsed().as_secs_f64();
    let steps = coverage.count(Event::Step);
    println!(
        "{seeds} seeds from {}, {steps} steps in {seconds:.1} s, {:.0} a second",
        arguments.seed,
        steps as f64 / seconds
    );
    print!("{coverage}");
    let missing = coverage.missing();
    if steps >= STEPS_THAT_COVER && !missing.is_empty() {
        eprintln!("a run of {steps} steps never met: {}", missing.join(", "));
        return ExitCode::FAILURE;
    }
    println!("every property held");
    ExitCode::SUCCESS
}

fn parse() -> Result<Arguments, String> {
    let from_environment = |name: &str, default| match std::env::var(name) {
        Ok(text) => number(name, &text),
        Err(_) => Ok(default),
    };
    let mut arguments = Arguments {
        seed: from_environment("SIM_SEED", 1)?,
        steps: from_environment("SIM_STEPS", 1_000_000)?,
        seeds: None,
        steps_per_seed: STEPS_PER_SEED,
        traced: false,
    };
    let mut given = std::env::args().skip(1);
    while let Some(name) = given.next() {
        if name == "--trace" {
            arguments.traced = true;
            continue;
        }
        let text = given
            .next()
            .ok_or_else(|| format!("{name}: a value is missing"))?;
        let value = number(&name, &text)?;
        match name.as_str() {
            "--seed" => arguments.seed = value,
            "--steps" => arguments.steps = value,
            "--seeds" => arguments.seeds = Some(value),
            "--steps-per-seed" => arguments.steps_per_seed = value,
            _ => return Err(format!("{name}: unknown")),
        }
    }
    Ok(arguments)
}

fn number(name: &str, text: &str) -> Result<u64, String> {
    text.parse()
        .map_err(|_| format!("{name} = {text:?}: a number is allowed"))
}
