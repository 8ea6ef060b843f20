//! The table of a folder of results: each thing that was to be reached, with its figure, its spread, what it is held
//! against in the same run, and whether it was reached.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Result;
use serde_json::Value;

use crate::{
    figure::Figure,
    origin,
    results::{Results, ResultsArguments},
    rows::ROWS,
    subject::Subject,
};

/// Which folder.
#[derive(clap::Args)]
pub struct TableArguments {
    #[command(flatten)]
    results: ResultsArguments,
}

/// Writes the table and prints where it is.
///
/// # Errors
/// When the folder can't be written.
pub fn run(arguments: &TableArguments) -> Result<()> {
    let results = Results::new(&arguments.results);
    results.table()?;
    if let Some(folder) = results.shown() {
        println!("{folder}");
    }
    Ok(())
}

/// The figures of a folder.
pub struct Kept {
    folder: PathBuf,
}

/// Fewer rounds say nothing about an aim.
const ROUNDS_MIN: usize = 5;

/// A figure of each round; empty when it was not measured.
pub type Series = Vec<f64>;

impl Kept {
    /// The folder's.
    pub fn of(folder: &Path) -> Self {
        Kept {
            folder: folder.to_owned(),
        }
    }

    fn file(&self, name: &str) -> Option<Value> {
        let text = fs::read_to_string(self.folder.join(format!("{name}.json"))).ok()?;
        serde_json::from_str(&text).ok()
    }

    /// Of each round of this server under a workload: the figure at this pointer of its round.
    pub fn rounds(&self, file: &str, subject: Subject, pointer: &str) -> Series {
        let Some(file) = self.file(file) else {
            return Series::new();
        };
        let name = subject.name();
        let mut rows = file["rows"].as_array().into_iter().flatten();
        let row = rows.find(|row| row["name"] == name.as_str());
        series(row.map(|row| &row["rounds"]), pointer)
    }

    /// What the machine gave in each round of a workload.
    pub fn limits(&self, file: &str, pointer: &str) -> Series {
        let file = self.file(file);
        series(file.as_ref().map(|file| &file["limits"]), pointer)
    }

    /// A figure of `perf/cases`.
    pub fn case(&self, case: &str, figure: &str) -> Series {
        let file = self.file(&format!("case-{case}"));
        series(file.as_ref().map(|file| &file["values"][figure]), "")
    }

    /// Where the figures come from: machine and commit, and the names of the files with their rounds.
    fn origin(&self) -> (Option<String>, Vec<String>) {
        let mut names: Vec<String> = fs::read_dir(&self.folder)
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| {
                let name = entry.file_name().into_string().ok()?;
                Some(name.strip_suffix(".json")?.to_owned())
            })
            .collect();
        names.sort();
        let told = names
            .iter()
            .find_map(|name| origin::in_words(&self.file(name)?));
        (told, names)
    }
}

/// The numbers at this pointer of each element of an array; empty when one is missing.
fn series(rounds: Option<&Value>, pointer: &str) -> Series {
    let rounds = rounds.and_then(Value::as_array).into_iter().flatten();
    let values = rounds.map(|round| round.pointer(pointer)?.as_f64());
    values.collect::<Option<_>>().unwrap_or_default()
}

/// What a figure is to be.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Aim {
    /// It is shown beside others.
    None,
    AtLeast(f64),
    AtMost(f64),
}

/// What the aim is about.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Held {
    /// The median of the figure.
    Figure,
    /// The figure of each round.
    EachRound,
    /// The median of the ratio.
    Ratio,
}

/// A line of the table.
pub struct Line {
    what: String,
    unit: &'static str,
    figure: Series,
    reference: Option<(String, Series)>,
    ratio: Series,
    aim: Aim,
    held: Held,
}

impl Line {
    /// A figure of each round, in this unit.
    pub fn new(what: impl Into<String>, figure: Series, unit: &'static str) -> Self {
        Line {
            what: what.into(),
            unit,
            figure,
            reference: None,
            ratio: Series::new(),
            aim: Aim::None,
            held: Held::Figure,
        }
    }

    /// What it is held against, from the same rounds and in the same unit.
    pub fn beside(mut self, name: impl Into<String>, reference: Series) -> Self {
        if reference.len() == self.figure.len() {
            let pairs = self.figure.iter().zip(&reference);
            self.ratio = pairs
                .map(|(figure, reference)| figure / reference)
                .collect();
        }
        self.reference = Some((name.into(), reference));
        self
    }

    /// The median is to be at least this.
    pub fn at_least(self, bound: f64) -> Self {
        self.aim(Aim::AtLeast(bound), Held::Figure)
    }

    /// The median is to be at most this.
    pub fn at_most(self, bound: f64) -> Self {
        self.aim(Aim::AtMost(bound), Held::Figure)
    }

    /// No round is to be above this.
    pub fn never_above(self, bound: f64) -> Self {
        self.aim(Aim::AtMost(bound), Held::EachRound)
    }

    /// No round is to be below this.
    pub fn never_below(self, bound: f64) -> Self {
        self.aim(Aim::AtLeast(bound), Held::EachRound)
    }

    /// The median of the ratio is to be at least this.
    pub fn ratio_at_least(self, bound: f64) -> Self {
        self.aim(Aim::AtLeast(bound), Held::Ratio)
    }

    /// The median of the ratio is to be at most this.
    pub fn ratio_at_most(self, bound: f64) -> Self {
        self.aim(Aim::AtMost(bound), Held::Ratio)
    }

    fn aim(mut self, aim: Aim, held: Held) -> Self {
        (self.aim, self.held) = (aim, held);
        self
    }

    /// Whether the aim was reached; `None` without one, or when it was not measured often enough.
    fn reached(&self) -> Option<bool> {
        let held = match self.held {
            Held::Ratio => &self.ratio,
            Held::Figure | Held::EachRound => &self.figure,
        };
        if held.len() < ROUNDS_MIN {
            return None;
        }
        let figure = Figure::of(held.iter().copied())?;
        let value = |worst: f64| match self.held {
            Held::EachRound => worst,
            Held::Figure | Held::Ratio => figure.median,
        };
        match self.aim {
            Aim::None => None,
            Aim::AtLeast(bound) => Some(value(figure.least) >= bound),
            Aim::AtMost(bound) => Some(value(figure.greatest) <= bound),
        }
    }

    fn markdown(&self) -> String {
        let show = |series: &Series, unit: &str| match Figure::of(series.iter().copied()) {
            Some(figure) => format!("{} {unit}", figure.show(short)).trim().to_owned(),
            None => "not measured".to_owned(),
        };
        let reference = match &self.reference {
            Some((name, series)) => format!("{name}: {}", show(series, self.unit)),
            None => String::new(),
        };
        let ratio = match (&self.reference, self.ratio.is_empty()) {
            (Some(_), false) => show(&self.ratio, ""),
            _ => String::new(),
        };
        let bound = |sign: &str, bound: f64| match self.held {
            Held::Ratio => format!("{sign} {} times", short(bound)),
            Held::Figure => format!("{sign} {} {}", short(bound), self.unit),
            Held::EachRound => {
                let bound = format!("{sign} {} {}", short(bound), self.unit);
                format!("{}, each round", bound.trim())
            }
        };
        let aim = match self.aim {
            Aim::None => String::new(),
            Aim::AtLeast(least) => bound("≥", least),
            Aim::AtMost(most) => bound("≤", most),
        };
        let reached = match self.reached() {
            Some(true) => "yes",
            Some(false) => "**no**",
            None => "",
        };
        format!(
            "| {} | {} | {reference} | {ratio} | {} | {reached} |",
            self.what,
            show(&self.figure, self.unit),
            aim.trim()
        )
    }
}

/// A number with about three digits that mean something.
fn short(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 1.0 => format!("{value:.2}"),
        _ if value == 0.0 => "0".to_owned(),
        _ => format!("{value:.3}"),
    }
}

/// The whole page.
pub fn render(folder: &Path) -> String {
    let kept = Kept::of(folder);
    let (origin, files) = kept.origin();
    let mut page = format!(
        "# What was to be reached, and what was\n\n{}. Medians of {ROUNDS_MIN} rounds or more, in brackets the least and the greatest; ratios are taken \
         within a round. Which\ncommand measures a row stands above it; the pictures beside this page show percentiles, and \
         rates and tails over time.\n",
        origin.unwrap_or_else(|| "Nothing was measured yet".to_owned())
    );
    let (mut reached, mut missed, mut open) = (0, 0, 0);
    for row in ROWS {
        let lines = (row.lines)(&kept);
        page += &format!(
            "\n## {}\n\n`perf/all {}`\n\n| what | figure | in the same run | ratio | aim | reached |\n|---|---|---|---|---|---|\n",
            row.what, row.measurement
        );
        for line in &lines {
            page += &line.markdown();
            page.push('\n');
            match line.reached() {
                Some(true) => reached += 1,
                Some(false) => missed += 1,
                None if line.aim != Aim::None => open += 1,
                None => {}
            }
        }
    }
    page += &format!(
        "\n{reached} aims reached, {missed} missed, {open} not measured. From {} in this folder.\n",
        match files.is_empty() {
            true => "nothing".to_owned(),
            false => files.join(".json, ") + ".json",
        }
    );
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGIN: &str = "<!-- the table of perf/results/kept/";
    const END: &str = "<!-- end of the table -->";

    #[test]
    fn the_page_of_performance_shows_the_table_that_is_kept() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let page = root.join("docs/performance.md");
        let text = fs::read_to_string(&page).unwrap();
        let (before, rest) = text.split_once(BEGIN).expect("the place of the table");
        let (folder, rest) = rest.split_once(" -->\n").unwrap();
        let (_, after) = rest.split_once(END).unwrap();
        let table = render(&root.join("perf/results/kept").join(folder));
        let (_, table) = table.split_once("\n\n").unwrap();
        let table = table.replace("\n## ", "\n### ");
        let fresh = format!("{before}{BEGIN}{folder} -->\n{table}{END}{after}");
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            fs::write(&page, fresh).unwrap();
        } else {
            assert!(
                text == fresh,
                "stale; UPDATE_GOLDEN=1 cargo test -p tackboard-perf renders it anew"
            );
        }
    }

    #[test]
    fn a_ratio_is_taken_round_by_round_and_its_median_is_held_against_the_aim() {
        let line = Line::new("x", vec![1.0, 8.0, 3.0, 3.0, 3.0], "ms")
            .beside("y", vec![1.0, 2.0, 1.0, 1.0, 1.0]);
        assert_eq!(line.ratio, [1.0, 4.0, 3.0, 3.0, 3.0]);
        let line = line.ratio_at_most(3.0);
        assert_eq!(line.reached(), Some(true));
        let text = line.markdown();
        assert!(text.contains("3.00 [1.00–8.00] ms"), "{text}");
        assert!(
            text.contains("3.00 [1.00–4.00] | ≤ 3.00 times | yes"),
            "{text}"
        );
        assert_eq!(line.ratio_at_least(3.1).reached(), Some(false));
    }

    #[test]
    fn one_bad_round_breaks_what_holds_for_each() {
        let line = || Line::new("x", vec![1.0, 1.0, 1.0, 1.0, 0.0], "");
        assert_eq!(line().never_below(1.0).reached(), Some(false));
        assert_eq!(line().at_least(1.0).reached(), Some(true));
        assert_eq!(line().never_above(1.0).reached(), Some(true));
    }

    #[test]
    fn what_was_not_measured_is_neither_reached_nor_missed() {
        let folder = tempfile::tempdir().unwrap();
        let page = render(folder.path());
        assert!(page.contains("\n0 aims reached, 0 missed, "), "{page}");
        assert!(!page.contains(", 0 not measured."), "{page}");
        let line = Line::new("x", vec![1.0], "ms").beside("y", vec![]);
        assert_eq!(line.ratio_at_most(3.0).reached(), None);
        let line = Line::new("x", vec![1.0; ROUNDS_MIN - 1], "ms");
        assert_eq!(line.at_most(3.0).reached(), None, "too few rounds");
        assert_eq!(
            fs::read_dir(folder.path()).unwrap().count(),
            0,
            "rendering writes nothing"
        );
    }

    #[test]
    fn figures_are_found_by_server_and_round() {
        let folder = tempfile::tempdir().unwrap();
        let subject = Subject::Nats;
        let report = serde_json::json!({
            "limits": [{"write": {"p99_us": 7.0}}, {"write": {"p99_us": 8.0}}],
            "rows": [
                {"name": "another", "rounds": []},
                {"name": subject.name(), "rounds": [{"latency": {"p99_us": 1.5}}, {"latency": {"p99_us": 2.5}}]},
            ],
        });
        fs::write(folder.path().join("run-x.json"), report.to_string()).unwrap();
        let case = serde_json::json!({"values": {"ready_ms": [3.0, 4.0]}});
        fs::write(folder.path().join("case-y.json"), case.to_string()).unwrap();
        let kept = Kept::of(folder.path());
        assert_eq!(kept.rounds("run-x", subject, "/latency/p99_us"), [1.5, 2.5]);
        assert_eq!(kept.rounds("run-x", subject, "/no").len(), 0);
        assert_eq!(kept.limits("run-x", "/write/p99_us"), [7.0, 8.0]);
        assert_eq!(kept.case("y", "ready_ms"), [3.0, 4.0]);
        assert_eq!(kept.case("z", "ready_ms").len(), 0);
    }
}
