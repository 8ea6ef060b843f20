//! The events of one producer, one after the other, each with the time at which it is due.
//!
//! An event that could not be handed over stays the next one, byte for byte, until it was.

use std::sync::Arc;

use super::order::StageOrder;
use crate::verdict::checker::Content;
use crate::workload::event::{STAMP_BYTES, Stamp};
use crate::workload::input::Input;
use crate::workload::keys::{KEY_BYTES, KeyChooser, key_bytes};
use crate::workload::rng::Rng;
use crate::workload::schedule::{Pace, Schedule};
use crate::workload::size::SizeSpec;
use crate::workload::spread::Spread;

/// How long after the end of a stage events that fell due before it are still sent.
const GRACE_NS: u64 = 2_000_000_000;

/// An event ready to be handed over.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    /// Its partition.
    pub partition: u16,
    /// Its key.
    pub key: Option<&'a [u8]>,
    /// Its value.
    pub value: &'a [u8],
    /// Its stamp, where the value has no room for it.
    pub stamp_header: Option<[u8; STAMP_BYTES]>,
    /// Its own time, where it has one.
    pub timestamp_ms: Option<i64>,
    /// When it is due, ns of the monotonic clock.
    pub due_ns: u64,
}

impl Event<'_> {
    /// Bytes of key and value.
    pub fn bytes(&self) -> u32 {
        (self.value.len() + self.key.map_or(0, <[u8]>::len)) as u32
    }
}

/// What is settled about the next event before its bytes are written.
#[derive(Clone, Copy, Debug)]
struct Draft {
    partition: u16,
    due_ns: u64,
    what: What,
}

#[derive(Clone, Copy, Debug)]
enum What {
    Synthetic { size: u32, key: Option<u32> },
    Line(u32),
}

/// The events of one producer.
pub struct Source {
    number: u16,
    run: u32,
    /// Sequence of the next event to each partition.
    sequences: Vec<u64>,
    content: Kind,
    clock: Clock,
    spread: Spread,
    partition_of_key: Arc<StageOrder>,
    draft: Option<Draft>,
    left: u64,
    stop_ns: u64,
    is_over: bool,
    /// It ended although events were due that it had not handed over.
    is_cut: bool,
}

enum Kind {
    Synthetic {
        rng: Rng,
        size: SizeSpec,
        keys: KeyChooser,
        scratch: Box<[u8]>,
        key: [u8; KEY_BYTES],
    },
    Replay {
        input: Arc<Input>,
        next_line: u32,
        line_end: u32,
        producers: u32,
    },
}

enum Clock {
    AsFast {
        start_ns: u64,
    },
    Schedule {
        schedule: Schedule,
        start_ns: u64,
    },
    Timestamps {
        speed_up: f64,
        first_ms: i64,
        start_ns: u64,
        last_due_ns: u64,
    },
}

/// What is next, before it is known when it is due.
struct Next {
    what: What,
    /// The number of its key.
    key: Option<u32>,
    /// Its own time.
    time_ms: Option<i64>,
}

impl Kind {
    /// What the producer with this number sends next.
    #[inline]
    fn next(&mut self, number: u32) -> Option<Next> {
        match self {
            Kind::Synthetic {
                rng, size, keys, ..
            } => {
                let key = keys.draw(rng);
                let size = size.draw(rng);
                Some(Next {
                    what: What::Synthetic { size, key },
                    key,
                    time_ms: None,
                })
            }
            Kind::Replay {
                input,
                next_line,
                line_end,
                producers,
            } => {
                let line = line_of_producer(input, next_line, *line_end, number, *producers)?;
                Some(Next {
                    what: What::Line(line),
                    key: input.key_number(line),
                    time_ms: input.timestamp_ms(line),
                })
            }
        }
    }
}

impl Clock {
    /// When the next event is due. It is taken off the schedule, unless it falls due only after the stage.
    #[inline]
    fn due_ns(&mut self, now_ns: u64, stop_ns: u64, time_ms: Option<i64>) -> u64 {
        match self {
            Clock::AsFast { start_ns } => now_ns.max(*start_ns),
            Clock::Schedule { schedule, start_ns } => {
                let due_ns = *start_ns + schedule.next_ns();
                if due_ns < stop_ns {
                    schedule.take();
                }
                due_ns
            }
            Clock::Timestamps {
                speed_up,
                first_ms,
                start_ns,
                last_due_ns,
            } => {
                let since_ms = time_ms.unwrap_or(*first_ms).saturating_sub(*first_ms);
                let due_ns = *start_ns + (since_ms.max(0) as f64 * 1e6 / *speed_up) as u64;
                *last_due_ns = due_ns.max(*last_due_ns);
                *last_due_ns
            }
        }
    }
}

impl Source {
    /// The events of the producer with this number.
    pub fn new(number: u32, order: &Arc<StageOrder>) -> Self {
        let expected = &order.expected;
        let producers = expected.producers;
        let (content, left) = match &expected.content {
            Content::Synthetic { .. } => {
                let scratch = vec![0; order.size.bytes_max() as usize].into();
                let rng = Rng::new(order.seed, u64::from(number));
                let kind = Kind::Synthetic {
                    rng,
                    size: order.size.clone(),
                    keys: order.keys.clone(),
                    scratch,
                    key: [0; KEY_BYTES],
                };
                (kind, order.count_of(number))
            }
            Content::Replay(input) => {
                let line_end = u64::from(input.count()).min(order.count) as u32;
                (
                    Kind::Replay {
                        input: input.clone(),
                        next_line: 0,
                        line_end,
                        producers,
                    },
                    u64::MAX,
                )
            }
        };
        Self {
            number: number as u16,
            run: expected.run,
            sequences: vec![0; expected.partitions as usize],
            clock: clock(number, order),
            spread: Spread::new(
                expected.partitions as u16,
                Rng::new(order.seed, !u64::from(number)),
            ),
            partition_of_key: order.clone(),
            content,
            draft: None,
            left,
            stop_ns: order.stop_ns,
            is_over: false,
            is_cut: false,
        }
    }

    /// The next event if it is due, else when it will be.
    #[inline]
    pub fn next(&mut self, now_ns: u64) -> Result<Event<'_>, u64> {
        let draft = match self.draft {
            Some(draft) => draft,
            None => {
                let draft = self.draft_next(now_ns)?;
                self.draft = Some(draft);
                draft
            }
        };
        if draft.due_ns > now_ns {
            return Err(draft.due_ns);
        }
        if now_ns > self.stop_ns.saturating_add(GRACE_NS) {
            self.is_over = true;
            self.is_cut = true;
            return Err(u64::MAX);
        }
        Ok(self.write(draft))
    }

    /// The event that [`Source::next`] gave was handed over.
    #[inline]
    pub fn took(&mut self) {
        let draft = self.draft.take().expect("an event was given before");
        self.sequences[usize::from(draft.partition)] += 1;
        self.left -= 1;
        let (keyless_bytes, line) = match draft.what {
            What::Synthetic { size, key } => (key.is_none().then_some(size), None),
            What::Line(line) => (None, Some(line)),
        };
        if let Some(bytes) = keyless_bytes {
            self.spread.took(bytes);
        }
        if let (Some(line), Kind::Replay { input, .. }) = (line, &self.content)
            && input.key_number(line).is_none()
        {
            self.spread
                .took(input.value(line).map_or(0, <[u8]>::len) as u32);
        }
    }

    /// Whether there are no more.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Whether events that were due were left out because the stage was over for long.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// No more events.
    pub fn end(&mut self) {
        self.is_over = true;
    }

    /// Settles what the next event is; `Err` with "never" when there is none.
    #[inline]
    fn draft_next(&mut self, now_ns: u64) -> Result<Draft, u64> {
        if self.is_over || self.left == 0 {
            return self.over();
        }
        let Some(Next { what, key, time_ms }) = self.content.next(u32::from(self.number)) else {
            return self.over();
        };
        let due_ns = self.clock.due_ns(now_ns, self.stop_ns, time_ms);
        if due_ns >= self.stop_ns {
            return self.over();
        }
        let partition = match key {
            Some(key) => self.partition_of_key.partition_of_key[key as usize],
            None => self.spread.partition(),
        };
        Ok(Draft {
            partition,
            due_ns,
            what,
        })
    }

    #[cold]
    fn over(&mut self) -> Result<Draft, u64> {
        self.is_over = true;
        Err(u64::MAX)
    }

    #[inline]
    fn write(&mut self, draft: Draft) -> Event<'_> {
        let Draft {
            partition,
            due_ns,
            what,
        } = draft;
        let sequence = self.sequences[usize::from(partition)];
        let stamp = |length, subject| Stamp {
            run: self.run,
            length,
            producer: self.number,
            sequence,
            due_ns,
            subject,
        };
        match (&mut self.content, what) {
            (Kind::Synthetic { scratch, key, .. }, What::Synthetic { size, key: number }) => {
                let value = stamp(size, number.map_or(0, |number| number + 1)).write_event(scratch);
                if let Some(number) = number {
                    *key = key_bytes(number);
                }
                let key = number.is_some().then_some(&key[..]);
                Event {
                    partition,
                    key,
                    value,
                    stamp_header: None,
                    timestamp_ms: None,
                    due_ns,
                }
            }
            (Kind::Replay { input, .. }, What::Line(line)) => {
                let value = input.value(line).expect("the line was found before");
                Event {
                    partition,
                    key: input.key(line),
                    value,
                    stamp_header: Some(stamp(value.len() as u32, line).encode()),
                    timestamp_ms: input.timestamp_ms(line),
                    due_ns,
                }
            }
            _ => unreachable!("a draft is of the kind of its source"),
        }
    }
}

/// The next line that belongs to a producer. Lines with a key go by the key, so that one producer sends all of a key's
/// events in order.
fn line_of_producer(
    input: &Input,
    next_line: &mut u32,
    line_end: u32,
    number: u32,
    producers: u32,
) -> Option<u32> {
    while *next_line < line_end {
        let line = *next_line;
        *next_line += 1;
        if input.key_number(line).unwrap_or(line) % producers == number {
            return Some(line);
        }
    }
    None
}

fn clock(number: u32, order: &StageOrder) -> Clock {
    let (start_ns, producers) = (order.start_ns, order.expected.producers);
    match order.pace {
        Pace::AsFast => Clock::AsFast { start_ns },
        Pace::Constant(rate) => Clock::Schedule {
            schedule: Schedule::constant(rate, number, producers),
            start_ns,
        },
        Pace::Poisson(rate) => Clock::Schedule {
            schedule: Schedule::poisson(rate, number, producers, order.seed),
            start_ns,
        },
        Pace::Timestamps(speed_up) => {
            let first_ms = match &order.expected.content {
                Content::Replay(input) => input.timestamp_ms(0).unwrap_or(0),
                Content::Synthetic { .. } => 0,
            };
            Clock::Timestamps {
                speed_up,
                first_ms,
                start_ns,
                last_due_ns: start_ns,
            }
        }
    }
}
