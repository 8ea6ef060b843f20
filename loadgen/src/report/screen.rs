//! The run as people read it, piece by piece as it happens.

use std::io::{self, Write};

use super::bars;
use super::number::{byte_rate, bytes, grouped, milliseconds, rate};
use super::results::{Flow, LoadLimit, RunResult, ScheduleReport, Setting, StageResult};
use crate::measure::latency::{Latency, PERCENTILES};
use crate::measure::process::ThreadUse;
use crate::measure::steal::STOLEN_SHARE_NOTED;
use crate::verdict::judge::Verdict;

/// Most faults that are shown by name; the JSON object has all that are kept.
const FAULTS_SHOWN_MAX: usize = 100;

/// Writes to standard output. Somebody who closes it early is not told anything any more; that is no error.
pub struct Screen {
    open: bool,
}

impl Screen {
    /// A screen; a silent one leaves standard output to somebody else.
    pub fn new(silent: bool) -> Self {
        Self { open: !silent }
    }

    /// One line.
    pub fn line(&mut self, text: &str) {
        if self.open {
            let mut out = io::stdout().lock();
            self.open = writeln!(out, "{}", text.trim_end())
                .and_then(|()| out.flush())
                .is_ok();
        }
    }

    /// What this is and what it runs on.
    pub fn opening(&mut self, setting: &Setting) {
        let host = &setting.host;
        let cores = host.cores.len();
        let mut machine = vec![
            if cores == 1 {
                "1 core".into()
            } else {
                format!("{cores} cores")
            },
            format!("Linux {}", host.kernel_version()),
        ];
        machine.extend(setting.storage.clone());
        self.line(&format!(
            "tackboard-loadgen {}   {}",
            env!("CARGO_PKG_VERSION"),
            machine.join(" · ")
        ));
        self.line(&setting.broker);
    }

    /// One stage, when it is over. `number` counts stages where there are several.
    pub fn stage(&mut self, number: Option<usize>, stage: &StageResult) {
        self.line("");
        let number = number.map_or_else(|| "   ".into(), |number| format!("{number}  "));
        self.line(&format!(
            "{number}{:<19}{}",
            stage.title,
            stage.settings.join(" · ")
        ));
        if let Some(cause) = &stage.cut_short {
            self.row("cut short", cause);
        }
        if let Some(produced) = &stage.produced {
            self.row("produced", &flow(produced));
        }
        if let Some(read) = &stage.read {
            match &stage.verdict {
                Some(verdict) => self.row("read back", &checked(read, verdict)),
                None => self.row("read", &flow(read)),
            }
        }
        if let Some(schedule) = &stage.schedule {
            self.row("kept its schedule", &kept(schedule));
        }
        if stage.reconnects > 0 {
            let count = grouped(stage.reconnects);
            self.row(
                "reconnects",
                &format!("{count}, after connections were lost"),
            );
        }
        if let Some(text) = cost(stage) {
            self.row("cost", &text);
        }
        if let Some(busiest) = stage.cost.busiest {
            self.row("load cores", &load_cores(busiest));
        }
        if let Some(share) = stage.stolen_share {
            self.row("taken by the host", &stolen(share));
        }
        for note in &stage.notes {
            self.row("note", note);
        }
        self.latencies(stage);
    }

    fn latencies(&mut self, stage: &StageResult) {
        let rows = [
            ("produce", &stage.produce_latency),
            ("end to end", &stage.end_to_end_latency),
        ];
        let rows = rows
            .into_iter()
            .filter(|(_, latency)| latency.count() > 0)
            .collect::<Vec<_>>();
        if rows.is_empty() {
            return;
        }
        if stage.is_closed_loop() {
            self.row(
                "closed loop",
                "sent as fast as it is taken, so latency is mostly the wait in the queue",
            );
        }
        let names = PERCENTILES.iter().map(|(name, _)| *name).chain(["max"]);
        self.row(
            "latency ms",
            &names.map(|name| format!("{name:>8}")).collect::<String>(),
        );
        for (name, latency) in rows {
            self.row(&format!("  {name}"), &percentiles(latency));
        }
        // In closed loop the latency is that of the queue that the load itself builds up: its shape says little.
        if stage.schedule.is_some() {
            for bar in bars::draw(&stage.produce_latency) {
                self.line(&format!("  {bar}"));
            }
        }
    }

    /// What it needed, the verdict with the faults by name, where it was saved, what could be done next.
    pub fn closing(&mut self, result: &RunResult, saved: Option<&str>) {
        self.line("");
        if let Some(most) = result.memory_bytes_max {
            self.line(&format!("{:<22}{}", "peak memory", bytes(most as f64)));
        }
        for stage in &result.stages {
            if let Some(why) = stage
                .schedule
                .as_ref()
                .and_then(|schedule| schedule.void.as_ref())
            {
                self.line(&format!("void                  {}: {why}", stage.title));
            }
        }
        if let Some(verdict) = &result.verdict {
            self.faults(verdict);
            self.line(&verdict.to_string());
        }
        if result.interrupted {
            self.line("interrupted: what is shown ends there");
        }
        if let Some(saved) = saved {
            self.line(&format!("saved   {saved}"));
        }
    }

    /// The first faults by name.
    fn faults(&mut self, verdict: &Verdict) {
        let named = &verdict.faults.named;
        for fault in named.iter().take(FAULTS_SHOWN_MAX) {
            self.line(&fault.to_string());
        }
        if named.len() > FAULTS_SHOWN_MAX {
            self.line(&format!(
                "… these are the first {FAULTS_SHOWN_MAX}; --json and run.json name {}",
                grouped(named.len() as u64)
            ));
        }
        if verdict.unacknowledged > 0 {
            self.line(&format!(
                "{} events were sent and never acknowledged; {} of them came back, which is allowed",
                grouped(verdict.unacknowledged),
                grouped(verdict.unacknowledged_read),
            ));
        }
    }

    /// A line of hints.
    pub fn next(&mut self, text: &str) {
        self.line(&format!("next    {text}"));
    }

    fn row(&mut self, label: &str, text: &str) {
        self.line(&format!("   {label:<19}{text}"));
    }
}

fn flow(flow: &Flow) -> String {
    let count = format!("{} in {:.2} s", grouped(flow.events), flow.seconds);
    let speed = format!("{} ev/s", rate(flow.events_per_second()));
    format!(
        "{count:<30}{speed:>16}{:>14}",
        byte_rate(flow.bytes_per_second())
    )
}

fn checked(read: &Flow, verdict: &Verdict) -> String {
    let faults = &verdict.faults;
    let mut text = format!(
        "{}   {} lost   {} duplicated   {} out of order",
        grouped(read.events),
        grouped(faults.lost + faults.vanished),
        grouped(faults.duplicated),
        grouped(faults.out_of_order)
    );
    if faults.corrupted > 0 {
        text.push_str(&format!("   {} corrupted", grouped(faults.corrupted)));
    }
    text
}

fn kept(schedule: &ScheduleReport) -> String {
    let lag = format!(
        "p99 {} ms, worst {} ms",
        milliseconds(schedule.lag.percentile_ns(99.0)),
        milliseconds(schedule.lag.max_ns())
    );
    match &schedule.void {
        None => format!("yes (own lag: {lag})"),
        Some(why) => format!("NO, the stage is void: {why} (own lag: {lag})"),
    }
}

/// What share of the CPU time the host took, and from where on that explains what the figures show.
fn stolen(share: f64) -> String {
    let mut text = format!("{:.2} % of this machine's CPU time", share * 100.0);
    if share > STOLEN_SHARE_NOTED {
        text.push_str(&format!(
            ", more than {} %: stalls of 5 to 10 ms may be the host's",
            STOLEN_SHARE_NOTED * 100.0
        ));
    }
    text
}

fn percentiles(latency: &Latency) -> String {
    let values = PERCENTILES
        .iter()
        .map(|&(_, percent)| latency.percentile_ns(percent))
        .chain([latency.max_ns()]);
    values
        .map(|ns| format!("{:>8}", milliseconds(ns)))
        .collect()
}

/// CPU time and syncs by the million of events.
fn cost(stage: &StageResult) -> Option<String> {
    let millions = stage.millions()?;
    let load = format!("load {:.2} CPU s", stage.cost.load_cpu_seconds / millions);
    let parts = match stage.cost.broker {
        Some(broker) => format!(
            "broker {:.2} CPU s and {:.0} syncs, {load}",
            broker.cpu_seconds / millions,
            broker.syncs as f64 / millions,
        ),
        None => load,
    };
    Some(format!("{parts} per million events"))
}

/// How the busiest load core spent its time, and whether that is what limits the figures.
fn load_cores(busiest: ThreadUse) -> String {
    let share = |share: f64| format!("{:.0} %", share * 100.0);
    let mut text = format!("the busiest ran {} of the time", share(busiest.busy));
    if let Some(waiting) = busiest.waiting {
        text.push_str(&format!(", waited {} for its CPU", share(waiting)));
    }
    text.push_str(match LoadLimit::of(busiest) {
        LoadLimit::None => "",
        LoadLimit::LoadCore => ": THE LOAD GENERATOR IS THE LIMIT, not the broker",
        LoadLimit::SharedCpu => ": the CPUs that it shares are the limit of what is shown",
    });
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cost_is_by_the_million_with_and_without_an_embedded_broker() {
        let mut stage = super::super::report_test::stage("x");
        assert_eq!(
            cost(&stage).unwrap(),
            "load 5000.00 CPU s per million events"
        );
        stage.cost.broker = Some(super::super::results::BrokerCost {
            cpu_seconds: 0.25,
            syncs: 7,
        });
        assert_eq!(
            cost(&stage).unwrap(),
            "broker 2500.00 CPU s and 70000 syncs, load 5000.00 CPU s per million events"
        );
        stage.produced = None;
        assert!(cost(&stage).is_some(), "by what was read");
        stage.read = None;
        assert_eq!(cost(&stage), None);
    }

    #[test]
    fn a_load_core_that_is_the_limit_is_named_as_one() {
        let said = |busy, waiting| load_cores(ThreadUse { busy, waiting });
        assert_eq!(
            said(0.4, Some(0.2)),
            "the busiest ran 40 % of the time, waited 20 % for its CPU"
        );
        assert_eq!(said(0.9, None), "the busiest ran 90 % of the time");
        assert!(said(0.91, None).ends_with("THE LOAD GENERATOR IS THE LIMIT, not the broker"));
        assert!(
            said(0.5, Some(0.45))
                .ends_with("the CPUs that it shares are the limit of what is shown")
        );
    }

    #[test]
    fn a_host_that_takes_much_is_named_as_a_cause() {
        assert_eq!(stolen(0.0), "0.00 % of this machine's CPU time");
        assert_eq!(
            stolen(STOLEN_SHARE_NOTED),
            "0.50 % of this machine's CPU time"
        );
        assert_eq!(
            stolen(0.0123),
            "1.23 % of this machine's CPU time, more than 0.5 %: stalls of 5 to 10 ms may be the host's"
        );
    }
}
