//! `verify`: numbered events against a broker that may be killed and started again meanwhile, then everything read again
//! from the beginning.
//!
//! Consumers read along while events are sent, so that two readings can be compared: what was served once must still be
//! there. The verdict is about the second reading.

use std::sync::Arc;

use anyhow::{Context, Result};

use super::{Ending, Session, check_cpus};
use crate::cli::fault::SettingFaults;
use crate::cli::plan::Plan;
use crate::drive::broker::Broker;
use crate::drive::order::{StageControl, StageOrder};
use crate::drive::outcome::ConsumerOutcome;
use crate::drive::spec::StageSpec;
use crate::drive::stage::{Bench, StageRun, verdict};
use crate::report::json::Part;
use crate::report::progress::Progress;
use crate::report::results::{Flow, StageResult};
use crate::verdict::judge::Verdict;

/// Runs a verification.
pub fn run(plan: Plan, session: &Session) -> Result<Ending> {
    let mut faults = SettingFaults::default();
    check_cpus("--cores", plan.cores.as_deref(), &mut faults);
    if !faults.0.is_empty() {
        return Ok(Ending::Unusable(faults.to_string()));
    }
    let broker = Broker::Remote(plan.brokers.clone());
    let mut rig = session.open(broker, plan.cores.as_deref())?;
    let mut stage = write_and_read_twice(&plan, &rig.bench())?;
    if stage.reconnects == 0 {
        stage.notes.push("no connection was lost".into());
    }
    rig.screen.stage(None, &stage);
    let closed = rig.close(vec![stage], &[Part::Main], plan.out.as_deref(), None)?;
    let verdict = closed.result.verdict.unwrap_or_default();
    if verdict.acknowledged == 0 {
        eprintln!("error  no event was acknowledged, so nothing is shown");
    }
    Ok(if verdict.holds() && verdict.acknowledged > 0 {
        Ending::Good
    } else {
        Ending::Bad
    })
}

/// Sends and reads along, then reads everything again.
fn write_and_read_twice(plan: &Plan, bench: &Bench<'_>) -> Result<StageResult> {
    let mut progress = Progress::new();
    let spec = StageSpec {
        title: "verify".into(),
        plan: plan.clone(),
        input: None,
        bytes_max: None,
    };
    let StageRun {
        result: mut stage,
        collected: first,
        order,
        topic,
        mut topics,
    } = bench.run_and_keep(&spec, &mut progress)?;

    let mut again = spec.clone();
    again.title = "reading again".into();
    let ends = topics
        .ends(&topic)
        .context("everything was sent, but reading again can't begin")?;
    let reading = Arc::new(reread(&order, ends));
    let second = bench.carry_out(&reading, &again, &topic, &mut topics, &mut progress)?;

    let mut verdict = verdict(&order, &first.producers, &second.consumers);
    compare(&order, &first.consumers, &second.consumers, &mut verdict);
    let holds = verdict.holds();
    stage.read = Some(Flow {
        events: verdict.read_back,
        ..stage.read.unwrap_or_default()
    });
    stage.verdict = Some(verdict);
    stage.reconnects += second.reconnects();
    // A topic with faults stays: somebody will want to look at it.
    if holds && !plan.keep {
        topics.remove(&topic)?;
    } else {
        stage.notes.push(format!("topic {} was kept", topic.name));
    }
    Ok(stage)
}

/// The same stage without sending: everything from its beginning to where the partitions end now.
fn reread(order: &StageOrder, ends: Vec<i64>) -> StageOrder {
    let control = StageControl::default();
    let _ = control.ends.set(ends);
    StageOrder {
        sends: false,
        reads: true,
        checks: true,
        topic: order.topic.clone(),
        expected: order.expected.clone(),
        size: order.size.clone(),
        keys: order.keys.clone(),
        partition_of_key: Vec::new(),
        // Latencies of a second reading mean nothing.
        warm_ns: u64::MAX,
        stop_ns: u64::MAX,
        start_offsets: order.start_offsets.clone(),
        client: order.client.clone(),
        control: Arc::new(control),
        ..*order
    }
}

/// What was read the first time must be there the second time.
fn compare(
    order: &StageOrder,
    first: &[ConsumerOutcome],
    second: &[ConsumerOutcome],
    verdict: &mut Verdict,
) {
    for earlier in first.iter().flat_map(|consumer| &consumer.partitions) {
        let mut laters = second.iter().flat_map(|consumer| &consumer.partitions);
        let Some(later) = laters.find(|later| later.partition() == earlier.partition()) else {
            continue;
        };
        for producer in 0..order.expected.producers as usize {
            verdict.add_vanished(
                earlier.partition(),
                producer as u16,
                &earlier.logs()[producer],
                &later.logs()[producer],
            );
        }
        // What was wrong already the first time and right the second time was served wrongly once.
        if earlier.faults().count() > 0 && later.faults().count() == 0 {
            verdict.faults.merge(earlier.faults().clone());
        }
    }
}
