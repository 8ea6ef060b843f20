//! The live line on standard error: stage, bar, rate, p99, lag. Nothing is drawn when nobody looks at it.

use std::io::{self, IsTerminal, Write};

use super::number::{milliseconds, rate};

const BAR_WIDTH: usize = 20;

/// One line that is redrawn in place.
pub struct Progress {
    drawn: bool,
    is_terminal: bool,
}

/// How far a stage has come.
#[derive(Clone, Copy, Debug, Default)]
pub struct Glimpse {
    /// From 0 to 1.
    pub done: f64,
    /// Events acknowledged a second, lately.
    pub acknowledged_per_second: f64,
    /// Events read a second, lately.
    pub read_per_second: f64,
    /// p99 of the latencies lately, ns.
    pub p99_ns: u64,
    /// Worst own lag lately, ns; in open loop.
    pub lag_ns: Option<u64>,
}

impl Progress {
    /// A line that is drawn only on a terminal.
    pub fn new() -> Self {
        Self {
            drawn: false,
            is_terminal: io::stderr().is_terminal(),
        }
    }

    /// Draws the line anew.
    pub fn draw(&mut self, stage: &str, glimpse: Glimpse) {
        if self.is_terminal {
            self.drawn = true;
            let _ = write!(io::stderr(), "\r\x1b[K{}", line(stage, glimpse));
        }
    }

    /// Takes the line away, before something else is written.
    pub fn clear(&mut self) {
        if std::mem::take(&mut self.drawn) {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}

fn line(stage: &str, glimpse: Glimpse) -> String {
    let full = (glimpse.done.clamp(0.0, 1.0) * BAR_WIDTH as f64).round() as usize;
    let bar = "█".repeat(full) + &"░".repeat(BAR_WIDTH - full);
    let mut line = format!(
        "{stage} {bar} {:>3.0} %  sent {} ev/s  read {} ev/s  p99 {} ms",
        glimpse.done.clamp(0.0, 1.0) * 100.0,
        rate(glimpse.acknowledged_per_second),
        rate(glimpse.read_per_second),
        milliseconds(glimpse.p99_ns),
    );
    if let Some(lag_ns) = glimpse.lag_ns {
        line.push_str(&format!("  lag {} ms", milliseconds(lag_ns)));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_everything() {
        let glimpse = Glimpse {
            done: 0.5,
            acknowledged_per_second: 1_234_567.0,
            read_per_second: 1_200_000.0,
            p99_ns: 3_050_000,
            lag_ns: Some(200_000),
        };
        let line = line("steady", glimpse);
        assert_eq!(
            line,
            "steady ██████████░░░░░░░░░░  50 %  sent 1,230,000 ev/s  read 1,200,000 ev/s  p99 3.05 ms  lag 0.20 ms"
        );
    }
}
