//! `tackboard produce`: lines of a file or of standard input, each an event.
//!
//! A line's bytes without the newline are the event's value. A line that cannot be read ends the command, and so does a
//! signal; what was sent before is flushed and counted in both cases, so that one can go on from there.

use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal, Read};
use std::os::fd::AsFd as _;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use tackboard_client::{
    Acks, Admin, BatchReport, ErrorCode, PartitionIndex, Producer, ProducerConfig, ProducerRecord,
};

use crate::config::quantity::{approximate_size, separated};

use super::arguments::ProduceArguments;
use super::event_line::Fields;
use super::failure::Failure;
use super::interrupt::{EXIT_INTERRUPTED, Interrupt};
use super::output::{counted, is_drawable, note, print, print_json, rounded};
use super::topic::client_config;

/// A longer line is no event: no broker takes one.
const LINE_BYTES_MAX: usize = 1 << 30;
/// Progress moves on after so many lines.
const LINES_PER_TICK: u64 = 512;

pub(super) fn run(arguments: &ProduceArguments) -> Result<(), Failure> {
    const BUFFER_BYTES: usize = 256 << 10;
    let file = open(arguments.file.as_deref())?;
    let counts = Arc::new(Mutex::new(Acknowledged::default()));
    // The producer's threads must inherit the blocked signals.
    let interrupt = Interrupt::install(last_words(&counts))
        .map_err(|error| Failure::failed(format!("signals cannot be waited for: {error}")))?;
    let producer = connect(arguments, &counts)?;
    let started = Instant::now();
    let progress = progress();
    let sender = Sender {
        arguments,
        producer: &producer,
        progress: &progress,
        interrupt: &interrupt,
        sent: Sent::default(),
    };
    let input = interrupt
        .input(file)
        .map_err(|error| Failure::failed(format!("signals cannot be waited for: {error}")))?;
    let (sent, sending) = sender.send_all(BufReader::with_capacity(BUFFER_BYTES, input));
    let flushed = producer.close();
    progress.finish_and_clear();
    let acknowledged = counts.lock().expect("no report panics").clone();
    let summary = Summary {
        sent,
        acknowledged,
        seconds: started.elapsed().as_secs_f64(),
        signal: interrupt.signal(),
    };
    let outcome = sending.and(flushed.map_err(Failure::from));
    match outcome {
        Ok(()) => summary.print(arguments),
        Err(failure) => Err(summary.explain(arguments, failure)),
    }
}

/// What is said when the process ends before it has flushed.
fn last_words(counts: &Arc<Mutex<Acknowledged>>) -> impl FnOnce() -> String + Send + use<> {
    let counts = counts.clone();
    move || {
        let acknowledged = counts.lock().expect("no report panics").events;
        format!(
            "ended at once; {} acknowledged, what was sent after them may or may not be in the log",
            counted(acknowledged, "event")
        )
    }
}

/// The input, without a buffer of its own: a signal could not end a wait for what is buffered already.
fn open(file: Option<&Path>) -> Result<File, Failure> {
    match file {
        Some(path) if path.is_dir() => Err(Failure::Usage(format!(
            "{} is a folder, not a file of lines\nnothing was sent",
            path.display()
        ))),
        Some(path) if path != Path::new("-") => File::open(path).map_err(|error| {
            Failure::Usage(format!(
                "cannot open {}: {error}\nnothing was sent",
                path.display()
            ))
        }),
        _ => {
            if io::stdin().is_terminal() {
                note("every line is sent as an event; Ctrl-D ends");
            }
            let stdin = io::stdin().as_fd().try_clone_to_owned();
            let stdin = stdin.map_err(|error| {
                Failure::failed(format!("standard input cannot be read: {error}"))
            })?;
            Ok(File::from(stdin))
        }
    }
}

fn connect(
    arguments: &ProduceArguments,
    counts: &Arc<Mutex<Acknowledged>>,
) -> Result<Producer, Failure> {
    let config = ProducerConfig {
        client: client_config(),
        acks: arguments.acks,
        durability: arguments.durability.map(Into::into),
        compression: arguments.compression.into(),
        ..ProducerConfig::default()
    };
    let counts = counts.clone();
    let report = move |report: BatchReport| {
        counts.lock().expect("no report panics").add(&report);
    };
    if let Some(Acks::Count(count)) = arguments.acks {
        check_replicas(arguments, count)?;
    }
    let producer = Producer::connect_with_reports(&arguments.client.broker, config, report)?;
    let partitions = producer.partition_count(&arguments.topic)?;
    match arguments.partition {
        Some(partition) if usize::try_from(partition).map_or(true, |index| index >= partitions) => {
            Err(Failure::Usage(format!(
                "topic {} has {}, numbered from 0; there is no partition {partition}\nnothing was sent",
                arguments.topic,
                counted(partitions as u64, "partition")
            )))
        }
        _ => Ok(producer),
    }
}

/// A producer would wait for replicas to come into sync until it gives up; a person wants to know now. A topic that does
/// not exist is reported by the producer.
fn check_replicas(arguments: &ProduceArguments, acks: i16) -> Result<(), Failure> {
    let topic = arguments.topic.as_str();
    let mut admin = Admin::connect(&arguments.client.broker, client_config())?;
    let cluster = admin.describe_cluster(Some(&[topic]))?;
    let mut topics = cluster.topics.iter();
    match topics.find_map(|topic| topic.too_few_replicas(Some(Acks::Count(acks)))) {
        Some(fewest) => Err(Failure::refused(
            ErrorCode::NotEnoughReplicas,
            format!(
                "topic {topic} has {}, {acks} acknowledgements were asked for (NOT_ENOUGH_REPLICAS)\n\
                 nothing was written; lower --acks, or add replicas",
                counted(fewest as u64, "in-sync replica")
            ),
        )),
        None => Ok(()),
    }
}

fn progress() -> ProgressBar {
    if !is_drawable() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{spinner} {human_pos} events  {per_sec}  {elapsed}");
    ProgressBar::new_spinner()
        .with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()))
}

/// What was handed to the producer.
#[derive(Clone, Copy, Debug, Default)]
struct Sent {
    events: u64,
    bytes: u64,
    /// Of the events, those with a key.
    keyed: u64,
}

struct Sender<'a> {
    arguments: &'a ProduceArguments,
    producer: &'a Producer,
    progress: &'a ProgressBar,
    interrupt: &'a Interrupt,
    sent: Sent,
}

impl Sender<'_> {
    /// Sends line after line until the end, a signal or the first fault. What was sent counts in all cases.
    fn send_all(mut self, mut input: impl BufRead) -> (Sent, Result<(), Failure>) {
        let result = self.send_lines(&mut input);
        (self.sent, result)
    }

    fn send_lines(&mut self, input: &mut dyn BufRead) -> Result<(), Failure> {
        let fields = Fields {
            key: self.arguments.key_field.as_deref(),
            timestamp: self.arguments.timestamp_field.as_deref(),
        };
        let mut line = Vec::new();
        loop {
            let number = self.sent.events + 1;
            let read = read_line(input, &mut line, LINE_BYTES_MAX).map_err(|error| {
                Failure::failed(format!("line {number} cannot be read: {error}"))
            })?;
            match read {
                Line::Whole => {}
                // The last line of a file may lack its newline. One that a signal cut is no event.
                Line::Open if self.interrupt.signal().is_none() => {}
                Line::Open | Line::None => return Ok(()),
            }
            let event = fields
                .read(&line)
                .map_err(|what| Failure::failed(format!("line {number} {what}")))?;
            let record = ProducerRecord {
                key: event.key.as_deref().map(str::as_bytes),
                value: Some(&line),
                timestamp: event.timestamp,
                headers: &[],
                partition: self.arguments.partition.map(PartitionIndex),
            };
            self.producer
                .send(&self.arguments.topic, record)
                .map_err(|error| {
                    let text = Failure::from(error).to_string();
                    Failure::failed(format!("line {number}: {text}"))
                })?;
            self.sent.events = number;
            self.sent.keyed += u64::from(event.key.is_some());
            self.sent.bytes += line.len() as u64;
            if number.is_multiple_of(LINES_PER_TICK) {
                self.progress.set_position(number);
            }
        }
    }
}

/// What came of reading a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    /// It ended with a newline.
    Whole,
    /// The input ended before a newline came.
    Open,
    /// The input had ended before.
    None,
}

/// Reads up to a newline, which is left out.
fn read_line(input: &mut dyn BufRead, line: &mut Vec<u8>, bytes_max: usize) -> io::Result<Line> {
    line.clear();
    let read = input.take(bytes_max as u64 + 1).read_until(b'\n', line)?;
    let is_whole = line.last() == Some(&b'\n');
    if is_whole {
        line.pop();
    }
    if line.len() > bytes_max {
        return Err(io::Error::other(format!(
            "it is longer than {}",
            approximate_size(bytes_max as u64)
        )));
    }
    Ok(match (read, is_whole) {
        (0, _) => Line::None,
        (_, true) => Line::Whole,
        (_, false) => Line::Open,
    })
}

/// What the broker said, batch by batch.
#[derive(Clone, Debug, Default)]
struct Acknowledged {
    events: u64,
    /// Sent with acks 0: there is no answer.
    unanswered: u64,
    failed: u64,
}

impl Acknowledged {
    fn add(&mut self, report: &BatchReport) {
        let events = u64::from(report.record_count);
        match report.outcome {
            Ok(Some(_)) => self.events += events,
            Ok(None) => self.unanswered += events,
            Err(_) => self.failed += events,
        }
    }
}

struct Summary {
    sent: Sent,
    acknowledged: Acknowledged,
    seconds: f64,
    /// The signal that ended the input.
    signal: Option<&'static str>,
}

impl Summary {
    fn print(&self, arguments: &ProduceArguments) -> Result<(), Failure> {
        if arguments.client.json {
            print_json(&json!({
                "topic": arguments.topic,
                "sent": self.sent.events,
                "acknowledged": self.acknowledged.events,
                "bytes": self.sent.bytes,
                "seconds": self.seconds,
                "interrupted": self.signal.is_some(),
            }))?;
        } else if self.signal.is_none() {
            self.print_text(arguments)?;
        }
        if let Some(field) = &arguments.key_field
            && self.sent.events > 0
            && self.sent.keyed == 0
        {
            note(&format!(
                "no line had a value in the field {field:?} (--key-field): no event has a key, so none keeps its order with another"
            ));
        }
        let Some(signal) = self.signal else {
            return Ok(());
        };
        note(&format!(
            "{signal}: {}",
            self.sent_and_acknowledged(arguments)
        ));
        Err(Failure::Reported(EXIT_INTERRUPTED))
    }

    fn print_text(&self, arguments: &ProduceArguments) -> Result<(), Failure> {
        let Acknowledged {
            events, unanswered, ..
        } = self.acknowledged;
        let rate = (events + unanswered) as f64 / self.seconds.max(f64::MIN_POSITIVE);
        print(&format!(
            "{} to {}{}   {}   {:.2} s   {} events/s\n",
            counted(events + unanswered, "event"),
            arguments.topic,
            self.unanswered(),
            approximate_size(self.sent.bytes),
            self.seconds,
            separated(rounded(rate)),
        ))
    }

    /// The failure, with what became of everything that was sent before.
    fn explain(&self, arguments: &ProduceArguments, failure: Failure) -> Failure {
        Failure::failed(format!(
            "{failure}\n{}",
            self.sent_and_acknowledged(arguments)
        ))
    }

    fn sent_and_acknowledged(&self, arguments: &ProduceArguments) -> String {
        let Acknowledged {
            events,
            unanswered,
            failed,
        } = self.acknowledged;
        let handled = events + unanswered;
        let unknown = self.sent.events.saturating_sub(handled + failed);
        let mut text = format!(
            "{} sent to {}, {} acknowledged{}",
            counted(self.sent.events, "event"),
            arguments.topic,
            separated(events),
            self.unanswered()
        );
        if failed > 0 {
            text += &format!(", {} failed", separated(failed));
        }
        if unknown > 0 {
            text += &format!(", {} without an answer", separated(unknown));
        }
        if handled == self.sent.events && handled > 0 {
            text += &format!("; to go on, begin at line {}", handled + 1);
        }
        text
    }

    /// What was sent without asking for an answer, as the rest of a sentence.
    fn unanswered(&self) -> String {
        match self.acknowledged.unanswered {
            0 => String::new(),
            events => format!(", {} not acknowledged (acks 0)", separated(events)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &[u8], bytes_max: usize) -> io::Result<Vec<Vec<u8>>> {
        let mut input = text;
        let mut lines = Vec::new();
        let mut line = Vec::new();
        while read_line(&mut input, &mut line, bytes_max)? != Line::None {
            lines.push(line.clone());
        }
        Ok(lines)
    }

    #[test]
    fn a_line_is_its_bytes_without_the_newline() {
        let read = lines(b"one\n\n two \r\n\xff\nlast", 100).expect("reads");
        assert_eq!(read, [&b"one"[..], b"", b" two \r", b"\xff", b"last"]);
        assert!(lines(b"", 100).expect("reads").is_empty());
        let mut line = Vec::new();
        let kind = |mut input: &[u8], line: &mut Vec<u8>| read_line(&mut input, line, 100);
        assert_eq!(kind(b"one\n", &mut line).expect("reads"), Line::Whole);
        assert_eq!(kind(b"half", &mut line).expect("reads"), Line::Open);
    }

    #[test]
    fn a_line_beyond_the_bound_is_refused_before_it_is_kept() {
        assert!(lines(b"1234\n", 4).is_ok());
        assert!(lines(b"12345\n", 4).is_err());
    }
}
