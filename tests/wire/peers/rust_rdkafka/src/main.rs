// A member with rust-rdkafka, for tests: it polls, and does what the lines of its standard input ask.
//
//     rust_rdkafka ADDRESS GROUP TOPIC SESSION_MS
//
// KCOORD_TOKEN is the password. Lines and answers are those of java_member/Member.java.

use std::io::{stdin, BufRead};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;
use std::{env, thread};

use rdkafka::client::ClientContext;
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer, ConsumerContext, Rebalance};
use rdkafka::error::KafkaResult;
use rdkafka::{Offset, TopicPartitionList};

const ASK: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(200);

struct Telling;

impl ClientContext for Telling {}

impl ConsumerContext for Telling {
    fn pre_rebalance(&self, _: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        if let Rebalance::Revoke(partitions) = rebalance {
            println!("revoked {}", text(partitions));
        }
    }
}

fn text(partitions: &TopicPartitionList) -> String {
    let numbers: Vec<String> = partitions.elements().iter().map(|one| one.partition().to_string()).collect();
    numbers.join(" ")
}

fn answer(consumer: &BaseConsumer<Telling>, topic: &str, words: &[&str]) -> KafkaResult<String> {
    let mut wanted = TopicPartitionList::new();
    match words {
        ["commit", partition, offset] => {
            let offset = Offset::Offset(offset.parse().unwrap());
            wanted.add_partition_offset(topic, partition.parse().unwrap(), offset)?;
            consumer.commit(&wanted, CommitMode::Sync)?;
            Ok(String::new())
        }
        ["committed", partition] => {
            wanted.add_partition(topic, partition.parse().unwrap());
            let found = consumer.committed_offsets(wanted, ASK)?;
            Ok(found.elements()[0].offset().to_raw().filter(|&at| at >= 0).unwrap_or(-1).to_string())
        }
        _ => Ok(text(&consumer.assignment()?)),
    }
}

fn main() {
    let given: Vec<String> = env::args().skip(1).collect();
    let consumer: BaseConsumer<Telling> = ClientConfig::new()
        .set("bootstrap.servers", &given[0])
        .set("group.id", &given[1])
        .set("security.protocol", "sasl_plaintext")
        .set("sasl.mechanism", "PLAIN")
        .set("sasl.username", "any")
        .set("sasl.password", env::var("KCOORD_TOKEN").unwrap())
        .set("session.timeout.ms", &given[3])
        .set("heartbeat.interval.ms", "500")
        .set("enable.auto.commit", "false")
        .set("auto.offset.reset", "earliest")
        .create_with_context(Telling)
        .unwrap();
    consumer.subscribe(&[&given[2]]).unwrap();
    let consumer = Arc::new(consumer);
    let is_open = Arc::new(AtomicBool::new(true));
    let polling = {
        let (consumer, is_open) = (consumer.clone(), is_open.clone());
        thread::spawn(move || {
            while is_open.load(Ordering::Relaxed) {
                consumer.poll(POLL);
            }
        })
    };
    for line in stdin().lock().lines().map_while(Result::ok).take_while(|line| line != "close") {
        match answer(&consumer, &given[2], &line.split(' ').collect::<Vec<_>>()) {
            Ok(said) => println!("= {said}"),
            Err(error) => println!("! {error}"),
        }
    }
    is_open.store(false, Ordering::Relaxed);
    polling.join().unwrap();
    drop(consumer);
    println!("= closed");
}
