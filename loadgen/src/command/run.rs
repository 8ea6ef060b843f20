//! `run`: one stage by a plan.

use std::sync::Arc;

use anyhow::{Result, bail};

use super::{Ending, Session, check_cpus};
use crate::cli::fault::SettingFaults;
use crate::cli::plan::Plan;
use crate::drive::broker::Broker;
use crate::drive::spec::StageSpec;
use crate::report::json::Part;
use crate::report::progress::Progress;
use crate::workload::input::{Fields, Input};
use crate::workload::schedule::Pace;

/// Runs one stage.
pub fn run(plan: Plan, session: &Session) -> Result<Ending> {
    let mut faults = SettingFaults::default();
    check_cpus("--cores", plan.cores.as_deref(), &mut faults);
    check_cpus("--broker-cores", plan.broker_cores.as_deref(), &mut faults);
    if !faults.0.is_empty() {
        return Ok(Ending::Unusable(faults.to_string()));
    }
    let input = match read_input(&plan) {
        Ok(input) => input,
        // A file that can't be used is a setting that can't be used.
        Err(error) => return Ok(Ending::Unusable(format!("{error:#}"))),
    };
    let broker = match &plan.brokers[..] {
        [] => Broker::embed(
            plan.protocol,
            plan.data.as_deref(),
            plan.broker_cores.as_deref(),
        )?,
        addresses => Broker::Remote(addresses.to_vec()),
    };
    let mut rig = session.open(broker, plan.cores.as_deref())?;
    let out = plan.out.clone();
    let title = if input.is_some() {
        "replay"
    } else if plan.pace.is_open_loop() {
        "open loop"
    } else {
        "as fast as it goes"
    };
    let spec = StageSpec {
        title: title.into(),
        plan,
        input,
        bytes_max: rig.broker.bytes_max(),
    };
    let stage = rig.bench().run(&spec, &mut Progress::new())?;
    rig.screen.stage(None, &stage);
    let gave_up = stage
        .cut_short
        .clone()
        .filter(|_| stage.produced.is_some_and(|produced| produced.events == 0));
    let closed = rig.close(vec![stage], &[Part::Main], out.as_deref(), None)?;
    if let Some(why) = gave_up {
        bail!("no event was acknowledged: {why}");
    }
    let is_void = closed.result.is_void();
    let holds = closed.result.verdict.is_none_or(|verdict| verdict.holds());
    Ok(if holds && closed.stopped_well && !is_void {
        Ending::Good
    } else {
        Ending::Bad
    })
}

fn read_input(plan: &Plan) -> Result<Option<Arc<Input>>> {
    let Some(path) = &plan.input else {
        return Ok(None);
    };
    let fields = Fields {
        key: plan.key_field.clone(),
        timestamp: plan.timestamp_field.clone(),
    };
    let input = Input::open(path, &fields)?;
    if let Some(field) = &fields.key
        && input.keys().is_empty()
    {
        eprintln!(
            "note  no event has a value in the field {field:?} (--key-field): none has a key"
        );
    }
    if matches!(plan.pace, Pace::Timestamps(_))
        && let Some(line) = input.first_step_back()
    {
        eprintln!(
            "note  event {} is older than the one before it; such events are sent at once",
            line + 1
        );
    }
    Ok(Some(Arc::new(input)))
}
