//! What is wrong with a configuration, said all at once.

use std::fmt;

/// Where a value was written.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// Nowhere: the default.
    Default,
    /// This line of the file, counted from 1.
    Line(usize),
    /// `--set`, `--data` or another flag.
    Flag(&'static str),
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where it was written.
    pub origin: Origin,
    /// The key and value as written, or the part of the file that could not be read.
    pub subject: String,
    /// What is wrong with it and what is allowed.
    pub problem: String,
}

/// Everything that is wrong with one configuration. Never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Faults {
    /// The file that was read, as it was named.
    pub file: Option<String>,
    /// In the order of the file, then of the command line.
    pub faults: Vec<Fault>,
}

impl Faults {
    /// Sorts the faults by where they stand.
    pub(super) fn new(file: Option<String>, mut faults: Vec<Fault>) -> Self {
        faults.sort_by(|left, right| left.origin.cmp(&right.origin));
        Self { file, faults }
    }

    fn source(&self) -> &str {
        let in_file = |fault: &Fault| matches!(fault.origin, Origin::Line(_));
        match &self.file {
            Some(file) if self.faults.iter().all(in_file) => file,
            None if self
                .faults
                .iter()
                .all(|fault| matches!(fault.origin, Origin::Flag(_))) =>
            {
                "the command line"
            }
            _ => "the configuration",
        }
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.faults.len();
        let plural = if count == 1 { "" } else { "s" };
        write!(
            out,
            "{} has {count} fault{plural}, nothing was started:",
            self.source()
        )?;
        let width = |texts: &mut dyn Iterator<Item = usize>| texts.max().unwrap_or(0);
        let places: Vec<String> = self
            .faults
            .iter()
            .map(|fault| place(&fault.origin))
            .collect();
        let place_width = width(&mut places.iter().map(|text| text.chars().count()));
        let subject_width = width(
            &mut self
                .faults
                .iter()
                .map(|fault| fault.subject.chars().count())
                .filter(|length| *length <= SUBJECT_WIDTH_MAX),
        );
        for (fault, place) in self.faults.iter().zip(&places) {
            write!(
                out,
                "\n  {place:place_width$}  {:subject_width$}  {}",
                fault.subject, fault.problem
            )?;
        }
        Ok(())
    }
}

impl std::error::Error for Faults {}

/// A longer subject than this is not waited for when columns are aligned.
const SUBJECT_WIDTH_MAX: usize = 48;

fn place(origin: &Origin) -> String {
    match origin {
        Origin::Default => "default".to_owned(),
        Origin::Line(line) => format!("line {line}"),
        Origin::Flag(flag) => (*flag).to_owned(),
    }
}
