//! The text format that HdrHistogram's plotter reads (`.hgrm`), values in milliseconds.

use std::fmt::Write;

use super::latency::Latency;

/// Steps per halving of what is left: the plotter's usual resolution.
const TICKS_PER_HALF: u32 = 5;

/// The distribution as text.
pub fn render(latency: &Latency) -> String {
    let mut text = String::from("       Value     Percentile TotalCount 1/(1-Percentile)\n\n");
    for step in latency.steps(TICKS_PER_HALF) {
        let value_ms = step.latency_ns as f64 / 1e6;
        // Writing to a String can't fail.
        let _ = if step.share < 1.0 {
            writeln!(
                text,
                "{value_ms:12.3} {:2.12} {:10} {:14.2}",
                step.share,
                step.count,
                1.0 / (1.0 - step.share)
            )
        } else {
            writeln!(
                text,
                "{value_ms:12.3} {:2.12} {:10}",
                step.share, step.count
            )
        };
    }
    let (buckets, sub_buckets) = latency.resolution();
    let _ = write!(
        text,
        "#[Mean    = {:12.3}, StdDeviation   = {:12.3}]\n#[Max     = {:12.3}, Total count    = {:12}]\n#[Buckets = {:12}, \
         SubBuckets     = {:12}]\n",
        latency.mean_ns() / 1e6,
        latency.deviation_ns() / 1e6,
        latency.max_ns() as f64 / 1e6,
        latency.count(),
        buckets,
        sub_buckets,
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plotter_finds_its_columns() {
        let mut latency = Latency::default();
        for n in 1..=10_000u64 {
            latency.record(n * 1000, 1);
        }
        let text = render(&latency);
        let mut lines = text.lines();
        assert_eq!(lines.next().unwrap().split_whitespace().count(), 4);
        assert_eq!(lines.next(), Some(""));
        let rows = lines
            .clone()
            .take_while(|line| !line.starts_with('#'))
            .collect::<Vec<_>>();
        let mut before = (0.0, 0.0, 0);
        for row in &rows {
            let cells = row.split_whitespace().collect::<Vec<_>>();
            let row = (
                cells[0].parse::<f64>().unwrap(),
                cells[1].parse::<f64>().unwrap(),
                cells[2].parse().unwrap(),
            );
            assert!(row.0 >= before.0 && row.1 >= before.1 && row.2 >= before.2);
            before = row;
        }
        assert_eq!((before.1, before.2), (1.0, 10_000));
        assert!(text.contains("#[Max     =       10."), "{text}");
    }
}
