//! Drives servers with requests that were encoded once: one blocking thread a connection in closed loop, two in open
//! loop. What it costs itself is measured by the reference that only answers.
//!
//! All requests of one connection go to one log, and every server acknowledges those in the order in which it appended
//! them; a refusal, which may overtake, ends the run. So the k-th answer belongs to the k-th request, and nothing has to
//! be remembered between them.

use std::{
    io::{Read, Write},
    net::{Shutdown, TcpStream},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use serde::Serialize;
use tackboard_report::plot::Moment;

use crate::{
    figure::{Latencies, Percentiles},
    machine::{
        confine, disk_read_bytes, family, family_cpu_time, resident_bytes_max, sleep_precisely,
    },
    workload::{Pace, Workload, record_batch},
};

/// How long a driver waits for an answer before it gives the server up.
const ANSWER_WAIT_MAX: Duration = Duration::from_secs(30);
/// What one read of answers takes at most.
const READ_BYTES: usize = 256 << 10;
/// Longest answer of reading back.
const ANSWER_BYTES_MAX: usize = 4 << 20;
/// Requests that are unanswered on a connection while its log is filled.
const FILL_WINDOW: usize = 8;
/// How long before it is due a request is waited for by looking at the clock instead of sleeping.
const SPIN_BEFORE_DUE: Duration = Duration::from_micros(5);

/// Into how many parts of the same length a round is cut to show its course.
const MOMENTS: u32 = 20;

/// How long a workload runs.
#[derive(Clone, Copy, Debug)]
pub struct RoundLength {
    /// At the start, not counted.
    pub warm_up: Duration,
    /// Counted.
    pub measured: Duration,
}

/// Reads one server's answers.
pub trait Replies: Send {
    /// Takes the whole answers at the start of `bytes`: how many bytes they were, and how many requests they
    /// acknowledge.
    ///
    /// # Errors
    /// When an answer refuses a request, or can't be read.
    fn take(&mut self, bytes: &[u8]) -> Result<(usize, u64)>;
}

/// One connection to one log, ready to send.
pub struct Lane {
    /// Connected, with whatever opening the protocol wants behind it.
    pub stream: TcpStream,
    /// One request, with [`Workload::events_a_batch`] events.
    pub request: Vec<u8>,
    /// Reads its answers.
    pub replies: Box<dyn Replies>,
    /// How the log is read back, where that is spoken here.
    pub reading: Option<Box<dyn Reading>>,
}

/// Reads one server's log from its start to its end, and again.
pub trait Reading: Send {
    /// The next request.
    fn request(&mut self) -> &[u8];

    /// Takes the answer at the start of `bytes`: how many bytes it was, and how many events it held. `None` until the
    /// whole of it is there.
    ///
    /// # Errors
    /// When the answer refuses, or can't be read.
    fn take(&mut self, bytes: &[u8]) -> Result<Option<(usize, u64)>>;
}

/// What one round brought.
#[derive(Clone, Debug, Serialize)]
pub struct RoundResult {
    /// Acknowledged events; in reading, those that were read.
    pub events_per_second: f64,
    /// The bytes of their record batches.
    pub bytes_per_second: f64,
    /// CPU seconds of the server for a million of them.
    pub cpu_seconds_per_million: f64,
    /// From the send, or in open loop from when the request was due, to the answer.
    pub latency: Percentiles,
    /// What the server held resident at most, in bytes.
    pub resident_bytes_max: u64,
    /// In open loop, the share of requests that left later than 1 ms after they were due.
    pub late_share: f64,
    /// In reading, the bytes that the server had the disk read, for each byte that it sent.
    pub disk_read_share: f64,
    /// Rate and tail in each part of the round.
    pub moments: Vec<Moment>,
    /// All latencies, for the picture.
    #[serde(skip)]
    pub latencies: Latencies,
}

/// What one connection brought.
struct LaneResult {
    /// Requests; in reading, events.
    answered: u64,
    late: u64,
    latencies: Latencies,
    course: Course,
    seconds: f64,
}

/// The parts of a round, on one connection or on all.
struct Course {
    since: Instant,
    each: Duration,
    /// What was answered in each part, and how fast.
    parts: Vec<(u64, Latencies)>,
}

impl Course {
    fn new(started: Instant, length: RoundLength) -> Self {
        Course {
            since: started + length.warm_up,
            each: length.measured / MOMENTS,
            parts: (0..MOMENTS).map(|_| (0, Latencies::coarse())).collect(),
        }
    }

    /// Notes that so much was answered at `now`, by requests that took `latency` each.
    fn record(&mut self, now: Instant, answered: u64, latency: Duration, requests: u64) {
        let part =
            now.saturating_duration_since(self.since).as_nanos() / self.each.as_nanos().max(1);
        let part = usize::try_from(part).ok();
        if let Some((count, latencies)) = part.and_then(|part| self.parts.get_mut(part)) {
            *count += answered;
            latencies.record_n(latency, requests);
        }
    }

    fn add(&mut self, other: &Course) {
        for ((count, latencies), (more, others)) in self.parts.iter_mut().zip(&other.parts) {
            *count += more;
            latencies.add(others);
        }
    }

    /// `events` a request, or a read event.
    fn moments(&self, events: f64) -> Vec<Moment> {
        let each = self.each.as_secs_f64();
        let parts = self.parts.iter().enumerate();
        let moments = parts.map(|(part, (count, latencies))| Moment {
            seconds: each * (part + 1) as f64,
            events_per_second: *count as f64 * events / each,
            p99_ms: latencies.percentiles().p99_us / 1000.0,
        });
        moments.collect()
    }
}

/// A request that leaves later than this counts as late.
const LATE: Duration = Duration::from_millis(1);

/// Runs the workload over these lanes, against the server process `pid`, with drivers that keep to `cpus`.
///
/// # Errors
/// When a server refuses, answers nonsense or stops answering.
pub fn drive(
    lanes: Vec<Lane>,
    workload: &Workload,
    length: RoundLength,
    pid: u32,
    cpus: Option<&[usize]>,
) -> Result<RoundResult> {
    let count = lanes.len();
    let lanes = match workload.pace {
        Pace::Read { log_bytes, .. } => fill(lanes, log_bytes)?,
        _ => lanes,
    };
    let started = Instant::now();
    let threads: Vec<_> = lanes
        .into_iter()
        .enumerate()
        .map(|(index, lane)| {
            lane.stream.set_nodelay(true)?;
            lane.stream.set_read_timeout(Some(ANSWER_WAIT_MAX))?;
            lane.stream.set_write_timeout(Some(ANSWER_WAIT_MAX))?;
            let schedule = Schedule::of(workload, index, count, started);
            let pace = workload.pace;
            let cpus = cpus.map(<[usize]>::to_vec);
            Ok(thread::spawn(move || {
                cpus.as_deref().map_or(Ok(()), confine)?;
                match pace {
                    Pace::InFlight(window) => closed_loop(lane, window, started, length),
                    Pace::Read { .. } => read_back(lane, started, length),
                    Pace::EventsPerSecond(_) => open_loop(lane, schedule, started, length),
                }
            }))
        })
        .collect::<Result<_>>()?;
    thread::sleep(length.warm_up.saturating_sub(started.elapsed()));
    let family = family(pid);
    let cpu_before = family_cpu_time(&family).context("the server has ended")?;
    let read_before: u64 = family.iter().filter_map(|pid| disk_read_bytes(*pid)).sum();
    thread::sleep((length.warm_up + length.measured).saturating_sub(started.elapsed()));
    let cpu = family_cpu_time(&family).context("a process of the server has ended")? - cpu_before;
    let read_after: u64 = family.iter().filter_map(|pid| disk_read_bytes(*pid)).sum();
    let resident_bytes_max = family
        .iter()
        .filter_map(|pid| resident_bytes_max(*pid))
        .sum();
    let (mut latencies, mut course) = (Latencies::new(), Course::new(started, length));
    let (mut rate, mut answered, mut late) = (0.0, 0, 0);
    for thread in threads {
        let result = thread.join().expect("a driver does not panic")?;
        ensure!(
            result.answered > 0,
            "a connection had no answer while it was measured"
        );
        rate += result.answered as f64 / result.seconds;
        answered += result.answered;
        late += result.late;
        latencies.add(&result.latencies);
        course.add(&result.course);
    }
    let events_counted = match workload.pace {
        Pace::Read { .. } => 1.0,
        _ => workload.events_a_batch as f64,
    };
    let events = rate * events_counted;
    let event_bytes = record_batch(workload).len() as f64 / workload.events_a_batch as f64;
    let bytes_per_second = events * event_bytes;
    Ok(RoundResult {
        events_per_second: events,
        bytes_per_second,
        cpu_seconds_per_million: cpu.as_secs_f64() / (events * length.measured.as_secs_f64()) * 1e6,
        latency: latencies.percentiles(),
        resident_bytes_max,
        late_share: late as f64 / answered as f64,
        disk_read_share: match workload.pace {
            Pace::Read { .. } => {
                let sent = bytes_per_second * length.measured.as_secs_f64();
                read_after.saturating_sub(read_before) as f64 / sent
            }
            _ => 0.0,
        },
        moments: course.moments(events_counted),
        latencies,
    })
}

/// Keeps `window` requests unanswered until the time is over, then takes the answers that are due.
fn closed_loop(
    lane: Lane,
    window: usize,
    started: Instant,
    length: RoundLength,
) -> Result<LaneResult> {
    let Lane {
        mut stream,
        request,
        replies,
        reading: _,
    } = lane;
    let window_of_requests = request.repeat(window);
    let mut answers = Answers::new(replies);
    let mut sent_at = std::collections::VecDeque::with_capacity(window);
    let (mut result, mut counting_since) = (LaneResult::new(started, length), None);
    let end = started + length.warm_up + length.measured;
    let mut room = window;
    loop {
        let now = Instant::now();
        if now < end && room > 0 {
            stream.write_all(&window_of_requests[..room * request.len()])?;
            sent_at.extend(std::iter::repeat_n(now, room));
        }
        if sent_at.is_empty() {
            break;
        }
        room = answers.next(&mut stream)? as usize;
        let now = Instant::now();
        let counts = now >= started + length.warm_up && now < end;
        if counts && counting_since.is_none() {
            // What this answer brings was earned before.
            counting_since = Some(now);
        } else if counts {
            result.answered += room as u64;
            result.seconds = (now - counting_since.unwrap_or(now)).as_secs_f64();
        }
        for _ in 0..room {
            let sent = sent_at
                .pop_front()
                .context("an answer that nobody asked for")?;
            if counts {
                result.latencies.record(now - sent);
                result.course.record(now, 1, now - sent, 1);
            }
        }
    }
    Ok(result)
}

/// Puts so many bytes into each log, all logs at the same time.
fn fill(lanes: Vec<Lane>, log_bytes: u64) -> Result<Vec<Lane>> {
    let threads: Vec<_> = lanes
        .into_iter()
        .map(|lane| thread::spawn(move || fill_one(lane, log_bytes)))
        .collect();
    let filled = threads.into_iter();
    filled
        .map(|thread| thread.join().expect("a driver does not panic"))
        .collect()
}

fn fill_one(lane: Lane, log_bytes: u64) -> Result<Lane> {
    let Lane {
        mut stream,
        request,
        replies,
        reading,
    } = lane;
    let requests = log_bytes / request.len() as u64 + 1;
    let window = request.repeat(FILL_WINDOW);
    let mut answers = Answers::new(replies);
    let (mut sent, mut answered) = (0, 0);
    while answered < requests {
        let room = (FILL_WINDOW as u64 - (sent - answered)).min(requests - sent);
        stream.write_all(&window[..room as usize * request.len()])?;
        sent += room;
        answered += answers.next(&mut stream)?;
    }
    Ok(Lane {
        stream,
        request,
        replies: answers.replies,
        reading,
    })
}

/// Asks, reads the whole answer, asks again.
fn read_back(lane: Lane, started: Instant, length: RoundLength) -> Result<LaneResult> {
    let Lane {
        mut stream,
        reading,
        ..
    } = lane;
    let mut reading = reading.context("reading this server back is not spoken here")?;
    let mut buffer = vec![0; ANSWER_BYTES_MAX];
    let mut result = LaneResult::new(started, length);
    let (begin, end) = (
        started + length.warm_up,
        started + length.warm_up + length.measured,
    );
    loop {
        let asked_at = Instant::now();
        if asked_at >= end {
            break;
        }
        stream.write_all(reading.request())?;
        let events = whole_answer(&mut stream, reading.as_mut(), &mut buffer)?;
        if asked_at >= begin {
            let (now, latency) = (Instant::now(), asked_at.elapsed());
            result.answered += events;
            result.latencies.record(latency);
            result.course.record(now, events, latency, 1);
        }
    }
    result.seconds = length.measured.as_secs_f64();
    Ok(result)
}

fn whole_answer(
    stream: &mut TcpStream,
    reading: &mut dyn Reading,
    buffer: &mut [u8],
) -> Result<u64> {
    let mut filled = 0;
    loop {
        if let Some((_, events)) = reading.take(&buffer[..filled])? {
            return Ok(events);
        }
        ensure!(
            filled < buffer.len(),
            "an answer of over {ANSWER_BYTES_MAX} bytes"
        );
        let got = stream
            .read(&mut buffer[filled..])
            .context("no answer from the server")?;
        ensure!(got > 0, "the server closed the connection");
        filled += got;
    }
}

/// When the requests of one connection are due.
#[derive(Clone, Copy)]
struct Schedule {
    first: Instant,
    every: Duration,
}

impl Schedule {
    /// Connections take turns, so that the whole load is even.
    fn of(workload: &Workload, index: usize, connections: usize, started: Instant) -> Self {
        let Pace::EventsPerSecond(rate) = workload.pace else {
            return Schedule {
                first: started,
                every: Duration::ZERO,
            };
        };
        let between = workload.events_a_batch as f64 / rate as f64;
        Schedule {
            first: started + Duration::from_secs_f64(between * index as f64),
            every: Duration::from_secs_f64(between * connections as f64),
        }
    }

    fn due(self, request: u64) -> Instant {
        self.first + Duration::from_nanos(self.every.as_nanos() as u64 * request)
    }
}

/// Sends by the schedule from one thread and reads from another; latency counts from when a request was due.
fn open_loop(
    lane: Lane,
    schedule: Schedule,
    started: Instant,
    length: RoundLength,
) -> Result<LaneResult> {
    let Lane {
        mut stream,
        request,
        replies,
        reading: _,
    } = lane;
    let end = started + length.warm_up + length.measured;
    let mut receiving = stream.try_clone()?;
    let receiver = thread::spawn(move || {
        let mut answers = Answers::new(replies);
        let (mut result, mut request) = (LaneResult::new(started, length), 0u64);
        let counted = started + length.warm_up..end;
        while schedule.due(request) < end {
            let count = answers.next(&mut receiving)?;
            let now = Instant::now();
            for _ in 0..count {
                let due = schedule.due(request);
                request += 1;
                if counted.contains(&due) {
                    result.answered += 1;
                    let latency = now.saturating_duration_since(due);
                    result.latencies.record(latency);
                    result.course.record(now, 1, latency, 1);
                }
            }
        }
        Result::<_>::Ok(result)
    });
    sleep_precisely();
    let (mut late, mut request_number) = (0, 0);
    loop {
        let due = schedule.due(request_number);
        if due >= end || receiver.is_finished() {
            break;
        }
        wait_until(due);
        if due >= started + length.warm_up && due.elapsed() > LATE {
            late += 1;
        }
        stream.write_all(&request)?;
        request_number += 1;
    }
    let mut result = receiver.join().expect("the receiver does not panic")?;
    let _ = stream.shutdown(Shutdown::Both);
    result.late = late;
    result.seconds = length.measured.as_secs_f64();
    Ok(result)
}

fn wait_until(due: Instant) {
    loop {
        let left = due.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        if left > SPIN_BEFORE_DUE {
            thread::sleep(left - SPIN_BEFORE_DUE);
        } else {
            std::hint::spin_loop();
        }
    }
}

impl LaneResult {
    fn new(started: Instant, length: RoundLength) -> Self {
        LaneResult {
            answered: 0,
            late: 0,
            latencies: Latencies::new(),
            course: Course::new(started, length),
            seconds: 0.0,
        }
    }
}

/// Bytes that arrived, and the answers in them.
pub struct Answers {
    replies: Box<dyn Replies>,
    buffer: Vec<u8>,
    filled: usize,
}

impl Answers {
    /// Nothing yet.
    pub fn new(replies: Box<dyn Replies>) -> Self {
        Answers {
            replies,
            buffer: vec![0; READ_BYTES],
            filled: 0,
        }
    }

    /// Waits until at least one more request is acknowledged, and says how many are.
    ///
    /// # Errors
    /// When the connection ends, an answer refuses, or none comes in time.
    pub fn next(&mut self, stream: &mut TcpStream) -> Result<u64> {
        loop {
            let (used, count) = self.replies.take(&self.buffer[..self.filled])?;
            self.buffer.copy_within(used..self.filled, 0);
            self.filled -= used;
            if count > 0 {
                return Ok(count);
            }
            ensure!(
                self.filled < self.buffer.len(),
                "an answer of over {READ_BYTES} bytes"
            );
            let got = stream
                .read(&mut self.buffer[self.filled..])
                .context("no answer from the server")?;
            ensure!(got > 0, "the server closed the connection");
            self.filled += got;
        }
    }
}
