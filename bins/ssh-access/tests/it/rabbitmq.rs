//! The events of a Site's keys at a real broker, with the credential that docs/OPERATIONS.md describes.

use std::{fs, process::Command};

use serde_json::json;
use ssh_access::{Outbox, PROCESS_ROLE, SiteId};
use test_support::{
    TestDatabase, eventually,
    rabbitmq::{Broker, BrokerUser, Queue},
};

use crate::support::{
    LONG, Running, acknowledge_all, command, let_time_pass, member, pool, registry, wait_for_keys,
};

const EXCHANGE: &str = "site-control.events";

async fn broker() -> Broker {
    let relay = BrokerUser {
        name: "relay".to_owned(),
        password: "hunter2".to_owned(),
        configure: "^$".to_owned(),
        write: "^site-control\\.events$".to_owned(),
        read: "^$".to_owned(),
        topics: Some((EXCHANGE.to_owned(), "^ssh\\.([a-z-]+\\.){2}north-1$".to_owned())),
    };
    Broker::start(&[BrokerUser::administrator("admin", "administers"), relay], &[EXCHANGE])
        .await
        .unwrap()
}

async fn queue(broker: &Broker) -> Queue {
    Queue::bind(&broker.url("admin"), "test", EXCHANGE, "ssh.#").await.unwrap()
}

/// The process that publishes to a broker, and logs everything that can be logged.
fn publishing(database: &TestDatabase, broker: &Broker) -> Command {
    let folder = broker.ca_file().parent().unwrap().to_owned();
    let url = folder.join("broker-url");
    fs::write(&url, broker.tls_url("relay") + "\n").unwrap();
    let mut command = command(database);
    command
        .env("EVENTS_BROKER_URL_FILE", url)
        .env("EVENTS_BROKER_CA_FILE", broker.ca_file())
        .env("SSH_ACCESS_LOG", "trace");
    command
}

/// Removes a key of a new member, and lets the time of the removal be over.
async fn overdue(database: &TestDatabase, name: &str) {
    let key = member(database, name).await;
    wait_for_keys(database, 1).await;
    registry(database).remove_key(&key, None).await.unwrap();
    wait_for_keys(database, 0).await;
    let_time_pass(database).await;
}

fn outbox(database: &TestDatabase) -> Outbox {
    Outbox::new(pool(database, PROCESS_ROLE.name), SiteId::parse("north-1").unwrap())
}

async fn published(database: &TestDatabase, sequence: u64) {
    let outbox = outbox(database);
    eventually(LONG, "the position to be recorded", async || {
        (outbox.position().await.unwrap() == sequence).then_some(())
    })
    .await;
}

fn speaks_to_a_broker(running: &Running) -> bool {
    running.process.lines().iter().any(|line| line.text.contains("\"target\":\"lapin"))
}

fn no_line_has_the_password(running: &Running) {
    // As text, and as a library would print bytes.
    let bytes = format!("{:?}", b"hunter2");
    let bytes = bytes.trim_matches(['[', ']']);
    let lines = running.process.lines();
    let told = lines.iter().find(|line| line.text.contains("hunter2") || line.text.contains(bytes));
    assert!(told.is_none(), "{told:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_event_is_published_once_and_in_order_by_the_process_that_leads() {
    let (broker, database) = (broker().await, TestDatabase::create().await);
    let queue = queue(&broker).await;
    let first = Running::start(publishing(&database, &broker)).await;
    first.says("ssh_access.leading").await;
    let second = Running::start(publishing(&database, &broker)).await;
    second.says("ssh_access.standby").await;

    overdue(&database, "alice").await;
    let event = queue.take_many(1).await.unwrap().remove(0);
    assert_eq!(event.routing_key, "ssh.removals.overdue.north-1");
    assert_eq!((event.user_id.as_str(), event.persistent), ("relay", true));
    assert_eq!(event.content_type, "application/cloudevents+json");
    assert_eq!(event.body["id"], event.message_id);
    let kept = outbox(&database).next(0, 10).await.unwrap().remove(0);
    let time = kept.occurred_at.to_rfc3339_opts(chrono::SecondsFormat::Micros, true);
    assert_eq!(
        event.body,
        json!({
            "specversion": "1.0", "id": kept.id, "source": "/sites/north-1/ssh-access",
            "type": "ssh.removals.overdue", "time": time, "sequence": "00000000000000000001",
            "datacontenttype": "application/json",
            "data": { "site": "north-1", "overdue": 1, "head": 2, "acknowledged": 0 },
        })
    );
    published(&database, 1).await;
    asks_nothing_meanwhile(&database).await;
    acknowledge_all(&database).await;
    let event = queue.take_many(1).await.unwrap().remove(0);
    assert_eq!(event.body["type"], "ssh.removals.enforced");
    assert_eq!(event.body["sequence"], "00000000000000000002");
    published(&database, 2).await;

    // Who waits for the lease leaves the broker alone, and goes on when it has it.
    assert!(speaks_to_a_broker(&first) && !speaks_to_a_broker(&second));
    first.process.kill();
    second.says("ssh_access.leading").await;
    overdue(&database, "bob").await;
    let event = queue.take_many(1).await.unwrap().remove(0);
    assert_eq!(event.body["sequence"], "00000000000000000003");
    published(&database, 3).await;
    assert!(queue.take().await.unwrap().is_none(), "an event came twice");
    assert!(second.get("/alarms").await.contains("\"removals_overdue\""));
    for running in [&first, &second] {
        no_line_has_the_password(running);
    }
}

/// An outbox without news is not looked at, while the process does all else that it does.
async fn asks_nothing_meanwhile(database: &TestDatabase) {
    let outbox = outbox(database);
    let before = scans(database, "event_relay").await;
    outbox.position().await.unwrap();
    let one_look = eventually(LONG, "a look to be counted", async || {
        let now = scans(database, "event_relay").await;
        (now > before).then_some(now - before)
    })
    .await;
    let (looked, kept) = (scans(database, "event_relay").await, renewals(database).await);
    // Once a second: the relay looks several times at the broker meanwhile.
    eventually(LONG, "the lease to be kept twelve times", async || {
        (renewals(database).await >= kept + 12).then_some(())
    })
    .await;
    let looks = scans(database, "event_relay").await - looked;
    assert!(looks <= one_look, "{looks} scans where a look is {one_look}");
}

/// How often the lease was kept, as far as backends have told.
async fn renewals(database: &TestDatabase) -> i64 {
    let count = "SELECT n_tup_upd FROM pg_stat_user_tables
                  WHERE schemaname = 'ssh_access' AND relname = 'propagator_lease'";
    database.superuser().await.query_one(count, &[]).await.unwrap().get(0)
}

/// How often a table was searched, as far as backends have told.
async fn scans(database: &TestDatabase, table: &str) -> i64 {
    let count = "SELECT (coalesce(seq_scan, 0) + coalesce(idx_scan, 0))::bigint
                   FROM pg_stat_user_tables WHERE schemaname = 'ssh_access' AND relname = $1";
    database.superuser().await.query_one(count, &[&table]).await.unwrap().get(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_that_is_away_is_an_alarm_and_what_happened_meanwhile_is_published_later() {
    let (mut broker, database) = (broker().await, TestDatabase::create().await);
    drop(queue(&broker).await);
    broker.stop().await.unwrap();
    let running = Running::start(publishing(&database, &broker)).await;
    overdue(&database, "alice").await;
    eventually(LONG, "the alarms", async || {
        let alarms = running.get("/alarms").await;
        (alarms.contains("\"events_broker\"") && alarms.contains("\"removals_overdue\""))
            .then_some(())
    })
    .await;
    // Nothing else waits for it.
    acknowledge_all(&database).await;
    let outbox = outbox(&database);
    eventually(LONG, "the second event", async || {
        (outbox.next(0, 10).await.unwrap().len() == 2).then_some(())
    })
    .await;
    member(&database, "bob").await;
    wait_for_keys(&database, 1).await;
    assert!(running.get("/healthz").await.starts_with("HTTP/1.1 200 "));
    assert_eq!(outbox.position().await.unwrap(), 0);

    broker.restart().await.unwrap();
    let delivered = queue(&broker).await.take_many(2).await.unwrap();
    let types: Vec<_> = delivered.iter().map(|message| &message.body["type"]).collect();
    assert_eq!(types, ["ssh.removals.overdue", "ssh.removals.enforced"]);
    eventually(LONG, "the end of the alarm", async || {
        running.get("/alarms").await.ends_with("{\"alarms\":[]}").then_some(())
    })
    .await;
    no_line_has_the_password(&running);
}
