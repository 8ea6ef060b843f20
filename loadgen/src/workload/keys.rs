//! Which key each event carries.
//!
//! Synthetic keys are numbers with a fixed spelling (`key-0000002a`), so the reading side can tell from the number inside
//! an event which key must stand beside it.

use std::sync::Arc;

use super::rng::Rng;

/// Most keys of a synthetic run: the zipf table takes eight bytes each.
pub const KEY_COUNT_MAX: u32 = 4_000_000;

/// Length of a synthetic key.
pub const KEY_BYTES: usize = 12;

/// Where keys come from.
#[derive(Clone, Debug, PartialEq)]
pub enum KeySpec {
    /// No event has one; events are spread over partitions evenly.
    None,
    /// Equally likely, out of this many.
    Uniform(u32),
    /// Out of this many, the k-th most common one with a chance proportional to `1 / k^exponent`.
    Zipf(u32, f64),
}

impl KeySpec {
    /// What the text forms are, for messages.
    pub const ALLOWED: &str = "none, uniform:COUNT or zipf:COUNT[:EXPONENT], with COUNT from 1 to 4,000,000 and EXPONENT from 0.1 to 10";

    /// Reads `none`, `uniform:1000`, `zipf:1000` or `zipf:1000:1.2`.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(':');
        let kind = parts.next()?;
        let count = parts.next();
        let exponent = parts.next();
        if parts.next().is_some() {
            return None;
        }
        let count_of = |text: &str| {
            let count: u32 = text.replace(['_', ','], "").parse().ok()?;
            (1..=KEY_COUNT_MAX).contains(&count).then_some(count)
        };
        match (kind, count, exponent) {
            ("none", None, None) => Some(Self::None),
            ("uniform", Some(count), None) => Some(Self::Uniform(count_of(count)?)),
            ("zipf", Some(count), None) => Some(Self::Zipf(count_of(count)?, 1.0)),
            ("zipf", Some(count), Some(exponent)) => {
                let exponent: f64 = exponent.parse().ok()?;
                (0.1..=10.0)
                    .contains(&exponent)
                    .then_some(Self::Zipf(count_of(count)?, exponent))
            }
            _ => None,
        }
    }

    /// How many different keys there are.
    pub fn count(&self) -> u32 {
        match *self {
            Self::None => 0,
            Self::Uniform(count) | Self::Zipf(count, _) => count,
        }
    }
}

impl std::fmt::Display for KeySpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::None => write!(f, "no keys"),
            Self::Uniform(count) => write!(f, "{count} keys, uniform"),
            Self::Zipf(count, exponent) => write!(f, "{count} keys, zipf {exponent}"),
        }
    }
}

/// Draws key numbers. Cheap to clone: the table is shared.
#[derive(Clone, Debug)]
pub enum KeyChooser {
    /// No keys.
    None,
    /// Equally likely below the bound.
    Uniform(u32),
    /// By a table.
    Table(Arc<AliasTable>),
}

impl KeyChooser {
    /// The chooser of a specification; builds the table that zipf needs.
    pub fn new(spec: &KeySpec) -> Self {
        match *spec {
            KeySpec::None => Self::None,
            KeySpec::Uniform(count) => Self::Uniform(count),
            KeySpec::Zipf(count, exponent) => {
                Self::Table(Arc::new(AliasTable::zipf(count, exponent)))
            }
        }
    }

    /// The number of the next key, or none.
    pub fn draw(&self, rng: &mut Rng) -> Option<u32> {
        match self {
            Self::None => None,
            Self::Uniform(count) => Some(rng.below(u64::from(*count)) as u32),
            Self::Table(table) => Some(table.draw(rng)),
        }
    }
}

/// Draws from any distribution over few numbers in constant time (Walker's alias method, Vose's construction).
#[derive(Debug)]
pub struct AliasTable {
    /// Per column: the chance, in 2^32nds, that the column's own number is taken, and the number taken otherwise.
    columns: Vec<(u32, u32)>,
}

impl AliasTable {
    fn zipf(count: u32, exponent: f64) -> Self {
        let weights = (1..=count)
            .map(|rank| f64::from(rank).powf(-exponent))
            .collect::<Vec<_>>();
        Self::new(&weights)
    }

    fn new(weights: &[f64]) -> Self {
        let total: f64 = weights.iter().sum();
        let mut share = weights
            .iter()
            .map(|w| w / total * weights.len() as f64)
            .collect::<Vec<_>>();
        let (mut small, mut large): (Vec<u32>, Vec<u32>) =
            (0..weights.len() as u32).partition(|&n| share[n as usize] < 1.0);
        // What is left over at the end is full up to rounding, so full is the default.
        let mut columns = (0..weights.len() as u32)
            .map(|n| (u32::MAX, n))
            .collect::<Vec<_>>();
        while let (Some(&low), Some(&high)) = (small.last(), large.last()) {
            small.pop();
            columns[low as usize] = ((share[low as usize] * 4_294_967_296.0) as u32, high);
            share[high as usize] -= 1.0 - share[low as usize];
            if share[high as usize] < 1.0 {
                large.pop();
                small.push(high);
            }
        }
        Self { columns }
    }

    fn draw(&self, rng: &mut Rng) -> u32 {
        let bits = rng.next_u64();
        let column = ((u128::from(bits) * self.columns.len() as u128) >> 64) as u32;
        let (own_chance, other) = self.columns[column as usize];
        // The low half of the same number is as good as new: the column took the high bits.
        if (bits as u32) < own_chance {
            column
        } else {
            other
        }
    }
}

/// The spelling of a synthetic key.
pub fn key_bytes(number: u32) -> [u8; KEY_BYTES] {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let mut key = *b"key-00000000";
    for (place, byte) in key[4..].iter_mut().enumerate() {
        *byte = HEX[(number >> (28 - 4 * place)) as usize & 15];
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_each_form_and_nothing_else() {
        assert_eq!(KeySpec::parse("none"), Some(KeySpec::None));
        assert_eq!(KeySpec::parse("uniform:1000"), Some(KeySpec::Uniform(1000)));
        assert_eq!(KeySpec::parse("zipf:1,000"), Some(KeySpec::Zipf(1000, 1.0)));
        assert_eq!(
            KeySpec::parse("zipf:1000:1.2"),
            Some(KeySpec::Zipf(1000, 1.2))
        );
        for bad in [
            "",
            "zipf",
            "uniform:0",
            "uniform:5000000",
            "zipf:10:99",
            "zipf:10:1:2",
            "none:3",
            "pareto:3",
        ] {
            assert_eq!(KeySpec::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn keys_are_spelled_in_hex() {
        assert_eq!(&key_bytes(0x2a), b"key-0000002a");
        assert_eq!(&key_bytes(0xdead_beef), b"key-deadbeef");
    }

    #[test]
    fn zipf_follows_its_law() {
        let chooser = KeyChooser::new(&KeySpec::Zipf(100, 1.0));
        let mut rng = Rng::new(9, 0);
        let mut counts = [0u32; 100];
        for _ in 0..1_000_000 {
            counts[chooser.draw(&mut rng).unwrap() as usize] += 1;
        }
        let harmonic: f64 = (1..=100).map(|k| 1.0 / f64::from(k)).sum();
        for (rank, &count) in counts.iter().enumerate() {
            let expected = 1_000_000.0 / harmonic / (rank + 1) as f64;
            let off = (f64::from(count) - expected).abs();
            assert!(
                off < 5.0 * expected.sqrt(),
                "rank {rank}: {count}, expected {expected:.0}"
            );
        }
    }

    #[test]
    fn uniform_reaches_every_key() {
        let chooser = KeyChooser::new(&KeySpec::Uniform(50));
        let mut rng = Rng::new(9, 0);
        let mut seen = [false; 50];
        for _ in 0..5000 {
            seen[chooser.draw(&mut rng).unwrap() as usize] = true;
        }
        assert!(seen.iter().all(|&s| s));
        assert_eq!(KeyChooser::new(&KeySpec::None).draw(&mut rng), None);
    }
}
