//! The only way from outside bytes to a table.

use flatbuffers::{Follow, Verifiable, VerifierOptions};

use crate::DecodeError;

/// How deep tables may nest: the definition needs four (response, topics, partitions, their vectors).
pub const HEAD_DEPTH_MAX: usize = 8;

/// How many tables one head may hold.
pub const HEAD_TABLES_MAX: usize = 1 << 20;

/// Verifies `head` as a table `T` and returns the table.
///
/// The work is bounded by a small multiple of the head's length: offsets that lead to one place many times
/// run into the bounds on tables and on apparent size. What the verifier checks is structure (offsets,
/// required fields, UTF-8); values, enumerations among them, are the caller's to check.
pub fn read_head<'a, T>(head: &'a [u8]) -> Result<T::Inner, DecodeError>
where
    T: Follow<'a> + Verifiable + 'a,
{
    let options = VerifierOptions {
        max_depth: HEAD_DEPTH_MAX,
        // The smallest table and the offset that leads to it take eight bytes.
        max_tables: (head.len() / 8 + 1).min(HEAD_TABLES_MAX),
        // Honest heads stay under 4 times their length (vtables that tables share count once for each).
        max_apparent_size: head.len().saturating_mul(16),
        ignore_missing_null_terminator: false,
    };
    flatbuffers::root_with_opts::<T>(&options, head).map_err(|fault| {
        DecodeError::invalid("head of a frame", 0).with_detail(one_line(&fault.to_string()))
    })
}

/// The verifier traces a fault over several lines, one per table on the way to it.
fn one_line(text: &str) -> String {
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    lines.join("; ")
}
