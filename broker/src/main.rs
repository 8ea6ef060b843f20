//! The binary `tackboard`: arguments in, exit code out.

use std::process::ExitCode;

use tackboard_broker::cli::{self, Cli, Command, Failure, Parsed, ServeArguments};
use tackboard_broker::serve;
use tackboard_broker::signals::Signals;

fn main() -> ExitCode {
    match cli::parse() {
        Parsed::Exit(code) => code,
        Parsed::Run(Cli {
            command: Command::Serve(arguments),
        }) => run_broker(&arguments),
        Parsed::Run(Cli { command }) => {
            let json = command.json();
            match cli::run(command) {
                Ok(()) => ExitCode::SUCCESS,
                Err(failure) => failure.report(json),
            }
        }
    }
}

fn run_broker(arguments: &ServeArguments) -> ExitCode {
    tackboard_runtime::die_of_any_panic();
    tackboard_runtime::keep_freed_memory();
    // No thread exists yet: parsing arguments starts none.
    let served = Signals::block()
        .map_err(|error| Failure::failed(format!("signals cannot be blocked: {error}")))
        .and_then(|signals| serve::run(arguments, signals));
    served.unwrap_or_else(|failure| failure.report(false))
}
