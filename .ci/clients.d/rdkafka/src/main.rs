//! rdkafka.

use std::{
    error::Error,
    fs::File,
    io::{BufRead as _, BufReader, Read as _},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use futures_executor::block_on;
use rdkafka::{
    ClientConfig, ClientContext, Message as _, Offset, TopicPartitionList,
    admin::{AdminClient, AdminOptions, AlterConfig, NewPartitions, NewTopic, ResourceSpecifier, TopicReplication},
    client::DefaultClientContext,
    consumer::{BaseConsumer, CommitMode, Consumer as _, ConsumerContext, Rebalance},
    error::{KafkaError, RDKafkaErrorCode},
    message::{BorrowedMessage, Header, Headers as _, OwnedHeaders},
    producer::{BaseProducer, BaseRecord, DeliveryResult, Producer as _, ProducerContext},
};
use serde_json::{Map, Value, json};

type Outcome<T> = Result<T, Box<dyn Error>>;

const PATIENCE: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(200);
/// Events that are read before they are committed.
const BATCH: usize = 500;

struct Order(Value);

impl Order {
    fn text(&self, name: &str) -> &str {
        self.0[name].as_str().unwrap_or_default()
    }

    fn number(&self, name: &str) -> i64 {
        self.0[name].as_i64().unwrap_or_default()
    }

    fn config(&self) -> ClientConfig {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", self.text("bootstrap"));
        config
    }
}

fn pack(data: Option<&[u8]>) -> Value {
    data.map_or(Value::Null, |data| BASE64_STANDARD.encode(data).into())
}

fn unpack(text: &Value) -> Outcome<Option<Vec<u8>>> {
    Ok(text.as_str().map(|text| BASE64_STANDARD.decode(text)).transpose()?)
}

struct Event {
    partition: i32,
    timestamp: i64,
    key: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
    headers: OwnedHeaders,
}

impl Event {
    fn parse(line: &str) -> Outcome<Self> {
        let one: Value = serde_json::from_str(line)?;
        let mut headers = OwnedHeaders::new();
        for pair in one["h"].as_array().into_iter().flatten() {
            let (key, value) = (pair[0].as_str().unwrap_or_default(), unpack(&pair[1])?);
            headers = headers.insert(Header { key, value: value.as_ref() });
        }
        Ok(Self {
            partition: i32::try_from(one["p"].as_i64().unwrap_or_default())?,
            timestamp: one["t"].as_i64().unwrap_or_default(),
            key: unpack(&one["k"])?,
            value: unpack(&one["v"])?,
            headers,
        })
    }

    fn read(one: &BorrowedMessage) -> Self {
        Self {
            partition: one.partition(),
            timestamp: one.timestamp().to_millis().unwrap_or_default(),
            key: one.key().map(<[u8]>::to_vec),
            value: one.payload().map(<[u8]>::to_vec),
            headers: one.headers().map_or_else(OwnedHeaders::new, |headers| headers.detach()),
        }
    }

    fn say(&self, offset: i64) {
        let headers = self.headers.iter().map(|one| json!([one.key, pack(one.value)]));
        let headers: Vec<Value> = headers.collect();
        let (key, value) = (pack(self.key.as_deref()), pack(self.value.as_deref()));
        println!("{}", json!({"p": self.partition, "o": offset, "t": self.timestamp, "k": key, "v": value, "h": headers}));
    }
}

#[derive(Clone, Default)]
struct Delivered {
    count: Arc<AtomicUsize>,
}

impl ClientContext for Delivered {}

impl ProducerContext for Delivered {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult, (): ()) {
        match result {
            Ok(_) => _ = self.count.fetch_add(1, Ordering::Relaxed),
            Err((fault, _)) => eprintln!("{fault}"),
        }
    }
}

fn send_all<'a>(
    to: &BaseProducer<Delivered>,
    topic: &str,
    events: impl Iterator<Item = &'a Event>,
) -> Outcome<()> {
    let delivered = &to.context().count;
    let before = delivered.load(Ordering::Relaxed);
    let mut sent = 0;
    for one in events {
        sent += 1;
        loop {
            let mut record = BaseRecord::<[u8], [u8]>::to(topic)
                .partition(one.partition)
                .timestamp(one.timestamp)
                .headers(one.headers.clone());
            (record.key, record.payload) = (one.key.as_deref(), one.value.as_deref());
            match to.send(record) {
                Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), _)) => _ = to.poll(POLL),
                Err((fault, _)) => return Err(fault.into()),
                Ok(()) => break,
            }
        }
    }
    to.flush(PATIENCE)?;
    match delivered.load(Ordering::Relaxed) - before {
        count if count == sent => Ok(()),
        count => Err(format!("{count} of {sent} events were acknowledged").into()),
    }
}

fn producer(order: &Order, codec: &str, idempotent: bool) -> Outcome<BaseProducer<Delivered>> {
    let mut config = order.config();
    config.set("compression.type", codec).set("enable.idempotence", idempotent.to_string());
    Ok(config.create_with_context(Delivered::default())?)
}

fn produce(order: &Order) -> Outcome<()> {
    let to = producer(order, order.text("codec"), order.0["idempotent"] == true)?;
    let lines = BufReader::new(File::open(order.text("file"))?).lines();
    let events = lines.map(|line| Event::parse(&line?)).collect::<Outcome<Vec<_>>>()?;
    send_all(&to, order.text("topic"), events.iter())?;
    println!("{}", json!({"produced": events.len()}));
    Ok(())
}

fn all_partitions(order: &Order, offset: Offset) -> Outcome<TopicPartitionList> {
    let mut list = TopicPartitionList::new();
    for partition in 0..i32::try_from(order.number("partitions"))? {
        list.add_partition_offset(order.text("topic"), partition, offset)?;
    }
    Ok(list)
}

fn consume(order: &Order) -> Outcome<()> {
    let from: BaseConsumer = order.config().set("group.id", "none").set("enable.auto.commit", "false").create()?;
    from.assign(&all_partitions(order, Offset::Beginning)?)?;
    for _ in 0..order.number("count") {
        let one = from.poll(PATIENCE).ok_or("events are missing")??;
        Event::read(&one).say(one.offset());
    }
    Ok(())
}

fn offsets(order: &Order) -> Outcome<()> {
    let from: BaseConsumer = order.config().set("group.id", "none").create()?;
    let (mut earliest, mut latest) = (Map::new(), Map::new());
    for partition in 0..i32::try_from(order.number("partitions"))? {
        let (low, high) = from.fetch_watermarks(order.text("topic"), partition, PATIENCE)?;
        earliest.insert(partition.to_string(), low.into());
        latest.insert(partition.to_string(), high.into());
    }
    let mut at = Vec::new();
    for timestamp in order.0["timestamps"].as_array().into_iter().flatten() {
        let asked = all_partitions(order, Offset::Offset(timestamp.as_i64().unwrap_or_default()))?;
        at.push(places(&from.offsets_for_times(asked, PATIENCE)?));
    }
    println!("{}", json!({"earliest": earliest, "latest": latest, "at": at}));
    Ok(())
}

fn places(list: &TopicPartitionList) -> Map<String, Value> {
    let elements = list.elements();
    let places = elements.iter().map(|one| {
        let place = match one.offset() {
            Offset::Offset(offset) => offset,
            _ => -1,
        };
        (one.partition().to_string(), place.into())
    });
    places.collect()
}

struct Told {
    silent: bool,
}

impl ClientContext for Told {}

impl ConsumerContext for Told {
    fn post_rebalance(&self, _: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        let assigned: Vec<i32> = match rebalance {
            Rebalance::Assign(list) => list.elements().iter().map(|one| one.partition()).collect(),
            Rebalance::Revoke(_) | Rebalance::Error(_) => Vec::new(),
        };
        if !self.silent {
            println!("{}", json!({"assigned": assigned}));
        }
    }
}

/// Reads as a member of the group until it has read enough, or is to leave; how many it read.
fn run_member(order: &Order, silent: bool, mut each: impl FnMut(&[(Event, i64)]) -> Outcome<()>) -> Outcome<usize> {
    let mut config = order.config();
    config
        .set("group.id", order.text("group"))
        .set("auto.offset.reset", "earliest")
        .set("enable.auto.commit", "false")
        .set("session.timeout.ms", "6000")
        .set("heartbeat.interval.ms", "500");
    let from: BaseConsumer<Told> = config.create_with_context(Told { silent })?;
    from.subscribe(&[order.text("topic")])?;
    let ended = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&ended);
    thread::spawn(move || {
        _ = std::io::stdin().read_to_end(&mut Vec::new());
        told.store(true, Ordering::Relaxed);
    });
    let enough = order.0["count"].as_u64().map_or(usize::MAX, |count| count as usize);
    let mut count = 0;
    while count < enough && !ended.load(Ordering::Relaxed) {
        let mut read = Vec::new();
        while read.len() < BATCH.min(enough - count) {
            // Whoever has something to say waits for no more.
            let wait = if read.is_empty() { POLL } else { Duration::ZERO };
            let Some(one) = from.poll(wait) else { break };
            let one = one?;
            read.push((Event::read(&one), one.offset()));
        }
        if read.is_empty() {
            continue;
        }
        each(&read)?;
        count += read.len();
        if let Err(fault) = from.commit_consumer_state(CommitMode::Sync) {
            // A rebalance came between: whoever gets the partition reads it again.
            eprintln!("{fault}");
        }
    }
    from.unsubscribe();
    Ok(count)
}

fn member(order: &Order) -> Outcome<()> {
    run_member(order, false, |read| {
        read.iter().for_each(|(one, offset)| one.say(*offset));
        Ok(())
    })?;
    println!("{}", json!({"left": true}));
    Ok(())
}

fn copy(order: &Order) -> Outcome<()> {
    let to = producer(order, "none", true)?;
    let count = run_member(order, true, |read| {
        send_all(&to, order.text("to"), read.iter().map(|(one, _)| one))
    })?;
    println!("{}", json!({"copied": count}));
    Ok(())
}

fn admin(order: &Order) -> Outcome<()> {
    let client: AdminClient<DefaultClientContext> = order.config().create()?;
    for step in order.0["steps"].as_array().into_iter().flatten() {
        let said = run_step(order, &client, &Order(step.clone()));
        println!("{}", said.unwrap_or_else(|fault| json!({"error": fault.to_string()})));
    }
    Ok(())
}

/// The one result of a call about one thing.
fn only<T, E: Error + 'static>(results: Vec<Result<T, E>>) -> Outcome<T> {
    Ok(results.into_iter().next().ok_or("an empty answer")??)
}

fn refused<T: std::fmt::Debug, E: std::fmt::Debug>(results: Vec<Result<T, E>>) -> Outcome<Value> {
    match results.iter().find(|one| one.is_err()) {
        Some(fault) => Err(format!("{fault:?}").into()),
        None => Ok(json!({})),
    }
}

fn run_step(order: &Order, client: &AdminClient<DefaultClientContext>, step: &Order) -> Outcome<Value> {
    let options = AdminOptions::new().request_timeout(Some(PATIENCE));
    let (topic, group) = (step.text("topic"), step.text("group"));
    let resource = ResourceSpecifier::Topic(topic);
    let inner = client.inner();
    match step.text("do") {
        "cluster" => {
            let found = inner.fetch_metadata(None, PATIENCE)?;
            let brokers: Vec<Value> = found.brokers().iter().map(|one| json!([one.host(), one.port()])).collect();
            Ok(json!({"cluster": inner.fetch_cluster_id(PATIENCE), "brokers": brokers}))
        }
        "create" => {
            let partitions = i32::try_from(step.number("partitions"))?;
            let mut new = NewTopic::new(topic, partitions, TopicReplication::Fixed(1));
            for (name, value) in step.0["configs"].as_object().into_iter().flatten() {
                new = new.set(name, value.as_str().unwrap_or_default());
            }
            refused(block_on(client.create_topics([&new], &options))?)
        }
        "topics" => {
            let found = inner.fetch_metadata(None, PATIENCE)?;
            let names: Vec<&str> = found.topics().iter().map(|one| one.name()).collect();
            Ok(json!({"topics": names}))
        }
        "describe" => {
            let found = inner.fetch_metadata(Some(topic), PATIENCE)?;
            Ok(json!({"partitions": found.topics()[0].partitions().len()}))
        }
        "configs" => {
            let found = only(block_on(client.describe_configs([&resource], &options))?)?;
            let configs: Map<String, Value> = found.entries.into_iter().map(|one| (one.name, one.value.into())).collect();
            Ok(json!({"configs": configs}))
        }
        "alter" => {
            let mut change = AlterConfig::new(resource);
            for (name, value) in step.0["configs"].as_object().into_iter().flatten() {
                change = change.set(name, value.as_str().unwrap_or_default());
            }
            refused(block_on(client.alter_configs([&change], &options))?)
        }
        "partitions" => {
            let new = NewPartitions::new(topic, usize::try_from(step.number("count"))?);
            refused(block_on(client.create_partitions([&new], &options))?)
        }
        "delete_records" => {
            let mut list = TopicPartitionList::new();
            let partition = i32::try_from(step.number("partition"))?;
            list.add_partition_offset(topic, partition, Offset::Offset(step.number("before")))?;
            for one in block_on(client.delete_records(&list, &options))?.elements() {
                one.error()?;
            }
            Ok(json!({}))
        }
        "delete" => refused(block_on(client.delete_topics(&[topic], &options))?),
        "groups" => {
            let found = inner.fetch_group_list(None, PATIENCE)?;
            let names: Vec<&str> = found.groups().iter().map(|one| one.name()).collect();
            Ok(json!({"groups": names}))
        }
        "group" => {
            let found = inner.fetch_group_list(Some(group), PATIENCE)?;
            let one = found.groups().first().ok_or("no such group")?;
            Ok(json!({"state": one.state(), "members": one.members().len()}))
        }
        "committed" => {
            let from: BaseConsumer = order.config().set("group.id", group).create()?;
            let count = inner.fetch_metadata(Some(topic), PATIENCE)?.topics()[0].partitions().len();
            let mut list = TopicPartitionList::new();
            for partition in 0..i32::try_from(count)? {
                list.add_partition(topic, partition);
            }
            Ok(json!({"committed": places(&from.committed_offsets(list, PATIENCE)?)}))
        }
        "delete_group" => refused(block_on(client.delete_groups(&[group], &options))?),
        other => Err(format!("no such step: {other}").into()),
    }
}

/// This crate's version is the one that the lock file names.
fn version() -> Outcome<()> {
    let lock = include_str!("../Cargo.lock");
    let (_, rest) = lock.split_once("name = \"rdkafka\"\nversion = \"").ok_or("not in the lock file")?;
    let crate_version = rest.split('"').next().unwrap_or_default();
    let (_, library) = rdkafka::util::get_rdkafka_version();
    println!("{}", json!({"version": format!("{crate_version} (librdkafka {library})")}));
    Ok(())
}

fn main() -> Outcome<()> {
    let text = std::env::args().nth(1).ok_or("an order is wanted")?;
    let order = Order(serde_json::from_str(&text)?);
    match order.text("verb") {
        "version" => version(),
        "produce" => produce(&order),
        "consume" => consume(&order),
        "offsets" => offsets(&order),
        "member" => member(&order),
        "copy" => copy(&order),
        "admin" => admin(&order),
        other => Err(format!("no such verb: {other}").into()),
    }
}
