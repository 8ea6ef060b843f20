//! What may be written on the command line.

use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::LazyLock;

use clap::{Args, Parser, Subcommand, ValueEnum};
use tackboard_client::{Acks, Compression, Durability, Offset, Start, TimestampMs};

use crate::config::{Sources, render};

const EXIT_CODES: &str = "\
Exit codes: 0 done; 1 it was tried and failed, or the broker refused; 2 wrong usage or configuration, or a machine that \
can't run the broker as it is configured: nothing was started, and `check` says the same; \
130 `produce` or `consume --group` was interrupted.";

const CONSUMED_JSON: &str = "\
Printed are the values, one a line. With --json each line is an object with partition, offset, timestamp \
(ms since 1970), key and value; a key or value that is no UTF-8 is named key_base64 or value_base64 instead.";

/// Tackboard, an event log broker for Linux.
#[derive(Debug, Parser)]
#[command(
    name = "tackboard",
    version,
    max_term_width = 110,
    arg_required_else_help = true,
    after_help = EXIT_CODES
)]
#[command(subcommand_required = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What can be done.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a broker.
    #[command(after_long_help = render::key_list())]
    Serve(ServeArguments),
    /// Say whether this machine can run a broker, and what mends it if not.
    Check(CheckArguments),
    /// Show settings of the broker.
    Config(ConfigArguments),
    /// Create, list, describe, alter and delete topics.
    Topic(TopicArguments),
    /// List and describe consumer groups, set where they read on, delete them.
    Group(GroupArguments),
    /// Send lines as events.
    Produce(ProduceArguments),
    /// Print events.
    #[command(after_help = CONSUMED_JSON)]
    Consume(ConsumeArguments),
}

impl Command {
    /// Whether the command was asked for JSON.
    pub fn json(&self) -> bool {
        match self {
            Command::Serve(_) => false,
            Command::Check(arguments) => arguments.json,
            Command::Config(_) => false,
            Command::Topic(arguments) => match &arguments.command {
                TopicCommand::Create(create) => create.client.json,
                TopicCommand::List(list) => list.client.json,
                TopicCommand::Describe(describe) => describe.client.json,
                TopicCommand::Alter(alter) => alter.client.json,
                TopicCommand::Delete(delete) => delete.client.json,
            },
            Command::Group(arguments) => match &arguments.command {
                GroupCommand::List(list) => list.client.json,
                GroupCommand::Describe(named) | GroupCommand::Delete(named) => named.client.json,
                GroupCommand::ResetOffsets(reset) => reset.client.json,
            },
            Command::Produce(arguments) => arguments.client.json,
            Command::Consume(arguments) => arguments.client.json,
        }
    }
}

/// Where a broker's settings come from.
#[derive(Args, Clone, Debug)]
pub struct ServeArguments {
    /// Configuration file (TOML). `tackboard config render` prints one with all settings.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Data folder; short for --set data.dir=DIR. Default: ./tackboard-data
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// One setting, e.g. --set acks.default=1; may be repeated and wins over the file.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
}

impl ServeArguments {
    /// The same, as the configuration takes it.
    pub fn sources(&self) -> Sources {
        Sources {
            file: self.config.clone(),
            data_dir: self.data.clone(),
            sets: self.set.clone(),
        }
    }
}

/// `check`.
#[derive(Args, Debug)]
pub struct CheckArguments {
    /// The settings to check for.
    #[command(flatten)]
    pub serve: ServeArguments,
    /// Run where clients run: check instead which of the addresses that the broker at HOST:PORT (of either listener) tells its
    /// clients can't be reached from here
    #[arg(long, value_name = "HOST:PORT")]
    pub from_client: Option<String>,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

/// `config`.
#[derive(Args, Debug)]
pub struct ConfigArguments {
    /// What to show.
    #[command(subcommand)]
    pub command: ConfigCommand,
}

/// What `config` can show.
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Print a configuration file with every setting at its default.
    Render,
    /// Tell what a setting does, its default and what is allowed. Without a key: list all.
    Explain {
        /// The setting, e.g. acks.default.
        key: Option<String>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

/// The broker that commands talk to unless told otherwise.
pub(super) const BROKER_DEFAULT: &str = "127.0.0.1:7400";

/// Brokers to talk to where the command line names none; an empty one names none either, as a script has it that sets
/// what it wasn't given.
const BROKER_VARIABLE: &str = "TACKBOARD_BROKER";

/// The default of `--broker`: what clap would read from the variable by itself it reads even when that is empty.
static BROKER: LazyLock<OsString> = LazyLock::new(|| {
    let named = std::env::var_os(BROKER_VARIABLE).filter(|value| !value.is_empty());
    named.unwrap_or_else(|| BROKER_DEFAULT.into())
});

/// What every command that talks to a broker takes.
#[derive(Args, Clone, Debug)]
pub struct ClientArguments {
    /// Broker to talk to; several, separated by commas, are tried in turn. The environment variable TACKBOARD_BROKER
    /// changes the default, unless it is empty
    #[arg(
        long,
        value_name = "HOST:PORT",
        default_value = BROKER.as_os_str(),
        value_delimiter = ',',
        value_parser = host_port
    )]
    pub broker: Vec<String>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// `topic`.
#[derive(Args, Debug)]
pub struct TopicArguments {
    /// What to do with topics.
    #[command(subcommand)]
    pub command: TopicCommand,
}

/// What can be done with topics.
#[derive(Debug, Subcommand)]
pub enum TopicCommand {
    /// Create a topic.
    Create(CreateArguments),
    /// List all topics.
    List(ListArguments),
    /// Show a topic's partitions, sizes and settings.
    Describe(NamedTopicArguments),
    /// Give a topic more partitions, or change its settings.
    Alter(AlterArguments),
    /// Delete a topic and its events.
    Delete(NamedTopicArguments),
}

/// `topic create`.
#[derive(Args, Debug)]
pub struct CreateArguments {
    /// Name: 1 to 249 of a-z A-Z 0-9 . _ -
    pub topic: String,
    /// Number of partitions. Default: the broker's num.partitions
    #[arg(long, value_name = "N", value_parser = from_one::<i32>, allow_negative_numbers = true)]
    pub partitions: Option<i32>,
    /// Replicas of each partition. Default: the broker's default.replication.factor
    #[arg(long, value_name = "N", value_parser = from_one::<i16>, allow_negative_numbers = true)]
    pub replication_factor: Option<i16>,
    /// Topic setting, e.g. --config retention.ms="2 d"; may be repeated.
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    pub config: Vec<(String, String)>,
    /// Broker and output.
    #[command(flatten)]
    pub client: ClientArguments,
}

/// `topic alter`.
#[derive(Args, Debug)]
#[group(id = "changes", required = true, multiple = true, args = ["partitions", "config", "reset"])]
pub struct AlterArguments {
    /// Name of the topic.
    pub topic: String,
    /// How many partitions it is to have, more than it has. Events with a key then go to other partitions than before.
    #[arg(long, value_name = "N", value_parser = from_one::<i32>, allow_negative_numbers = true)]
    pub partitions: Option<i32>,
    /// Topic setting, e.g. --config retention.ms="2 d"; may be repeated. It holds at once.
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    pub config: Vec<(String, String)>,
    /// Topic setting that is to be the broker's again; may be repeated.
    #[arg(long, value_name = "KEY")]
    pub reset: Vec<String>,
    /// Broker and output.
    #[command(flatten)]
    pub client: ClientArguments,
}

/// `topic list`.
#[derive(Args, Debug)]
pub struct ListArguments {
    /// Broker and output.
    #[command(flatten)]
    pub client: ClientArguments,
}

/// `topic describe` and `topic delete`.
#[derive(Args, Debug)]
pub struct NamedTopicArguments {
    /// Name of the topic.
    pub topic: String,
    /// Broker and output.
    #[command(flatten)]
    pub client: ClientArguments,
}

/// `group`.
#[derive(Args, Debug)]
pub struct GroupArguments {
    /// What to do with consumer groups.
    #[command(subcommand)]
    pub command: GroupCommand,
}

/// What can be done with consumer groups.
#[derive(Debug, Subcommand)]
pub enum GroupCommand {
    /// List all groups.
    List(ListArguments),
    /// Show a group's members and how far it has come.
    Describe(NamedGroupArguments),
    /// Set where a group without members reads on. Shows what would be; --execute does it.
    ResetOffsets(ResetArguments),
    /// Forget a group without members, and what it has committed.
    Delete(NamedGroupArguments),
}

/// `group describe` and `group delete`.
#[derive(Args, Debug)]
pub struct NamedGroupArguments {
    /// Name of the group.
    pub group: String,
    /// Broker and output.
    #[command(flatten)]
    pub client: ClientArguments,
}

/// `group reset-offsets`.
#[derive(Args, Debug)]
pub struct ResetArguments {
    /// Name of the group; it is made if there is none.
    #[arg(value_parser = group_name)]
    pub group: String,
    /// Of what.
    #[command(flatten)]
    pub topics: ResetTopics,
    /// Where to.
    #[command(flatten)]
    pub to: ResetTo,
    /// Do it. Without: show what would be.
    #[arg(long)]
    pub execute: bool,
    /// Broker and output.
    #[command(flatten)]
    pub client: ClientArguments,
}

/// The partitions whose offsets are reset.
#[derive(Args, Debug)]
#[group(required = true, multiple = false)]
pub struct ResetTopics {
    /// A topic, or some partitions of it; may be repeated.
    #[arg(long, value_name = "TOPIC[:N,N]", value_parser = topic_choice)]
    pub topic: Vec<TopicChoice>,
    /// Everything that the group has committed.
    #[arg(long)]
    pub all_topics: bool,
}

/// A topic, or some of its partitions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicChoice {
    /// The topic.
    pub topic: String,
    /// Empty: all.
    pub partitions: Vec<i32>,
}

/// Where offsets are reset to: one of these.
#[derive(Args, Clone, Debug, Default)]
#[group(required = true, multiple = false)]
pub struct ResetTo {
    /// The first event there is.
    #[arg(long)]
    pub to_earliest: bool,
    /// The end: only what is produced from now on.
    #[arg(long)]
    pub to_latest: bool,
    /// This offset, or the nearest that there is.
    #[arg(long, value_name = "OFFSET", value_parser = clap::value_parser!(i64).range(0..), allow_negative_numbers = true)]
    pub to_offset: Option<i64>,
    /// The first event at or after this time (RFC 3339); the end if there is none.
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub to_time: Option<TimestampMs>,
    /// So many events on, or back if below 0, from what is committed.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub shift_by: Option<i64>,
}

/// See [`ResetTo`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResetChoice {
    /// The first event there is.
    Earliest,
    /// The end.
    Latest,
    /// This offset.
    Offset(Offset),
    /// The first event at or after this time.
    Time(TimestampMs),
    /// So many events on.
    Shift(i64),
}

impl ResetTo {
    /// The one that was chosen.
    pub fn choice(&self) -> ResetChoice {
        match (self.to_offset, self.to_time, self.shift_by) {
            (Some(offset), _, _) => ResetChoice::Offset(Offset(offset)),
            (_, Some(time), _) => ResetChoice::Time(time),
            (_, _, Some(by)) => ResetChoice::Shift(by),
            _ if self.to_earliest => ResetChoice::Earliest,
            _ => ResetChoice::Latest,
        }
    }

    /// The time that was asked for, if one was.
    pub fn time(&self) -> Option<TimestampMs> {
        self.to_time
    }
}

/// `produce`.
#[derive(Args, Debug)]
pub struct ProduceArguments {
    /// Topic to send to.
    pub topic: String,
    /// File of lines; without it, or with -, standard input.
    pub file: Option<PathBuf>,
    /// Lines are JSON objects; this field of theirs is the key. A line without it, or with null, has no key.
    #[arg(long, value_name = "FIELD")]
    pub key_field: Option<String>,
    /// Lines are JSON objects; this field of theirs is the event's time: RFC 3339, or milliseconds since 1970.
    #[arg(long, value_name = "FIELD")]
    pub timestamp_field: Option<String>,
    /// Replicas that must hold an event: all, a number, or 0 for no answer. Default: the topic's, else the broker's.
    #[arg(long, value_name = "LEVEL", value_parser = acks, allow_negative_numbers = true)]
    pub acks: Option<Acks>,
    /// When a replica's copy counts; only a stronger one than the topic's has an effect.
    #[arg(long, value_name = "LEVEL")]
    pub durability: Option<DurabilityArgument>,
    /// Compression of batches.
    #[arg(long, value_name = "CODEC", default_value = "none")]
    pub compression: CompressionArgument,
    /// Send everything to this partition. Default: by key as Kafka's clients do, without a key over all.
    #[arg(long, value_name = "N", value_parser = partition, allow_negative_numbers = true)]
    pub partition: Option<i32>,
    /// Broker and output.
    #[command(flatten)]
    pub client: ClientArguments,
}

/// `consume`.
#[derive(Args, Debug)]
pub struct ConsumeArguments {
    /// Topic to read.
    pub topic: String,
    /// Where to begin: earliest, latest, an offset, or a time (RFC 3339): the first event at or after it.
    #[arg(long, value_name = "WHERE", default_value = "earliest", value_parser = start, allow_negative_numbers = true)]
    pub from: Start,
    /// Read only this partition; may be repeated. Default: all
    #[arg(long, value_name = "N", value_parser = partition, allow_negative_numbers = true)]
    pub partition: Vec<i32>,
    /// Read as a member of this consumer group: its share of the partitions, on from what the group has committed, which
    /// --from only replaces where there is nothing. What was printed is committed.
    #[arg(long, value_name = "NAME", value_parser = group_name, conflicts_with = "partition")]
    pub group: Option<String>,
    /// Stop after so many events; waits for them if need be. Default: stop at the end as it is now.
    #[arg(long, value_name = "N", value_parser = event_count, allow_negative_numbers = true)]
    pub count: Option<u64>,
    /// Go on with new events until interrupted.
    #[arg(long)]
    pub follow: bool,
    /// Broker and output.
    #[command(flatten)]
    pub client: ClientArguments,
}

/// `--durability`.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum DurabilityArgument {
    /// On the medium: survives power loss.
    Fsync,
    /// Written, synced in the background.
    Interval,
    /// Written.
    Written,
}

impl From<DurabilityArgument> for Durability {
    fn from(argument: DurabilityArgument) -> Self {
        match argument {
            DurabilityArgument::Fsync => Durability::Fsync,
            DurabilityArgument::Interval => Durability::Interval,
            DurabilityArgument::Written => Durability::Written,
        }
    }
}

/// `--compression`.
#[derive(Clone, Copy, Debug, ValueEnum)]
#[allow(missing_docs, reason = "the codecs' names say it")]
pub enum CompressionArgument {
    None,
    Gzip,
    Snappy,
    Lz4,
    Zstd,
}

impl From<CompressionArgument> for Compression {
    fn from(argument: CompressionArgument) -> Self {
        match argument {
            CompressionArgument::None => Compression::None,
            CompressionArgument::Gzip => Compression::Gzip,
            CompressionArgument::Snappy => Compression::Snappy,
            CompressionArgument::Lz4 => Compression::Lz4,
            CompressionArgument::Zstd => Compression::Zstd,
        }
    }
}

fn from_one<N: FromStr + PartialOrd + From<u8>>(text: &str) -> Result<N, String> {
    let number = text.parse().ok().filter(|number| *number >= N::from(1));
    number.ok_or_else(|| "expected a whole number from 1".to_owned())
}

fn partition(text: &str) -> Result<i32, String> {
    let number = text.parse().ok().filter(|number| *number >= 0);
    number.ok_or_else(|| "expected a partition's number, from 0".to_owned())
}

fn event_count(text: &str) -> Result<u64, String> {
    let number = text.parse();
    number.map_err(|_| "expected a number of events, from 0".to_owned())
}

fn acks(text: &str) -> Result<Acks, String> {
    match text {
        "all" | "-1" => Ok(Acks::All),
        _ => match i16::from_str(text) {
            Ok(count) if count >= 0 => Ok(Acks::Count(count)),
            _ => Err("expected all, or a number of replicas from 0 to 32767".to_owned()),
        },
    }
}

fn start(text: &str) -> Result<Start, String> {
    match text {
        "earliest" => Ok(Start::Earliest),
        "latest" => Ok(Start::Latest),
        _ if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) => {
            let offset = text
                .parse()
                .map_err(|_| format!("expected an offset up to {}", i64::MAX))?;
            Ok(Start::Offset(Offset(offset)))
        }
        _ => match jiff::Timestamp::from_str(text) {
            Ok(time) => Ok(Start::Timestamp(TimestampMs(ceil_ms(time)))),
            Err(_) => Err(
                "expected earliest, latest, an offset, or a time like 2013-07-04T00:00:00Z"
                    .to_owned(),
            ),
        },
    }
}

fn time(text: &str) -> Result<TimestampMs, String> {
    let time = jiff::Timestamp::from_str(text);
    let time = time.map_err(|_| "expected a time like 2013-07-04T00:00:00Z".to_owned())?;
    Ok(TimestampMs(ceil_ms(time)))
}

fn group_name(text: &str) -> Result<String, String> {
    match text.len() {
        1..=255 => Ok(text.to_owned()),
        _ => Err("expected a name of 1 to 255 bytes".to_owned()),
    }
}

fn topic_choice(text: &str) -> Result<TopicChoice, String> {
    let (topic, partitions) = match text.split_once(':') {
        Some((topic, partitions)) => (topic, partitions.split(',').map(partition).collect()),
        None => (text, Ok(Vec::new())),
    };
    match (topic.is_empty(), partitions) {
        (false, Ok(partitions)) => Ok(TopicChoice {
            topic: topic.to_owned(),
            partitions,
        }),
        _ => Err("expected TOPIC or TOPIC:N,N, e.g. flights:0,3".to_owned()),
    }
}

/// Whole milliseconds, rounded up: an event in the millisecond before the time asked for is not at or
/// after it.
fn ceil_ms(time: jiff::Timestamp) -> i64 {
    let ms = time.as_millisecond();
    let part_ns = time.as_nanosecond() - i128::from(ms) * 1_000_000;
    if part_ns > 0 { ms + 1 } else { ms }
}

fn host_port(text: &str) -> Result<String, String> {
    let expected = || "expected HOST:PORT, e.g. 127.0.0.1:7400".to_owned();
    let (host, port) = text.trim().rsplit_once(':').ok_or_else(expected)?;
    match port.parse::<u16>() {
        Ok(1..) if !host.is_empty() => Ok(text.trim().to_owned()),
        _ => Err(expected()),
    }
}

fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => {
            Ok((key.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err("expected KEY=VALUE, e.g. retention.ms=86400000".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn parse(line: &str) -> Result<Command, clap::Error> {
        Cli::try_parse_from(line.split_whitespace()).map(|cli| cli.command)
    }

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn serve_takes_file_folder_and_settings() {
        let Ok(Command::Serve(arguments)) =
            parse("tackboard serve --config b.toml --data d --set a=1 --set b=2")
        else {
            panic!("serve")
        };
        let sources = arguments.sources();
        assert_eq!(sources.file.as_deref(), Some("b.toml".as_ref()));
        assert_eq!(sources.data_dir.as_deref(), Some("d".as_ref()));
        assert_eq!(sources.sets, ["a=1", "b=2"]);
    }

    #[test]
    fn acks_are_a_number_or_all() {
        assert_eq!(acks("all"), Ok(Acks::All));
        assert_eq!(acks("-1"), Ok(Acks::All));
        assert_eq!(acks("0"), Ok(Acks::Count(0)));
        for wrong in ["", "-2", "some", "40000", "1.5"] {
            assert!(acks(wrong).is_err(), "{wrong}");
        }
        assert!(parse("tackboard produce flights --acks -1").is_ok());
        assert!(parse("tackboard produce flights --acks many").is_err());
    }

    #[test]
    fn a_start_is_a_word_an_offset_or_a_time() {
        assert_eq!(start("earliest"), Ok(Start::Earliest));
        assert_eq!(start("latest"), Ok(Start::Latest));
        assert_eq!(start("42"), Ok(Start::Offset(Offset(42))));
        assert_eq!(
            start("2013-07-04T00:00:00Z"),
            Ok(Start::Timestamp(TimestampMs(1_372_896_000_000)))
        );
        assert_eq!(
            start("2013-07-04T02:00:00.0001+02:00"),
            Ok(Start::Timestamp(TimestampMs(1_372_896_000_001)))
        );
        for wrong in [
            "",
            "-1",
            "yesterday",
            "2013-07-04",
            "2013-07-04T00:00:00",
            "99999999999999999999",
        ] {
            assert!(start(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn numbers_out_of_range_are_told_from_unknown_flags() {
        for (line, expected) in [
            ("topic create t --partitions -1", "whole number from 1"),
            ("topic create t --partitions many", "whole number from 1"),
            (
                "topic create t --replication-factor 99999",
                "whole number from 1",
            ),
            (
                "consume t --from -1",
                "expected earliest, latest, an offset",
            ),
            ("consume t --partition -1", "a partition's number, from 0"),
            ("consume t --count -1", "a number of events, from 0"),
            ("produce t --partition x", "a partition's number, from 0"),
            ("produce t --acks -2", "a number of replicas from 0"),
        ] {
            let error = parse(&format!("tackboard {line}")).expect_err(line);
            assert!(error.to_string().contains(expected), "{line}: {error}");
        }
    }

    #[test]
    fn a_reset_says_of_what_and_where_to_each_in_one_way() {
        let parsed = |line: &str| match parse(&format!("tackboard group reset-offsets {line}")) {
            Ok(Command::Group(GroupArguments {
                command: GroupCommand::ResetOffsets(reset),
            })) => Ok(reset),
            Ok(_) => panic!("{line}"),
            Err(error) => Err(error.to_string()),
        };
        let reset = parsed("g --topic flights:0,3 --topic w --shift-by -5").expect("right");
        assert_eq!(reset.topics.topic[0].partitions, [0, 3]);
        assert!(reset.topics.topic[1].partitions.is_empty() && !reset.execute);
        assert_eq!(reset.to.choice(), ResetChoice::Shift(-5));
        let reset = parsed("g --all-topics --to-latest --execute").expect("right");
        assert_eq!(reset.to.choice(), ResetChoice::Latest);
        for wrong in [
            "g --to-latest",
            "g --all-topics",
            "g --all-topics --topic t --to-latest",
            "g --all-topics --to-latest --to-earliest",
            "g --topic t:x --to-latest",
            "g --topic :1 --to-latest",
            "g --topic t --to-offset -1",
            "g --topic t --to-time yesterday",
        ] {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn several_brokers_are_separated_by_commas() {
        let Ok(Command::Consume(arguments)) =
            parse("tackboard consume flights --broker a:1,b:2 --partition 0 --partition 3 --json")
        else {
            panic!("consume")
        };
        assert_eq!(arguments.client.broker, ["a:1", "b:2"]);
        assert_eq!(arguments.partition, [0, 3]);
        assert!(arguments.client.json);
        for wrong in ["a", ":1", "a:0", "a:99999"] {
            assert!(
                parse(&format!("tackboard topic list --broker {wrong}")).is_err(),
                "{wrong}"
            );
        }
    }

    #[test]
    fn long_help_of_serve_lists_every_setting() {
        let error = parse("tackboard serve --help").expect_err("help");
        for setting in crate::config::settings::all() {
            assert!(error.to_string().contains(setting.key), "{}", setting.key);
        }
    }
}
