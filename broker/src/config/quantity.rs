//! Sizes and durations as people write them: `128 MiB`, `7 d`, `100 ms`.
//!
//! Parsing and showing are each other's inverse: [`show_size`] and [`show_duration`] write the
//! largest unit that divides the value, and what they write parses to the same value.

use std::time::Duration;

const SIZE_UNITS: &[(&str, u64)] = &[
    ("B", 1),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
];

/// How many of `SIZE_UNITS`, from the front, are used to show a size.
const SIZE_UNITS_SHOWN: usize = 5;

const DURATION_UNITS: &[(&str, u64)] = &[
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60 * 1_000_000_000),
    ("h", 3_600 * 1_000_000_000),
    ("d", 86_400 * 1_000_000_000),
];

const DURATION_ALIASES: &[(&str, &str)] = &[
    ("µs", "us"),
    ("m", "min"),
    ("sec", "s"),
    ("second", "s"),
    ("seconds", "s"),
    ("minute", "min"),
    ("minutes", "min"),
    ("hour", "h"),
    ("hours", "h"),
    ("day", "d"),
    ("days", "d"),
];

/// Bytes from `128 MiB`, `4KiB`, or digits alone (bytes). None if it is not a size or over 2^64.
pub fn parse_size(text: &str) -> Option<u64> {
    let (number, unit) = split_number(text)?;
    let factor = match unit {
        "" => 1,
        _ => {
            SIZE_UNITS
                .iter()
                .find(|(name, _)| name.eq_ignore_ascii_case(unit))?
                .1
        }
    };
    number.checked_mul(factor)
}

/// A duration from `7 d`, `100ms`, or digits alone (milliseconds).
pub fn parse_duration(text: &str) -> Option<Duration> {
    let (number, unit) = split_number(text)?;
    let unit = match unit {
        "" => "ms",
        _ => DURATION_ALIASES
            .iter()
            .find(|(alias, _)| *alias == unit)
            .map_or(unit, |found| found.1),
    };
    let factor_ns = DURATION_UNITS.iter().find(|(name, _)| *name == unit)?.1;
    number.checked_mul(factor_ns).map(Duration::from_nanos)
}

/// The size in the largest binary unit that divides it.
pub fn show_size(bytes: u64) -> String {
    let shown = SIZE_UNITS[..SIZE_UNITS_SHOWN].iter().rev();
    let (name, factor) = shown
        .copied()
        .find(|(_, factor)| bytes != 0 && bytes.is_multiple_of(*factor))
        .unwrap_or(SIZE_UNITS[0]);
    format!("{} {name}", bytes / factor)
}

/// The duration in the largest unit that divides it.
pub fn show_duration(duration: Duration) -> String {
    let total_ns = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    if total_ns == 0 {
        return "0 ms".to_owned();
    }
    let (name, factor) = DURATION_UNITS
        .iter()
        .rev()
        .copied()
        .find(|(_, factor)| total_ns.is_multiple_of(*factor))
        .unwrap_or(DURATION_UNITS[0]);
    format!("{} {name}", total_ns / factor)
}

/// A size for people: three digits and a unit, rounded (`58.3 MB`, decimal as disks are sold).
pub fn approximate_size(bytes: u64) -> String {
    const UNITS: &[&str] = &["B", "kB", "MB", "GB", "TB", "PB", "EB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    let decimals = if unit == 0 || value >= 99.95 { 0 } else { 1 };
    let number = format!("{value:.decimals$}");
    let number = number.strip_suffix(".0").unwrap_or(&number);
    format!("{number} {}", UNITS[unit])
}

/// A whole number with separators: `336,776`.
pub fn separated(number: u64) -> String {
    let digits = number.to_string();
    let mut shown = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

/// The digits (with `_` or `,` between them, as people group them) and the unit behind them.
fn split_number(text: &str) -> Option<(u64, &str)> {
    let text = text.trim();
    let digits_end = text
        .find(|character: char| !character.is_ascii_digit() && character != '_' && character != ',')
        .unwrap_or(text.len());
    let (digits, unit) = text.split_at(digits_end);
    if !digits.starts_with(|character: char| character.is_ascii_digit()) {
        return None;
    }
    let digits: String = digits.chars().filter(char::is_ascii_digit).collect();
    Some((digits.parse().ok()?, unit.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        assert_eq!(parse_size("128 MiB"), Some(128 << 20));
        assert_eq!(parse_size("4kib"), Some(4096));
        assert_eq!(parse_size("1,048,588"), Some(1_048_588));
        assert_eq!(parse_size("5 GB"), Some(5_000_000_000));
        for wrong in [
            "",
            "MiB",
            "12 parsecs",
            "-1 B",
            "1.5 GiB",
            "99999999999999999999",
            ",1",
        ] {
            assert_eq!(parse_size(wrong), None, "{wrong}");
        }
        assert_eq!(parse_size("17000000 TiB"), None);
    }

    #[test]
    fn durations() {
        assert_eq!(parse_duration("7 d"), Some(Duration::from_secs(7 * 86_400)));
        assert_eq!(parse_duration("100ms"), Some(Duration::from_millis(100)));
        assert_eq!(parse_duration("250"), Some(Duration::from_millis(250)));
        assert_eq!(parse_duration("20 µs"), Some(Duration::from_micros(20)));
        assert_eq!(parse_duration("5 minutes"), Some(Duration::from_secs(300)));
        for wrong in ["", "d", "7 lightyears", "-1 s"] {
            assert_eq!(parse_duration(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn what_is_shown_parses_to_the_same() {
        for bytes in [0, 1, 1023, 1024, 1_048_588, 128 << 20, 3 << 40] {
            assert_eq!(parse_size(&show_size(bytes)), Some(bytes));
        }
        for ms in [0, 1, 100, 1_500, 60_000, 43_200_000, 604_800_000] {
            let duration = Duration::from_millis(ms);
            assert_eq!(parse_duration(&show_duration(duration)), Some(duration));
        }
        assert_eq!(show_size(128 << 20), "128 MiB");
        assert_eq!(show_duration(Duration::from_secs(7 * 86_400)), "7 d");
        assert_eq!(show_duration(Duration::from_secs(43_200)), "12 h");
    }

    #[test]
    fn numbers_for_people() {
        assert_eq!(separated(0), "0");
        assert_eq!(separated(336_776), "336,776");
        assert_eq!(separated(1_000), "1,000");
        assert_eq!(approximate_size(999), "999 B");
        assert_eq!(approximate_size(58_300_000), "58.3 MB");
        assert_eq!(approximate_size(4_000_000_000), "4 GB");
        assert_eq!(approximate_size(999_999), "1 MB");
    }
}
