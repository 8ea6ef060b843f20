//! Acks and durability between heads and our own types. An unset level is `None`; an unknown one is an error.

use super::generated::tackboard::native as head;
use crate::{Acks, DecodeError, Durability};

/// The acks level that a produce request names, if it names one.
pub fn acks_from_head(level: head::AcksLevel, count: i16) -> Result<Option<Acks>, DecodeError> {
    match level {
        head::AcksLevel::Unset => Ok(None),
        head::AcksLevel::All => Ok(Some(Acks::All)),
        head::AcksLevel::Count if count >= 0 => Ok(Some(Acks::Count(count))),
        head::AcksLevel::Count => Err(DecodeError::invalid("acks_count is below 0", 0)
            .with_detail(format_args!("found {count}"))),
        head::AcksLevel(unknown) => Err(DecodeError::invalid("acks_level is not known", 0)
            .with_detail(format_args!("found {unknown}"))),
    }
}

/// The fields of a produce request that name this acks level.
pub fn acks_to_head(acks: Option<Acks>) -> (head::AcksLevel, i16) {
    match acks {
        None => (head::AcksLevel::Unset, 0),
        Some(Acks::All) => (head::AcksLevel::All, 0),
        Some(Acks::Count(count)) => (head::AcksLevel::Count, count),
    }
}

/// The durability that a head names, if it names one.
pub fn durability_from_head(
    durability: head::Durability,
) -> Result<Option<Durability>, DecodeError> {
    match durability {
        head::Durability::Unset => Ok(None),
        head::Durability::Fsync => Ok(Some(Durability::Fsync)),
        head::Durability::Interval => Ok(Some(Durability::Interval)),
        head::Durability::Written => Ok(Some(Durability::Written)),
        head::Durability(unknown) => Err(DecodeError::invalid("durability is not known", 0)
            .with_detail(format_args!("found {unknown}"))),
    }
}

/// The value in a head that names this durability.
pub fn durability_to_head(durability: Option<Durability>) -> head::Durability {
    match durability {
        None => head::Durability::Unset,
        Some(Durability::Fsync) => head::Durability::Fsync,
        Some(Durability::Interval) => head::Durability::Interval,
        Some(Durability::Written) => head::Durability::Written,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_survive_the_head_and_unknown_ones_do_not() {
        for acks in [
            None,
            Some(Acks::All),
            Some(Acks::Count(0)),
            Some(Acks::Count(3)),
        ] {
            let (level, count) = acks_to_head(acks);
            assert_eq!(acks_from_head(level, count), Ok(acks));
        }
        for durability in [
            None,
            Some(Durability::Fsync),
            Some(Durability::Interval),
            Some(Durability::Written),
        ] {
            assert_eq!(
                durability_from_head(durability_to_head(durability)),
                Ok(durability)
            );
        }
        assert!(acks_from_head(head::AcksLevel::Count, -1).is_err());
        assert!(acks_from_head(head::AcksLevel(3), 0).is_err());
        assert!(durability_from_head(head::Durability(4)).is_err());
    }
}
