//! "Did you mean": how near a name is to the one that was written.

/// Longer names than this are compared by their beginning only.
const LENGTH_MAX: usize = 64;

/// A name without what is easily mixed up: case, and which mark divides its words.
pub(super) fn normalized(name: &str) -> String {
    name.to_ascii_lowercase().replace(['_', '-'], ".")
}

/// Whether a name at this distance is likely to be the one meant.
pub(super) fn is_near(distance: usize, wanted: &str) -> bool {
    distance <= 2 + wanted.len() / 6
}

/// The name that is nearest to the wanted one, if it is near enough to be meant and not mostly another word.
pub fn nearest<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = normalized(wanted);
    let half = wanted.chars().count() / 2;
    names
        .into_iter()
        .map(|name| (edit_distance(&wanted, &normalized(name)), name))
        .min_by_key(|(distance, _)| *distance)
        .filter(|(distance, _)| is_near(*distance, &wanted) && *distance <= half)
        .map(|(_, name)| name)
}

/// Edits (insert, delete, replace, swap of neighbours) that turn one text into the other.
pub(super) fn edit_distance(left: &str, right: &str) -> usize {
    let left: Vec<char> = left.chars().take(LENGTH_MAX).collect();
    let right: Vec<char> = right.chars().take(LENGTH_MAX).collect();
    let mut before_last = vec![0; right.len() + 1];
    let mut last: Vec<usize> = (0..=right.len()).collect();
    for row in 1..=left.len() {
        let mut current = vec![row; right.len() + 1];
        for column in 1..=right.len() {
            let replaced = last[column - 1] + usize::from(left[row - 1] != right[column - 1]);
            current[column] = replaced.min(last[column] + 1).min(current[column - 1] + 1);
            let swapped = row > 1
                && column > 1
                && left[row - 1] == right[column - 2]
                && left[row - 2] == right[column - 1];
            if swapped {
                current[column] = current[column].min(before_last[column - 2] + 1);
            }
        }
        before_last = last;
        last = current;
    }
    last[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_finds_the_name_and_another_word_does_not() {
        let topics = ["flights", "orders-eu", "x"];
        for (written, meant) in [
            ("flihts", Some("flights")),
            ("Flights", Some("flights")),
            ("orders_eu", Some("orders-eu")),
            ("payments", None),
            ("y", None),
            ("", None),
        ] {
            assert_eq!(nearest(written, topics), meant, "{written}");
        }
        assert_eq!(nearest("flights", []), None);
        assert_eq!(edit_distance("abcd", "acbd"), 1);
    }
}
