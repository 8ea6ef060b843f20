//! What this machine can do, and how much of it Tackboard uses: `limits` measures the raw limits, `run` sets the broker
//! beside reference servers and other brokers under one workload, round by round.
//!
//! Owns: the servers that are compared ([`subject`]), how they are driven ([`drive`]), what a machine gives without any
//! of them ([`limits`]), members of groups ([`groups`]), medians and spread ([`figure`]), where figures come from ([`origin`]), what was to be reached and whether it was ([`rows`], [`table`]).
//!
//! Not here: verification and the workloads of users, which are the load generator's. What is compared here is driven by
//! requests that are encoded once, so that the driver costs next to nothing beside what it measures.
//!
//! Start reading at [`drive`].

mod data_folder;
mod drive;
mod figure;
mod groups;
mod limits;
mod machine;
mod origin;
mod results;
mod rows;
mod run;
mod subject;
mod table;
mod tune;
mod workload;

use clap::{Parser, Subcommand};

/// Measures this machine's limits, and Tackboard against them and against other brokers.
#[derive(Parser)]
#[command(name = "tackboard-perf", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

/// What is to be done cannot be: wrong arguments, as distinct from what went wrong while it was done.
#[derive(Debug)]
struct Usage(String);

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// The exit code for it, as clap's.
const USAGE: u8 = 2;

#[derive(Subcommand)]
enum Command {
    /// Measures what the disk, the network and the CPUs give, with the runtime that the broker runs on.
    Limits(limits::LimitsArguments),
    /// Runs the same workloads against several servers in turn, and prints ratios with their spread.
    Run(run::RunArguments),
    /// Shows what the host could do for a broker, and does it only when asked.
    Tune(tune::TuneArguments),
    /// Writes the table of a folder of results anew: what was to be reached, and what was.
    Table(table::TableArguments),
    /// Measures how long consumer groups take to find themselves. Used by `perf/cases`.
    #[command(hide = true)]
    Groups(groups::GroupsArguments),
    /// Tells the machine and the commit that figures come from, as JSON. Used by `perf/cases`.
    #[command(hide = true)]
    Origin(origin::OriginArguments),
    /// Serves as a reference: reads frames, does the least that is asked, answers. Used by `run`.
    #[command(hide = true)]
    Reference(subject::reference::ReferenceArguments),
}

fn main() -> std::process::ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Limits(arguments) => limits::run(&arguments),
        Command::Run(arguments) => run::run(&arguments),
        Command::Tune(arguments) => tune::run(&arguments),
        Command::Table(arguments) => table::run(&arguments),
        Command::Groups(arguments) => groups::run(&arguments),
        Command::Origin(arguments) => origin::run(&arguments),
        Command::Reference(arguments) => subject::reference::serve(&arguments),
    };
    match outcome {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            match error.is::<Usage>() {
                true => std::process::ExitCode::from(USAGE),
                false => std::process::ExitCode::FAILURE,
            }
        }
    }
}
