//! Settings as Kafka's tools see them: each with where its value comes from, its type, and what would hold without it.
//!
//! Rendered from the two tables of settings, that of topics (`tackboard_logic::metadata`) and that of the broker
//! (`crate::config`); here is only what Kafka calls things.

use tackboard_logic::metadata::{Endpoint, FixedForm, SettingKind, Topic, TopicSetting};

use crate::{
    config::{Config, Stated, settings::Kind},
    shard::topics::{TopicValue, topic_settings},
};

/// What has settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Resource {
    /// A topic, by its name.
    Topic,
    /// A broker, by its id; without a name what all brokers have set while they run, which is nothing.
    Broker,
}

impl Resource {
    /// Kafka's number for it; `None`: it has no settings here.
    pub fn from_code(code: i8) -> Option<Self> {
        match code {
            2 => Some(Resource::Topic),
            4 => Some(Resource::Broker),
            _ => None,
        }
    }
}

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// The topic sets it.
    Topic,
    /// The broker was started with it, and it is not the default.
    Broker,
    /// Nobody sets it.
    Default,
}

impl Source {
    /// Kafka's number for it.
    pub fn code(self) -> i8 {
        match self {
            Source::Topic => 1,
            Source::Broker => 4,
            Source::Default => 5,
        }
    }
}

/// A value, and the setting and source that it comes from.
pub(super) struct Synonym<'a> {
    pub name: &'a str,
    pub value: String,
    pub source: Source,
}

/// One setting.
pub(super) struct Shown<'a> {
    /// Kafka's name for it, or ours with a prefix that none of Kafka's has.
    pub name: &'static str,
    /// Whether it can't be changed while the broker runs.
    pub read_only: bool,
    /// Kafka's number for the type of its value.
    pub config_type: i8,
    /// What it does.
    pub text: &'static str,
    /// All that is said about its value. The first one holds; there is one at least.
    pub synonyms: Vec<Synonym<'a>>,
}

impl Shown<'_> {
    /// What holds.
    pub fn value(&self) -> &str {
        &self.synonyms[0].value
    }

    /// Where that comes from.
    pub fn source(&self) -> Source {
        self.synonyms[0].source
    }
}

const BOOLEAN: i8 = 1;
const STRING: i8 = 2;
const INT: i8 = 3;
const LONG: i8 = 5;
const LIST: i8 = 7;

const ADVERTISED_LISTENERS: &str = "advertised.listeners";

/// All settings of a topic.
pub(super) fn of_topic<'a>(config: &'a Config, topic: &Topic) -> Vec<Shown<'a>> {
    let shown = |held: TopicValue<'_>| {
        let setting = held.setting;
        let own = held.own.map(|value| Synonym {
            name: setting.kafka_name,
            value: value.to_owned(),
            source: Source::Topic,
        });
        let stated =
            (config.stated.iter()).find(|stated| stated.setting.key == setting.default_from);
        let inherited = match stated {
            Some(stated) => of_broker_setting(stated, held.inherited),
            None => vec![Synonym {
                name: setting.kafka_name,
                value: held.inherited,
                source: Source::Default,
            }],
        };
        Shown {
            name: setting.kafka_name,
            read_only: false,
            config_type: topic_type(setting),
            text: setting.text,
            synonyms: own.into_iter().chain(inherited).collect(),
        }
    };
    topic_settings(config, topic)
        .into_iter()
        .map(shown)
        .collect()
}

/// All settings of the broker.
pub(super) fn of_broker(config: &Config) -> Vec<Shown<'_>> {
    let shown = config.stated.iter().map(|stated| Shown {
        name: stated.setting.key,
        read_only: true,
        config_type: broker_type(stated),
        text: stated.setting.text,
        synonyms: of_broker_setting(stated, stated.value.clone()),
    });
    shown.collect()
}

/// The address that clients are told, as Kafka's tools look for it: a broker there is always started with one.
pub(super) fn advertised_listener<'a>(endpoint: &Endpoint) -> Shown<'a> {
    let authority = match endpoint.host.contains(':') {
        true => format!("[{}]:{}", endpoint.host, endpoint.port),
        false => format!("{}:{}", endpoint.host, endpoint.port),
    };
    Shown {
        name: ADVERTISED_LISTENERS,
        read_only: true,
        config_type: LIST,
        text: "Where clients of Apache Kafka reach this broker: kafka.advertised, or kafka.bind without it.",
        synonyms: vec![Synonym {
            name: ADVERTISED_LISTENERS,
            value: format!("PLAINTEXT://{authority}"),
            source: Source::Broker,
        }],
    }
}

/// `value` is what the broker makes of the setting, which may be left to it.
fn of_broker_setting(stated: &Stated, value: String) -> Vec<Synonym<'_>> {
    let synonym = |value, source| Synonym {
        name: stated.setting.key,
        value,
        source,
    };
    match stated.value != stated.default {
        true => vec![
            synonym(value, Source::Broker),
            synonym(stated.default.clone(), Source::Default),
        ],
        false => vec![synonym(value, Source::Default)],
    }
}

fn topic_type(setting: &TopicSetting) -> i8 {
    match setting.kind {
        SettingKind::Acks { .. }
        | SettingKind::Durability
        | SettingKind::RetentionClock
        | SettingKind::RetentionBudget
        | SettingKind::Fixed {
            form: FixedForm::Word,
            ..
        } => STRING,
        SettingKind::Fixed {
            form: FixedForm::List,
            ..
        } => LIST,
        SettingKind::Fixed {
            form: FixedForm::Switch,
            ..
        } => BOOLEAN,
        SettingKind::Replicas => INT,
        SettingKind::Milliseconds { .. } | SettingKind::Bytes { .. } => LONG,
    }
}

/// A number that is left to the broker is a word, and told as one.
fn broker_type(stated: &Stated) -> i8 {
    let is_number = stated.value.parse::<i64>().is_ok();
    match stated.setting.kind {
        Kind::Size { .. } | Kind::Duration { .. } if is_number => LONG,
        Kind::Integer { .. } if is_number => INT,
        Kind::Size { .. }
        | Kind::Duration { .. }
        | Kind::Integer { .. }
        | Kind::Address { .. }
        | Kind::HostPort { .. }
        | Kind::Host { .. }
        | Kind::Path
        | Kind::Acks
        | Kind::Choice(_) => STRING,
        Kind::Cores => LIST,
        Kind::Switch => BOOLEAN,
    }
}
