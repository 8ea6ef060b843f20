//! The command line: arguments, what they print, how they end.
//!
//! Owns: every command but `serve`, which needs the cores (`crate::serve`).
//!
//! Conventions:
//! - data goes to stdout, progress and notes to stderr; progress only where stderr is a terminal;
//! - text for people, one JSON object (or one per line for records) under `--json`;
//! - exit code 0 done, 1 failed, 2 wrong usage or configuration;
//! - a reader that closes our stdout early has what it wanted: that is no error.

mod arguments;
mod check_command;
mod config_command;
mod consume;
mod event_line;
mod failure;
mod interrupt;
mod output;
mod produce;
mod topic;
mod unknown_topic;

use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;

pub use arguments::{Cli, Command, ServeArguments};
pub use failure::Failure;

/// What the arguments ask for.
pub enum Parsed {
    /// A command.
    Run(Cli),
    /// Help, version or a wrong usage was printed: end with this code.
    Exit(ExitCode),
}

/// Reads the process's arguments.
pub fn parse() -> Parsed {
    match Cli::try_parse() {
        Ok(cli) => Parsed::Run(cli),
        Err(error) => {
            // A closed pipe while help is printed is no error either.
            let _ = error.print();
            let helped = matches!(
                error.kind(),
                ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
            );
            Parsed::Exit(if helped {
                ExitCode::SUCCESS
            } else {
                ExitCode::from(2)
            })
        }
    }
}

/// Runs a command other than `serve`.
///
/// # Errors
/// What went wrong, for [`Failure::report`].
pub fn run(command: Command) -> Result<(), Failure> {
    let topic_use = unknown_topic::Use::of(&command);
    let outcome = match command {
        Command::Serve(_) => unreachable!("serve is run by the binary itself"),
        Command::Check(arguments) => check_command::run(&arguments),
        Command::Config(arguments) => config_command::run(&arguments),
        Command::Topic(arguments) => topic::run(arguments),
        Command::Produce(arguments) => produce::run(&arguments),
        Command::Consume(arguments) => consume::run(&arguments),
    };
    outcome.map_err(|failure| match topic_use {
        Some(topic_use) => topic_use.explain(failure),
        None => failure,
    })
}
