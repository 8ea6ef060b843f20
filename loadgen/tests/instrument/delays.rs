//! Roads that hold answers back by what is known: each by a schedule, or everything once.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use tackboard_schema::frame::{ApiKey, Frame, PREFIX_LENGTH, Prefix};
use tackboard_schema::record_batch::{BatchIterator, BatchView};

use crate::proxy::Road;

/// How long a batch was on its way as the proxy saw it, and how many events were in it.
pub type Seen = (Duration, u64);

/// Connection and correlation id of a request.
type Id = (u64, u64);

/// Produce requests that have not been answered: when they came, and how many events they hold.
#[derive(Default)]
struct Pending(HashMap<Id, (Instant, u64)>);

impl Pending {
    fn note(&mut self, connection: u64, frame: &Frame<'_>) {
        let batches = BatchIterator::new(frame.body).map_while(Result::ok);
        let events = batches
            .map(|batch| batch.header().record_count as u64)
            .sum();
        let id = (connection, frame.prefix.correlation_id.0);
        self.0.insert(id, (Instant::now(), events));
    }

    /// The request that this answers, if it is a produce request.
    fn take(&mut self, connection: u64, answer: &[u8]) -> Option<(Id, Instant, u64)> {
        let prefix = Prefix::read(&answer[..PREFIX_LENGTH], u32::MAX).ok()??;
        let id = (connection, prefix.correlation_id.0);
        let (came, events) = self.0.remove(&id)?;
        Some((id, came, events))
    }
}

fn is_produce(frame: &Frame<'_>) -> bool {
    frame.prefix.api_key == ApiKey::Produce.key()
}

/// Holds the n-th answer to a produce request back by the n-th delay of a schedule.
pub struct Schedule {
    from: Duration,
    to: Duration,
    state: Mutex<ScheduleState>,
}

#[derive(Default)]
struct ScheduleState {
    pending: Pending,
    answers: u32,
    seen: Vec<Seen>,
}

impl Schedule {
    /// Delays between these two, each as often as any other.
    pub fn between(from: Duration, to: Duration) -> Self {
        Self {
            from,
            to,
            state: Mutex::default(),
        }
    }

    /// The n-th delay: fractions of the golden ratio fall evenly over any stretch of them, in no order.
    fn delay(&self, n: u32) -> Duration {
        let share = (f64::from(n) * 0.618_033_988_749_895).fract();
        self.from + (self.to - self.from).mul_f64(share)
    }

    /// What it saw.
    pub fn seen(&self) -> Vec<Seen> {
        self.state.lock().unwrap().seen.clone()
    }
}

impl Road for Schedule {
    fn request(&self, connection: u64, frame: &Frame<'_>) {
        if is_produce(frame) {
            self.state.lock().unwrap().pending.note(connection, frame);
        }
    }

    fn answer(&self, connection: u64, frame: &mut [u8]) {
        let mut state = self.state.lock().unwrap();
        let Some((_, came, events)) = state.pending.take(connection, frame) else {
            return;
        };
        let delay = self.delay(state.answers);
        state.answers += 1;
        drop(state);
        std::thread::sleep(delay);
        self.state
            .lock()
            .unwrap()
            .seen
            .push((came.elapsed(), events));
    }
}

/// Nanoseconds of the machine's monotonic clock, by which events say when they are due.
fn monotonic_ns() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the call writes one timespec to the address that it is given.
    let result = unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    assert_eq!(result, 0);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// When the events of a constant rate are due: that of the first one is taken from it, all others follow.
struct Calendar {
    /// Between two events of one producer.
    period_ns: f64,
    /// When each producer's first event is due.
    first_ns: HashMap<u16, u64>,
}

/// Events in a row of one producer.
#[derive(Clone, Copy)]
struct Row {
    producer: u16,
    first: u64,
    count: u64,
}

impl Calendar {
    /// Reads which events a batch holds from the stamp of its first one (`loadgen/src/workload/event.rs` has the layout).
    fn note(&mut self, batch: &BatchView<'_>) -> Row {
        let record = batch.records().next().unwrap().unwrap();
        let field = |at: usize| {
            let bytes = &record.value.unwrap()[at..at + 8];
            u64::from_le_bytes(bytes.try_into().expect("eight bytes"))
        };
        let row = Row {
            producer: (field(8) >> 48) as u16,
            first: field(8) & 0xffff_ffff_ffff,
            count: batch.header().record_count as u64,
        };
        if row.first == 0 {
            self.first_ns.insert(row.producer, field(16));
        }
        row
    }

    /// How long each event of a row has waited since it was due.
    fn waited(&self, row: Row) -> impl Iterator<Item = Seen> {
        let (now_ns, period_ns) = (monotonic_ns(), self.period_ns);
        let first_ns = self.first_ns[&row.producer];
        (row.first..row.first + row.count).map(move |number| {
            let due_ns = first_ns + (number as f64 * period_ns) as u64;
            (Duration::from_nanos(now_ns.saturating_sub(due_ns)), 1)
        })
    }
}

/// Lets everything pass but for one stall, in which nothing moves in either direction.
pub struct Stall {
    /// It begins with this produce request.
    at_request: u64,
    length: Duration,
    state: Mutex<StallState>,
}

struct StallState {
    pending: Pending,
    calendar: Calendar,
    /// What is in the requests that are pending.
    rows: HashMap<Id, Vec<Row>>,
    requests: u64,
    began: Option<Instant>,
    ended: Option<Instant>,
    seen: Vec<Seen>,
    waited: Vec<Seen>,
}

impl Stall {
    /// A stall of this length that begins with the n-th produce request of producers that have an event due so often each.
    pub fn at_request(at_request: u64, length: Duration, period: Duration) -> Self {
        Self {
            at_request,
            length,
            state: Mutex::new(StallState {
                pending: Pending::default(),
                calendar: Calendar {
                    period_ns: period.as_nanos() as f64,
                    first_ns: HashMap::new(),
                },
                rows: HashMap::new(),
                requests: 0,
                began: None,
                ended: None,
                seen: Vec::new(),
                waited: Vec::new(),
            }),
        }
    }

    /// How long it was.
    pub fn lasted(&self) -> Duration {
        let state = self.state.lock().unwrap();
        let (began, ended) = (state.began, state.ended);
        ended.expect("the stall was over") - began.expect("there was a stall")
    }

    /// How long each event waited from when it was due until its answer was passed on.
    pub fn waited(&self) -> Vec<Seen> {
        self.state.lock().unwrap().waited.clone()
    }

    /// What is seen by whoever looks at requests alone.
    pub fn seen(&self) -> Vec<Seen> {
        self.state.lock().unwrap().seen.clone()
    }

    /// Waits for the end of the stall, if it is on.
    fn hold(&self) {
        let Some(began) = self.state.lock().unwrap().began else {
            return;
        };
        let left = (began + self.length).saturating_duration_since(Instant::now());
        if !left.is_zero() {
            std::thread::sleep(left);
            let mut state = self.state.lock().unwrap();
            // The first to wake says how long it was.
            state.ended.get_or_insert_with(Instant::now);
        }
    }
}

impl Road for Stall {
    fn request(&self, connection: u64, frame: &Frame<'_>) {
        // What comes in the stall has not been sent as far as the broker's side knows.
        if is_produce(frame) {
            let mut state = self.state.lock().unwrap();
            let state = &mut *state;
            state.pending.note(connection, frame);
            let batches = BatchIterator::new(frame.body).map_while(Result::ok);
            let rows = batches.map(|batch| state.calendar.note(&batch)).collect();
            let id = (connection, frame.prefix.correlation_id.0);
            state.rows.insert(id, rows);
            state.requests += 1;
            if state.requests == self.at_request {
                state.began = Some(Instant::now());
            }
        }
        self.hold();
    }

    fn answer(&self, connection: u64, frame: &mut [u8]) {
        self.hold();
        let mut state = self.state.lock().unwrap();
        let state = &mut *state;
        if let Some((id, came, events)) = state.pending.take(connection, frame) {
            state.seen.push((came.elapsed(), events));
            for row in state.rows.remove(&id).into_iter().flatten() {
                state.waited.extend(state.calendar.waited(row));
            }
        }
    }
}
