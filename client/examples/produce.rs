//! Sends a thousand records with keys, and waits until the broker has all of them.
//!
//! `cargo run -p tackboard-client --example produce -- 127.0.0.1:7400`, after the example `admin`.

use tackboard_client::{Producer, ProducerConfig, ProducerRecord, Result};

fn main() -> Result<()> {
    let broker = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "127.0.0.1:7400".into());
    let producer = Producer::connect(&[&broker], ProducerConfig::default())?;

    for number in 0..999 {
        let (key, value) = (
            format!("sensor-{}", number % 10),
            format!("reading {number}"),
        );
        producer.send("example", ProducerRecord::new(&value).key(&key))?;
    }
    // A handle tells what became of one record; without it, `flush` tells of the first failure.
    let delivery = producer.send_tracked("example", ProducerRecord::new("the last reading"))?;
    producer.flush()?;

    let position = delivery.wait()?;
    let offset = position.offset.map_or(-1, |offset| offset.0);
    println!(
        "1000 records delivered, the last at offset {offset} of {}-{}",
        position.topic, position.partition
    );
    producer.close()
}
