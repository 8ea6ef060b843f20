//! Without a command: three stages against a broker inside this process, each verified.

use std::sync::Arc;

use anyhow::Result;

use super::{Ending, Session};
use crate::cli::arguments::Canonical;
use crate::cli::plan::Plan;
use crate::drive::broker::Broker;
use crate::drive::spec::StageSpec;
use crate::report::json::Part;
use crate::report::progress::Progress;
use crate::workload::input::Input;
use crate::workload::schedule::Pace;

/// Runs the three stages.
pub fn run(canonical: &Canonical, session: &Session) -> Result<Ending> {
    let input = Arc::new(Input::sample()?);
    let broker = Broker::embed(canonical.protocol, canonical.data.as_deref(), None)?;
    let mut rig = session.open(broker, None)?;
    let (mut stages, mut parts) = (Vec::new(), Vec::new());
    let mut progress = Progress::new();
    let bytes_max = rig.broker.bytes_max();
    for (number, (spec, part)) in specs(canonical, input, bytes_max).into_iter().enumerate() {
        if session.interrupt.raised() {
            break;
        }
        let stage = rig.bench().run(&spec, &mut progress)?;
        rig.screen.stage(Some(number + 1), &stage);
        stages.push(stage);
        parts.push(part);
    }
    let next = "tackboard-loadgen run --help · point it at any broker with --broker";
    let closed = rig.close(stages, &parts, canonical.out.as_deref(), Some(next))?;
    let holds = closed
        .result
        .verdict
        .is_some_and(|verdict| verdict.holds() && verdict.acknowledged > 0);
    Ok(if holds && closed.stopped_well {
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
        protocol: canonical.protocol,
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
