//! A comparison as text, and as one JSON object.

use std::fmt::Write;

use serde_json::{Value, json};

use super::comparison::{CHANCE_MAX, Change, Comparison, Kept, Row, Side, StageComparison};
use super::statistic::Spread;

/// Most figures that the last line names.
const NAMED_MAX: usize = 6;

/// The text.
pub fn text(comparison: &Comparison) -> String {
    let mut text = String::new();
    let mut line = |line: &str| {
        // Writing to a String can't fail.
        let _ = writeln!(text, "{}", line.trim_end());
    };
    line(&format!("A         {}", side(&comparison.a)));
    line(&format!("B         {}", side(&comparison.b)));
    comparability(comparison).iter().for_each(|said| line(said));
    line(&format!("noise     {}", noise(comparison)));
    for stage in &comparison.stages {
        line("");
        table(stage).iter().for_each(|row| line(row));
    }
    line("");
    for (name, side) in [("A", &comparison.a), ("B", &comparison.b)] {
        for run in &side.broken {
            line(&format!(
                "broken    {name}: {run}: its verdict does not hold, so it has no figures"
            ));
        }
    }
    line(&format!("verdict   {}", verdict(comparison)));
    text
}

fn side(side: &Side) -> String {
    let runs = match &side.names[..] {
        [one] => one.clone(),
        [first, .., last] => format!("{} runs, {first} to {last}", side.names.len()),
        [] => "no run".into(),
    };
    match &side.commits[..] {
        [] => runs,
        commits => format!("{runs}, commit {}", commits.join(" and ")),
    }
}

fn comparability(comparison: &Comparison) -> Vec<String> {
    if comparison.differences.is_empty() {
        return vec!["same      host, settings and durability: the runs are comparable".into()];
    }
    let differing = comparison.differences.iter().map(|difference| {
        format!(
            "differs   {}: A {}, B {}",
            difference.what, difference.a, difference.b
        )
    });
    differing
        .chain(["          so the runs are of different things: the ratios show that too".into()])
        .collect()
}

fn noise(comparison: &Comparison) -> String {
    let (a, b) = (comparison.a.names.len(), comparison.b.names.len());
    let beyond = format!("beyond {}", percent(comparison.threshold));
    if a == 1 && b == 1 {
        return format!(
            "one run a side: whether a difference is noise can't be judged; what is {beyond} counts"
        );
    }
    if !comparison.can_tell_noise() {
        return format!(
            "{a} and {b} runs are too few to tell it: they all part by chance in {} of cases. What is {beyond} counts if \
             they do",
            percent(comparison.chance_least)
        );
    }
    format!(
        "{a} and {b} runs: a difference of medians counts {beyond} if chance explains it in at most {} of cases",
        percent(CHANCE_MAX)
    )
}

/// A share in percent, to two digits.
fn percent(share: f64) -> String {
    let percent = share * 100.0;
    let digits = if percent >= 10.0 || percent.fract() == 0.0 {
        0
    } else {
        1
    };
    format!("{percent:.digits$} %")
}

fn table(stage: &StageComparison) -> Vec<String> {
    let has_spread = stage.rows.iter().any(|row| row.a.count + row.b.count > 2);
    let columns = |name: &str, median_a: &str, spread_a: &str, median_b: &str, spread_b: &str| {
        if has_spread {
            format!("  {name:<22}{median_a:>12}{spread_a:>26}{median_b:>14}{spread_b:>26}")
        } else {
            format!("  {name:<22}{median_a:>12}{median_b:>14}")
        }
    };
    let mut lines = vec![stage.title.clone()];
    let heading = columns("", "A", "least … most", "B", "least … most");
    lines.push(format!("{heading}{:>9}", "B / A"));
    for row in &stage.rows {
        let unit = row.figure.unit;
        let spread = |spread: &Spread| {
            format!(
                "{} … {}",
                unit.show(spread.least),
                unit.show(spread.greatest)
            )
        };
        let cells = columns(
            &format!("{}{}", row.figure.name, unit.suffix()),
            &unit.show(row.a.median),
            &spread(&row.a),
            &unit.show(row.b.median),
            &spread(&row.b),
        );
        lines.push(format!("{cells}{:>9}{}", ratio(row), remark(row.change)));
    }
    if stage.schedule != Change::NotJudged {
        let kept = |kept: Kept| format!("{} of {}", kept.kept, kept.of);
        let cells = columns(
            "kept its schedule",
            &kept(stage.kept.0),
            "",
            &kept(stage.kept.1),
            "",
        );
        lines.push(format!("{cells}{:>9}{}", "", remark(stage.schedule)));
    }
    lines
}

fn ratio(row: &Row) -> String {
    row.ratio
        .map_or_else(|| "-".into(), |ratio| format!("{ratio:.3}"))
}

/// Only what changed is remarked on, so that it can be found.
fn remark(change: Change) -> String {
    match change {
        Change::Better | Change::Worse => format!("  {}", change.name()),
        Change::Same | Change::NotJudged => String::new(),
    }
}

fn verdict(comparison: &Comparison) -> String {
    let within = format!("{} and noise", percent(comparison.threshold));
    let beyond = if comparison.can_tell_noise() {
        within
    } else {
        format!("{}, noise unknown", percent(comparison.threshold))
    };
    let mut named = comparison
        .changed(comparison.verdict)
        .map(|(stage, row)| format!("{stage}, {} × {}", row.figure.name, ratio(row)))
        .collect::<Vec<_>>();
    let schedules = comparison
        .stages
        .iter()
        .filter(|stage| stage.schedule == comparison.verdict);
    let schedules = schedules.map(|stage| format!("{}, its schedule", stage.title));
    named.splice(0..0, schedules);
    if !comparison.b.broken.is_empty() {
        named.insert(
            0,
            "what was acknowledged did not come back as it was sent".into(),
        );
    }
    let more = named.len().saturating_sub(NAMED_MAX);
    named.truncate(NAMED_MAX);
    let more = match more {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    match comparison.verdict {
        Change::Same | Change::NotJudged => format!("no difference beyond {beyond}"),
        change => format!(
            "B is {} beyond {beyond}: {}{more}",
            change.name(),
            named.join("; ")
        ),
    }
}

/// The JSON object: latencies in microseconds, everything else as in the results.
pub fn object(comparison: &Comparison) -> Value {
    let differences = comparison
        .differences
        .iter()
        .map(|difference| json!({"what": difference.what, "a": difference.a, "b": difference.b}));
    let stages = comparison.stages.iter().map(|stage| {
        let rows = stage.rows.iter().map(|row| {
            json!({
                "figure": row.figure.name, "a": spread(&row.a), "b": spread(&row.b), "ratio": row.ratio,
                "chance": row.chance, "change": row.change.name(),
            })
        });
        let kept = |kept: Kept| json!({"kept": kept.kept, "of": kept.of});
        json!({
            "title": stage.title,
            "kept_schedule": {
                "a": kept(stage.kept.0), "b": kept(stage.kept.1), "change": stage.schedule.name(),
            },
            "figures": rows.collect::<Vec<_>>(),
        })
    });
    json!({
        "verdict": comparison.verdict.name(),
        "threshold": comparison.threshold,
        "noise_judged": comparison.can_tell_noise(),
        "chance_max": CHANCE_MAX,
        "comparable": comparison.differences.is_empty(),
        "differences": differences.collect::<Vec<_>>(),
        "a": side_object(&comparison.a),
        "b": side_object(&comparison.b),
        "stages": stages.collect::<Vec<_>>(),
    })
}

fn side_object(side: &Side) -> Value {
    json!({"runs": side.names, "commits": side.commits, "broken": side.broken})
}

fn spread(spread: &Spread) -> Value {
    json!({
        "median": spread.median, "least": spread.least, "most": spread.greatest, "count": spread.count,
    })
}
