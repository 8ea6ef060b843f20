//! Reads what brokers answer to a consumer.
//!
//! Nothing in an answer is believed before it is checked: lengths against the body, checksums of all batches, offsets
//! against what was asked for.

use bytes::Bytes;
use tackboard_schema::record_batch::check_stored_batch;
use tackboard_schema::{DecodeError, DecodeErrorKind, ErrorCode, Offset};

use super::lane::Place;
use super::machine::{Asked, ConsumerMachine, Tag};
use crate::admin::{ListedOffset, OffsetQuery};
use crate::config::OffsetReset;
use crate::consumed::Chunk;
use crate::error::{Error, Result};
use crate::protocol::cluster::Answer;
use crate::protocol::messages::Context;
use crate::protocol::time::Now;
use crate::protocol::wire::{self, FetchResult};

impl ConsumerMachine {
    pub(super) fn handle_answer(&mut self, answer: Answer<Tag>, now: Now) {
        match &answer.tag {
            Tag::ListOffsets(asked) => self.handle_listed(&answer, asked, now),
            Tag::Fetch(asked) => self.handle_fetched(&answer, asked, now),
            Tag::Group(ask) => {
                let outcome = (*ask, Some((answer.context, answer.frame)));
                self.group_outcomes.push(outcome);
            }
        }
    }

    fn handle_listed(&mut self, answer: &Answer<Tag>, asked: &[Asked], now: Now) {
        let mut read = wire::read_list_offsets(&answer.context, &answer.frame);
        for asked in asked {
            if !self.landed(asked) {
                continue;
            }
            let (topic, partition) = (
                self.lanes[asked.lane].topic.clone(),
                self.lanes[asked.lane].partition,
            );
            let listed = match &mut read {
                Ok(results) => {
                    let is_it = |result: &(_, _, _)| result.0 == topic && result.1 == partition;
                    let found = results
                        .iter()
                        .position(is_it)
                        .map(|index| results.swap_remove(index).2);
                    let missing = || {
                        Err(answer
                            .context
                            .fault(format_args!("nothing about {topic}-{partition}")))
                    };
                    found.unwrap_or_else(missing)
                }
                Err(fault) => Err(fault.clone()),
            };
            match listed {
                Ok(ListedOffset {
                    offset: Some(offset),
                    ..
                }) => self.lanes[asked.lane].found(offset),
                // Nothing is at or after the timestamp yet: what comes next will be.
                Ok(_) => self.lanes[asked.lane].place = Place::Unknown(OffsetQuery::Latest),
                Err(fault) => self.partition_failed(asked.lane, fault, now),
            }
        }
    }

    fn handle_fetched(&mut self, answer: &Answer<Tag>, asked: &[Asked], now: Now) {
        let context = &answer.context;
        let mut landed: Vec<Option<Asked>> = asked
            .iter()
            .map(|asked| self.landed(asked).then_some(*asked))
            .collect();
        let read = wire::read_fetched(context, &answer.frame, |index, result| {
            if let Some(asked) = self.take_asked(&mut landed, index, &result) {
                self.handle_result(context, asked, result, now);
            }
        });
        let outcome: Result<()> =
            read.and_then(|()| Err(context.fault("nothing about a partition that was asked for")));
        // Whoever was not spoken of asks again.
        if let Err(fault) = outcome {
            landed
                .iter()
                .flatten()
                .for_each(|asked| self.partition_failed(asked.lane, fault.clone(), now));
        }
    }

    /// What was asked for that this result answers; normally in the order of the request.
    fn take_asked(
        &self,
        landed: &mut [Option<Asked>],
        index: usize,
        result: &FetchResult<'_>,
    ) -> Option<Asked> {
        let is_it = |asked: &Option<Asked>| {
            asked.is_some_and(|asked| {
                let lane = &self.lanes[asked.lane];
                lane.partition == result.partition && *lane.topic == *result.topic
            })
        };
        match landed.get(index).is_some_and(is_it) {
            true => landed[index].take(),
            false => landed
                .iter_mut()
                .find(|asked| is_it(asked))
                .and_then(Option::take),
        }
    }

    fn handle_result(
        &mut self,
        context: &Context,
        asked: Asked,
        result: FetchResult<'_>,
        now: Now,
    ) {
        let Place::At(fetch_offset) = asked.place else {
            return;
        };
        let lane = &mut self.lanes[asked.lane];
        match result.code {
            ErrorCode::None => {}
            ErrorCode::OffsetOutOfRange => {
                return self.out_of_range(asked.lane, fetch_offset, &result);
            }
            code => {
                let context = context.clone().topic(&lane.topic);
                let fault =
                    Error::Refused(context.refusal(Some(lane.partition), code, result.message));
                return self.partition_failed(asked.lane, fault, now);
            }
        }
        if result.high_watermark.0 >= 0 {
            lane.high_watermark = Some(result.high_watermark);
        }
        let (chunk, damage) = check_batches(result.batches, fetch_offset);
        if let Some((batches, next_offset)) = chunk {
            let (topic, partition) = (lane.topic.clone(), lane.partition);
            lane.push(Chunk {
                topic,
                partition,
                batches,
                first_offset: fetch_offset,
                next_offset,
            });
        } else if damage.is_none() {
            lane.failures = 0;
        }
        if let Some((offset, cause)) = damage {
            let (topic, partition) = (lane.topic.clone(), lane.partition);
            lane.fault = Some(Error::CorruptBatch {
                topic,
                partition,
                offset,
                cause,
            });
        }
    }

    fn out_of_range(&mut self, lane: usize, fetch_offset: Offset, result: &FetchResult<'_>) {
        let lane = &mut self.lanes[lane];
        match self.config.offset_reset {
            OffsetReset::Earliest => lane.reset(OffsetQuery::Earliest),
            OffsetReset::Latest => lane.reset(OffsetQuery::Latest),
            OffsetReset::Fail => {
                lane.fault = Some(Error::OffsetOutOfRange {
                    topic: lane.topic.clone(),
                    partition: lane.partition,
                    offset: fetch_offset,
                    log_start_offset: result.log_start_offset,
                    high_watermark: result.high_watermark,
                });
            }
        }
    }

    /// What may pass is tried again, what may not is told to the caller.
    fn partition_failed(&mut self, lane: usize, fault: Error, now: Now) {
        tracing::debug!(%fault, "partition not read");
        let is_final = matches!(&fault, Error::Refused(refusal) if !refusal.code.retriable());
        if is_final {
            self.lanes[lane].fault = Some(fault.clone());
        }
        self.cluster.set_fault(fault);
        self.hold_off(lane, now);
    }
}

/// A fault, and the offset at which it was met.
type Damage = (Offset, DecodeError);

/// The leading batches that are whole, intact and in order, with the offset after them; and what is wrong with the one
/// that follows, if one does.
fn check_batches(bytes: Bytes, fetch_offset: Offset) -> (Option<(Bytes, Offset)>, Option<Damage>) {
    let (mut at, mut next_offset) = (0, fetch_offset);
    let mut damage = None;
    while at < bytes.len() {
        match check_next(&bytes[at..], at == 0, next_offset) {
            Ok((length, batch_next)) => (at, next_offset) = (at + length, batch_next),
            Err(cause) => {
                damage = Some((next_offset, cause.shifted(at)));
                break;
            }
        }
    }
    ((at > 0).then(|| (bytes.slice(..at), next_offset)), damage)
}

/// Length of the first batch, and the offset after it.
fn check_next(
    bytes: &[u8],
    is_first: bool,
    next_offset: Offset,
) -> Result<(usize, Offset), DecodeError> {
    // The frame's own bound was held already.
    let batch = check_stored_batch(bytes, u32::MAX)?;
    let header = batch.header();
    // Only the first may begin before what was asked for; none may end before it.
    if header.next_offset() <= next_offset || (!is_first && header.base_offset < next_offset) {
        let what = "offsets of a fetched batch are not those that were asked for";
        let error = DecodeError::new(DecodeErrorKind::Invalid, what, 0);
        return Err(error.with_detail(format_args!(
            "{} to {} where {next_offset} is next",
            header.base_offset,
            header.next_offset()
        )));
    }
    Ok((batch.bytes().len(), header.next_offset()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tackboard_schema::record_batch::{BatchBuilder, Compression, stamp};
    use tackboard_schema::{LeaderEpoch, TimestampMs};

    fn batch(base_offset: i64, records: usize) -> Vec<u8> {
        let mut builder = BatchBuilder::new(TimestampMs(0));
        (0..records).for_each(|_| {
            builder
                .append(TimestampMs(0), None, Some(b"v"), &[])
                .unwrap()
        });
        let mut bytes = builder.finish(None, Compression::None);
        stamp(&mut bytes, Offset(base_offset), LeaderEpoch(0));
        bytes
    }

    #[test]
    fn intact_batches_before_a_damaged_one_are_kept() {
        let (mut bytes, second) = (batch(10, 5), batch(15, 2));
        let first_length = bytes.len();
        bytes.extend(&second);
        let (chunk, damage) = check_batches(bytes.clone().into(), Offset(12));
        assert_eq!((chunk.unwrap().1, damage.is_none()), (Offset(17), true));

        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        let (chunk, damage) = check_batches(bytes.into(), Offset(12));
        let (batches, next_offset) = chunk.unwrap();
        assert_eq!((batches.len(), next_offset), (first_length, Offset(15)));
        assert_eq!(damage.unwrap().0, Offset(15));
    }

    #[test]
    fn batches_that_were_not_asked_for_are_refused() {
        for (base_offset, fetch_offset) in [(0, 5), (0, 100)] {
            let (chunk, damage) = check_batches(batch(base_offset, 5).into(), Offset(fetch_offset));
            assert!(chunk.is_none() && damage.is_some());
        }
        // A hole is fine, compaction makes them; going back is not.
        let hole = [batch(0, 5), batch(9, 1)].concat();
        assert!(check_batches(hole.into(), Offset(0)).1.is_none());
        let back = [batch(0, 5), batch(4, 3)].concat();
        assert!(check_batches(back.into(), Offset(0)).1.is_some());
    }
}
