//! A latency histogram drawn with blocks.

use crate::measure::latency::Latency;

/// Cells of the longest bar.
const WIDTH: usize = 40;

/// Lines of the histogram: upper bound in ms, then a bar as long as the share of events up to it and above the line
/// before. Bounds double, so a long tail takes few lines.
pub fn draw(latency: &Latency) -> Vec<String> {
    let total = latency.count();
    if total == 0 {
        return Vec::new();
    }
    let buckets = buckets(latency);
    let largest = buckets
        .iter()
        .map(|&(_, count)| count)
        .max()
        .unwrap_or(1)
        .max(1);
    buckets
        .iter()
        .map(|&(bound_ns, count)| {
            let bound = bound_ms(bound_ns);
            let bar = bar(count as f64 / largest as f64 * WIDTH as f64);
            let share = count as f64 / total as f64 * 100.0;
            if count == 0 {
                format!("{bound:>7}")
            } else {
                format!("{bound:>7} {bar} {}", percent(share))
            }
        })
        .collect()
}

/// Upper bounds that double, and the events between each and the one before, from the first to the last with events.
fn buckets(latency: &Latency) -> Vec<(u64, u64)> {
    let mut bound_ns = 31_250;
    let mut below_ns = 0;
    let mut buckets = Vec::new();
    while below_ns <= latency.max_ns() {
        buckets.push((bound_ns, latency.count_between(below_ns, bound_ns)));
        below_ns = bound_ns;
        bound_ns *= 2;
    }
    let first = buckets
        .iter()
        .position(|&(_, count)| count > 0)
        .unwrap_or(0);
    buckets.split_off(first)
}

fn bound_ms(bound_ns: u64) -> String {
    let ms = bound_ns as f64 / 1e6;
    if ms < 0.25 {
        format!("{ms:.3}")
    } else if ms < 10.0 {
        format!("{ms:.2}")
    } else {
        format!("{ms:.0}")
    }
}

fn percent(share: f64) -> String {
    if share >= 0.1 {
        format!("{share:.1} %")
    } else {
        format!("{share:.4} %")
    }
}

/// A bar to an eighth of a cell; something that is there is never drawn as nothing.
fn bar(cells: f64) -> String {
    const EIGHTHS: [char; 8] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];
    let eighths = ((cells * 8.0).round() as usize).max(1);
    let mut bar = "█".repeat(eighths / 8);
    if !eighths.is_multiple_of(8) {
        bar.push(EIGHTHS[eighths % 8 - 1]);
    }
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_in_proportion_and_nothing_vanishes() {
        let mut latency = Latency::default();
        latency.record(200_000, 1000);
        latency.record(400_000, 500);
        latency.record(7_000_000, 1);
        let lines = draw(&latency);
        assert!(lines[0].starts_with("   0.25 ████"), "{lines:#?}");
        assert_eq!(lines[0].matches('█').count(), 40);
        assert_eq!(lines[1].matches('█').count(), 20);
        assert!(lines.last().unwrap().starts_with("   8.00 ▏"), "{lines:#?}");
        assert_eq!(lines.len(), 6);
    }

    #[test]
    fn no_events_no_lines() {
        assert!(draw(&Latency::default()).is_empty());
    }
}
