//! The events of one producer: numbering, pacing, keys, replay.

use std::sync::Arc;
use std::time::Duration;

use super::source::Source;
use super::spec::{StageSpec, Topic};
use crate::cli::plan::Plan;
use crate::workload::event::Stamp;
use crate::workload::input::Input;
use crate::workload::keys::KeySpec;
use crate::workload::schedule::Pace;

const PARTITIONS: i32 = 6;

fn source(plan: Plan, input: Option<Arc<Input>>, number: u32) -> (Source, u64) {
    let spec = StageSpec {
        title: "test".into(),
        plan,
        input,
        bytes_max: None,
    };
    let start_offsets = vec![0; PARTITIONS as usize];
    let topic = Topic {
        name: "t".into(),
        partitions: PARTITIONS,
        start_offsets,
        is_ours: true,
        is_temporary: true,
        durability_setting: None,
    };
    let order = Arc::new(spec.order(vec!["127.0.0.1:1".into()], &topic, 2).unwrap());
    (Source::new(number, &order), order.start_ns)
}

/// Everything that the source gives until `now_ns`: partition, sequence, due time, subject.
fn all(source: &mut Source, now_ns: u64) -> Vec<(u16, u64, u64, u32)> {
    let mut events = Vec::new();
    while let Ok(event) = source.next(now_ns) {
        let stamp = match event.stamp_header {
            Some(stamp) => Stamp::decode(&stamp).unwrap(),
            None => Stamp::check_event(event.value).unwrap(),
        };
        events.push((event.partition, stamp.sequence, stamp.due_ns, stamp.subject));
        source.took();
    }
    events
}

#[test]
fn sequences_are_dense_in_each_partition_and_counts_are_kept() {
    let (mut source, start_ns) = source(
        Plan {
            count: Some(2001),
            ..Plan::default()
        },
        None,
        0,
    );
    let events = all(&mut source, start_ns);
    assert_eq!(
        events.len(),
        1001,
        "the first of two producers has the odd one"
    );
    assert!(source.is_over() && !source.is_cut());
    let mut next = [0; PARTITIONS as usize];
    for (partition, sequence, ..) in events {
        assert_eq!(sequence, next[usize::from(partition)]);
        next[usize::from(partition)] += 1;
    }
    assert!(next.iter().all(|&count| count > 0), "{next:?}");
}

#[test]
fn an_event_that_was_not_taken_comes_again_unchanged() {
    let plan = Plan {
        keys: KeySpec::Uniform(1000),
        count: Some(10),
        ..Plan::default()
    };
    let (mut source, start_ns) = source(plan, None, 1);
    let first = source
        .next(start_ns)
        .map(|event| (event.value.to_vec(), event.key.map(<[u8]>::to_vec)))
        .unwrap();
    let again = source
        .next(start_ns + 5)
        .map(|event| (event.value.to_vec(), event.key.map(<[u8]>::to_vec)))
        .unwrap();
    assert_eq!(first, again);
    source.took();
    let next = source
        .next(start_ns + 5)
        .map(|event| event.value.to_vec())
        .unwrap();
    assert_ne!(first.0, next);
}

#[test]
fn open_loop_gives_events_when_they_are_due_and_ends_with_the_stage() {
    let plan = Plan {
        pace: Pace::Constant(1000.0),
        duration: Some(Duration::from_secs(1)),
        ..Plan::default()
    };
    let (mut source, start_ns) = source(plan, None, 0);
    assert_eq!(source.next(start_ns - 1).map(|_| ()), Err(start_ns));
    assert_eq!(
        all(&mut source, start_ns + 9_999_999).len(),
        5,
        "half of ten, every other one"
    );
    // A stall of half a second: everything is there at once, each event with its own due time.
    let late = all(&mut source, start_ns + 500_000_000);
    assert_eq!(late.len(), 246);
    assert!(
        late.windows(2)
            .all(|pair| pair[1].2 - pair[0].2 == 2_000_000)
    );
    assert_eq!(all(&mut source, start_ns + 2_000_000_000).len(), 249);
    assert!(source.is_over() && !source.is_cut());
}

#[test]
fn what_is_overdue_for_long_is_left_out_and_said_so() {
    let plan = Plan {
        pace: Pace::Constant(1000.0),
        duration: Some(Duration::from_secs(1)),
        ..Plan::default()
    };
    let (mut source, start_ns) = source(plan, None, 0);
    assert!(all(&mut source, start_ns + 60_000_000_000).is_empty());
    assert!(source.is_over() && source.is_cut());
}

#[test]
fn producers_share_an_input_by_key_and_send_every_line_once() {
    let input = Arc::new(Input::sample().unwrap());
    let mut lines = Vec::new();
    let mut producer_of_key = std::collections::HashMap::new();
    for number in 0..2 {
        let (mut source, start_ns) = source(Plan::default(), Some(input.clone()), number);
        let events = all(&mut source, start_ns);
        assert!(
            events.windows(2).all(|pair| pair[0].3 < pair[1].3),
            "file order"
        );
        for event in events {
            lines.push(event.3);
            if let Some(key) = input.key_number(event.3) {
                assert_eq!(*producer_of_key.entry(key).or_insert(number), number);
            }
        }
    }
    lines.sort_unstable();
    assert_eq!(lines, (0..input.count()).collect::<Vec<_>>());
}

#[test]
fn an_input_can_be_replayed_by_its_own_times() {
    let input = Arc::new(Input::sample().unwrap());
    let plan = Plan {
        pace: Pace::Timestamps(86_400.0),
        producers: Some(1),
        ..Plan::default()
    };
    let (mut source, start_ns) = source(plan, Some(input.clone()), 0);
    let first_day = all(&mut source, start_ns + 1_000_000_000);
    let first_ms = input.timestamp_ms(0).unwrap();
    let expected = (0..input.count())
        .filter(|&line| input.timestamp_ms(line).unwrap() <= first_ms + 86_400_000)
        .count();
    assert_eq!(first_day.len(), expected);
    assert!(first_day.windows(2).all(|pair| pair[0].2 <= pair[1].2));
}
