//! Two pictures of a run: latency by percentile, and rates and tails over time.

use std::fmt::Write;

use super::results::StageResult;
use crate::measure::latency::Latency;

const WIDTH: f64 = 800.0;
const HEIGHT: f64 = 360.0;
const MARGIN_LEFT: f64 = 70.0;
const MARGIN_RIGHT: f64 = 20.0;
const MARGIN_TOP: f64 = 40.0;
const MARGIN_BOTTOM: f64 = 45.0;
const COLOURS: [&str; 6] = [
    "#0b6e99", "#d9730d", "#0f7b6c", "#ad1a72", "#6940a5", "#787774",
];

/// A line of a picture.
struct Series {
    name: String,
    /// In units of the axes.
    points: Vec<(f64, f64)>,
}

/// The axes of a picture.
struct Axes<'a> {
    title: &'a str,
    y_label: &'a str,
    /// Position and text of the marks on the horizontal axis.
    x_marks: Vec<(f64, String)>,
    x_max: f64,
}

/// Latency (ms, vertical) by percentile (horizontal, each nine as wide as the one before).
pub fn latency(stages: &[StageResult]) -> String {
    let mut series = Vec::new();
    for stage in stages {
        for (what, latency) in [
            ("produce", &stage.produce_latency),
            ("end to end", &stage.end_to_end_latency),
        ] {
            if latency.count() > 0 {
                series.push(Series {
                    name: format!("{}, {what}", stage.title),
                    points: by_nines(latency),
                });
            }
        }
    }
    let nines = [
        "0 %",
        "90 %",
        "99 %",
        "99.9 %",
        "99.99 %",
        "99.999 %",
        "99.9999 %",
    ];
    let axes = Axes {
        title: "Latency by percentile",
        y_label: "ms",
        x_marks: nines
            .iter()
            .enumerate()
            .map(|(at, text)| (at as f64, (*text).to_owned()))
            .collect(),
        x_max: (nines.len() - 1) as f64,
    };
    draw(&axes, &series)
}

fn by_nines(latency: &Latency) -> Vec<(f64, f64)> {
    let steps = latency.steps(5);
    let placed = steps.iter().map(|step| {
        let nines = if step.share < 1.0 {
            -(1.0 - step.share).log10()
        } else {
            (latency.count() as f64).log10()
        };
        (nines.clamp(0.0, 6.0), step.latency_ns as f64 / 1e6)
    });
    placed.collect()
}

/// p99 (ms) of each interval over the time of each stage (s), stages one after the other.
pub fn timeline(stages: &[StageResult]) -> String {
    let mut series = Vec::new();
    let mut x_marks = vec![(0.0, "0 s".to_owned())];
    let mut start = 0.0;
    for stage in stages {
        let intervals = stage.timeline.intervals();
        let Some(last) = intervals.last() else {
            continue;
        };
        let rate = |per_second: f64| per_second / 1e6;
        series.push(Series {
            name: format!("{}, million events acknowledged a second", stage.title),
            points: intervals
                .iter()
                .map(|i| (start + i.seconds, rate(i.acknowledged_per_second)))
                .collect(),
        });
        series.push(Series {
            name: format!("{}, produce p99 ms", stage.title),
            points: intervals
                .iter()
                .map(|i| (start + i.seconds, i.produce_p99_ms))
                .collect(),
        });
        start += last.seconds;
        x_marks.push((start, format!("{start:.0} s")));
    }
    let axes = Axes {
        title: "Rates and tails over time",
        y_label: "M/s, ms",
        x_marks,
        x_max: start.max(1.0),
    };
    draw(&axes, &series)
}

fn draw(axes: &Axes<'_>, series: &[Series]) -> String {
    let y_max = series
        .iter()
        .flat_map(|s| &s.points)
        .map(|point| point.1)
        .fold(0.0, f64::max);
    let y_max = round_up(y_max);
    let place = |(x, y): (f64, f64)| {
        let across = (WIDTH - MARGIN_LEFT - MARGIN_RIGHT) * x / axes.x_max;
        let down = (HEIGHT - MARGIN_TOP - MARGIN_BOTTOM) * (1.0 - y / y_max);
        (MARGIN_LEFT + across, MARGIN_TOP + down)
    };
    let height = HEIGHT + 18.0 * series.len() as f64;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"{MARGIN_LEFT}\" y=\"24\" font-size=\"16\">{}</text>\n\
         <text x=\"8\" y=\"{}\">{}</text>\n",
        escape(axes.title),
        MARGIN_TOP - 8.0,
        axes.y_label,
    );
    // Writing to a String can't fail.
    for step in 0..=4 {
        let value = y_max * f64::from(step) / 4.0;
        let (_, y) = place((0.0, value));
        let right = WIDTH - MARGIN_RIGHT;
        let _ = writeln!(
            svg,
            "<path d=\"M{MARGIN_LEFT} {y:.1}H{right}\" stroke=\"#ddd\"/>"
        );
        let _ = writeln!(
            svg,
            "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{value}</text>",
            MARGIN_LEFT - 6.0,
            y + 4.0
        );
    }
    for (at, text) in &axes.x_marks {
        let (x, y) = place((*at, 0.0));
        let _ = writeln!(
            svg,
            "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            y + 18.0,
            escape(text)
        );
    }
    for (number, series) in series.iter().enumerate() {
        let colour = COLOURS[number % COLOURS.len()];
        let path =
            series
                .points
                .iter()
                .enumerate()
                .fold(String::new(), |mut path, (at, &point)| {
                    let (x, y) = place(point);
                    let _ = write!(path, "{}{x:.1} {y:.1}", if at == 0 { 'M' } else { 'L' });
                    path
                });
        let _ = writeln!(
            svg,
            "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\"/>"
        );
        let y = HEIGHT + 18.0 * number as f64;
        let _ = writeln!(
            svg,
            "<rect x=\"{MARGIN_LEFT}\" y=\"{:.1}\" width=\"12\" height=\"3\" fill=\"{colour}\"/>",
            y - 5.0
        );
        let _ = writeln!(
            svg,
            "<text x=\"{}\" y=\"{y:.1}\">{}</text>",
            MARGIN_LEFT + 18.0,
            escape(&series.name)
        );
    }
    svg.push_str("</svg>\n");
    svg
}

/// The next of 1, 2, 4 times a power of ten.
fn round_up(value: f64) -> f64 {
    if value <= 0.0 {
        return 1.0;
    }
    let power = 10f64.powf(value.log10().floor());
    [1.0, 2.0, 4.0, 10.0]
        .into_iter()
        .map(|step| step * power)
        .find(|&bound| bound >= value)
        .unwrap_or(value)
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_end_on_round_numbers() {
        for (value, bound) in [
            (0.0, 1.0),
            (0.3, 0.4),
            (1.0, 1.0),
            (3.0, 4.0),
            (77.0, 100.0),
        ] {
            assert!((round_up(value) - bound).abs() < 1e-9, "{value}");
        }
    }

    #[test]
    fn text_is_escaped() {
        let axes = Axes {
            title: "a < b & c",
            y_label: "ms",
            x_marks: vec![(0.0, "0".into())],
            x_max: 1.0,
        };
        let svg = draw(
            &axes,
            &[Series {
                name: "<x>".into(),
                points: vec![(0.0, 0.0), (1.0, 3.0)],
            }],
        );
        assert!(
            svg.contains("a &lt; b &amp; c")
                && svg.contains("&lt;x&gt;")
                && svg.ends_with("</svg>\n")
        );
    }
}
