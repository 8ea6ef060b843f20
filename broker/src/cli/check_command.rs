//! `tackboard check`.

use serde_json::json;

use crate::check::{self, Finding, Level};
use crate::config;

use super::arguments::CheckArguments;
use super::failure::{EXIT_FAILED, EXIT_USAGE, Failure};
use super::from_client;
use super::output::{print, print_json};

pub(super) fn run(arguments: &CheckArguments) -> Result<(), Failure> {
    let findings = match &arguments.from_client {
        Some(address) => from_client::run(address),
        None => check::run(&config::load(&arguments.serve.sources())?),
    };
    let level = check::worst(&findings);
    if arguments.json {
        print_json(&json!({ "ok": level < Level::Fault, "findings": findings }))?;
    } else {
        print(&format!(
            "{}{}\n",
            check::render(&findings),
            match arguments.from_client {
                Some(_) => reach(&findings),
                None => verdict(&findings),
            }
        ))?;
    }
    match (level, &arguments.from_client) {
        (Level::Ok | Level::Warn, _) => Ok(()),
        (Level::Fault, Some(_)) => Err(Failure::Reported(EXIT_FAILED)),
        // As `serve` would end.
        (Level::Fault, None) => Err(Failure::Reported(EXIT_USAGE)),
    }
}

fn reach(findings: &[Finding]) -> String {
    let faults = findings
        .iter()
        .filter(|finding| finding.level == Level::Fault);
    match faults.count() {
        0 => "clients on this machine reach the broker".to_owned(),
        faults => {
            format!("clients on this machine do not reach the broker as it is: {faults} to mend")
        }
    }
}

fn verdict(findings: &[Finding]) -> String {
    let count = |level| {
        findings
            .iter()
            .filter(|finding| finding.level == level)
            .count()
    };
    let (faults, warnings) = (count(Level::Fault), count(Level::Warn));
    match (faults, warnings) {
        (0, 0) => "this machine can run the broker".to_owned(),
        (0, _) => format!("this machine can run the broker, with {warnings} to improve"),
        _ => format!("this machine cannot run the broker yet: {faults} to mend"),
    }
}
