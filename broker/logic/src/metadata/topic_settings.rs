//! The settings of a topic: one table of name, kind, bounds, where the default comes from, and text.
//!
//! The parser, the documentation and every message about a wrong value are made from this table. A setting that a topic
//! doesn't name is the broker's, so everything in a [`TopicConfig`] is optional.
//!
//! Kafka's tools name settings that can have one value here only. They stand in the table with that value, so that such
//! a tool sees them and may set them to what holds anyway; a topic keeps them like the others.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use tackboard_schema::{Acks, Durability};

/// Faults beyond this many are counted, not listed.
const FAULTS_LISTED_MAX: usize = 32;

/// Values are quoted in messages up to this many characters.
const VALUE_QUOTED_MAX: usize = 64;

const YEAR_MS: u64 = 366 * 24 * 60 * 60 * 1_000;
const MIB: u64 = 1 << 20;

/// One line of the table.
#[derive(Clone, Copy, Debug)]
pub struct TopicSetting {
    /// The key.
    pub name: &'static str,
    /// The key as clients of Kafka know it: Kafka's, or with a prefix that tells it from any of Kafka's.
    pub kafka_name: &'static str,
    /// What its value looks like.
    pub kind: SettingKind,
    /// Which setting of the broker holds when the topic names none.
    pub default_from: &'static str,
    /// What it does, in one sentence.
    pub text: &'static str,
}

/// The form of a value and its bounds, both ends allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingKind {
    /// `all` or a number of replicas; -1 is another spelling of `all`.
    Acks {
        /// The least number.
        min: i16,
    },
    /// One of the durability levels.
    Durability,
    /// A number of replicas, at least 1 and at most as many as the topic's partitions have.
    Replicas,
    /// This value and no other.
    Fixed {
        /// The value.
        value: &'static str,
        /// What Kafka takes it for.
        form: FixedForm,
    },
    /// `append` or `record`.
    RetentionClock,
    /// `yield` or `exempt`.
    RetentionBudget,
    /// A time in milliseconds.
    Milliseconds {
        /// The shortest.
        min: u64,
        /// The longest.
        max: u64,
        /// Whether -1 stands for no limit.
        or_unlimited: bool,
    },
    /// A size in bytes.
    Bytes {
        /// The smallest.
        min: u64,
        /// The largest.
        max: u64,
        /// Whether -1 stands for no limit.
        or_unlimited: bool,
    },
}

/// What Kafka takes a fixed value for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FixedForm {
    /// A word.
    Word,
    /// A list of words, to which one can be added and from which one can be taken.
    List,
    /// `true` or `false`.
    Switch,
}

/// Every setting that a topic may have, by name.
pub const TOPIC_SETTINGS: &[TopicSetting] = &[
    TopicSetting {
        name: "acks.default",
        kafka_name: "tackboard.acks.default",
        kind: SettingKind::Acks { min: 0 },
        default_from: "acks.default",
        text: "How many replicas must hold an event before a produce request that names no level is answered.",
    },
    TopicSetting {
        name: "acks.min",
        kafka_name: "tackboard.acks.min",
        kind: SettingKind::Acks { min: 0 },
        default_from: "acks.min",
        text: "The floor of that number, whatever a request says.",
    },
    TopicSetting {
        name: "cleanup.policy",
        kafka_name: "cleanup.policy",
        kind: SettingKind::Fixed {
            value: "delete",
            form: FixedForm::List,
        },
        default_from: "delete",
        text: "What becomes of old segments. They are deleted; compaction is not offered.",
    },
    TopicSetting {
        name: "compression.type",
        kafka_name: "compression.type",
        kind: SettingKind::Fixed {
            value: "producer",
            form: FixedForm::Word,
        },
        default_from: "producer",
        text: "How batches are compressed: as their producer sent them.",
    },
    TopicSetting {
        name: "durability",
        kafka_name: "tackboard.durability",
        kind: SettingKind::Durability,
        default_from: "durability.default",
        text: "When a replica's copy counts: once it is written, written and synced in the background, or synced.",
    },
    TopicSetting {
        name: "max.message.bytes",
        kafka_name: "max.message.bytes",
        kind: SettingKind::Bytes {
            min: 1_024,
            max: 64 * MIB,
            or_unlimited: false,
        },
        default_from: "message.max.bytes",
        text: "The largest record batch that is accepted.",
    },
    TopicSetting {
        name: "message.timestamp.type",
        kafka_name: "message.timestamp.type",
        kind: SettingKind::Fixed {
            value: "CreateTime",
            form: FixedForm::Word,
        },
        default_from: "CreateTime",
        text: "Whose clock a record's timestamp is of: its producer's.",
    },
    TopicSetting {
        name: "min.insync.replicas",
        kafka_name: "min.insync.replicas",
        kind: SettingKind::Replicas,
        default_from: "min.insync.replicas",
        text: "With acks all: fewer replicas in sync than this refuse a produce request.",
    },
    TopicSetting {
        name: "retention.bytes",
        kafka_name: "retention.bytes",
        kind: SettingKind::Bytes {
            min: 1,
            max: i64::MAX as u64,
            or_unlimited: true,
        },
        default_from: "log.retention.bytes",
        text: "Whole segments are dropped, oldest first, while a partition is larger than this without them.",
    },
    TopicSetting {
        name: "retention.ms",
        kafka_name: "retention.ms",
        kind: SettingKind::Milliseconds {
            min: 1,
            max: 1_000 * YEAR_MS,
            or_unlimited: true,
        },
        default_from: "log.retention.ms",
        text: "Whole segments are dropped once all they hold is older than this.",
    },
    TopicSetting {
        name: "segment.bytes",
        kafka_name: "segment.bytes",
        kind: SettingKind::Bytes {
            min: MIB,
            max: 2_048 * MIB,
            or_unlimited: false,
        },
        default_from: "log.segment.bytes",
        text: "A segment that has this size is followed by a new one.",
    },
    TopicSetting {
        name: "segment.ms",
        kafka_name: "segment.ms",
        kind: SettingKind::Milliseconds {
            min: 1_000,
            max: 100 * YEAR_MS,
            or_unlimited: false,
        },
        default_from: "log.roll.ms",
        text: "A segment that has this age is followed by a new one.",
    },
    TopicSetting {
        name: "tackboard.retention.budget",
        kafka_name: "tackboard.retention.budget",
        kind: SettingKind::RetentionBudget,
        default_from: "yield",
        text: "Whether the topic's oldest segments may go while all logs together exceed log.budget.bytes; those of an exempt topic count, and stay.",
    },
    TopicSetting {
        name: "tackboard.retention.clock",
        kafka_name: "tackboard.retention.clock",
        kind: SettingKind::RetentionClock,
        default_from: "append",
        text: "Which clock retention.ms goes by: the broker's when the event was appended, or the timestamp of the record.",
    },
    TopicSetting {
        name: "unclean.leader.election.enable",
        kafka_name: "unclean.leader.election.enable",
        kind: SettingKind::Fixed {
            value: "false",
            form: FixedForm::Switch,
        },
        default_from: "false",
        text: "Whether a replica that is not in sync may become leader, which loses events. It may not.",
    },
];

impl TopicSetting {
    /// The key of the setting that clients of Kafka know by that name. What is no setting stays as it is, to be refused in
    /// the words of whoever asked.
    pub fn key_from_kafka(name: &str) -> &str {
        let known = |setting: &&TopicSetting| setting.kafka_name == name;
        TOPIC_SETTINGS
            .iter()
            .find(known)
            .map_or(name, |setting| setting.name)
    }
}

/// A quantity that may be unlimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit<T> {
    /// No limit; `-1` in a setting.
    Unlimited,
    /// This much.
    At(T),
}

/// Which clock tells the age of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetentionClock {
    /// The broker's clock when the event was appended.
    Append,
    /// The timestamp in the record, as in Kafka.
    Record,
}

/// What a topic does when all logs together exceed their budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetentionBudget {
    /// Its oldest segments may go.
    Yield,
    /// It keeps what it has.
    Exempt,
}

/// What a topic sets; `None` leaves it to the broker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopicConfig {
    /// `acks.default`
    pub acks: Option<Acks>,
    /// `acks.min`
    pub acks_min: Option<Acks>,
    /// `durability`
    pub durability: Option<Durability>,
    /// `min.insync.replicas`
    pub min_insync_replicas: Option<i16>,
    /// `max.message.bytes`
    pub batch_bytes_max: Option<u32>,
    /// `retention.bytes`
    pub retention_bytes: Option<Limit<u64>>,
    /// `retention.ms`
    pub retention: Option<Limit<Duration>>,
    /// `segment.bytes`
    pub segment_bytes: Option<u64>,
    /// `segment.ms`
    pub segment_age: Option<Duration>,
    /// `tackboard.retention.budget`
    pub retention_budget: Option<RetentionBudget>,
    /// `tackboard.retention.clock`
    pub retention_clock: Option<RetentionClock>,
}

/// One setting that can't be taken as given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigFault {
    /// The key as given.
    pub key: String,
    /// The value as given, cut if long.
    pub value: String,
    /// What would have been taken, or which other setting it contradicts.
    pub allowed: String,
}

impl fmt::Display for ConfigFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} = {}: allowed is {}",
            self.key, self.value, self.allowed
        )
    }
}

/// Everything that is wrong with a set of settings, at least one fault.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConfigFaults {
    /// The first of them, in the order given.
    pub listed: Vec<ConfigFault>,
    /// How many more there are.
    pub unlisted: usize,
}

impl fmt::Display for ConfigFaults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, fault) in self.listed.iter().enumerate() {
            let separator = if index == 0 { "" } else { "; " };
            write!(f, "{separator}{fault}")?;
        }
        match self.unlisted {
            0 => Ok(()),
            more => write!(f, "; and {more} more"),
        }
    }
}

impl std::error::Error for ConfigFaults {}

impl ConfigFaults {
    /// `value`, if there is no fault.
    fn or<T>(self, value: T) -> Result<T, Self> {
        if self.listed.is_empty() {
            Ok(value)
        } else {
            Err(self)
        }
    }

    fn add(&mut self, key: &str, value: &str, allowed: String) {
        if self.listed.len() == FAULTS_LISTED_MAX {
            self.unlisted += 1;
            return;
        }
        self.listed.push(ConfigFault {
            key: quoted(key),
            value: quoted(value),
            allowed,
        });
    }
}

/// Reads settings given as key and value. All faults are reported at once.
pub fn parse_topic_config<'a>(
    pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Result<TopicConfig, ConfigFaults> {
    let mut config = TopicConfig::default();
    let mut seen = [false; TOPIC_SETTINGS.len()];
    let mut faults = ConfigFaults::default();
    for (key, value) in pairs {
        let Some(index) = TOPIC_SETTINGS
            .iter()
            .position(|setting| setting.name == key)
        else {
            faults.add(key, value, format!("a key among {}", names()));
            continue;
        };
        if std::mem::replace(&mut seen[index], true) {
            faults.add(key, value, "each key once".to_owned());
        } else if config.set(&TOPIC_SETTINGS[index], value).is_none() {
            faults.add(key, value, TOPIC_SETTINGS[index].kind.to_string());
        }
    }
    config.check_relations(&mut faults);
    faults.or(config)
}

/// What becomes of one setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigChange {
    /// This value.
    Set(String),
    /// The broker's value again.
    Reset,
    /// These words more, in a list.
    Append(String),
    /// These words less, in a list.
    Subtract(String),
}

impl ConfigChange {
    fn value(&self) -> &str {
        match self {
            ConfigChange::Set(value)
            | ConfigChange::Append(value)
            | ConfigChange::Subtract(value) => value,
            ConfigChange::Reset => "",
        }
    }
}

/// A topic's settings after changes to them; `resets_others`: also those that no change names are the broker's again. They
/// are in the order of their keys, and each is known; whether its value is allowed is for [`parse_topic_config`] to say.
pub fn change_topic_config(
    current: &[(String, String)],
    resets_others: bool,
    changes: &[(String, ConfigChange)],
) -> Result<Vec<(String, String)>, ConfigFaults> {
    let kept = current.iter().filter(|_| !resets_others).cloned();
    let mut changed: BTreeMap<String, String> = kept.collect();
    let mut seen = [false; TOPIC_SETTINGS.len()];
    let mut faults = ConfigFaults::default();
    for (key, change) in changes {
        let Some(index) = TOPIC_SETTINGS
            .iter()
            .position(|setting| setting.name == *key)
        else {
            faults.add(key, change.value(), format!("a key among {}", names()));
            continue;
        };
        if std::mem::replace(&mut seen[index], true) {
            faults.add(key, change.value(), "each key once".to_owned());
            continue;
        }
        let setting = &TOPIC_SETTINGS[index];
        let held = changed
            .get(key)
            .map_or(setting.default_from, String::as_str);
        let others =
            |named| words(held).filter(move |held| !words(named).any(|word| word == *held));
        let value = match change {
            ConfigChange::Reset => {
                changed.remove(key);
                continue;
            }
            ConfigChange::Set(value) => value.clone(),
            ConfigChange::Append(_) | ConfigChange::Subtract(_) if !setting.kind.is_list() => {
                let allowed = "one value: it is no list".to_owned();
                faults.add(key, change.value(), allowed);
                continue;
            }
            ConfigChange::Append(named) => {
                let more = others(named.as_str()).chain(words(named));
                more.collect::<Vec<_>>().join(",")
            }
            ConfigChange::Subtract(named) => others(named.as_str()).collect::<Vec<_>>().join(","),
        };
        changed.insert(key.clone(), value);
    }
    faults.or(changed.into_iter().collect())
}

fn words(list: &str) -> impl Iterator<Item = &str> {
    list.split(',')
        .map(str::trim)
        .filter(|word| !word.is_empty())
}

impl TopicConfig {
    /// `None`: the value isn't allowed.
    fn set(&mut self, setting: &TopicSetting, value: &str) -> Option<()> {
        let kind = setting.kind;
        if let SettingKind::Fixed { value: fixed, .. } = kind {
            return (value == fixed).then_some(());
        }
        match setting.name {
            "acks.default" => self.acks = Some(kind.acks(value)?),
            "acks.min" => self.acks_min = Some(kind.acks(value)?),
            "durability" => self.durability = Some(value.parse().ok()?),
            "min.insync.replicas" => {
                let count = value.parse().ok().filter(|count| *count >= 1)?;
                self.min_insync_replicas = Some(count);
            }
            "max.message.bytes" => {
                self.batch_bytes_max = Some(kind.number(value)?.try_into().ok()?)
            }
            "retention.bytes" => self.retention_bytes = Some(kind.limit(value)?),
            "retention.ms" => {
                self.retention = Some(match kind.limit(value)? {
                    Limit::Unlimited => Limit::Unlimited,
                    Limit::At(milliseconds) => Limit::At(Duration::from_millis(milliseconds)),
                });
            }
            "segment.bytes" => self.segment_bytes = Some(kind.number(value)?),
            "segment.ms" => self.segment_age = Some(Duration::from_millis(kind.number(value)?)),
            "tackboard.retention.budget" => {
                self.retention_budget = Some(match value {
                    "yield" => RetentionBudget::Yield,
                    "exempt" => RetentionBudget::Exempt,
                    _ => return None,
                });
            }
            "tackboard.retention.clock" => {
                self.retention_clock = Some(match value {
                    "append" => RetentionClock::Append,
                    "record" => RetentionClock::Record,
                    _ => return None,
                });
            }
            name => unreachable!("{name} is in the table and has no field"),
        }
        Some(())
    }

    /// What no setting alone can tell.
    fn check_relations(&self, faults: &mut ConfigFaults) {
        if let (Some(default), Some(least)) = (self.acks, self.acks_min)
            && default.at_least(least) != default
        {
            let allowed = format!("at least acks.min = {least}");
            faults.add("acks.default", &default.to_string(), allowed);
        }
        if let (Some(batch), Some(segment)) = (self.batch_bytes_max, self.segment_bytes)
            && u64::from(batch) > segment
        {
            let allowed = format!("at most segment.bytes = {segment}");
            faults.add("max.message.bytes", &batch.to_string(), allowed);
        }
    }
}

impl SettingKind {
    /// Whether the value is a list of words, with commas between them.
    pub fn is_list(self) -> bool {
        let form = FixedForm::List;
        matches!(self, SettingKind::Fixed { form: found, .. } if found == form)
    }

    fn acks(self, value: &str) -> Option<Acks> {
        let SettingKind::Acks { min } = self else {
            return None;
        };
        let acks = value.parse().ok()?;
        let low_enough = matches!(acks, Acks::Count(count) if count < min);
        (!low_enough).then_some(acks)
    }

    fn number(self, value: &str) -> Option<u64> {
        match self.limit(value)? {
            Limit::At(number) => Some(number),
            Limit::Unlimited => None,
        }
    }

    fn limit(self, value: &str) -> Option<Limit<u64>> {
        let (SettingKind::Milliseconds {
            min,
            max,
            or_unlimited,
        }
        | SettingKind::Bytes {
            min,
            max,
            or_unlimited,
        }) = self
        else {
            return None;
        };
        if or_unlimited && value == "-1" {
            return Some(Limit::Unlimited);
        }
        let number = value.parse().ok()?;
        (min..=max).contains(&number).then_some(Limit::At(number))
    }
}

/// What is allowed, as said in messages and in the documentation.
impl fmt::Display for SettingKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (min, max, unit, or_unlimited) = match *self {
            SettingKind::Acks { min } => return write!(f, "all, or a number from {min} up"),
            SettingKind::Durability => return f.write_str("fsync, interval or written"),
            SettingKind::Replicas => {
                return f.write_str("1 to the number of replicas of a partition");
            }
            SettingKind::Fixed { value, .. } => return f.write_str(value),
            SettingKind::RetentionClock => return f.write_str("append or record"),
            SettingKind::RetentionBudget => return f.write_str("yield or exempt"),
            SettingKind::Milliseconds {
                min,
                max,
                or_unlimited,
            } => (min, max, "milliseconds", or_unlimited),
            SettingKind::Bytes {
                min,
                max,
                or_unlimited,
            } => (min, max, "bytes", or_unlimited),
        };
        write!(f, "{min} to {max} {unit}")?;
        if or_unlimited {
            f.write_str(", or -1 for no limit")?;
        }
        Ok(())
    }
}

fn names() -> String {
    let names: Vec<&str> = TOPIC_SETTINGS.iter().map(|setting| setting.name).collect();
    names.join(", ")
}

fn quoted(text: &str) -> String {
    let mut quoted: String = text.chars().take(VALUE_QUOTED_MAX).collect();
    if quoted.len() < text.len() {
        quoted.push('…');
    }
    format!("'{}'", quoted.escape_debug())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_is_read() {
        let config = parse_topic_config([
            ("acks.default", "all"),
            ("acks.min", "1"),
            ("durability", "interval"),
            ("cleanup.policy", "delete"),
            ("min.insync.replicas", "1"),
            ("max.message.bytes", "65536"),
            ("retention.bytes", "-1"),
            ("retention.ms", "604800000"),
            ("segment.bytes", "1048576"),
            ("segment.ms", "3600000"),
            ("tackboard.retention.budget", "exempt"),
            ("tackboard.retention.clock", "record"),
        ]);
        let expected = TopicConfig {
            acks: Some(Acks::All),
            acks_min: Some(Acks::Count(1)),
            durability: Some(Durability::Interval),
            min_insync_replicas: Some(1),
            batch_bytes_max: Some(65_536),
            retention_bytes: Some(Limit::Unlimited),
            retention: Some(Limit::At(Duration::from_secs(604_800))),
            segment_bytes: Some(1_048_576),
            segment_age: Some(Duration::from_secs(3_600)),
            retention_budget: Some(RetentionBudget::Exempt),
            retention_clock: Some(RetentionClock::Record),
        };
        assert_eq!(config, Ok(expected));
        assert_eq!(parse_topic_config([]), Ok(TopicConfig::default()));
    }

    #[test]
    fn the_table_is_sorted_and_every_line_has_a_field_or_one_value() {
        assert!(TOPIC_SETTINGS.is_sorted_by_key(|setting| setting.name));
        for setting in TOPIC_SETTINGS {
            let value = match setting.kind {
                SettingKind::Fixed { value, .. } => {
                    let parse = |value| parse_topic_config([(setting.name, value)]);
                    assert_eq!(parse(value), Ok(TopicConfig::default()));
                    parse("another").expect_err("one value only");
                    continue;
                }
                SettingKind::Acks { .. } | SettingKind::Replicas => "1".to_owned(),
                SettingKind::Durability => "fsync".to_owned(),
                SettingKind::RetentionClock => "append".to_owned(),
                SettingKind::RetentionBudget => "yield".to_owned(),
                SettingKind::Milliseconds { max, .. } | SettingKind::Bytes { max, .. } => {
                    max.to_string()
                }
            };
            let config = parse_topic_config([(setting.name, value.as_str())]).unwrap();
            assert_ne!(config, TopicConfig::default(), "{}", setting.name);
        }
    }

    #[test]
    fn all_faults_are_reported_at_once_with_what_is_allowed() {
        let faults = parse_topic_config([
            ("acks.default", "0"),
            ("acks.min", "1"),
            ("retention.ms", "0"),
            ("retention.ms", "5"),
            ("segment.bytes", "1048576.5"),
            ("cleanup.policy", "compact"),
            ("min.insync.replicas", "0"),
            ("flush.ms", "1"),
        ])
        .unwrap_err();
        let text = faults.to_string();
        for part in [
            "'acks.default' = '0': allowed is at least acks.min = 1",
            "'retention.ms' = '0': allowed is 1 to 31622400000000 milliseconds, or -1 for no limit",
            "'retention.ms' = '5': allowed is each key once",
            "'segment.bytes' = '1048576.5': allowed is 1048576 to 2147483648 bytes",
            "'cleanup.policy' = 'compact': allowed is delete",
            "'min.insync.replicas' = '0': allowed is 1 to the number of replicas of a partition",
            "'flush.ms' = '1': allowed is a key among acks.default, acks.min,",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert_eq!(faults.listed.len(), 7);
    }

    #[test]
    fn long_and_many_faults_are_cut() {
        let long = "x".repeat(10_000);
        let pairs = (0..100).map(|_| (long.as_str(), long.as_str()));
        let faults = parse_topic_config(pairs).unwrap_err();
        assert_eq!((faults.listed.len(), faults.unlisted), (32, 68));
        assert!(faults.to_string().len() < 20_000);
    }
    #[test]
    fn changes_set_reset_and_work_on_lists() {
        let own = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
            let own = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
            pairs.iter().map(own).collect()
        };
        let change = |current: &[(&str, &str)], resets, changes: &[(&str, ConfigChange)]| {
            let named = |(key, change): &(&str, ConfigChange)| ((*key).to_owned(), change.clone());
            let changes: Vec<_> = changes.iter().map(named).collect();
            change_topic_config(&own(current), resets, &changes)
        };
        let set = |value: &str| ConfigChange::Set(value.to_owned());
        let append = |value: &str| ConfigChange::Append(value.to_owned());
        let subtract = |value: &str| ConfigChange::Subtract(value.to_owned());
        let before = [("retention.ms", "5"), ("segment.ms", "6000")];

        let changed = change(
            &before,
            false,
            &[
                ("segment.ms", ConfigChange::Reset),
                ("acks.min", set("1")),
                ("durability", ConfigChange::Reset),
            ],
        );
        assert_eq!(
            changed,
            Ok(own(&[("acks.min", "1"), ("retention.ms", "5")]))
        );
        let replaced = change(&before, true, &[("acks.min", set("1"))]);
        assert_eq!(replaced, Ok(own(&[("acks.min", "1")])));

        // A list that the topic does not set is the one that holds.
        let same = change(&[], false, &[("cleanup.policy", append("delete"))]);
        assert_eq!(same, Ok(own(&[("cleanup.policy", "delete")])));
        let more = change(&[], false, &[("cleanup.policy", append("compact"))]);
        assert_eq!(more, Ok(own(&[("cleanup.policy", "delete,compact")])));
        let less = [("cleanup.policy", subtract("delete"))];
        let none = change(&[("cleanup.policy", "delete")], false, &less);
        assert_eq!(none, Ok(own(&[("cleanup.policy", "")])));

        let faults = change(
            &before,
            false,
            &[
                ("retention.ms", append("7")),
                ("no.such", ConfigChange::Reset),
                ("acks.min", set("1")),
                ("acks.min", set("2")),
            ],
        )
        .expect_err("three faults")
        .to_string();
        for part in [
            "'retention.ms' = '7': allowed is one value: it is no list",
            "'no.such' = '': allowed is a key among",
            "'acks.min' = '2': allowed is each key once",
        ] {
            assert!(faults.contains(part), "{part} in {faults}");
        }
    }
}
