//! Brokers that come and go within one process leave no thread and no descriptor behind.
//!
//! Alone in its file: whatever else ran in the process would be counted. `ENDURE_RESTARTS` says how many (10).

mod support;

use support::{Raw, batch, broker, folder};

fn held() -> (usize, usize) {
    let count = |what: &str| std::fs::read_dir(what).expect("proc").count();
    (count("/proc/self/fd"), count("/proc/self/task"))
}

#[test]
fn embedded_brokers_leave_no_descriptors_or_threads_behind() {
    let rounds = std::env::var("ENDURE_RESTARTS").ok();
    let rounds = rounds.map_or(10, |text| text.parse().expect("a whole number"));
    let data = folder();
    let mut seen = Vec::new();
    for round in 0..rounds {
        let handle = broker(data.path(), "[0, 1]", &[]);
        let mut client = Raw::connect(handle.native_address());
        if round == 0 {
            assert_eq!(client.create_topic("t", 4), 0);
        }
        for partition in 0..4 {
            let told = client.produce("t", partition, &batch(1, &[b"value"]));
            assert_eq!(told, Ok(round));
        }
        drop(client);
        assert!(handle.shutdown());
        seen.push(held());
    }
    // What the first one has opened for good, as a source of random numbers, stays.
    assert!(seen[1..].iter().all(|one| *one <= seen[0]), "{seen:?}");
}
