//! Creates the topic that the other examples use, and shows what the broker says about it.
//!
//! `cargo run -p tackboard-client --example admin -- 127.0.0.1:7400`

use tackboard_client::{Admin, ClientConfig, ErrorCode, NewTopic, OffsetQuery, Result};

fn main() -> Result<()> {
    let broker = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "127.0.0.1:7400".into());
    let mut admin = Admin::connect(&[&broker], ClientConfig::default())?;
    println!(
        "broker {} of release {}",
        admin.broker().broker_id,
        admin.broker().broker_version
    );

    match admin.create_topic(&NewTopic::new("example").partitions(3)) {
        Ok(created) => println!(
            "created example with {} partitions, id {}",
            created.partitions, created.topic_id
        ),
        Err(fault) if fault.code() == Some(ErrorCode::TopicAlreadyExists) => {
            println!("example is there already")
        }
        Err(fault) => return Err(fault),
    }

    for topic in admin.list_topics()? {
        println!(
            "topic {} has {} partitions, acks {}",
            topic.name,
            topic.partitions.len(),
            topic.acks
        );
    }
    let topic = admin.describe_topic("example")?;
    let partitions = topic.partitions.iter().map(|partition| partition.partition);
    let queries: Vec<_> = partitions
        .map(|partition| ("example", partition, OffsetQuery::Latest))
        .collect();
    for (partition, listed) in topic.partitions.iter().zip(admin.list_offsets(&queries)?) {
        let end = listed.offset.map_or(-1, |offset| offset.0);
        println!(
            "example-{} on core {} holds {} to {end}",
            listed.partition, partition.core, partition.log_start_offset
        );
    }
    Ok(())
}
