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
use crate::drive::stage::{Bench, StageRun, cut_short, verdict};
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
    let verdict = closed.result.verdict;
    if (verdict.as_ref()).is_some_and(|verdict| verdict.acknowledged == 0) {
        eprintln!("error  no event was acknowledged, so nothing is shown");
    }
    Ok(if verdict.is_some_and(|verdict| verdict.holds()) {
        Ending::Good
    } else {
        Ending::Bad
    })
}

/// Sends and reads along, then reads everything again, unless it was interrupted: then the first reading has to do.
fn write_and_read_twice(plan: &Plan, bench: &Bench<'_>) -> Result<StageResult> {
    let mut progress = Progress::new();
    let spec = StageSpec {
        title: "verify".into(),
        plan: plan.clone(),
        input: None,
        bytes_max: None,
    };
    let mut run = bench.run_and_keep(&spec, &mut progress)?;
    if bench.interrupt.raised() {
        let note = "it was interrupted, so nothing was read a second time";
        run.result.notes.push(note.into());
    } else {
        read_again(&mut run, spec, bench, &mut progress)?;
    }
    let StageRun {
        result: mut stage,
        topic,
        mut topics,
        ..
    } = run;
    let is_faulty = (stage.verdict.as_ref()).is_some_and(|verdict| !verdict.holds());
    // A topic with faults stays: somebody will want to look at it.
    if is_faulty || plan.keep {
        stage.notes.push(format!("topic {} was kept", topic.name));
    } else {
        topics.remove(&topic)?;
    }
    Ok(stage)
}

/// Reads everything that `run` left in its topic, and has the verdict say what came of that.
fn read_again(
    run: &mut StageRun<'_>,
    spec: StageSpec,
    bench: &Bench<'_>,
    progress: &mut Progress,
) -> Result<()> {
    let (order, first, stage) = (&run.order, &run.collected, &mut run.result);
    let again = StageSpec {
        title: "reading again".into(),
        ..spec
    };
    let ends = (run.topics.ends(&run.topic))
        .context("everything was sent, but reading again can't begin")?;
    let reading = Arc::new(reread(order, ends));
    let second = bench.carry_out(&reading, &again, &run.topic, &mut run.topics, progress)?;
    stage.reconnects += second.reconnects();
    if bench.reading_was_interrupted(&reading) {
        stage.verdict = None;
        stage.cut_short = Some("interrupted before everything was read again".into());
        return Ok(());
    }
    let gave_up = cut_short(&again, &reading, &second);
    stage.cut_short = stage.cut_short.take().or(gave_up);
    let mut verdict = verdict(order, &first.producers, &second.consumers);
    compare(order, &first.consumers, &second.consumers, &mut verdict);
    stage.read = Some(Flow {
        events: verdict.read_back,
        ..stage.read.unwrap_or_default()
    });
    stage.verdict = Some(verdict);
    Ok(())
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
