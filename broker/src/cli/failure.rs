//! How a command fails: its text and its exit code.

use std::fmt;
use std::io;
use std::process::ExitCode;

use serde_json::json;

use tackboard_client::ErrorCode;

use crate::config::Faults;

/// It was tried, and failed or was refused.
pub(super) const EXIT_FAILED: u8 = 1;
/// The usage or the configuration is wrong, or the machine can't run the broker as it is configured: nothing was started.
pub(super) const EXIT_USAGE: u8 = 2;

/// Why a command ended early.
#[derive(Debug)]
pub enum Failure {
    /// It was tried and did not work.
    Failed(String),
    /// A broker or the client refused.
    Client(Box<tackboard_client::Error>),
    /// What a broker would refuse or did refuse, in words for the command line.
    Refused {
        /// What happened, and what to do about it in the lines below.
        text: String,
        /// The protocol's code for it.
        code: ErrorCode,
    },
    /// The arguments or the configuration are wrong, or the machine is wrong for it.
    Usage(String),
    /// Everything was said already; only the exit code is left.
    Reported(u8),
    /// Whoever read our output has closed it: not an error.
    OutputClosed,
}

impl Failure {
    /// A text that says what happened and what to do next.
    pub fn failed(text: impl Into<String>) -> Self {
        Self::Failed(text.into())
    }

    /// What a broker would refuse, told before it is asked, or told with what only the command line knows.
    pub(super) fn refused(code: ErrorCode, text: impl Into<String>) -> Self {
        Self::Refused {
            text: text.into(),
            code,
        }
    }

    /// Prints what happened to stderr and returns the exit code.
    pub fn report(&self, as_json: bool) -> ExitCode {
        let code = self.code();
        if !matches!(self, Failure::OutputClosed | Failure::Reported(_)) {
            let text = if as_json {
                self.json()
            } else {
                text_block(&self.to_string())
            };
            eprintln!("{text}");
        }
        ExitCode::from(code)
    }

    fn code(&self) -> u8 {
        match self {
            Failure::Failed(_) | Failure::Client(_) | Failure::Refused { .. } => EXIT_FAILED,
            Failure::Usage(_) => EXIT_USAGE,
            Failure::Reported(code) => *code,
            Failure::OutputClosed => 0,
        }
    }

    fn json(&self) -> String {
        let error_code = match self {
            Failure::Client(error) => error.code().map(|code| code.name()),
            Failure::Refused { code, .. } => Some(code.name()),
            _ => None,
        };
        json!({ "error": { "message": self.to_string(), "code": error_code } }).to_string()
    }
}

/// `error  ` before the first line, the others aligned with it.
fn text_block(text: &str) -> String {
    let mut lines = text.lines();
    let mut out = format!("error  {}", lines.next().unwrap_or(""));
    for line in lines {
        out.push_str("\n       ");
        out.push_str(line);
    }
    out
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Failed(text) | Failure::Usage(text) | Failure::Refused { text, .. } => {
                out.write_str(text)
            }
            Failure::Client(error) => {
                // What to do next stands behind a semicolon; on a terminal it gets a line of its own.
                let text = error.to_string();
                out.write_str(&text.replacen("; ", "\n", 1))
            }
            Failure::Reported(_) | Failure::OutputClosed => Ok(()),
        }
    }
}

impl From<tackboard_client::Error> for Failure {
    fn from(error: tackboard_client::Error) -> Self {
        Self::Client(Box::new(error))
    }
}

impl From<Faults> for Failure {
    fn from(faults: Faults) -> Self {
        Self::Usage(faults.to_string())
    }
}

/// Only for writing to stdout.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::OutputClosed;
        }
        Self::Failed(format!("cannot write to standard output: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_pipe_is_success_and_a_full_disk_is_not() {
        let closed = Failure::from(io::Error::from(io::ErrorKind::BrokenPipe));
        assert_eq!(closed.code(), 0);
        let full = Failure::from(io::Error::from(io::ErrorKind::StorageFull));
        assert_eq!(full.code(), 1);
    }

    #[test]
    fn what_to_do_stands_under_what_happened() {
        assert_eq!(text_block("this\nthat"), "error  this\n       that");
    }
}
