//! Printing: buffered stdout that survives a closed pipe, tables, numbers and times for people.

use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use comfy_table::{CellAlignment, Table, presets};
use serde_json::Value;
use tackboard_client::TimestampMs;

use super::failure::Failure;

/// Buffered stdout. Flush it: dropping loses nothing but hides errors.
pub(super) fn stdout() -> BufWriter<StdoutLock<'static>> {
    BufWriter::with_capacity(64 << 10, io::stdout().lock())
}

/// Prints text as it is.
pub(super) fn print(text: &str) -> Result<(), Failure> {
    let mut out = stdout();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

/// Prints one JSON value on one line.
pub(super) fn print_json(value: &Value) -> Result<(), Failure> {
    print(&format!("{value}\n"))
}

/// A note for people. Nobody reads it under `--json`, unless they look at stderr.
pub(super) fn note(text: &str) {
    eprintln!("note   {text}");
}

/// Whether progress may be drawn.
pub(super) fn is_drawable() -> bool {
    io::stderr().is_terminal()
}

/// A table without lines: columns of text left, columns of numbers right.
pub(super) struct Columns {
    table: Table,
}

impl Columns {
    /// `names` of the columns; those that begin with `>` are aligned to the right.
    pub(super) fn new(names: &[&str]) -> Self {
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        table.set_header(names.iter().map(|name| name.trim_start_matches('>')));
        for (index, name) in names.iter().enumerate() {
            let Some(column) = table.column_mut(index) else {
                continue;
            };
            column.set_padding((0, 2));
            if name.starts_with('>') {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        Self { table }
    }

    pub(super) fn row(&mut self, cells: &[String]) {
        self.table.add_row(cells);
    }

    /// The lines, each behind `indent`, without spaces at their ends.
    pub(super) fn text(&self, indent: &str) -> String {
        let lines = self
            .table
            .lines()
            .map(|line| format!("{indent}{}\n", line.trim_end()));
        lines.collect()
    }
}

/// `1 partition`, `6 partitions`.
pub(super) fn counted(count: u64, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!(
        "{} {what}{plural}",
        crate::config::quantity::separated(count)
    )
}

/// `2 s ago`, `3 h ago`.
pub(super) fn ago(time: TimestampMs) -> String {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let then = Duration::from_millis(u64::try_from(time.0).unwrap_or(0));
    let seconds = now.saturating_sub(then).as_secs();
    let (count, unit) = match seconds {
        0..120 => (seconds, "s"),
        120..7_200 => (seconds / 60, "min"),
        7_200..172_800 => (seconds / 3_600, "h"),
        _ => (seconds / 86_400, "d"),
    };
    format!("{count} {unit} ago")
}

/// RFC 3339, for JSON. A time outside of what that can write becomes null.
pub(super) fn rfc3339(time: TimestampMs) -> Value {
    jiff::Timestamp::from_millisecond(time.0).map_or(Value::Null, |time| time.to_string().into())
}

/// A rate or a count per second, rounded to three digits: `282,000`.
pub(super) fn rounded(number: f64) -> u64 {
    if !number.is_finite() || number < 0.0 {
        return 0;
    }
    let whole = number as u64;
    let digits = whole.checked_ilog10().unwrap_or(0);
    let unit = 10_u64.pow(digits.saturating_sub(2));
    (whole + unit / 2) / unit * unit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_aligned_to_the_right_and_lines_end_without_spaces() {
        let mut columns = Columns::new(&["name", ">events"]);
        columns.row(&["flights".to_owned(), "336,776".to_owned()]);
        columns.row(&["a".to_owned(), "1".to_owned()]);
        let text = columns.text("");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3);
        assert!(
            lines.iter().all(|line| line.len() == lines[0].len()),
            "{text}"
        );
        assert!(lines[2].ends_with("  1"), "{text}");
    }

    #[test]
    fn counts_and_rates() {
        assert_eq!(counted(1, "partition"), "1 partition");
        assert_eq!(counted(1_234, "event"), "1,234 events");
        assert_eq!(rounded(281_734.2), 282_000);
        assert_eq!(rounded(12.7), 12);
        assert_eq!(rounded(f64::INFINITY), 0);
    }

    #[test]
    fn times() {
        assert_eq!(
            rfc3339(TimestampMs(1_372_896_000_000)),
            "2013-07-04T00:00:00Z"
        );
        assert_eq!(rfc3339(TimestampMs(i64::MAX)), Value::Null);
        assert!(ago(TimestampMs(0)).ends_with(" d ago"));
    }
}
