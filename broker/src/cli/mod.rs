//! The command line: arguments, what they print, how they end.
//!
//! Owns: every command but `serve`, which needs the cores (`crate::serve`).
//!
//! Conventions:
//! - data goes to stdout, progress and notes to stderr; progress only where stderr is a terminal;
//! - text for people, one JSON object (or one per line for records) under `--json`;
//! - exit code 0 done, 1 failed, 2 wrong usage or configuration (`failure`); `check` ends as the start would that it
//!   checks for;
//! - a reader that closes our stdout early has what it wanted: that is no error.

mod arguments;
mod check_command;
mod config_command;
mod consume;
mod consume_group;
mod event_line;
mod failure;
mod from_client;
mod group;
mod interrupt;
mod output;
mod produce;
mod topic;
mod unknown_topic;

use std::process::ExitCode;

use clap::Parser;
use clap::error::{ContextKind, ContextValue, ErrorKind};

pub use arguments::{Cli, Command, ServeArguments};
use failure::EXIT_USAGE;
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
        Err(mut error) => {
            without_misleading_tips(&mut error);
            // A closed pipe while help is printed is no error either.
            let _ = error.print();
            let helped = matches!(
                error.kind(),
                ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
            );
            Parsed::Exit(if helped {
                ExitCode::SUCCESS
            } else {
                ExitCode::from(EXIT_USAGE)
            })
        }
    }
}

/// An unknown flag is taken for a value by clap, which explains how to pass it as one. None of our values begin with a
/// dash.
fn without_misleading_tips(error: &mut clap::Error) {
    let Some(ContextValue::StyledStrs(tips)) = error.get(ContextKind::Suggested) else {
        return;
    };
    let (misleading, helpful): (Vec<_>, Vec<_>) = tips
        .iter()
        .cloned()
        .partition(|tip| tip.to_string().starts_with("to pass "));
    match (misleading.is_empty(), helpful.is_empty()) {
        (true, _) => {}
        (false, true) => {
            error.remove(ContextKind::Suggested);
        }
        (false, false) => {
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(helpful));
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
        Command::Group(arguments) => group::run(arguments),
        Command::Produce(arguments) => produce::run(&arguments),
        Command::Consume(arguments) => consume::run(&arguments),
    };
    outcome.map_err(|failure| match topic_use {
        Some(topic_use) => topic_use.explain(failure),
        None => failure,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_flag_is_not_offered_as_a_value() {
        let told = |line: &str| {
            let mut error = Cli::try_parse_from(line.split_whitespace()).expect_err(line);
            without_misleading_tips(&mut error);
            error.to_string()
        };
        let unknown = told("tackboard produce t --foo");
        assert!(
            unknown.contains("'--foo'") && !unknown.contains("tip:"),
            "{unknown}"
        );
        assert!(told("tackboard consume t --form 1").contains("'--from'"));
        assert!(told("tackboard --data x serve").contains("'serve --data'"));
    }
}
