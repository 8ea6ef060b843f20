//! `search`: one run after the other, each at a rate that the ones before suggest.

use std::io::Write;

use anyhow::{Result, bail};
use serde_json::Value;

use super::{Ending, Rig, Session, check_cpus};
use crate::cli::arguments::SearchPlan;
use crate::cli::fault::SettingFaults;
use crate::cli::plan::Plan;
use crate::drive::broker::Broker;
use crate::drive::spec::StageSpec;
use crate::report::json;
use crate::report::progress::Progress;
use crate::search::machine::{Bounds, RATE_MAX, RATE_MIN, Search};
use crate::search::probe::Probe;
use crate::search::table;
use crate::workload::schedule::Pace;

/// Searches.
pub fn run(asked: SearchPlan, session: &Session) -> Result<Ending> {
    let mut faults = SettingFaults::default();
    let plan = &asked.plan;
    check_cpus("--cores", plan.cores.as_deref(), &mut faults);
    check_cpus("--broker-cores", plan.broker_cores.as_deref(), &mut faults);
    if !faults.0.is_empty() {
        return Ok(Ending::Unusable(faults.to_string()));
    }
    let broker = match &plan.brokers[..] {
        [] => Broker::embed(
            plan.protocol,
            plan.data.as_deref(),
            plan.broker_cores.as_deref(),
        )?,
        addresses => Broker::Remote(addresses.to_vec()),
    };
    let mut rig = session.open(broker, plan.cores.as_deref())?;
    let Searched {
        search,
        probes,
        is_sound,
    } = probe_all(&asked, &rig)?;
    let found = table::found(&search, &probes, asked.question);
    if let Some(probe) = probes.last() {
        rig.screen.line("");
        let settings = probe.stage.settings.join(" · ");
        rig.screen.line(&format!("last probe  {settings}"));
    }
    rig.screen.line(&table::heading());
    for (at, probe) in probes.iter().enumerate() {
        rig.screen.line(&table::probe_line(at + 1, probe));
    }
    rig.screen.line("");
    rig.screen.line(&format!("found   {found}"));
    if session.json {
        let mut object = json::setting_fields(&rig.setting);
        object.insert(
            "search".into(),
            table::object(&search, &probes, asked.question),
        );
        // Somebody who closes the pipe early wants no more.
        let _ = writeln!(std::io::stdout(), "{}", Value::Object(object));
    }
    rig.cores.stop()?;
    let stopped_well = rig.broker.stop();
    if !stopped_well {
        eprintln!("error  the embedded broker did not end as it should");
    }
    Ok(if is_sound && stopped_well && search.passed().is_some() {
        Ending::Good
    } else {
        Ending::Bad
    })
}

/// What came of it.
struct Searched {
    search: Search,
    probes: Vec<Probe>,
    /// Every event of every probe came back as it was sent.
    is_sound: bool,
}

/// Runs one probe after the other until the search is over, it is interrupted, or one of them does not verify.
fn probe_all(asked: &SearchPlan, rig: &Rig<'_>) -> Result<Searched> {
    let (Pace::Constant(rate_first) | Pace::Poisson(rate_first)) = asked.plan.pace else {
        unreachable!("a search without a rate is refused with the command line")
    };
    let mut searched = Searched {
        search: Search::new(Bounds {
            rate_first,
            rate_min: RATE_MIN,
            rate_max: RATE_MAX,
            precision: asked.question.precision,
            probes_max: asked.probes_max,
        }),
        probes: Vec::new(),
        is_sound: true,
    };
    let mut progress = Progress::new();
    eprintln!("{}", table::heading());
    while let Some(rate) = searched.search.next() {
        let spec = StageSpec {
            title: format!("probe {}", searched.probes.len() + 1),
            plan: at_rate(&asked.plan, rate),
            input: None,
            bytes_max: rig.broker.bytes_max(),
        };
        let stage = rig.bench().run(&spec, &mut progress)?;
        if rig.session.interrupt.raised() {
            break;
        }
        if let Some(why) = stage
            .cut_short
            .as_ref()
            .filter(|_| stage.produced.is_none_or(|produced| produced.events == 0))
        {
            // Whoever takes nothing at one rate would let every probe run into its deadline.
            bail!("no event was acknowledged: {why}");
        }
        let verdict = stage.verdict.clone().filter(|verdict| !verdict.holds());
        let probe = Probe::of(rate, stage, asked.question.p99_max);
        searched.search.note(probe.has_passed());
        searched.probes.push(probe);
        let number = searched.probes.len();
        eprintln!(
            "{}",
            table::probe_line(number, &searched.probes[number - 1])
        );
        if let Some(verdict) = verdict {
            // A rate is worth nothing if what it brings is not what was sent.
            for fault in &verdict.faults.named {
                eprintln!("{fault}");
            }
            eprintln!("error  {verdict}");
            searched.is_sound = false;
            break;
        }
    }
    Ok(searched)
}

/// The same plan at another rate, spread over time in the same way.
fn at_rate(plan: &Plan, rate: f64) -> Plan {
    let pace = match plan.pace {
        Pace::Poisson(_) => Pace::Poisson(rate),
        _ => Pace::Constant(rate),
    };
    Plan {
        pace,
        ..plan.clone()
    }
}
