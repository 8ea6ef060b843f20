//! Medians, and how easily chance alone makes a difference between two sets of runs.

/// Most values a side: the count of orders is exact up to here.
pub const VALUES_MAX: usize = 30;

/// What several runs gave for one figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The middle one, or the mean of the two in the middle.
    pub median: f64,
    /// The least.
    pub least: f64,
    /// The greatest.
    pub greatest: f64,
    /// How many there are.
    pub count: usize,
}

impl Spread {
    /// The spread of these values; none of no values.
    pub fn of(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (&least, &greatest) = (sorted.first()?, sorted.last()?);
        let upper = sorted[sorted.len() / 2];
        let lower = sorted[(sorted.len() - 1) / 2];
        Some(Self {
            median: (lower + upper) / 2.0,
            least,
            greatest,
            count: sorted.len(),
        })
    }
}

/// How likely two sets of runs of the same thing would lie at least this far apart in order: the exact two-sided rank sum
/// test of Mann and Whitney. It asks only which of two values is larger, so that one wild run weighs no more than any
/// other. Equal values count against a difference.
///
/// Panics beyond [`VALUES_MAX`] values a side.
pub fn chance(a: &[f64], b: &[f64]) -> f64 {
    let pairs = |holds: fn(&f64, &f64) -> bool| {
        a.iter()
            .map(|a| b.iter().filter(|b| holds(a, b)).count())
            .sum::<usize>()
    };
    let (below, above) = (pairs(|a, b| a < b), pairs(|a, b| a > b));
    let equal = a.len() * b.len() - below - above;
    tail(a.len(), b.len(), below.min(above) + equal)
}

/// The least that [`chance`] can be with so many runs: when all of one side lie below all of the other.
pub fn chance_least(a: usize, b: usize) -> f64 {
    tail(a, b, 0)
}

/// Share of all orders of `a` and `b` values in which at most `inversions` pairs stand against one of the two directions.
fn tail(a: usize, b: usize, inversions: usize) -> f64 {
    let orders = orders_by_inversions(a, b);
    let all: i128 = orders.iter().sum();
    let counted: i128 = orders.iter().take(inversions + 1).sum();
    (2.0 * counted as f64 / all as f64).min(1.0)
}

/// How many orders of `a` and `b` values have 0, 1, 2, … pairs the wrong way round: the coefficients of the Gaussian
/// binomial, built factor by factor from (1 - q^(b+i)) / (1 - q^i).
fn orders_by_inversions(a: usize, b: usize) -> Vec<i128> {
    assert!(
        a <= VALUES_MAX && b <= VALUES_MAX,
        "at most {VALUES_MAX} values a side"
    );
    let mut orders = vec![0i128; a * b + 1];
    orders[0] = 1;
    for i in 1..=a {
        for at in (b + i..orders.len()).rev() {
            orders[at] -= orders[at - b - i];
        }
        for at in i..orders.len() {
            orders[at] += orders[at - i];
        }
    }
    orders
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert_eq!(Spread::of(&[]), None);
        let odd = Spread::of(&[3.0, 1.0, 2.0]).unwrap();
        assert_eq!(
            (odd.median, odd.least, odd.greatest, odd.count),
            (2.0, 1.0, 3.0, 3)
        );
        assert_eq!(Spread::of(&[4.0, 1.0, 2.0, 3.0]).unwrap().median, 2.5);
    }

    #[test]
    fn every_order_is_counted_once() {
        assert_eq!(orders_by_inversions(2, 2), [1, 1, 2, 1, 1]);
        // 10 over 5.
        assert_eq!(orders_by_inversions(5, 5).iter().sum::<i128>(), 252);
        // 60 over 30.
        let all: i128 = orders_by_inversions(VALUES_MAX, VALUES_MAX).iter().sum();
        assert_eq!(all, 118_264_581_564_861_424);
    }

    /// Against the tables that textbooks print: critical values of U, two-sided.
    #[test]
    fn chances_are_those_of_the_tables() {
        let at_most = |a, b, u| tail(a, b, u);
        assert!(at_most(5, 5, 2) <= 0.05 && at_most(5, 5, 3) > 0.05);
        assert!(at_most(8, 8, 13) <= 0.05 && at_most(8, 8, 14) > 0.05);
        assert!(at_most(10, 10, 16) <= 0.01 && at_most(10, 10, 17) > 0.01);
        assert!((chance_least(5, 5) - 2.0 / 252.0).abs() < 1e-12);
        assert_eq!(chance_least(1, 1), 1.0);
    }

    #[test]
    fn the_same_values_show_no_difference() {
        let values = [1.0, 2.0, 3.0, 4.0, 5.0];
        assert_eq!(chance(&values, &values), 1.0);
        assert_eq!(chance(&[1.0; 5], &[1.0; 5]), 1.0);
        assert!(chance(&values, &[6.0, 7.0, 8.0, 9.0, 10.0]) < 0.01);
        assert!(chance(&[6.0, 7.0, 8.0, 9.0, 10.0], &values) < 0.01);
    }
}
