//! The things that the load generator does, each from its settings to an exit code.

pub mod canonical;
pub mod compare;
pub mod run;
pub mod search;
pub mod verify;

use std::path::Path;

use anyhow::{Context, Result};
use tackboard_report::checkout;

use crate::cli::fault::SettingFaults;
use crate::drive::broker::Broker;
use crate::drive::core::LoadCores;
use crate::drive::stage::Bench;
use crate::machine::host;
use crate::machine::interrupt::{EXIT_INTERRUPTED, Interrupt};
use crate::measure::process::memory_bytes_max;
use crate::report::json::{Part, object};
use crate::report::results::{RunResult, Setting, StageResult};
use crate::report::save;
use crate::report::screen::Screen;

/// What every command is given.
pub struct Session {
    /// Whether it is time to stop.
    pub interrupt: Interrupt,
    /// One JSON object on standard output and nothing else.
    pub json: bool,
}

/// How a command ended.
pub enum Ending {
    /// Everything held.
    Good,
    /// Something did not.
    Bad,
    /// The settings, or what they name, can't be used here.
    Unusable(String),
}

/// What stages run on, and where they are shown.
struct Rig<'a> {
    session: &'a Session,
    broker: Broker,
    cores: LoadCores,
    screen: Screen,
    setting: Setting,
}

/// What came of a run, once everything that it ran on has ended.
struct Closed {
    result: RunResult,
    /// The embedded broker, if there was one, wrote and synced everything before it ended.
    stopped_well: bool,
}

impl Session {
    /// Starts the load cores on these CPUs, or on all that may be used, and says what this is and what it runs on.
    fn open(&self, broker: Broker, cpus: Option<&[usize]>) -> Result<Rig<'_>> {
        let usable = tackboard_runtime::allowed_cpus();
        let cores = LoadCores::start(cpus.unwrap_or(&usable))
            .context("the load cores could not be started")?;
        let setting = Setting {
            host: host::Host::read(),
            broker: broker.description(),
            storage: broker.storage(),
            commit: checkout::root().and_then(|root| checkout::commit(&root)),
            started_at: jiff::Timestamp::now().to_string(),
        };
        let mut screen = Screen::new(self.json);
        screen.opening(&setting);
        Ok(Rig {
            session: self,
            broker,
            cores,
            screen,
            setting,
        })
    }
}

impl Rig<'_> {
    /// What a stage is run on.
    fn bench(&self) -> Bench<'_> {
        Bench {
            cores: &self.cores,
            broker: &self.broker,
            interrupt: &self.session.interrupt,
        }
    }

    /// Ends cores and broker, shows and saves what came of the stages; `next` is a hint to show last.
    fn close(
        mut self,
        stages: Vec<StageResult>,
        parts: &[Part],
        out: Option<&Path>,
        next: Option<&str>,
    ) -> Result<Closed> {
        self.cores.stop()?;
        let stopped_well = self.broker.stop();
        let result = RunResult {
            setting: self.setting,
            verdict: RunResult::verdict_of(&stages),
            stages,
            memory_bytes_max: memory_bytes_max(),
            interrupted: self.session.interrupt.raised(),
        };
        // An interrupted run is not worth keeping, and whoever stopped it wants nothing left behind.
        let saved = match save::folder(out).filter(|_| !result.interrupted) {
            Some(folder) => Some(save::save(&folder, &result, parts)?),
            None => None,
        };
        self.screen.closing(&result, saved.as_deref());
        if let Some(next) = next {
            self.screen.next(next);
        }
        if self.session.json {
            print_json(&result, parts);
        }
        if !stopped_well {
            eprintln!("error  the embedded broker did not end as it should");
        }
        Ok(Closed {
            result,
            stopped_well,
        })
    }
}

/// CPUs that do not exist here.
fn check_cpus(field: &str, cpus: Option<&[usize]>, faults: &mut SettingFaults) {
    let usable = tackboard_runtime::allowed_cpus();
    let unknown = cpus
        .unwrap_or_default()
        .iter()
        .filter(|cpu| !usable.contains(cpu))
        .collect::<Vec<_>>();
    if !unknown.is_empty() {
        faults.add(
            field,
            format!("{cpus:?}", cpus = cpus.unwrap_or_default()),
            format!("CPUs out of {usable:?}"),
        );
    }
}

fn print_json(result: &RunResult, parts: &[Part]) {
    use std::io::Write;
    // Somebody who closes the pipe early wants no more.
    let _ = writeln!(std::io::stdout(), "{}", object(result, parts));
}

/// The exit code of a command.
pub fn exit_code(session: &Session, ending: &Result<Ending>) -> i32 {
    match ending {
        _ if session.interrupt.raised() => EXIT_INTERRUPTED,
        Ok(Ending::Good) => 0,
        Ok(Ending::Bad) => 1,
        Ok(Ending::Unusable(why)) => {
            eprintln!("error  {why}");
            2
        }
        Err(error) => {
            eprintln!("error  {error:#}");
            1
        }
    }
}
