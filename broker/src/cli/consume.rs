//! `tackboard consume`: events as lines.

use std::collections::HashMap;
use std::io::Write;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use tackboard_client::{
    Admin, Consumer, ConsumerConfig, ConsumerRecord, ErrorCode, Offset, OffsetQuery,
    PartitionIndex, Start,
};

use super::arguments::ConsumeArguments;
use super::consume_group;
use super::failure::Failure;
use super::output::{counted, note, stdout};
use super::topic::client_config;

/// An offset from here on is likelier meant as a time in milliseconds.
const MILLISECONDS_LIKELY: i64 = 100_000_000_000;

/// Longest wait for new events before output and conditions are looked at again.
pub(super) const POLL_TIMEOUT: Duration = Duration::from_millis(500);

pub(super) fn run(arguments: &ConsumeArguments) -> Result<(), Failure> {
    if let Some(group) = &arguments.group {
        return consume_group::run(arguments, group);
    }
    let plan = Plan::make(arguments)?;
    let assigned: Vec<(&str, PartitionIndex, Start)> = plan
        .parts
        .iter()
        .filter(|part| plan.endless || !part.is_done())
        .map(|part| (arguments.topic.as_str(), part.partition, part.start))
        .collect();
    let config = ConsumerConfig {
        client: client_config(),
        ..ConsumerConfig::default()
    };
    let mut consumer = Consumer::connect(&arguments.client.broker, config)?;
    if assigned.is_empty() || arguments.count == Some(0) {
        return Ok(());
    }
    consumer.assign(&assigned)?;
    Reader {
        arguments,
        consumer,
        plan,
        printed: 0,
    }
    .read()
}

/// What to read of one partition.
#[derive(Debug)]
struct Part {
    partition: PartitionIndex,
    start: Start,
    /// The end as it was at the start, exclusive.
    end: Offset,
    /// The offset of the next event, as far as is known.
    position: Offset,
}

impl Part {
    fn is_done(&self) -> bool {
        self.position >= self.end
    }
}

#[derive(Debug)]
struct Plan {
    parts: Vec<Part>,
    /// The ends do not matter: a count or Ctrl-C ends it.
    endless: bool,
}

impl Plan {
    /// Asks for the bounds of every partition, so that the end is the one at the start.
    fn make(arguments: &ConsumeArguments) -> Result<Self, Failure> {
        let mut admin = Admin::connect(&arguments.client.broker, client_config())?;
        let partitions = partitions(&mut admin, arguments)?;
        let topic = arguments.topic.as_str();
        let mut queries = Vec::with_capacity(3 * partitions.len());
        for partition in &partitions {
            queries.push((topic, *partition, OffsetQuery::Earliest));
            queries.push((topic, *partition, OffsetQuery::Latest));
            if let Start::Timestamp(time) = arguments.from {
                queries.push((topic, *partition, OffsetQuery::At(time)));
            }
        }
        let answers = admin.list_offsets(&queries)?;
        let per_partition = queries.len() / partitions.len().max(1);
        let bounds: Vec<Bounds> = partitions
            .iter()
            .zip(answers.chunks(per_partition))
            .map(|(partition, answers)| {
                let offset = |index: usize| answers.get(index).and_then(|answer| answer.offset);
                let earliest = offset(0).unwrap_or(Offset(0));
                Bounds {
                    partition: *partition,
                    earliest,
                    end: offset(1).unwrap_or(earliest),
                    at_time: offset(2),
                }
            })
            .collect();
        if let Start::Offset(offset) = arguments.from {
            check_reached(topic, offset, &bounds)?;
        }
        Ok(Self {
            parts: bounds
                .iter()
                .map(|bounds| part(arguments, bounds))
                .collect(),
            endless: arguments.follow || arguments.count.is_some(),
        })
    }
}

/// What a partition holds.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    partition: PartitionIndex,
    earliest: Offset,
    /// Exclusive: the next event gets it.
    end: Offset,
    /// The first event at or after the time asked for, if there is one.
    at_time: Option<Offset>,
}

/// Refuses an offset that lies beyond the end of a partition, as a broker refuses to fetch from there. The end itself
/// is the place of the next event, and may be waited at.
fn check_reached(topic: &str, offset: Offset, bounds: &[Bounds]) -> Result<(), Failure> {
    if bounds.iter().all(|bounds| offset <= bounds.end) {
        return Ok(());
    }
    let mut text = format!("offset {offset} is beyond the end of");
    let mut ranges = String::new();
    for Bounds {
        partition,
        earliest,
        end,
        ..
    } in bounds.iter().filter(|bounds| offset > bounds.end)
    {
        text += &format!(" {topic}-{partition},");
        ranges += &match end.0 - earliest.0 {
            0 => format!("\n{topic}-{partition} is empty, its next event gets {end}"),
            _ => format!(
                "\n{topic}-{partition} has {earliest} to {}, its next event gets {end}",
                end.0 - 1
            ),
        };
    }
    // No log is so long today, and milliseconds since 1970 have been so many since 1973.
    let hint = match offset.0 {
        MILLISECONDS_LIKELY.. => "\ndigits are an offset; a time is written 2013-07-04T00:00:00Z",
        _ if bounds.len() > 1 => "\nto read one partition alone: --partition N",
        _ => "",
    };
    let code = ErrorCode::OffsetOutOfRange;
    let text = text.trim_end_matches(',');
    Err(Failure::refused(
        code,
        format!("{text} ({}){ranges}{hint}", code.name()),
    ))
}

fn part(arguments: &ConsumeArguments, bounds: &Bounds) -> Part {
    let Bounds {
        partition,
        earliest,
        end,
        at_time,
    } = *bounds;
    let from = match arguments.from {
        Start::Earliest => earliest,
        Start::Latest => end,
        Start::Timestamp(_) => at_time.unwrap_or(end),
        Start::Offset(offset) if offset < earliest => {
            note(&format!(
                "offset {offset} of {}-{partition} is no longer kept; it begins at {earliest}",
                arguments.topic
            ));
            earliest
        }
        Start::Offset(offset) => offset,
    };
    Part {
        partition,
        start: Start::Offset(from),
        end,
        position: from,
    }
}

fn partitions(
    admin: &mut Admin,
    arguments: &ConsumeArguments,
) -> Result<Vec<PartitionIndex>, Failure> {
    let topic = arguments.topic.as_str();
    let all: Vec<_> = (admin.describe_topic(topic)?.partitions.iter())
        .map(|partition| partition.partition)
        .collect();
    let mut wanted: Vec<_> = arguments
        .partition
        .iter()
        .copied()
        .map(PartitionIndex)
        .collect();
    wanted.sort_unstable();
    wanted.dedup();
    match wanted.iter().find(|partition| !all.contains(partition)) {
        Some(absent) => Err(Failure::Usage(format!(
            "topic {topic} has {}, numbered from 0; there is no partition {absent}",
            counted(all.len() as u64, "partition")
        ))),
        None if wanted.is_empty() => Ok(all),
        None => Ok(wanted),
    }
}

struct Reader<'a> {
    arguments: &'a ConsumeArguments,
    consumer: Consumer,
    plan: Plan,
    printed: u64,
}

impl Reader<'_> {
    fn read(mut self) -> Result<(), Failure> {
        let mut out = stdout();
        let index: HashMap<PartitionIndex, usize> = self
            .plan
            .parts
            .iter()
            .enumerate()
            .map(|(index, part)| (part.partition, index))
            .collect();
        loop {
            let records = self.consumer.poll(POLL_TIMEOUT)?;
            for record in &records {
                let record = record?;
                let Some(part) = index
                    .get(&record.partition)
                    .map(|index| &self.plan.parts[*index])
                else {
                    continue;
                };
                if !self.plan.endless && record.offset >= part.end {
                    continue;
                }
                write_record(&mut out, &record, self.arguments.client.json)?;
                self.printed += 1;
                if Some(self.printed) == self.arguments.count {
                    return Ok(out.flush()?);
                }
            }
            // What is waited for next must not wait in our buffer.
            out.flush()?;
            if !self.plan.endless && self.reached_the_end()? {
                return Ok(());
            }
        }
    }

    fn reached_the_end(&mut self) -> Result<bool, Failure> {
        for part in self.plan.parts.iter_mut().filter(|part| !part.is_done()) {
            let position = self
                .consumer
                .position(&self.arguments.topic, part.partition)?;
            part.position = position.unwrap_or(part.position);
        }
        Ok(self.plan.parts.iter().all(Part::is_done))
    }
}

/// The value and a newline, or a JSON object and a newline.
pub(super) fn write_record(
    out: &mut impl Write,
    record: &ConsumerRecord<'_>,
    as_json: bool,
) -> Result<(), Failure> {
    if as_json {
        write_json(out, record)?;
    } else {
        out.write_all(record.value.unwrap_or_default())?;
    }
    Ok(out.write_all(b"\n")?)
}

fn write_json(out: &mut impl Write, record: &ConsumerRecord<'_>) -> Result<(), Failure> {
    write!(
        out,
        "{{\"partition\":{},\"offset\":{},\"timestamp\":{}",
        record.partition, record.offset, record.timestamp
    )?;
    write_bytes(out, "key", record.key)?;
    write_bytes(out, "value", record.value)?;
    Ok(out.write_all(b"}")?)
}

/// Text as a string, other bytes as base64 under another name, nothing as null.
fn write_bytes(out: &mut impl Write, name: &str, bytes: Option<&[u8]>) -> Result<(), Failure> {
    match bytes.map(|bytes| (bytes, std::str::from_utf8(bytes))) {
        None => write!(out, ",\"{name}\":null")?,
        Some((_, Ok(text))) => {
            write!(out, ",\"{name}\":")?;
            serde_json::to_writer(out, text).map_err(std::io::Error::from)?;
        }
        Some((bytes, Err(_))) => {
            write!(
                out,
                ",\"{name}_base64\":\"{}\"",
                BASE64_STANDARD.encode(bytes)
            )?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offset_beyond_an_end_is_refused_with_the_range_of_what_ends_before_it() {
        let bounds = |partition, earliest, end| Bounds {
            partition: PartitionIndex(partition),
            earliest: Offset(earliest),
            end: Offset(end),
            at_time: None,
        };
        let all = [bounds(0, 5, 9), bounds(1, 7, 7), bounds(2, 0, 100)];
        let check = |offset| check_reached("t", Offset(offset), &all);
        assert!(check(7).is_ok());
        assert_eq!(
            check(10).expect_err("beyond two ends").to_string(),
            "offset 10 is beyond the end of t-0, t-1 (OFFSET_OUT_OF_RANGE)\n\
             t-0 has 5 to 8, its next event gets 9\n\
             t-1 is empty, its next event gets 7\n\
             to read one partition alone: --partition N"
        );
        let time = check(1_372_896_000_000).expect_err("a time in milliseconds");
        assert!(time.to_string().contains("2013-07-04T00:00:00Z"), "{time}");
    }

    fn json_of(bytes: Option<&[u8]>) -> String {
        let mut out = Vec::new();
        write_bytes(&mut out, "value", bytes).expect("writes");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn text_is_a_string_other_bytes_are_base64_and_nothing_is_null() {
        assert_eq!(
            json_of(Some(b"caf\xc3\xa9 \"x\"")),
            ",\"value\":\"café \\\"x\\\"\""
        );
        assert_eq!(json_of(Some(b"\xff\x00")), ",\"value_base64\":\"/wA=\"");
        assert_eq!(json_of(Some(b"")), ",\"value\":\"\"");
        assert_eq!(json_of(None), ",\"value\":null");
    }
}
