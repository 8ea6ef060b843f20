//! Without a command: three stages against a broker inside this process, each verified.

use std::sync::Arc;

use anyhow::Result;

use super::{Ending, Session, finish, load_cores, setting};
use crate::cli::arguments::Canonical;
use crate::cli::plan::Plan;
use crate::drive::broker::Broker;
use crate::drive::spec::StageSpec;
use crate::drive::stage::Bench;
use crate::report::json::Part;
use crate::report::progress::Progress;
use crate::report::screen::Screen;
use crate::workload::input::Input;
use crate::workload::schedule::Pace;

/// Runs the three stages.
pub fn run(canonical: &Canonical, session: &Session) -> Result<Ending> {
    let input = Arc::new(Input::sample()?);
    let broker = Broker::embed(canonical.data.as_deref(), None)?;
    let cores = load_cores(None)?;
    let mut screen = Screen::new(session.json);
    let setting = setting(&broker);
    screen.opening(&setting);

    let bench = Bench {
        cores: &cores,
        broker: &broker,
        interrupt: &session.interrupt,
    };
    let (mut stages, mut parts) = (Vec::new(), Vec::new());
    let mut progress = Progress::new();
    for (number, (spec, part)) in specs(canonical, input, broker.bytes_max())
        .into_iter()
        .enumerate()
    {
        if session.interrupt.raised() {
            break;
        }
        let stage = bench.run(&spec, &mut progress)?;
        screen.stage(Some(number + 1), &stage);
        stages.push(stage);
        parts.push(part);
    }
    cores.stop()?;
    let stopped_well = broker.stop();
    let result = finish(
        session,
        &mut screen,
        (setting, stages),
        &parts,
        canonical.out.as_deref(),
    )?;
    screen.next("tackboard-loadgen run --help · point it at any broker with --broker");
    if !stopped_well {
        eprintln!("error  the embedded broker did not end as it should");
    }
    let holds = result
        .verdict
        .as_ref()
        .is_some_and(|verdict| verdict.holds() && verdict.acknowledged > 0);
    Ok(if holds && stopped_well {
        Ending::Good
    } else {
        Ending::Bad
    })
}

fn specs(
    canonical: &Canonical,
    input: Arc<Input>,
    bytes_max: Option<u64>,
) -> Vec<(StageSpec, Part)> {
    let plan = Plan {
        duration: Some(canonical.stage_duration),
        ..Plan::default()
    };
    let real = Plan {
        key_field: Some("tailnum".into()),
        ..plan.clone()
    };
    // One client of each kind carries the rate, and disturbs the broker on the same CPUs least.
    let steady = Plan {
        pace: Pace::Constant(canonical.steady_rate),
        producers: Some(1),
        consumers: Some(1),
        ..plan.clone()
    };
    let stage = |title: &str, plan, input| StageSpec {
        title: title.into(),
        plan,
        input,
        bytes_max,
    };
    vec![
        (stage("real events", real, Some(input)), Part::Real),
        (stage("as fast as it goes", plan, None), Part::Main),
        (stage("steady", steady, None), Part::Steady),
    ]
}
