//! Numbers as people read them.

use std::time::Duration;

/// `31402112` as `31,402,112`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A rate with three significant digits and separators: `3,140,000`.
pub fn rate(per_second: f64) -> String {
    if !per_second.is_finite() || per_second <= 0.0 {
        return "0".into();
    }
    if per_second < 100.0 {
        return format!("{per_second:.1}");
    }
    let digits = per_second.log10().floor() as i32 - 2;
    let step = 10f64.powi(digits);
    grouped(((per_second / step).round() * step) as u64)
}

/// Bytes a second: `314 MB/s`.
pub fn byte_rate(per_second: f64) -> String {
    format!("{}/s", bytes(per_second))
}

/// Bytes with a decimal unit: `71 MB`, `1.25 GB`.
pub fn bytes(bytes: f64) -> String {
    let units = ["B", "kB", "MB", "GB", "TB"];
    let mut value = bytes.max(0.0);
    let mut unit = 0;
    while value >= 999.5 && unit < units.len() - 1 {
        value /= 1000.0;
        unit += 1;
    }
    let digits = if unit == 0 || value >= 99.95 {
        0
    } else if value >= 9.995 {
        1
    } else {
        2
    };
    format!("{value:.digits$} {}", units[unit])
}

/// A latency in milliseconds, to a hundredth; microseconds below that are shown in full: `0.31`, `12.50`, `0.004`.
pub fn milliseconds(ns: u64) -> String {
    let ms = ns as f64 / 1e6;
    if ns > 0 && ms < 0.1 {
        format!("{ms:.3}")
    } else {
        format!("{ms:.2}")
    }
}

/// A time span: `10 s`, `0.11 s`, `250 ms`, `5 min`.
pub fn span(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    if seconds >= 120.0 && seconds % 60.0 == 0.0 {
        format!("{:.0} min", seconds / 60.0)
    } else if seconds >= 10.0 || seconds.fract() == 0.0 {
        format!("{seconds:.0} s")
    } else if seconds >= 0.1 {
        format!("{seconds:.2} s")
    } else {
        format!("{:.1} ms", seconds * 1e3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separators() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1000), "1,000");
        assert_eq!(grouped(51_402_112), "51,402,112");
    }

    #[test]
    fn units() {
        assert_eq!(rate(3_141_592.0), "3,140,000");
        assert_eq!(rate(99_987.0), "100,000");
        assert_eq!(rate(0.0), "0");
        assert_eq!(byte_rate(314_159_265.0), "314 MB/s");
        assert_eq!(bytes(71e6), "71.0 MB");
        assert_eq!(bytes(1.25e9), "1.25 GB");
        assert_eq!(bytes(12.0), "12 B");
        assert_eq!(milliseconds(310_000), "0.31");
        assert_eq!(milliseconds(4_000), "0.004");
        assert_eq!(milliseconds(7_100_000), "7.10");
        assert_eq!(span(Duration::from_secs(10)), "10 s");
        assert_eq!(span(Duration::from_millis(110)), "0.11 s");
        assert_eq!(span(Duration::from_secs(300)), "5 min");
    }
}
