//! Roads that hold answers back by what is known, each by a schedule or everything once, and say how long events waited.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use tackboard_schema::frame::{ApiKey, Frame, PREFIX_LENGTH, Prefix};
use tackboard_schema::record_batch::{BatchIterator, BatchView};

use crate::proxy::Road;

/// A time, and for how many events it is true.
pub type Seen = (Duration, u64);

/// Connection and correlation id of a request.
type Id = (u64, u64);

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

/// When the events of a constant rate are due: that of a producer's first one is taken from it, all others follow.
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

/// What a proxy knows of produce requests: what is in them, when they came, and when their answers were passed on.
struct Watch {
    calendar: Calendar,
    /// Not answered.
    pending: HashMap<Id, (Instant, Vec<Row>)>,
    waited: Vec<Seen>,
    by_request: Vec<Seen>,
}

impl Watch {
    /// Watches producers that have an event due so often each.
    fn of(period: Duration) -> Self {
        Self {
            calendar: Calendar {
                period_ns: period.as_nanos() as f64,
                first_ns: HashMap::new(),
            },
            pending: HashMap::new(),
            waited: Vec::new(),
            by_request: Vec::new(),
        }
    }

    /// Notes a request; false if it is none to produce.
    fn came(&mut self, connection: u64, frame: &Frame<'_>) -> bool {
        if frame.prefix.api_key != ApiKey::Produce.key() {
            return false;
        }
        let batches = BatchIterator::new(frame.body).map_while(Result::ok);
        let rows = batches.map(|batch| self.calendar.note(&batch)).collect();
        let id = (connection, frame.prefix.correlation_id.0);
        self.pending.insert(id, (Instant::now(), rows));
        true
    }

    /// The produce request that this answers.
    fn answered(&self, connection: u64, answer: &[u8]) -> Option<Id> {
        let prefix = Prefix::read(&answer[..PREFIX_LENGTH], u32::MAX).ok()??;
        let id = (connection, prefix.correlation_id.0);
        self.pending.contains_key(&id).then_some(id)
    }

    /// Notes that its answer is passed on now.
    fn passes_on(&mut self, id: Id) {
        let (came, rows) = self.pending.remove(&id).expect("it waits for its answer");
        let events = rows.iter().map(|row| row.count).sum();
        self.by_request.push((came.elapsed(), events));
        for row in rows {
            self.waited.extend(self.calendar.waited(row));
        }
    }
}

/// Holds the n-th answer to a produce request back by the n-th delay of a schedule.
pub struct Schedule {
    from: Duration,
    to: Duration,
    state: Mutex<ScheduleState>,
}

struct ScheduleState {
    watch: Watch,
    delays: Vec<Seen>,
}

impl Schedule {
    /// Delays between these two, each as often as any other, for producers that have an event due so often each.
    pub fn between(from: Duration, to: Duration, period: Duration) -> Self {
        Self {
            from,
            to,
            state: Mutex::new(ScheduleState {
                watch: Watch::of(period),
                delays: Vec::new(),
            }),
        }
    }

    /// The n-th delay: fractions of the golden ratio fall evenly over any stretch of them, in no order.
    fn delay(&self, n: usize) -> Duration {
        let share = (n as f64 * 0.618_033_988_749_895).fract();
        self.from + (self.to - self.from).mul_f64(share)
    }

    /// The delays that it made, by answers.
    pub fn delays(&self) -> Vec<Seen> {
        self.state.lock().unwrap().delays.clone()
    }

    /// How long each event waited from when it was due until its answer was passed on.
    pub fn waited(&self) -> Vec<Seen> {
        self.state.lock().unwrap().watch.waited.clone()
    }
}

impl Road for Schedule {
    fn request(&self, connection: u64, frame: &Frame<'_>) {
        self.state.lock().unwrap().watch.came(connection, frame);
    }

    fn answer(&self, connection: u64, frame: &mut [u8]) {
        let mut state = self.state.lock().unwrap();
        let Some(id) = state.watch.answered(connection, frame) else {
            return;
        };
        let delay = self.delay(state.delays.len());
        state.delays.push((delay, 1));
        drop(state);
        std::thread::sleep(delay);
        self.state.lock().unwrap().watch.passes_on(id);
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
    watch: Watch,
    requests: u64,
    began: Option<Instant>,
    ended: Option<Instant>,
}

impl Stall {
    /// A stall of this length that begins with the n-th produce request of producers that have an event due so often each.
    pub fn at_request(at_request: u64, length: Duration, period: Duration) -> Self {
        Self {
            at_request,
            length,
            state: Mutex::new(StallState {
                watch: Watch::of(period),
                requests: 0,
                began: None,
                ended: None,
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
        self.state.lock().unwrap().watch.waited.clone()
    }

    /// What is seen by whoever looks at requests alone, from when they came.
    pub fn by_request(&self) -> Vec<Seen> {
        self.state.lock().unwrap().watch.by_request.clone()
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
        let mut state = self.state.lock().unwrap();
        if state.watch.came(connection, frame) {
            state.requests += 1;
            if state.requests == self.at_request {
                state.began = Some(Instant::now());
            }
        }
        drop(state);
        self.hold();
    }

    fn answer(&self, connection: u64, frame: &mut [u8]) {
        self.hold();
        let mut state = self.state.lock().unwrap();
        if let Some(id) = state.watch.answered(connection, frame) {
            state.watch.passes_on(id);
        }
    }
}
