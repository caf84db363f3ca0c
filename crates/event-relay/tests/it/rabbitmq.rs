//! A real RabbitMQ, with a user that has the least right.

use std::time::Duration;

use broker::{Broker as Target, Trust};
use event_relay::EXCHANGE;
use lapin::{
    Connection, ConnectionProperties, ExchangeKind,
    options::{BasicGetOptions, ExchangeDeclareOptions, QueueBindOptions, QueueDeclareOptions},
    types::{AMQPValue, FieldTable},
};
use serde_json::{Value, json};
use test_support::{
    TestCa, eventually,
    rabbitmq::{Broker, BrokerUser, Delivered, Queue},
};

use crate::support::{MemoryOutbox, Running};

const OPENED: &str = "commands.session.opened";
const VOIDED: &str = "commands.command.voided";
const SITE: &str = "gpu-lab";
const LONG: Duration = Duration::from_secs(120);

/// What docs/OPERATIONS.md tells an administrator to allow, and nothing else.
fn relay_user() -> BrokerUser {
    BrokerUser {
        name: "relay".to_owned(),
        password: "hunter2".to_owned(),
        configure: "^$".to_owned(),
        write: "^site-control\\.events$".to_owned(),
        read: "^$".to_owned(),
        topics: Some((EXCHANGE.to_owned(), "^([a-z-]+\\.){3}gpu-lab$".to_owned())),
    }
}

async fn broker(exchanges: &[&str]) -> Broker {
    let users = [BrokerUser::administrator("admin", "administers"), relay_user()];
    Broker::start(&users, exchanges).await.unwrap()
}

fn verified(broker: &Broker) -> Target {
    let trust = Trust::from_pem_file(&broker.ca_file()).unwrap();
    Target::new(broker.tls_url("relay").parse().unwrap(), Some(trust)).unwrap()
}

async fn queue(broker: &Broker, name: &str, key: &str) -> Queue {
    Queue::bind(&broker.url("admin"), name, EXCHANGE, key).await.unwrap()
}

async fn published(outbox: &MemoryOutbox, sequence: u64) {
    let reached = async || (outbox.published_up_to() >= sequence).then_some(());
    eventually(LONG, "the last event to be published", reached).await;
}

fn numbers(delivered: &[Delivered]) -> Vec<u64> {
    delivered.iter().map(|message| message.body["data"]["n"].as_u64().unwrap()).collect()
}

#[tokio::test]
async fn events_arrive_in_order_as_persistent_cloud_events() {
    let broker = broker(&[EXCHANGE]).await;
    let (all, voided) =
        (queue(&broker, "all", "#").await, queue(&broker, "voided", "*.*.voided.#").await);
    let outbox = MemoryOutbox::default();
    for number in 1..=150 {
        outbox.add(if number % 50 == 0 { VOIDED } else { OPENED }, SITE);
    }
    let relay = Running::start(&outbox, verified(&broker));
    let delivered = all.take_many(150).await.unwrap();
    assert_eq!(numbers(&delivered), (1..=150).collect::<Vec<_>>());
    published(&outbox, 150).await;
    assert!(all.take().await.unwrap().is_none());
    let first = &delivered[0];
    assert_eq!(first.routing_key, "commands.session.opened.gpu-lab");
    assert_eq!(first.content_type, "application/cloudevents+json");
    assert_eq!((first.message_id.as_str(), first.user_id.as_str()), ("id-1", "relay"));
    assert!(delivered.iter().all(|message| message.persistent));
    assert_eq!(
        first.body,
        json!({
            "specversion": "1.0", "id": "id-1", "source": "/sites/gpu-lab", "type": OPENED,
            "subject": "subject", "time": "2030-01-01T00:00:00.000000Z",
            "sequence": "00000000000000000001", "datacontenttype": "application/json",
            "data": { "n": 1 },
        })
    );

    // A queue that is bound by a key gets only its types.
    assert_eq!(numbers(&voided.take_many(3).await.unwrap()), [50, 100, 150]);
    assert!(voided.take().await.unwrap().is_none());

    // What comes later comes too, and the same relay is still well.
    outbox.add(OPENED, SITE);
    assert_eq!(numbers(&all.take_many(1).await.unwrap()), [151]);
    published(&outbox, 151).await;
    eventually(LONG, "that all is well", async || relay.last()?.is_none().then_some(())).await;
}

/// Looking is a transaction: an outbox without news is not asked whether it has some.
#[tokio::test]
async fn an_outbox_is_left_alone_until_news_is_told() {
    let broker = broker(&[EXCHANGE]).await;
    let outbox = MemoryOutbox::default();
    outbox.add(OPENED, SITE);
    let a_day = Duration::from_secs(86_400);
    let relay = Running::start_looking(&outbox, verified(&broker), a_day);
    published(&outbox, 1).await;
    let before = eventually(LONG, "that all is well", async || {
        (relay.last() == Some(None)).then(|| (relay.times_told(), outbox.looks()))
    })
    .await;
    // It goes on to see whether the broker is there.
    let (told, looks) = before;
    eventually(LONG, "more looks at the broker", async || {
        (relay.times_told() >= told + 5).then_some(())
    })
    .await;
    assert_eq!(outbox.looks(), looks);
    outbox.add(OPENED, SITE);
    relay.tell_news();
    published(&outbox, 2).await;
}

#[tokio::test]
async fn kills_of_the_broker_lose_nothing_and_keep_the_order() {
    let mut broker = broker(&[EXCHANGE]).await;
    queue(&broker, "all", "#").await;
    let outbox = MemoryOutbox::default();
    let relay = Running::start(&outbox, verified(&broker));
    let mut added = 0;
    for _ in 0..3 {
        for _ in 0..200 {
            added = outbox.add(OPENED, SITE);
        }
        // In the middle of them.
        published(&outbox, added - 150).await;
        broker.kill();
        eventually(LONG, "the trouble to be told", async || relay.trouble()).await;
        assert!(outbox.published_up_to() < added, "the kill came too late to show anything");
        broker.restart().await.unwrap();
    }
    published(&outbox, added).await;

    let all = queue(&broker, "all", "#").await;
    let mut delivered = Vec::new();
    while let Some(message) = all.take().await.unwrap() {
        delivered.push(message);
    }
    let mut expected = 1;
    for number in numbers(&delivered) {
        // One more than the last, or that one again.
        assert!(number == expected || number + 1 == expected, "{number} where {expected} is due");
        expected = expected.max(number + 1);
    }
    assert_eq!(expected, added + 1);
}

#[tokio::test]
async fn a_broker_without_the_exchange_is_trouble_until_somebody_makes_it() {
    let broker = broker(&[]).await;
    let outbox = MemoryOutbox::default();
    let relay = Running::start(&outbox, verified(&broker));
    eventually(LONG, "that all is well", async || relay.last()).await;
    outbox.add(OPENED, SITE);
    let reason = eventually(LONG, "the trouble to be told", async || relay.trouble()).await;
    assert!(reason.contains("no exchange 'site-control.events'"), "{reason}");
    assert_eq!(outbox.published_up_to(), 0);

    declare(&broker.url("admin")).await;
    published(&outbox, 1).await;
    eventually(LONG, "that all is well", async || relay.last()?.is_none().then_some(())).await;
}

async fn declare(url: &str) {
    let connection = Connection::connect(url, ConnectionProperties::default()).await.unwrap();
    let channel = connection.create_channel().await.unwrap();
    let durable = ExchangeDeclareOptions { durable: true, ..ExchangeDeclareOptions::default() };
    let none = FieldTable::default();
    channel.exchange_declare(EXCHANGE.into(), ExchangeKind::Topic, durable, none).await.unwrap();
}

#[tokio::test]
async fn an_event_that_the_broker_could_not_keep_goes_again_before_any_other() {
    let broker = broker(&[EXCHANGE]).await;
    let connection =
        Connection::connect(&broker.url("admin"), ConnectionProperties::default()).await.unwrap();
    let channel = connection.create_channel().await.unwrap();
    // Room for one, and a nack for what comes then.
    let mut full = FieldTable::default();
    full.insert("x-max-length".into(), AMQPValue::LongInt(1));
    full.insert("x-overflow".into(), AMQPValue::LongString("reject-publish".into()));
    let durable = QueueDeclareOptions { durable: true, ..QueueDeclareOptions::default() };
    channel.queue_declare("small".into(), durable, full).await.unwrap();
    let (options, none) = (QueueBindOptions::default(), FieldTable::default());
    channel.queue_bind("small".into(), EXCHANGE.into(), "#".into(), options, none).await.unwrap();
    let outbox = MemoryOutbox::default();
    for _ in 0..4 {
        outbox.add(OPENED, SITE);
    }
    let relay = Running::start(&outbox, verified(&broker));
    for number in 1..=4_u64 {
        if number < 4 {
            let full = async || relay.trouble().filter(|_| outbox.published_up_to() == number);
            let reason = eventually(LONG, "a full queue", full).await;
            assert_eq!(reason, "the broker could not keep an event");
        }
        let taken = async || {
            let got = channel.basic_get("small".into(), BasicGetOptions { no_ack: true }).await;
            got.unwrap().map(|message| message.delivery.data)
        };
        let data = eventually(LONG, "the next event", taken).await;
        let event: Value = serde_json::from_slice(&data).unwrap();
        assert_eq!(event["data"]["n"], number);
    }
}

#[tokio::test]
async fn a_user_held_to_its_site_publishes_for_no_other() {
    let broker = broker(&[EXCHANGE]).await;
    let all = queue(&broker, "all", "#").await;
    let outbox = MemoryOutbox::default();
    outbox.add(OPENED, SITE);
    outbox.add(OPENED, "other.gpu-lab");
    outbox.add(OPENED, SITE);
    let relay = Running::start(&outbox, verified(&broker));
    let reason = eventually(LONG, "the trouble to be told", async || relay.trouble()).await;
    assert!(reason.contains("ACCESS_REFUSED"), "{reason}");
    // What comes after it waits: the order is kept.
    assert_eq!(numbers(&all.take_many(1).await.unwrap()), [1]);
    assert_eq!(outbox.published_up_to(), 1);
    assert!(all.take().await.unwrap().is_none());
}

#[tokio::test]
async fn who_is_refused_is_told_why_without_the_password() {
    let broker = broker(&[EXCHANGE]).await;
    let outbox = MemoryOutbox::default();
    let wrong = broker.tls_url("relay").replace("hunter2", "hunter3");
    let trust = Trust::from_pem_file(&broker.ca_file()).unwrap();
    let target = Target::new(wrong.parse().unwrap(), Some(trust)).unwrap();
    let relay = Running::start(&outbox, target);
    let reason = eventually(LONG, "the trouble to be told", async || relay.trouble()).await;
    assert!(reason.contains("ACCESS_REFUSED"), "{reason}");
    assert!(!reason.contains("hunter3"), "{reason}");

    // A broker that another authority vouches for is not told the password at all.
    let folder = tempfile::tempdir().unwrap();
    TestCa::new().write_to(&folder.path().join("ca.pem")).unwrap();
    let trust = Trust::from_pem_file(&folder.path().join("ca.pem")).unwrap();
    let target = Target::new(broker.tls_url("relay").parse().unwrap(), Some(trust)).unwrap();
    let relay = Running::start(&outbox, target);
    let reason = eventually(LONG, "the trouble to be told", async || relay.trouble()).await;
    assert!(reason.contains("invalid peer certificate"), "{reason}");
}

#[tokio::test]
async fn two_relays_of_one_outbox_publish_each_event_and_record_it_once() {
    let broker = broker(&[EXCHANGE]).await;
    let all = queue(&broker, "all", "#").await;
    let outbox = MemoryOutbox::default();
    let relays =
        [Running::start(&outbox, verified(&broker)), Running::start(&outbox, verified(&broker))];
    for _ in 0..100 {
        outbox.add(OPENED, SITE);
        tokio::task::yield_now().await;
    }
    published(&outbox, 100).await;
    drop(relays);
    let mut seen = Vec::new();
    while let Some(message) = all.take().await.unwrap() {
        seen.extend(numbers(&[message]));
    }
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen, (1..=100).collect::<Vec<_>>());
}

/// All listeners of a Site hear of an event at once.
#[tokio::test]
async fn a_relay_that_waits_after_news_leaves_the_event_to_one_that_does_not() {
    let broker = broker(&[EXCHANGE]).await;
    let all = queue(&broker, "all", "#").await;
    let outbox = MemoryOutbox::default();
    let a_day = Duration::from_secs(86_400);
    let late = Running::start_spread(&outbox, verified(&broker), a_day, a_day);
    let soon = Running::start_spread(&outbox, verified(&broker), a_day, Duration::ZERO);
    for relay in [&late, &soon] {
        eventually(LONG, "that all is well", async || (relay.last() == Some(None)).then_some(()))
            .await;
    }
    let looks = outbox.looks();
    outbox.add(OPENED, SITE);
    late.tell_news();
    soon.tell_news();
    published(&outbox, 1).await;
    let told = soon.times_told();
    eventually(LONG, "the next look at the broker", async || {
        (soon.times_told() > told + 1).then_some(())
    })
    .await;
    // One that found the event, and one that found no more.
    assert_eq!(outbox.looks(), looks + 2);
    assert_eq!(numbers(&all.take_many(1).await.unwrap()), [1]);
    assert!(all.take().await.unwrap().is_none());
}

#[tokio::test]
async fn an_outbox_that_was_away_goes_on_where_it_was() {
    let broker = broker(&[EXCHANGE]).await;
    let all = queue(&broker, "all", "#").await;
    let outbox = MemoryOutbox::default();
    outbox.add(OPENED, SITE);
    let relay = Running::start(&outbox, verified(&broker));
    published(&outbox, 1).await;
    outbox.set_failing(true);
    outbox.add(OPENED, SITE);
    let reason = eventually(LONG, "the trouble to be told", async || relay.trouble()).await;
    assert_eq!(reason, "the store is away");
    outbox.set_failing(false);
    assert_eq!(numbers(&all.take_many(2).await.unwrap()), [1, 2]);
    published(&outbox, 2).await;
    assert!(all.take().await.unwrap().is_none());
}
