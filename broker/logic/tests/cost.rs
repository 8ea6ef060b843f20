//! An append with its share of a write and its completion allocates nothing. What it costs else: `broker/logic/benches`.

use tackboard_schema::Durability;

#[path = "../../../schema/benches/counted/mod.rs"]
mod counted;
#[path = "../benches/one_log/mod.rs"]
mod one_log;

use one_log::OneLog;

#[test]
fn appends_and_completions_allocate_nothing() {
    for durability in [Durability::Fsync, Durability::Written] {
        let mut log = OneLog::new(durability);
        for _ in 0..150 {
            log.turn(3);
        }
        let before = counted::allocations();
        for _ in 0..10 {
            log.turn(1);
            log.turn(3);
        }
        let allocations = counted::allocations() - before;
        assert_eq!(allocations, 0, "{durability}");
    }
}
