//! Judges one set of runs (B) against another (A).
//!
//! A figure of B is worse or better when three things hold: it is judged in this kind of stage ([`Judged`]); the medians
//! differ by more than the threshold; and chance alone would seldom put the runs of the two sides into such an order
//! ([`CHANCE_MAX`]). With too few runs for that, all runs of one side must lie below all of the other, which single runs
//! always do: then noise can't be judged, and the comparison says so.
//!
//! Runs whose verdict does not hold, and stages that did not keep their schedule, have no figures; they count by
//! themselves.

use std::collections::{BTreeMap, BTreeSet};

use super::figure::{Better, FIGURES, Figure, Judged};
use super::result::{SavedRun, SavedStage};
use super::statistic::{Spread, chance, chance_least};

/// The most that chance may explain of a difference that counts. With five runs a side that asks for all runs of one side
/// below all of the other. A comparison has some ten judged figures a stage: at the customary 5 % every other one would
/// show a difference that is none.
pub const CHANCE_MAX: f64 = 0.01;

/// The difference of two medians that counts unless another is asked for.
pub const THRESHOLD_DEFAULT: f64 = 0.05;

/// What became of a figure, or of everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// B is better.
    Better,
    /// B is worse.
    Worse,
    /// No difference beyond threshold and noise.
    Same,
    /// Shown, not judged.
    NotJudged,
}

impl Change {
    /// One word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Same => "same",
            Self::NotJudged => "not judged",
        }
    }
}

/// One figure on both sides.
#[derive(Debug)]
pub struct Row {
    /// Which one.
    pub figure: &'static Figure,
    /// What A's runs gave.
    pub a: Spread,
    /// What B's runs gave.
    pub b: Spread,
    /// B's median by A's; none if A's is zero.
    pub ratio: Option<f64>,
    /// How likely chance alone makes such a difference.
    pub chance: f64,
    /// What became of it.
    pub change: Change,
}

/// How many stages of a side kept their schedule, of how many in open loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// Kept.
    pub kept: usize,
    /// In open loop.
    pub of: usize,
}

impl Kept {
    fn count(stages: &[&SavedStage]) -> Self {
        let open = stages.iter().filter_map(|stage| stage.kept_schedule);
        let (kept, late): (Vec<bool>, Vec<bool>) = open.partition(|&kept| kept);
        Self {
            kept: kept.len(),
            of: kept.len() + late.len(),
        }
    }

    /// Whether the greater part kept it.
    fn mostly(self) -> bool {
        self.kept * 2 > self.of
    }
}

/// One stage on both sides.
#[derive(Debug)]
pub struct StageComparison {
    /// What it is called.
    pub title: String,
    /// Schedules of both sides.
    pub kept: (Kept, Kept),
    /// What became of the schedule.
    pub schedule: Change,
    /// Its figures.
    pub rows: Vec<Row>,
}

/// Something that differs between runs, so that their figures are of different things.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// What it is.
    pub what: String,
    /// A's values.
    pub a: String,
    /// B's values.
    pub b: String,
}

/// One side, in short.
#[derive(Debug)]
pub struct Side {
    /// Where its runs were read from.
    pub names: Vec<String>,
    /// Commits that they ran in.
    pub commits: Vec<String>,
    /// Those of them whose verdict does not hold.
    pub broken: Vec<String>,
}

/// Everything.
#[derive(Debug)]
pub struct Comparison {
    /// The side that the other is compared with.
    pub a: Side,
    /// The side that is judged.
    pub b: Side,
    /// What differs beside the figures.
    pub differences: Vec<Difference>,
    /// The stages that both have.
    pub stages: Vec<StageComparison>,
    /// The difference of two medians that counts.
    pub threshold: f64,
    /// The least that chance can be with so many runs.
    pub chance_least: f64,
    /// What became of B.
    pub verdict: Change,
}

impl Comparison {
    /// Compares. Nothing if the sides have no stage in common; a side without runs has none.
    pub fn of(a: &[SavedRun], b: &[SavedRun], threshold: f64) -> Option<Self> {
        let titles = a.first()?.stages.iter().map(|stage| &stage.title);
        let stages = titles
            .filter_map(|title| stage(title, a, b, threshold))
            .collect::<Vec<_>>();
        if stages.is_empty() {
            return None;
        }
        let (a_side, b_side) = (Side::of(a), Side::of(b));
        let verdict = verdict(&stages, !b_side.broken.is_empty());
        Some(Self {
            differences: differences(a, b),
            stages,
            threshold,
            chance_least: chance_least(a.len(), b.len()),
            verdict,
            a: a_side,
            b: b_side,
        })
    }

    /// Whether there are runs enough to tell a difference from noise.
    pub fn can_tell_noise(&self) -> bool {
        self.chance_least <= CHANCE_MAX
    }

    /// Stage and name of each figure with this change, and its ratio.
    pub fn changed(&self, change: Change) -> impl Iterator<Item = (&str, &Row)> {
        self.stages.iter().flat_map(move |stage| {
            let rows = stage.rows.iter().filter(move |row| row.change == change);
            rows.map(|row| (stage.title.as_str(), row))
        })
    }
}

impl Side {
    fn of(runs: &[SavedRun]) -> Self {
        let commits = runs.iter().filter_map(|run| run.commit.clone());
        let broken = runs.iter().filter(|run| !run.holds);
        Self {
            names: runs.iter().map(|run| run.name.clone()).collect(),
            commits: commits.collect::<BTreeSet<_>>().into_iter().collect(),
            broken: broken.map(|run| run.name.clone()).collect(),
        }
    }
}

/// The stage of each run that has this title.
fn stages_of<'a>(title: &'a str, runs: &'a [SavedRun]) -> Vec<&'a SavedStage> {
    let titled = |run: &'a SavedRun| run.stages.iter().find(|stage| stage.title == title);
    runs.iter()
        .filter(|run| run.holds)
        .filter_map(titled)
        .collect()
}

fn stage(title: &str, a: &[SavedRun], b: &[SavedRun], threshold: f64) -> Option<StageComparison> {
    let is_in = |run: &SavedRun| run.stages.iter().any(|stage| stage.title == title);
    if !b.iter().any(is_in) {
        return None;
    }
    let (a, b) = (stages_of(title, a), stages_of(title, b));
    let kept = (Kept::count(&a), Kept::count(&b));
    let schedule = match (kept.0.mostly(), kept.1.mostly()) {
        _ if kept.0.of == 0 || kept.1.of == 0 => Change::NotJudged,
        (true, false) => Change::Worse,
        (false, true) => Change::Better,
        _ => Change::Same,
    };
    let is_open_loop = kept.0.of > 0 && kept.1.of > 0;
    let rows = FIGURES.iter().enumerate().filter_map(|(at, figure)| {
        let values = |stages: &[&SavedStage]| {
            let counted = stages.iter().filter(|stage| stage.counts());
            counted
                .filter_map(|stage| stage.values[at])
                .collect::<Vec<_>>()
        };
        row(figure, &values(&a), &values(&b), is_open_loop, threshold)
    });
    Some(StageComparison {
        title: title.to_owned(),
        kept,
        schedule,
        rows: rows.collect(),
    })
}

fn row(
    figure: &'static Figure,
    a: &[f64],
    b: &[f64],
    is_open_loop: bool,
    threshold: f64,
) -> Option<Row> {
    let (spread_a, spread_b) = (Spread::of(a)?, Spread::of(b)?);
    let ratio = (spread_a.median > 0.0).then(|| spread_b.median / spread_a.median);
    let chance = chance(a, b);
    let least = chance_least(a.len(), b.len());
    let is_judged = match figure.judged {
        Judged::Always => true,
        Judged::InOpenLoop => is_open_loop,
        Judged::InOpenLoopBeyondNoise => is_open_loop && least <= CHANCE_MAX,
        Judged::Never => false,
    };
    let change = match ratio.filter(|_| is_judged) {
        None => Change::NotJudged,
        Some(ratio) => {
            let is_seldom_chance = chance <= CHANCE_MAX.max(least);
            let is_higher = ratio > 1.0 + threshold;
            let is_lower = ratio * (1.0 + threshold) < 1.0;
            match figure.better {
                _ if !is_seldom_chance || !(is_higher || is_lower) => Change::Same,
                Better::Higher if is_higher => Change::Better,
                Better::Lower if is_lower => Change::Better,
                _ => Change::Worse,
            }
        }
    };
    Some(Row {
        figure,
        a: spread_a,
        b: spread_b,
        ratio,
        chance,
        change,
    })
}

/// Worse if anything is, better if anything is and nothing worse.
fn verdict(stages: &[StageComparison], is_broken: bool) -> Change {
    let has = |change| {
        stages.iter().any(|stage| {
            stage.schedule == change || stage.rows.iter().any(|row| row.change == change)
        })
    };
    if is_broken || has(Change::Worse) {
        Change::Worse
    } else if has(Change::Better) {
        Change::Better
    } else {
        Change::Same
    }
}

/// Values of each fact on both sides, where not all runs of both have the same.
fn differences(a: &[SavedRun], b: &[SavedRun]) -> Vec<Difference> {
    // Where one result lacks its plan, all are held against each other by what every one of them has.
    let have_plans = a.iter().chain(b).all(|run| {
        let mut stages = run.stages.iter();
        stages.all(|stage| stage.plan.is_some())
    });
    let (a, b) = (facts(a, have_plans), facts(b, have_plans));
    let keys = a.keys().chain(b.keys()).collect::<BTreeSet<_>>();
    let nothing = BTreeSet::new();
    let differing = keys.into_iter().filter_map(|key| {
        let (a, b) = (
            a.get(key).unwrap_or(&nothing),
            b.get(key).unwrap_or(&nothing),
        );
        let values = |values: &BTreeSet<String>| match values.len() {
            0 => "not said".to_owned(),
            _ => values.iter().cloned().collect::<Vec<_>>().join(" or "),
        };
        (a != b || a.len() > 1).then(|| Difference {
            what: key.clone(),
            a: values(a),
            b: values(b),
        })
    });
    differing.collect()
}

/// All values of each fact of these runs; the titles of the stages are one.
fn facts(runs: &[SavedRun], by_plan: bool) -> BTreeMap<String, BTreeSet<String>> {
    let mut facts = BTreeMap::<String, BTreeSet<String>>::new();
    let mut note = |key: String, value: String| {
        facts.entry(key).or_default().insert(value);
    };
    for run in runs {
        let titles = run.stages.iter().map(|stage| stage.title.as_str());
        note("stages".into(), titles.collect::<Vec<_>>().join(", "));
        for (key, value) in &run.facts {
            note(key.clone(), value.clone());
        }
        for stage in &run.stages {
            match stage.plan.as_ref().filter(|_| by_plan) {
                Some(plan) => {
                    for (key, value) in plan {
                        note(format!("{}: {key}", stage.title), value.clone());
                    }
                }
                None => note(format!("{}: settings", stage.title), stage.settings.clone()),
            }
        }
    }
    facts
}
