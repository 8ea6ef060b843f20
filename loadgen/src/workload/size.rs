//! How large the value of each event is.

use super::event::{VALUE_BYTES_MAX, VALUE_BYTES_MIN};
use super::rng::Rng;

/// The sizes of event values, in bytes.
#[derive(Clone, Debug, PartialEq)]
pub enum SizeSpec {
    /// All the same.
    Fixed(u32),
    /// Equally likely from the first to the last, both included.
    Uniform(u32, u32),
    /// Size and weight of each kind of event.
    Mix(Vec<(u32, u32)>),
}

impl SizeSpec {
    /// What the text forms of a specification are, for messages.
    pub const ALLOWED: &str = "bytes from 32 to 1,000,000: a size (100), a range (100..1000), or sizes with weights (100=9,1000=1)";

    /// Reads `100`, `100..1000` or `100=9,1000=1`.
    pub fn parse(text: &str) -> Option<Self> {
        if let Some((low, high)) = text.split_once("..") {
            let (low, high) = (size(low)?, size(high)?);
            return (low <= high).then_some(Self::Uniform(low, high));
        }
        if !text.contains('=') {
            return size(text).map(Self::Fixed);
        }
        let mix = text
            .split(',')
            .map(|part| {
                let (bytes, weight) = part.split_once('=')?;
                let weight: u32 = weight.trim().parse().ok()?;
                (weight > 0).then_some((size(bytes)?, weight))
            })
            .collect::<Option<Vec<_>>>()?;
        Some(Self::Mix(mix))
    }

    /// The largest size that can be drawn.
    pub fn bytes_max(&self) -> u32 {
        match self {
            Self::Fixed(bytes) => *bytes,
            Self::Uniform(_, high) => *high,
            Self::Mix(mix) => mix.iter().map(|(bytes, _)| *bytes).max().unwrap_or(0),
        }
    }

    /// The expected size, for bounds on disk space.
    pub fn bytes_mean(&self) -> f64 {
        match self {
            Self::Fixed(bytes) => f64::from(*bytes),
            Self::Uniform(low, high) => (f64::from(*low) + f64::from(*high)) / 2.0,
            Self::Mix(mix) => {
                let weights: f64 = mix.iter().map(|(_, weight)| f64::from(*weight)).sum();
                mix.iter()
                    .map(|(bytes, weight)| f64::from(*bytes) * f64::from(*weight))
                    .sum::<f64>()
                    / weights
            }
        }
    }

    /// Draws the size of the next event.
    pub fn draw(&self, rng: &mut Rng) -> u32 {
        match self {
            Self::Fixed(bytes) => *bytes,
            Self::Uniform(low, high) => low + rng.below(u64::from(high - low) + 1) as u32,
            Self::Mix(mix) => {
                let total: u64 = mix.iter().map(|(_, weight)| u64::from(*weight)).sum();
                let mut at = rng.below(total);
                for (bytes, weight) in mix {
                    match at.checked_sub(u64::from(*weight)) {
                        None => return *bytes,
                        Some(rest) => at = rest,
                    }
                }
                unreachable!("a number below the sum of the weights falls into one of them")
            }
        }
    }
}

impl std::fmt::Display for SizeSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Fixed(bytes) => write!(f, "{bytes} B"),
            Self::Uniform(low, high) => write!(f, "{low} to {high} B"),
            Self::Mix(mix) => {
                let parts = mix
                    .iter()
                    .map(|(bytes, weight)| format!("{bytes}={weight}"))
                    .collect::<Vec<_>>();
                write!(f, "{} B", parts.join(","))
            }
        }
    }
}

fn size(text: &str) -> Option<u32> {
    let bytes: u32 = text.trim().trim_end_matches('B').trim_end().parse().ok()?;
    (VALUE_BYTES_MIN..=VALUE_BYTES_MAX)
        .contains(&bytes)
        .then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_each_form_and_nothing_else() {
        assert_eq!(SizeSpec::parse("100"), Some(SizeSpec::Fixed(100)));
        assert_eq!(SizeSpec::parse("100 B"), Some(SizeSpec::Fixed(100)));
        assert_eq!(
            SizeSpec::parse("100..1000"),
            Some(SizeSpec::Uniform(100, 1000))
        );
        assert_eq!(
            SizeSpec::parse("100=9,1000=1"),
            Some(SizeSpec::Mix(vec![(100, 9), (1000, 1)]))
        );
        for bad in [
            "",
            "abc",
            "31",
            "1000001",
            "1000..100",
            "100=0",
            "100=1,",
            "100..",
            "-5",
        ] {
            assert_eq!(SizeSpec::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn draws_stay_inside_and_follow_the_weights() {
        let mut rng = Rng::new(3, 0);
        let uniform = SizeSpec::parse("100..103").unwrap();
        let mut seen = [0; 4];
        for _ in 0..4000 {
            seen[(uniform.draw(&mut rng) - 100) as usize] += 1;
        }
        assert!(seen.iter().all(|&n| (800..1200).contains(&n)), "{seen:?}");

        let mix = SizeSpec::parse("100=9,1000=1").unwrap();
        let large = (0..10_000).filter(|_| mix.draw(&mut rng) == 1000).count();
        assert!((850..1150).contains(&large), "{large}");
        assert_eq!(mix.bytes_max(), 1000);
        assert!((mix.bytes_mean() - 190.0).abs() < 1e-9);
    }
}
