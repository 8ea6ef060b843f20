//! What a consumer holds of batches that swell when they are decompressed: counted by the allocator.
#![cfg(feature = "blocking")]

mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use support::Broker;
use support::server::Server;
use tackboard_client::{
    Compression, Consumer, ConsumerConfig, Offset, PartitionIndex, Start, TimestampMs,
};
use tackboard_schema::record_batch::{BatchBuilder, BatchView};

/// Counts the bytes that are allocated, and the most that ever were.
struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);
static HELD_MAX: AtomicUsize = AtomicUsize::new(0);

fn count(bytes: usize) {
    let held = HELD.fetch_add(bytes, Ordering::Relaxed) + bytes;
    HELD_MAX.fetch_max(held, Ordering::Relaxed);
}

// SAFETY: everything is the system's; what is counted is nobody's concern.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // The kernel moves pages of a large one; nothing is there twice.
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        count(size);
        // SAFETY: as the caller promises.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const BATCHES: usize = 150;
const VALUE_BYTES: usize = 3 << 20;

fn batch() -> Vec<u8> {
    let value = vec![b'x'; VALUE_BYTES];
    let mut builder = BatchBuilder::new(TimestampMs(0));
    (builder.append(TimestampMs(0), None, Some(&value), &[])).expect("room in the batch");
    builder.finish(None, Compression::Zstd)
}

fn server() -> (Server, [String; 1]) {
    let mut broker = Broker::new(&[("t", 2)]);
    let topic = broker.topics.get_mut("t").expect("just made");
    let bytes = batch();
    let view = BatchView::first(&bytes).expect("a batch");
    for index in 0..BATCHES {
        topic[index % 2].append(&view).expect("it follows");
    }
    let server = Server::start(broker);
    let address = server.address.to_string();
    (server, [address])
}

/// Alone in its file, since the count is everybody's.
#[test]
fn a_consumer_holds_one_swollen_batch_beyond_what_it_hands_out() {
    let (_server, brokers) = server();
    let config = ConsumerConfig {
        poll_bytes_max: 4 << 20,
        decompressed_bytes_max: 4 << 20,
        ..ConsumerConfig::default()
    };
    let bound = config.poll_bytes_max + config.decompressed_bytes_max;
    let mut consumer = Consumer::connect(&brokers, config).expect("it answers");
    consumer.assign_topic("t", Start::Earliest).expect("known");
    let before = HELD.load(Ordering::Relaxed);
    HELD_MAX.store(before, Ordering::Relaxed);

    let mut next = [0; 2];
    let begun = Instant::now();
    while next.iter().sum::<i64>() < BATCHES as i64 {
        assert!(begun.elapsed() < Duration::from_secs(60), "{next:?}");
        let records = consumer.poll(Duration::from_millis(200)).expect("intact");
        assert!(records.bytes() <= bound, "{} bytes", records.bytes());
        for record in &records {
            let record = record.expect("intact");
            let next = &mut next[record.partition.0 as usize];
            assert_eq!(record.offset.0, *next, "no record twice, none left out");
            assert_eq!(record.value.map(<[u8]>::len), Some(VALUE_BYTES));
            *next += 1;
        }
        // Two batches of 3 MiB: the second begins within 4 MiB.
        assert!(records.iter().count() <= 2);
        for (partition, next) in (0..).zip(next) {
            let position = consumer.position("t", PartitionIndex(partition));
            let position = position.expect("assigned").unwrap_or(Offset(0));
            assert_eq!(
                position.0, next,
                "the position is that of what was handed out"
            );
        }
    }
    // A vector grows by doubling until it is cut to its length; the compressed batches are short.
    let most = HELD_MAX.load(Ordering::Relaxed) - before;
    assert!(most <= 2 * bound, "{most} bytes were held at once");
}
