//! Runs small operations again and again and says what each costs: instructions under valgrind's callgrind, allocations,
//! and, for orientation, nanoseconds.
//!
//! Owns: the road into and out of what is counted, and the allocator that counts. Benches of other crates and tests that
//! watch allocations use it by path.
//! Not here: running valgrind and comparing with what is kept (`.ci/counts`).
//!
//! A bench prepares, and hands each operation to [`Counter::count`]; all else stays out of the count. callgrind is told
//! to collect inside [`tackboard_counted`] alone.
#![allow(dead_code, reason = "each user needs a part")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::time::{Duration, Instant};

/// Operations that are carried out before the first counts: memory has grown to what it needs, caches are filled.
const WARM_UP: u32 = 300;

/// Operations that count. Enough that what a seed decides (the place in a hash map) evens out.
const COUNTED: u32 = 1000;

/// Operations that count where time is measured.
const TIMED: u32 = 20_000;

/// Counts the allocations of the thread that asks.
struct CountingAllocator;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: everything is handed to the system's allocator as it came.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promise.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Allocations of this thread so far.
pub fn allocations() -> u64 {
    ALLOCATIONS.with(Cell::get)
}

/// What callgrind collects in. Its name is looked for by `.ci/counts`.
#[unsafe(no_mangle)]
#[inline(never)]
pub fn tackboard_counted(operation: &mut dyn FnMut()) {
    operation();
}

/// Decides how often a bench goes round, and adds up what its operations cost.
pub struct Counter {
    /// Operations to come.
    left: u32,
    /// Of these so many count.
    counted: u32,
    units: u64,
    allocations: u64,
    time: Duration,
}

impl Counter {
    fn new(counted: u32) -> Self {
        Self {
            left: WARM_UP + counted,
            counted,
            units: 0,
            allocations: 0,
            time: Duration::ZERO,
        }
    }

    /// Whether the bench is to prepare and count another operation.
    pub fn goes_on(&self) -> bool {
        self.left > 0
    }

    /// Carries out one operation, which does `units` times what the bench is named after.
    pub fn count(&mut self, units: u32, mut operation: impl FnMut()) {
        self.left -= 1;
        if self.left >= self.counted {
            return operation();
        }
        let (before, start) = (allocations(), Instant::now());
        tackboard_counted(&mut operation);
        self.time += start.elapsed();
        self.allocations += allocations() - before;
        self.units += u64::from(units);
    }

    /// Repeats an operation that needs no preparation.
    pub fn repeat(&mut self, mut operation: impl FnMut()) {
        while self.goes_on() {
            self.count(1, &mut operation);
        }
    }
}

/// A bench: its name, and what it does.
pub type Bench = (&'static str, fn(&mut Counter));

/// Without arguments: the time that each bench takes. `--list`: their names. `--count NAME`: one of them, for callgrind;
/// prints how often the operation was carried out and how many allocations that took.
pub fn main(benches: &[Bench]) {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        // Cargo's own way to say that it benches.
        [] | ["--bench"] => {
            for (name, bench) in benches {
                let mut counter = Counter::new(TIMED);
                bench(&mut counter);
                let nanoseconds = counter.time.as_nanos() as f64 / counter.units as f64;
                println!("{name:<40} {nanoseconds:>10.1} ns");
            }
        }
        ["--list"] => benches.iter().for_each(|(name, _)| println!("{name}")),
        ["--count", wanted] => {
            let found = benches.iter().find(|(name, _)| *name == wanted);
            let (_, bench) = found.expect("a bench of this name, see --list");
            let mut counter = Counter::new(COUNTED);
            bench(&mut counter);
            println!("{} {}", counter.units, counter.allocations);
        }
        _ => panic!("unknown arguments {arguments:?}; known are --list and --count NAME"),
    }
}
