//! The events of a Site at a real broker, with the credential that docs/OPERATIONS.md describes.

use std::{fs, process::Command};

use rustix::process::Signal;
use serde_json::json;
use test_support::{
    eventually,
    process::Line,
    rabbitmq::{Broker, BrokerUser, Queue},
};

use crate::{
    idle::asks_little,
    support::{Api, FIRST_SESSION, LONG, Place, SECOND_SESSION, SITE},
};

const EXCHANGE: &str = "site-control.events";

async fn broker() -> Broker {
    let relay = BrokerUser {
        name: "relay".to_owned(),
        password: "hunter2".to_owned(),
        configure: "^$".to_owned(),
        write: "^site-control\\.events$".to_owned(),
        read: "^$".to_owned(),
        topics: Some((EXCHANGE.to_owned(), format!("^commands\\.([a-z-]+\\.){{2}}{SITE}$"))),
    };
    Broker::start(&[BrokerUser::administrator("admin", "administers"), relay], &[EXCHANGE])
        .await
        .unwrap()
}

async fn queue(broker: &Broker, key: &str) -> Queue {
    Queue::bind(&broker.url("admin"), "test", EXCHANGE, key).await.unwrap()
}

/// `site-api` that publishes to a broker, and logs everything that can be logged.
fn command(place: &Place, broker: &Broker) -> Command {
    let url = place.site.file("broker-url");
    fs::write(&url, broker.tls_url("relay") + "\n").unwrap();
    let mut command = place.command();
    command
        .env("EVENTS_BROKER_URL_FILE", url)
        .env("EVENTS_BROKER_CA_FILE", broker.ca_file())
        .env("SITE_API_LOG", "trace");
    command
}

fn no_line_has_the_password(api: &Api) {
    let lines = api.process.lines();
    // As text, and as a library would print bytes.
    let bytes = format!("{:?}", b"hunter2");
    let bytes = bytes.trim_matches(['[', ']']);
    let has_it = |line: &&Line| line.text.contains("hunter2") || line.text.contains(bytes);
    let told = lines.iter().find(has_it);
    assert!(lines.iter().any(|line| line.text.contains("lapin")), "the library logs nothing");
    assert!(told.is_none(), "{told:?}");
}

#[tokio::test]
async fn an_event_is_published_once_it_is_written_and_not_again_after_a_restart() {
    let broker = broker().await;
    let opened = queue(&broker, "commands.session.opened.#").await;
    let place = Place::prepare().await;
    let start = command(&place, &broker);
    let api = place.start_by(start).await;
    api.open_session(FIRST_SESSION, 1).await;
    let first = opened.take_many(1).await.unwrap().remove(0);
    assert_eq!(first.routing_key, format!("commands.session.opened.{SITE}"));
    assert_eq!((first.user_id.as_str(), first.persistent), ("relay", true));
    assert_eq!(first.content_type, "application/cloudevents+json");
    assert_eq!(first.body["id"], first.message_id);
    assert_eq!(first.body["source"], format!("/sites/{SITE}"));
    assert_eq!(first.body["type"], "commands.session.opened");
    assert_eq!(first.body["subject"], FIRST_SESSION);
    assert_eq!(first.body["sequence"], "00000000000000000001");
    assert_eq!(
        first.body["data"],
        json!({ "site": SITE, "environment": "slurm", "generation": 2, "sessionId": FIRST_SESSION })
    );
    let row = "SELECT event_id::text,
                      to_char(occurred_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')
                 FROM site_coordination.event WHERE seq = 1";
    let sql = api.sql().await;
    let row = sql.query_one(row, &[]).await.unwrap();
    assert_eq!(first.body["id"], row.get::<_, String>(0));
    assert_eq!(first.body["time"], row.get::<_, String>(1));
    let position = "SELECT published_seq FROM site_coordination.event_relay";
    eventually(LONG, "the position to be recorded", async || {
        let row = sql.query_opt(position, &[]).await.unwrap()?;
        (row.get::<_, i64>(0) == 1).then_some(())
    })
    .await;
    assert_eq!(api.alarms().await, [""; 0]);

    no_line_has_the_password(&api);
    api.process.kill();
    let Api { place, .. } = api;
    let start = command(&place, &broker);
    let api = place.start_by(start).await;
    api.open_session(SECOND_SESSION, 2).await;
    let second = opened.take_many(1).await.unwrap().remove(0);
    assert_eq!(second.body["sequence"], "00000000000000000002");
    assert!(opened.take().await.unwrap().is_none());

    api.process.signal(Signal::TERM);
    api.process.wait_exit(LONG).await.unwrap();
    no_line_has_the_password(&api);
    let panicked =
        api.process.lines().into_iter().find(|line| line.text.contains("process.panicked"));
    assert!(panicked.is_none(), "{panicked:?}");
}

/// The relay looks where the tick has seen an event, so an outbox without news costs nothing more.
#[tokio::test]
async fn a_listener_that_publishes_asks_no_more_of_the_database_while_there_is_no_event() {
    let broker = broker().await;
    let opened = queue(&broker, "commands.session.opened.#").await;
    let place = Place::prepare().await;
    let start = command(&place, &broker);
    let api = place.start_by(start).await;
    api.listening_for_hints().await;
    api.open_session(FIRST_SESSION, 1).await;
    opened.take_many(1).await.unwrap();
    asks_little(&api.place).await;
}

#[tokio::test]
async fn a_broker_that_is_away_is_an_alarm_and_refuses_no_request() {
    let mut broker = broker().await;
    drop(queue(&broker, "#").await);
    broker.stop().await.unwrap();
    let place = Place::prepare().await;
    let start = command(&place, &broker);
    let api = place.start_by(start).await;
    api.open_session(FIRST_SESSION, 1).await;
    eventually(LONG, "the alarm", async || (api.alarms().await == ["events_broker"]).then_some(()))
        .await;
    api.open_session(SECOND_SESSION, 2).await;
    let poll = api.poll("after=0").header("runtime-generation", "3");
    let refused = api.send(&poll.header("runtime-session", SECOND_SESSION)).await;
    assert_ne!(refused.status, 503, "{refused:?}");

    broker.restart().await.unwrap();
    let delivered = queue(&broker, "#").await.take_many(2).await.unwrap();
    let subjects: Vec<_> = delivered.iter().map(|message| &message.body["subject"]).collect();
    assert_eq!(subjects, [FIRST_SESSION, SECOND_SESSION]);
    eventually(LONG, "the alarm to end", async || api.alarms().await.is_empty().then_some(()))
        .await;
    no_line_has_the_password(&api);
}
