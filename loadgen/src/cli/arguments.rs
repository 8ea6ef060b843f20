//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::styling::Styles;
use clap::{Arg, ArgAction, ArgMatches, Command};
use tackboard_client::Protocol;

use super::fault::SettingFaults;
use super::plan::{Mode, Plan};
use super::settings::Of;
use super::{quantity, scenario, settings};
use crate::compare::comparison::THRESHOLD_DEFAULT;
use crate::search::machine::RATE_MIN;
use crate::search::table::Question;
use crate::workload::schedule::Pace;

/// What was asked for.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// The three stages that need no settings.
    Canonical(Canonical),
    /// One run by a plan.
    Run(Box<Plan>),
    /// Numbered events against a broker that may come and go.
    Verify(Box<Plan>),
    /// The highest rate that keeps a p99.
    Search(Box<SearchPlan>),
    /// Two sets of results against each other.
    Compare(Sides),
}

/// What is looked for, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchPlan {
    /// A probe; its rate is the first that is tried.
    pub plan: Plan,
    /// What is looked for.
    pub question: Question,
    /// Most probes.
    pub probes_max: u32,
}

/// What is compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Sides {
    /// Files and folders of the side that the other is compared with.
    pub a: Vec<PathBuf>,
    /// Files and folders of the side that is judged.
    pub b: Vec<PathBuf>,
    /// The difference of two medians that counts, as a share.
    pub threshold: f64,
}

/// The few things that a run without arguments can be told.
#[derive(Clone, Debug, PartialEq)]
pub struct Canonical {
    /// Longest time of each stage.
    pub stage_duration: Duration,
    /// Folder that results are saved in; none: `perf/results` inside a checkout, else nowhere.
    pub out: Option<PathBuf>,
    /// Folder in which the temporary folder is made.
    pub data: Option<PathBuf>,
    /// Rate of the steady stage.
    pub steady_rate: f64,
    /// What the broker is spoken to in.
    pub protocol: Protocol,
}

/// A command line that was understood.
#[derive(Clone, Debug, PartialEq)]
pub struct Arguments {
    /// What to do.
    pub action: Action,
    /// One JSON object on standard output instead of text.
    pub json: bool,
}

/// Why a command line leads to nothing.
#[derive(Debug)]
pub enum Refusal {
    /// Help or version was asked for, or clap found a fault; it has its own text and exit code.
    Clap(clap::Error),
    /// Values that can't be used.
    Settings(SettingFaults),
}

/// Reads a command line.
pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Arguments, Refusal> {
    let matches = command()
        .try_get_matches_from(arguments)
        .map_err(Refusal::Clap)?;
    let mut faults = SettingFaults::default();
    let (action, json) = match matches.subcommand() {
        None => (
            Action::Canonical(canonical(&matches, &mut faults)),
            matches.get_flag("json"),
        ),
        Some(("run", matches)) => {
            let plan = plan(matches, Of::Run, Plan::default(), &mut faults);
            (Action::Run(Box::new(plan)), matches.get_flag("json"))
        }
        Some(("verify", matches)) => {
            let mut plan = plan(matches, Of::Verify, Plan::default(), &mut faults);
            if plan.brokers.is_empty() {
                plan.brokers = vec![verified_by_default(plan.protocol).into()];
            }
            if plan.duration.is_none() && plan.count.is_none() {
                plan.duration = Some(Duration::from_secs(60));
            }
            (Action::Verify(Box::new(plan)), matches.get_flag("json"))
        }
        Some(("search", matches)) => {
            let search = search(matches, &mut faults);
            (Action::Search(Box::new(search)), matches.get_flag("json"))
        }
        Some(("compare", matches)) => {
            let sides = sides(matches, &mut faults);
            (Action::Compare(sides), matches.get_flag("json"))
        }
        Some((other, _)) => unreachable!("clap knows no subcommand {other}"),
    };
    faults
        .or(Arguments { action, json })
        .map_err(Refusal::Settings)
}

fn command() -> Command {
    Command::new("tackboard-loadgen")
        .version(env!("CARGO_PKG_VERSION"))
        .styles(Styles::plain())
        .about("Load generator and verifier for the Tackboard broker")
        .long_about(
            "Load generator and verifier for the Tackboard broker.\n\n\
             Without a command: starts a broker inside this process on a free port, with its data in a temporary folder on a \
             real disk; sends 20,000 real flights, then small events as fast as it goes, then 100,000 a second, each for at \
             most 10 s or a quarter of the free space; reads everything back and checks it. Exits 0 only if nothing was lost, \
             duplicated, out of order or changed.",
        )
        .after_help(
            "Exit codes: 0 everything held; 1 something was lost, duplicated, out of order or changed, `run` could not keep its \
             schedule, or the broker failed; 2 usage; 130 interrupted.",
        )
        .arg(json_argument())
        .arg(out_argument())
        .arg(path_argument("data", "Folder in which the temporary folder is made"))
        .arg(protocol_argument())
        .arg(hidden("stage-duration", "TIME"))
        .arg(hidden("steady-rate", "RATE"))
        .subcommand(
            with_settings(Command::new("run"), Of::Run)
                .about("One run: produce, consume or both; closed loop or at a rate; synthetic events or real ones")
                .arg(scenario_argument())
                .arg(json_argument()),
        )
        .subcommand(
            with_settings(Command::new("verify"), Of::Verify)
                .about("Write numbered events while the broker may be killed, then read everything back and name every fault")
                .arg(json_argument()),
        )
        .subcommand(
            with_settings(Command::new("search"), Of::Search)
                .about("Find the highest rate that keeps its schedule and a p99: runs at one rate after the other")
                .after_help(
                    "The rate doubles until one fails and is then closed in on. A rate has failed when two probes of it did, one \
                     after the other: the schedule was not kept, or the produce p99 was above --p99.\n\n\
                     Exit codes: 0 a rate was found; 1 none, or something was lost, duplicated, out of order or changed; 2 usage; \
                     130 interrupted.",
                )
                .arg(
                    Arg::new("p99")
                        .long("p99")
                        .value_name("TIME")
                        .required(true)
                        .help("The p99 from due to acknowledged that may not be exceeded, e.g. 5ms"),
                )
                .arg(
                    Arg::new("precision")
                        .long("precision")
                        .value_name("PERCENT")
                        .help("How far above the rate that is found the next one that failed may lie [default: 5%]"),
                )
                .arg(
                    Arg::new("probes")
                        .long("probes")
                        .value_name("COUNT")
                        .help("Most probes [default: 40]"),
                )
                .arg(scenario_argument())
                .arg(json_argument()),
        )
        .subcommand(
            Command::new("compare")
                .about("Two sets of results: both sides' figures, their ratios, and whether B is worse than A")
                .long_about(
                    "Two sets of results: both sides' figures, their ratios, and whether B is worse than A.\n\n\
                     A side is one result or several: files that --json printed, `run.json` of a run that was saved, a folder \
                     of either, or any of these with commas between them. With five runs or more a side a difference can be told \
                     from noise; alternate the runs of the two sides.",
                )
                .after_help(
                    "Exit codes: 0 B is not worse; 1 B is worse than A beyond the threshold and what noise explains, or does not \
                     verify; 2 usage, or what can't be read as a result.",
                )
                .arg(side_argument("A", "The results to compare with"))
                .arg(side_argument("B", "The results that are judged"))
                .arg(
                    Arg::new("threshold")
                        .long("threshold")
                        .value_name("PERCENT")
                        .help("The difference of two medians that counts [default: 5%]"),
                )
                .arg(json_argument()),
        )
}

/// The broker that `verify` talks to unless one is named.
fn verified_by_default(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Native => "127.0.0.1:7400",
        Protocol::Kafka => "127.0.0.1:9092",
    }
}

fn side_argument(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name)
        .required(true)
        .value_delimiter(',')
        .help(help)
}

fn json_argument() -> Arg {
    Arg::new("json")
        .long("json")
        .action(ArgAction::SetTrue)
        .help("Print one JSON object and nothing else")
}

fn scenario_argument() -> Arg {
    path_argument("scenario", "File with settings (TOML); flags win over it").value_name("FILE")
}

fn out_argument() -> Arg {
    path_argument(
        "out",
        "Folder that results are saved in [default: perf/results inside a checkout]; none: nothing is saved",
    )
}

fn path_argument(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name("DIR").help(help)
}

/// The setting of this name, for the run without settings.
fn protocol_argument() -> Arg {
    let setting = settings::find("protocol").expect("it is in the table");
    Arg::new(setting.name)
        .long(setting.name)
        .value_name(setting.value_name)
        .help(format!("{} [default: {}]", setting.help, setting.default))
}

fn hidden(name: &'static str, value_name: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(value_name).hide(true)
}

/// Adds a flag for every setting of the table that this command has.
fn with_settings(mut command: Command, of: Of) -> Command {
    for group in settings::GROUPS {
        for setting in group.settings.iter().filter(|setting| setting.is_of(of)) {
            let default = match (of, setting.name) {
                (Of::Verify, "broker") => "127.0.0.1:7400, with kafka 127.0.0.1:9092",
                (Of::Verify, "duration") => "60s",
                (Of::Search, "rate") => "10k; the first that is tried",
                (Of::Search, "duration") => "5s",
                (Of::Search, "warmup") => "1s",
                _ => setting.default,
            };
            let help = match default {
                "" | "false" => setting.help.to_owned(),
                default => format!("{} [default: {default}]", setting.help),
            };
            let argument = Arg::new(setting.name)
                .long(setting.name)
                .help(help)
                .help_heading(group.heading);
            command = command.arg(if setting.value_name.is_empty() {
                argument.action(ArgAction::SetTrue)
            } else {
                argument
                    .value_name(setting.value_name)
                    .allow_hyphen_values(true)
            });
        }
    }
    command
}

/// The command's defaults, then the scenario file, then the flags.
fn plan(matches: &ArgMatches, of: Of, mut plan: Plan, faults: &mut SettingFaults) -> Plan {
    if of != Of::Verify
        && let Some(path) = matches.get_one::<String>("scenario")
    {
        scenario::load(path.as_ref(), &mut plan, faults);
    }
    for setting in settings::all().filter(|setting| setting.is_of(of)) {
        let value = if setting.value_name.is_empty() {
            matches.get_flag(setting.name).then(|| "true".to_owned())
        } else {
            matches.get_one::<String>(setting.name).cloned()
        };
        if let Some(value) = value
            && (setting.apply)(&mut plan, &value).is_none()
        {
            faults.add(format!("--{}", setting.name), value, setting.allowed);
        }
    }
    // Contradictions are worth telling only between values that are good by themselves.
    if faults.0.is_empty() {
        plan.check(faults);
        for fault in &mut faults.0 {
            fault.field.insert_str(0, "--");
        }
    }
    plan
}

fn search(matches: &ArgMatches, faults: &mut SettingFaults) -> SearchPlan {
    let base = Plan {
        pace: Pace::Constant(10_000.0),
        duration: Some(Duration::from_secs(5)),
        warmup: Duration::from_secs(1),
        ..Plan::default()
    };
    let plan = plan(matches, Of::Search, base, faults);
    // A scenario file may say what no flag can here.
    for (field, is_given, allowed) in [
        (
            "--rate",
            !matches!(plan.pace, Pace::Constant(rate) | Pace::Poisson(rate) if rate >= RATE_MIN),
            "a rate to begin with, 100 or more",
        ),
        ("--mode", plan.mode == Mode::Consume, "both or produce"),
        (
            "--scenario",
            plan.count.is_some() || plan.input.is_some(),
            "neither count nor input: time bounds a probe",
        ),
    ] {
        if is_given {
            faults.add(field, "given", allowed);
        }
    }
    let mut search = SearchPlan {
        plan,
        question: Question {
            p99_max: Duration::from_millis(5),
            precision: 0.05,
        },
        probes_max: 40,
    };
    let text = |name: &str| matches.get_one::<String>(name);
    if let Some(text) = text("p99") {
        match quantity::duration(text).filter(|d| (1e-5..=60.0).contains(&d.as_secs_f64())) {
            Some(p99_max) => search.question.p99_max = p99_max,
            None => faults.add(
                "--p99",
                text,
                "a time from 10 us to 60 s with its unit, e.g. 5ms",
            ),
        }
    }
    if let Some(text) = text("precision") {
        match quantity::percent(text).filter(|share| (0.01..=1.0).contains(share)) {
            Some(precision) => search.question.precision = precision,
            None => faults.add("--precision", text, "a share from 1% to 100%"),
        }
    }
    if let Some(text) = text("probes") {
        match quantity::count(text).filter(|count| (1..=1000).contains(count)) {
            Some(probes) => search.probes_max = probes as u32,
            None => faults.add("--probes", text, "a whole number from 1 to 1,000"),
        }
    }
    search
}

fn sides(matches: &ArgMatches, faults: &mut SettingFaults) -> Sides {
    let side = |name: &str| {
        let paths = matches.get_many::<String>(name).unwrap_or_default();
        paths.map(PathBuf::from).collect()
    };
    let mut threshold = THRESHOLD_DEFAULT;
    if let Some(text) = matches.get_one::<String>("threshold") {
        match quantity::percent(text).filter(|share| (0.0..=10.0).contains(share)) {
            Some(share) => threshold = share,
            None => faults.add(
                "--threshold",
                text,
                "a share in percent up to 1000%, e.g. 5%",
            ),
        }
    }
    Sides {
        a: side("A"),
        b: side("B"),
        threshold,
    }
}

fn canonical(matches: &ArgMatches, faults: &mut SettingFaults) -> Canonical {
    let mut canonical = Canonical {
        stage_duration: super::plan::DURATION_DEFAULT,
        out: matches.get_one::<String>("out").map(PathBuf::from),
        data: matches.get_one::<String>("data").map(PathBuf::from),
        steady_rate: 100_000.0,
        protocol: Protocol::Native,
    };
    if let Some(text) = matches.get_one::<String>("protocol") {
        let (setting, mut plan) = (settings::find("protocol"), Plan::default());
        match setting.map(|setting| ((setting.apply)(&mut plan, text), setting.allowed)) {
            Some((None, allowed)) => faults.add("--protocol", text, allowed),
            _ => canonical.protocol = plan.protocol,
        }
    }
    if let Some(text) = matches.get_one::<String>("stage-duration") {
        match quantity::duration(text).filter(|d| (0.1..=600.0).contains(&d.as_secs_f64())) {
            Some(duration) => canonical.stage_duration = duration,
            None => faults.add(
                "--stage-duration",
                text,
                "a time from 100 ms to 10 min with its unit",
            ),
        }
    }
    if let Some(text) = matches.get_one::<String>("steady-rate") {
        match quantity::number(text).filter(|rate| (1.0..=1e8).contains(rate)) {
            Some(rate) => canonical.steady_rate = rate,
            None => faults.add("--steady-rate", text, "events a second, from 1"),
        }
    }
    canonical
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Arguments, Refusal> {
        parse(
            std::iter::once("tackboard-loadgen")
                .chain(line.split_whitespace())
                .map(OsString::from),
        )
    }

    fn faults(line: &str) -> String {
        match read(line) {
            Err(Refusal::Settings(faults)) => faults.to_string(),
            other => panic!("{line}: {other:?}"),
        }
    }

    fn run(line: &str) -> Plan {
        match read(line).unwrap().action {
            Action::Run(plan) | Action::Verify(plan) => *plan,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_command_line_is_consistent() {
        command().debug_assert();
        for setting in settings::all() {
            assert!(
                !setting.help.ends_with('.') && !setting.allowed.is_empty(),
                "{}",
                setting.name
            );
        }
    }

    #[test]
    fn defaults_shown_are_the_defaults() {
        let mut shown = Plan::default();
        for setting in settings::all() {
            let is_value = !setting.default.is_empty() && !setting.default.contains(' ')
                || setting.name == "batch-size";
            if is_value {
                assert!(
                    (setting.apply)(&mut shown, setting.default).is_some(),
                    "{}",
                    setting.name
                );
            }
        }
        assert_eq!(shown, Plan::default());
    }

    #[test]
    fn no_arguments_mean_the_three_stages() {
        let arguments = read("--json").unwrap();
        assert!(arguments.json);
        assert!(
            matches!(arguments.action, Action::Canonical(c) if c.stage_duration.as_secs() == 10)
        );
    }

    #[test]
    fn flags_reach_the_plan() {
        let plan = run(
            "run --rate 100k --arrival poisson --event-size 100..200 --acks 1 --broker localhost:7400",
        );
        assert_eq!(plan.pace, Pace::Poisson(100_000.0));
        assert_eq!(plan.brokers, ["localhost:7400"]);
        let plan = run("verify --duration 5min");
        assert_eq!(
            (plan.duration, plan.brokers),
            (
                Some(Duration::from_secs(300)),
                vec!["127.0.0.1:7400".into()]
            )
        );
    }

    #[test]
    fn every_fault_is_reported_at_once() {
        let text = faults("run --rate fast --partitions 0 --acks most");
        assert!(text.starts_with("3 settings are not usable"), "{text}");
        for expected in [
            "--rate = \"fast\"",
            "events a second",
            "--partitions = \"0\"",
            "--acks = \"most\"",
        ] {
            assert!(text.contains(expected), "{text}");
        }
    }

    #[test]
    fn contradictions_name_both_sides() {
        for (line, expected) in [
            ("run --key-field tailnum", "expected an --input"),
            ("run --speed-up 100", "expected an --input"),
            ("run --input x --speed-up 100", "--timestamp-field"),
            ("run --input x --keys uniform:5", "--key-field"),
            ("run --mode consume", "--topic"),
            ("run --acks 0", "nothing can be verified"),
            ("run --broker a:1 --data /x", "embedded"),
            ("run --topic a/b", "--topic = \"a/b\""),
            ("run --arrival poisson", "--rate"),
        ] {
            let text = faults(line);
            assert!(text.contains(expected), "{line}: {text}");
        }
    }

    #[test]
    fn a_search_begins_with_a_rate_and_is_bounded() {
        let Action::Search(search) = read("search --p99 5ms").unwrap().action else {
            panic!("no search")
        };
        assert_eq!(search.question.p99_max, Duration::from_millis(5));
        assert_eq!(
            (search.plan.pace, search.plan.send_time(), search.probes_max),
            (Pace::Constant(10_000.0), Some(Duration::from_secs(5)), 40)
        );
        let Action::Search(search) =
            read("search --p99 2ms --rate 1k --arrival poisson --precision 2% --probes 9")
                .unwrap()
                .action
        else {
            panic!("no search")
        };
        assert_eq!(search.plan.pace, Pace::Poisson(1000.0));
        assert_eq!((search.question.precision, search.probes_max), (0.02, 9));
        for (line, expected) in [
            ("search --p99 5", "--p99 = \"5\""),
            ("search --p99 5ms --rate max", "a rate to begin with"),
            ("search --p99 5ms --rate 99", "a rate to begin with"),
            (
                "search --p99 5ms --mode consume --topic x --broker a:1",
                "both or produce",
            ),
            ("search --p99 5ms --precision 0.1%", "--precision"),
            ("search --p99 5ms --probes 0", "--probes"),
        ] {
            let text = faults(line);
            assert!(text.contains(expected), "{line}: {text}");
        }
        for line in [
            "search",
            "search --p99 5ms --count 5",
            "search --p99 5ms --input x",
        ] {
            assert!(matches!(read(line), Err(Refusal::Clap(_))), "{line}");
        }
    }

    #[test]
    fn sides_are_lists_and_the_threshold_has_its_unit() {
        let Action::Compare(sides) = read("compare a1,a2 b --threshold 2.5%").unwrap().action
        else {
            panic!("no comparison")
        };
        assert_eq!(
            (sides.a.len(), sides.b.len(), sides.threshold),
            (2, 1, 0.025)
        );
        assert!(faults("compare a b --threshold 5").contains("--threshold = \"5\""));
        assert!(matches!(read("compare a"), Err(Refusal::Clap(error)) if error.exit_code() == 2));
    }

    #[test]
    fn unknown_flags_are_refused_by_clap() {
        assert!(
            matches!(read("run --rats 5"), Err(Refusal::Clap(error)) if error.exit_code() == 2)
        );
        assert!(matches!(read("--help"), Err(Refusal::Clap(error)) if error.exit_code() == 0));
    }
}
