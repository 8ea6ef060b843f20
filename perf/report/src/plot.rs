//! Pictures of what was measured, as SVG: latency by percentile, and rates and tails over time.

use std::fmt::Write;

const WIDTH: f64 = 800.0;
const HEIGHT: f64 = 360.0;
const MARGIN_LEFT: f64 = 70.0;
const MARGIN_RIGHT: f64 = 20.0;
const MARGIN_TOP: f64 = 40.0;
const MARGIN_BOTTOM: f64 = 45.0;
/// Height of a line of the legend.
const LEGEND_LINE: f64 = 18.0;
const COLOURS: [&str; 10] = [
    "#0b6e99", "#d9730d", "#0f7b6c", "#ad1a72", "#6940a5", "#787774", "#c7a008", "#64473a",
    "#4d8dff", "#7fb800",
];
/// Where the horizontal axis of percentiles has its marks: each one nine further.
const NINES: [&str; 7] = [
    "0 %",
    "90 %",
    "99 %",
    "99.9 %",
    "99.99 %",
    "99.999 %",
    "99.9999 %",
];

/// The distribution of some latencies.
#[derive(Clone, Debug)]
pub struct Curve {
    /// What the legend calls it.
    pub name: String,
    /// How many latencies there are.
    pub count: u64,
    /// Share of them (0 to 1) and the latency in milliseconds that these did not exceed, ascending.
    pub steps: Vec<(f64, f64)>,
}

/// What a moment of a course was like.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Moment {
    /// Seconds since the picture begins.
    pub seconds: f64,
    /// Events a second that were acknowledged, or read.
    pub events_per_second: f64,
    /// Milliseconds that 99 % of them did not exceed.
    pub p99_ms: f64,
}

/// Rates and tails over a time.
#[derive(Clone, Debug)]
pub struct Course {
    /// What the legend calls it.
    pub name: String,
    /// In order of time.
    pub moments: Vec<Moment>,
}

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
pub fn by_percentile(curves: &[Curve]) -> String {
    let axes = Axes {
        title: "Latency by percentile",
        y_label: "ms",
        x_marks: NINES
            .iter()
            .enumerate()
            .map(|(at, text)| (at as f64, (*text).to_owned()))
            .collect(),
        x_max: (NINES.len() - 1) as f64,
    };
    let series: Vec<Series> = curves
        .iter()
        .map(|curve| Series {
            name: curve.name.clone(),
            points: by_nines(curve),
        })
        .collect();
    document(&[(&axes, &series)])
}

fn by_nines(curve: &Curve) -> Vec<(f64, f64)> {
    let placed = curve.steps.iter().map(|&(share, latency_ms)| {
        let nines = match share < 1.0 {
            true => -(1.0 - share).log10(),
            false => (curve.count as f64).log10(),
        };
        (nines.clamp(0.0, (NINES.len() - 1) as f64), latency_ms)
    });
    placed.collect()
}

/// Two panels over time (s): million events a second, and the p99 (ms) of each moment. `marks` are the times that are
/// worth a mark beside the start.
pub fn over_time(courses: &[Course], marks: &[f64]) -> String {
    let last = marks.iter().copied().fold(1.0, f64::max);
    let mut x_marks = vec![(0.0, "0 s".to_owned())];
    x_marks.extend(marks.iter().map(|&mark| (mark, format!("{mark:.0} s"))));
    let panel = |title, y_label, pick: fn(&Moment) -> f64| {
        let axes = Axes {
            title,
            y_label,
            x_marks: x_marks.clone(),
            x_max: last,
        };
        let series = courses.iter().map(|course| Series {
            name: course.name.clone(),
            points: course
                .moments
                .iter()
                .map(|moment| (moment.seconds, pick(moment)))
                .collect(),
        });
        (axes, series.collect::<Vec<_>>())
    };
    let rates = panel("Rates over time", "million events/s", |moment| {
        moment.events_per_second / 1e6
    });
    let tails = panel("Tails over time", "p99, ms", |moment| moment.p99_ms);
    document(&[(&rates.0, &rates.1), (&tails.0, &tails.1)])
}

/// Panels, one below the other.
fn document(panels: &[(&Axes<'_>, &Vec<Series>)]) -> String {
    let mut body = String::new();
    let mut height = 0.0;
    for (axes, series) in panels {
        // Writing to a String can't fail.
        let _ = write!(
            body,
            "<g transform=\"translate(0 {height})\">\n{}</g>\n",
            draw(axes, series)
        );
        height += HEIGHT + LEGEND_LINE * series.len() as f64;
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n{body}</svg>\n"
    )
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
    let mut svg = format!(
        "<text x=\"{MARGIN_LEFT}\" y=\"24\" font-size=\"16\">{}</text>\n\
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
        let y = HEIGHT + LEGEND_LINE * number as f64;
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
    fn a_percentile_lies_at_its_nines_and_the_last_at_the_count() {
        let curve = Curve {
            name: "x".into(),
            count: 1000,
            steps: vec![(0.0, 0.5), (0.9, 1.0), (0.99, 2.0), (1.0, 4.0)],
        };
        let points = by_nines(&curve);
        for ((nines, latency), (expected, ms)) in
            points
                .iter()
                .zip([(0.0, 0.5), (1.0, 1.0), (2.0, 2.0), (3.0, 4.0)])
        {
            assert!((nines - expected).abs() < 1e-9, "{points:?}");
            assert_eq!(*latency, ms);
        }
    }

    #[test]
    fn a_course_has_a_line_in_each_panel_and_its_name_is_escaped() {
        let moment = |seconds| Moment {
            seconds,
            events_per_second: 2e6,
            p99_ms: 3.0,
        };
        let course = Course {
            name: "a < b & c".into(),
            moments: vec![moment(0.5), moment(1.0)],
        };
        let svg = over_time(&[course], &[1.0]);
        assert_eq!(svg.matches("a &lt; b &amp; c").count(), 2);
        assert_eq!(svg.matches("fill=\"none\"").count(), 2);
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
    }
}
