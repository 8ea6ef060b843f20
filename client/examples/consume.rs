//! Reads everything that is in the topic now, and checks that each partition's offsets follow each other.
//!
//! `cargo run -p tackboard-client --example consume -- 127.0.0.1:7400`, after the example `produce`.

use std::time::Duration;

use tackboard_client::{
    Admin, ClientConfig, Consumer, ConsumerConfig, Offset, OffsetQuery, PartitionIndex, Result,
    Start,
};

fn main() -> Result<()> {
    let broker = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "127.0.0.1:7400".into());
    let mut consumer = Consumer::connect(&[&broker], ConsumerConfig::default())?;
    let count = consumer.partition_count("example")? as i32;

    let mut admin = Admin::connect(&[&broker], ClientConfig::default())?;
    let queries: Vec<_> = (0..count)
        .map(|index| ("example", PartitionIndex(index), OffsetQuery::Latest))
        .collect();
    let ends: Vec<Offset> = admin
        .list_offsets(&queries)?
        .iter()
        .map(|end| end.offset.unwrap_or_default())
        .collect();

    consumer.assign_topic("example", Start::Earliest)?;
    let mut records = 0;
    let is_read = |consumer: &Consumer| -> Result<bool> {
        let mut positions =
            (0..count).map(|index| consumer.position("example", PartitionIndex(index)));
        positions
            .try_fold(0, |read, position| {
                Ok(read + position?.unwrap_or_default().0)
            })
            .map(|read| {
                let wanted: i64 = ends.iter().map(|end| end.0).sum();
                read >= wanted
            })
    };
    while !is_read(&consumer)? {
        for record in &consumer.poll(Duration::from_secs(1))? {
            let record = record?;
            records += 1;
            if records <= 3 {
                let value = String::from_utf8_lossy(record.value.unwrap_or_default());
                println!(
                    "{}-{} at {}: {value}",
                    record.topic, record.partition, record.offset
                );
            }
        }
    }
    println!("{records} records read");
    Ok(())
}
