//! Quantities as people write them.

use std::time::Duration;

/// Reads a number with an optional factor: `100000`, `100,000`, `100k`, `1.5M`.
pub fn number(text: &str) -> Option<f64> {
    let text = text.trim().replace(['_', ','], "");
    let (digits, factor) = match text.chars().last()? {
        'k' | 'K' => (&text[..text.len() - 1], 1e3),
        'm' | 'M' => (&text[..text.len() - 1], 1e6),
        'g' | 'G' => (&text[..text.len() - 1], 1e9),
        _ => (&text[..], 1.0),
    };
    if !digits.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let number = digits.trim_end().parse::<f64>().ok()? * factor;
    number.is_finite().then_some(number)
}

/// Reads a whole number, with an optional factor.
pub fn count(text: &str) -> Option<u64> {
    let number = number(text)?;
    (number.fract() == 0.0 && number < 9e15).then_some(number as u64)
}

/// Reads a size: `16384`, `16 KiB`, `1 MiB`, `100 kB`, `1 GB`.
pub fn bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let unit_at = text
        .find(|c: char| c.is_ascii_alphabetic())
        .unwrap_or(text.len());
    let factor: u64 = match text[unit_at..].to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        _ => return None,
    };
    count(&text[..unit_at])?.checked_mul(factor)
}

/// Reads a time span: `500us`, `5 ms`, `10 s`, `1.5 min`, `2h`. A bare number is refused, except zero: its unit would be
/// a guess.
pub fn duration(text: &str) -> Option<Duration> {
    let text = text.trim();
    let unit_at = text.find(|c: char| c.is_alphabetic()).unwrap_or(text.len());
    let number = number(&text[..unit_at])?;
    let seconds = match &text[unit_at..] {
        "us" | "µs" => number / 1e6,
        "ms" => number / 1e3,
        "s" | "sec" => number,
        "m" | "min" => number * 60.0,
        "h" => number * 3600.0,
        "" if number == 0.0 => 0.0,
        _ => return None,
    };
    Duration::try_from_secs_f64(seconds).ok()
}

/// Reads a share that is written in percent: `5%`, `0.5 %`. A bare number is refused: whether it is meant in percent would
/// be a guess.
pub fn percent(text: &str) -> Option<f64> {
    Some(number(text.trim().strip_suffix('%')?)? / 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares() {
        assert_eq!(percent("5%"), Some(0.05));
        assert_eq!(percent("12.5 %"), Some(0.125));
        for bad in ["5", "%", "", "-5%", "five%"] {
            assert_eq!(percent(bad), None, "{bad}");
        }
    }

    #[test]
    fn numbers() {
        assert_eq!(number("100k"), Some(100_000.0));
        assert_eq!(number("1.5M"), Some(1_500_000.0));
        assert_eq!(count("1,000,000"), Some(1_000_000));
        assert_eq!(count("1.5"), None);
        for bad in ["", "k", "-1", "abc", "inf", "nan", "1e400", "1kk"] {
            assert_eq!(number(bad), None, "{bad}");
        }
    }

    #[test]
    fn sizes() {
        assert_eq!(bytes("16 KiB"), Some(16384));
        assert_eq!(bytes("16k"), Some(16384));
        assert_eq!(bytes("100 kB"), Some(100_000));
        assert_eq!(bytes("512"), Some(512));
        assert_eq!(bytes("1 MB"), Some(1_000_000));
        for bad in ["", "KiB", "1 XB", "-1 KiB", "99999999 GiB GiB"] {
            assert_eq!(bytes(bad), None, "{bad}");
        }
    }

    #[test]
    fn durations() {
        assert_eq!(duration("10 s"), Some(Duration::from_secs(10)));
        assert_eq!(duration("500us"), Some(Duration::from_micros(500)));
        assert_eq!(duration("1.5min"), Some(Duration::from_secs(90)));
        assert_eq!(duration("0"), Some(Duration::ZERO));
        for bad in ["10", "", "s", "10 days", "-1 s"] {
            assert_eq!(duration(bad), None, "{bad}");
        }
    }
}
