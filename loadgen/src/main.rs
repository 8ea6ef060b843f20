//! The load generator: drives a broker, measures it, and checks every event that comes back.
//!
//! Start reading at [`cli`] (arguments to a plan) and [`command`] (what is done), then [`workload`] (what is sent),
//! [`drive`] (who sends and reads it), [`verdict`] (what must come back), [`measure`] and [`report`] (what is shown), [`compare`] (what two
//! sets of results say) and [`search`] (which rate is tried next).

mod cli;
mod command;
mod compare;
mod drive;
mod machine;
mod measure;
mod report;
mod search;
mod verdict;
mod workload;

use cli::arguments::{Action, Refusal};
use command::Session;
use machine::interrupt::Interrupt;

fn main() {
    tackboard_runtime::die_of_any_panic();
    tackboard_runtime::keep_freed_memory();
    std::process::exit(run());
}

fn run() -> i32 {
    let arguments = match cli::arguments::parse(std::env::args_os()) {
        Ok(arguments) => arguments,
        Err(Refusal::Clap(error)) => {
            let _ = error.print();
            return error.exit_code();
        }
        Err(Refusal::Settings(faults)) => {
            eprintln!("error  {faults}");
            return 2;
        }
    };
    let interrupt = match Interrupt::install() {
        Ok(interrupt) => interrupt,
        Err(error) => {
            eprintln!("error  signals can't be waited for: {error}");
            return 1;
        }
    };
    let session = Session {
        interrupt,
        json: arguments.json,
    };
    let ending = match arguments.action {
        Action::Canonical(canonical) => command::canonical::run(&canonical, &session),
        Action::Run(plan) => command::run::run(*plan, &session),
        Action::Verify(plan) => command::verify::run(*plan, &session),
        Action::Search(search) => command::search::run(*search, &session),
        Action::Compare(sides) => command::compare::run(&sides, &session),
    };
    command::exit_code(&session, &ending)
}
