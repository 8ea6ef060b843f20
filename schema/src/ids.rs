//! Ids, positions and levels: one type for each, so that two of one kind are never mixed up.
//!
//! End offsets are exclusive everywhere: an [`Offset`] called "next", "end" or "watermark" is the offset
//! of the first record that is *not* included.

use std::fmt;
use std::str::FromStr;

macro_rules! number {
    ($(#[$doc:meta])* $name:ident($type:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $type);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }
    };
}

number!(
    /// Index of a partition within its topic, from 0.
    PartitionIndex(i32)
);
number!(
    /// Position of a record in its partition, from 0. As an end it is exclusive: the next offset.
    Offset(i64)
);
number!(
    /// Counts the leaders a partition has had; never goes back. -1: unknown.
    LeaderEpoch(i32)
);
number!(
    /// Number of a broker within its cluster.
    BrokerId(i32)
);
number!(
    /// Id of an idempotent producer.
    ProducerId(i64)
);
number!(
    /// Counts the incarnations of one producer id.
    ProducerEpoch(i16)
);
number!(
    /// Milliseconds since the Unix epoch.
    TimestampMs(i64)
);
number!(
    /// Ties a response to its request; chosen by the client.
    CorrelationId(u64)
);
number!(
    /// Index of a core among those the broker runs on, from 0.
    CoreId(u16)
);

impl Offset {
    /// The offset `count` records further on, saturating.
    #[must_use]
    pub fn plus(self, count: i64) -> Self {
        Self(self.0.saturating_add(count))
    }
}

impl ProducerId {
    /// Marks a batch of a producer that is not idempotent.
    pub const NONE: Self = Self(-1);
}

impl ProducerEpoch {
    /// Marks a batch of a producer that is not idempotent.
    pub const NONE: Self = Self(-1);
}

/// Id of a topic, drawn at random when the topic is created. All zero: none.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicId(pub [u8; 16]);

/// 32 hexadecimal digits, lower case.
impl fmt::Display for TopicId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for TopicId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TopicId({self})")
    }
}

/// Reads what `Display` writes: exactly 32 lower-case hexadecimal digits.
impl FromStr for TopicId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let fault = || format!("topic id {text:?} is not 32 lower-case hexadecimal digits");
        let digits = text.as_bytes();
        if digits.len() != 32 {
            return Err(fault());
        }
        let mut id = [0; 16];
        for (byte, pair) in id.iter_mut().zip(digits.chunks_exact(2)) {
            let high = hex_digit(pair[0]).ok_or_else(fault)?;
            let low = hex_digit(pair[1]).ok_or_else(fault)?;
            *byte = high << 4 | low;
        }
        Ok(Self(id))
    }
}

fn hex_digit(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

/// One partition of one topic, by id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicPartition {
    /// The topic.
    pub topic: TopicId,
    /// The partition within it.
    pub partition: PartitionIndex,
}

/// As in the names of partition folders: `<topic id>-<partition>`.
impl fmt::Display for TopicPartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.topic, self.partition)
    }
}

/// Reads what `Display` writes.
impl FromStr for TopicPartition {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let fault = || format!("{text:?} is not <topic id>-<partition>");
        let (topic, partition) = text.split_once('-').ok_or_else(fault)?;
        let canonical =
            partition == "0" || partition.starts_with(|digit: char| ('1'..='9').contains(&digit));
        if !canonical {
            return Err(fault());
        }
        let partition = PartitionIndex(partition.parse().map_err(|_| fault())?);
        Ok(Self {
            topic: topic.parse()?,
            partition,
        })
    }
}

/// How many replicas must hold a batch before a produce request is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Acks {
    /// This many replicas, the leader included. 0: the request gets no answer at all.
    Count(i16),
    /// Every in-sync replica.
    All,
}

impl Acks {
    /// The stricter of the two: `All` is stricter than any count.
    #[must_use]
    pub fn at_least(self, floor: Acks) -> Acks {
        match (self, floor) {
            (Acks::All, _) | (_, Acks::All) => Acks::All,
            (Acks::Count(asked), Acks::Count(least)) => Acks::Count(asked.max(least)),
        }
    }

    /// Kafka's number for it: -1 for all.
    pub fn as_i16(self) -> i16 {
        match self {
            Acks::Count(count) => count,
            Acks::All => -1,
        }
    }

    /// From Kafka's number: -1 is all; other negative numbers mean nothing.
    pub fn from_i16(number: i16) -> Option<Self> {
        match number {
            -1 => Some(Acks::All),
            0.. => Some(Acks::Count(number)),
            _ => None,
        }
    }
}

/// `all`, or the count.
impl fmt::Display for Acks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Acks::Count(count) => write!(f, "{count}"),
            Acks::All => f.write_str("all"),
        }
    }
}

/// Reads `all`, `-1` (the same), or a count from 0.
impl FromStr for Acks {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "all" {
            return Ok(Acks::All);
        }
        let number = text.parse().ok();
        number
            .and_then(Acks::from_i16)
            .ok_or_else(|| format!("acks {text:?}: allowed are 0, 1, … and all"))
    }
}

/// When a replica's copy of a batch counts. Ordered from the weakest to the strongest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Durability {
    /// Once it is written; the broker never syncs it on its own account.
    Written,
    /// Once it is written; the broker syncs it in the background.
    Interval,
    /// Once it is on the medium.
    Fsync,
}

/// As in the configuration: `written`, `interval`, `fsync`.
impl fmt::Display for Durability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Durability::Written => "written",
            Durability::Interval => "interval",
            Durability::Fsync => "fsync",
        })
    }
}

impl FromStr for Durability {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "written" => Ok(Durability::Written),
            "interval" => Ok(Durability::Interval),
            "fsync" => Ok(Durability::Fsync),
            _ => Err(format!(
                "durability {text:?}: allowed are written, interval and fsync"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topic_partitions_read_what_they_write() {
        let topic = TopicId(*b"\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\xfd\xfe\xff");
        assert_eq!(topic.to_string(), "000102030405060708090a0b0cfdfeff");
        let partition = TopicPartition {
            topic,
            partition: PartitionIndex(17),
        };
        assert_eq!(partition.to_string().parse(), Ok(partition));
        for text in [
            "",
            "-",
            "00-1",
            "000102030405060708090A0b0cfdfeff-1",
            "000102030405060708090a0b0cfdfeff-01",
        ] {
            assert!(text.parse::<TopicPartition>().is_err(), "{text}");
        }
        assert!(
            "000102030405060708090a0b0cfdfeff--1"
                .parse::<TopicPartition>()
                .is_err()
        );
        assert!(
            "000102030405060708090a0b0cfdfeff-+1"
                .parse::<TopicPartition>()
                .is_err()
        );
    }

    #[test]
    fn floors_of_acks() {
        assert_eq!(Acks::Count(0).at_least(Acks::Count(1)), Acks::Count(1));
        assert_eq!(Acks::Count(3).at_least(Acks::Count(1)), Acks::Count(3));
        assert_eq!(Acks::Count(3).at_least(Acks::All), Acks::All);
        assert_eq!(Acks::All.at_least(Acks::Count(3)), Acks::All);
    }

    #[test]
    fn levels_read_what_they_write() {
        for acks in [
            Acks::Count(0),
            Acks::Count(1),
            Acks::Count(i16::MAX),
            Acks::All,
        ] {
            assert_eq!(acks.to_string().parse(), Ok(acks));
            assert_eq!(Acks::from_i16(acks.as_i16()), Some(acks));
        }
        assert_eq!("-1".parse(), Ok(Acks::All));
        assert!("-2".parse::<Acks>().is_err());
        for durability in [Durability::Written, Durability::Interval, Durability::Fsync] {
            assert_eq!(durability.to_string().parse(), Ok(durability));
        }
        assert!(
            Durability::Written < Durability::Interval && Durability::Interval < Durability::Fsync
        );
    }
}
