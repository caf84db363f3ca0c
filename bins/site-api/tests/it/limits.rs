//! That each limit is in force: what it bounds, with the setting's figure and not the default's.

use std::{
    process::Command,
    time::{Duration, Instant},
};

use test_support::eventually;
use tokio::{io::AsyncReadExt, net::TcpStream, time::timeout};

use crate::support::{Api, LONG, Place, Request, plain};

/// A running `site-api` with commands and these settings.
async fn with(commands: usize, settings: &[(&str, &str)]) -> (Api, Vec<String>) {
    let place = Place::prepare().await;
    let ids = if commands == 0 { Vec::new() } else { place.enqueue(&vec!["{}"; commands]) };
    let mut command: Command = place.command();
    command.envs(settings.iter().copied());
    (place.start_by(command).await, ids)
}

/// Waits for the end of a connection, and says how long it took.
async fn lasts(mut stream: impl AsyncReadExt + Unpin) -> Duration {
    let began = Instant::now();
    let mut rest = Vec::new();
    let _ended = timeout(LONG, stream.read_to_end(&mut rest)).await.expect("the connection ends");
    began.elapsed()
}

/// Long enough for the setting, and far from the default.
fn is_about_a_second(duration: Duration) {
    let range = Duration::from_millis(800)..Duration::from_secs(4);
    assert!(range.contains(&duration), "it took {duration:?}");
}

#[tokio::test]
async fn a_handshake_has_its_time() {
    let (api, _) = with(0, &[("SITE_API_HANDSHAKE_SECONDS", "1")]).await;
    is_about_a_second(lasts(TcpStream::connect(api.wire.address()).await.unwrap()).await);
}

#[tokio::test]
async fn a_head_has_its_time() {
    let (api, _) = with(0, &[("SITE_API_HEAD_SECONDS", "1")]).await;
    let mut connection = api.wire.open().await;
    connection.write(b"GET /healthz HTTP/1.1\r\nhost: loc").await;
    is_about_a_second(lasts(connection.into_stream()).await);
}

#[tokio::test]
async fn a_connection_without_a_request_has_its_time() {
    let (api, _) = with(0, &[("SITE_API_IDLE_SECONDS", "1")]).await;
    is_about_a_second(lasts(api.wire.open().await.into_stream()).await);
}

#[tokio::test]
async fn a_body_has_its_time() {
    let (api, ids) = with(1, &[("SITE_API_BODY_SECONDS", "1")]).await;
    let mut connection = api.wire.open().await;
    connection.write(&api.result(&ids[0], b"{}").body_left_out()).await;
    let began = Instant::now();
    let problem = connection.answer().await.unwrap().problem();
    assert_eq!(problem.code, "request_timeout");
    assert!(problem.detail.contains("1s"), "{}", problem.detail);
    is_about_a_second(began.elapsed());
}

#[tokio::test]
async fn a_body_has_its_size() {
    let (api, ids) = with(1, &[("SITE_API_MAX_BODY_BYTES", "1024")]).await;
    let body = |length: usize| {
        let empty = r#"{"outcome":"failed","output":""}"#;
        empty.replace("\"\"", &format!("\"{}\"", "x".repeat(length - empty.len())))
    };
    let answer = api.send(&api.result(&ids[0], body(1025).as_bytes())).await;
    assert_eq!(
        (answer.code().as_str(), &answer.json()["limitBytes"]),
        ("body_too_large", &1024.into())
    );
    assert_eq!(api.send(&api.result(&ids[0], body(1024).as_bytes())).await.status, 201);
}

#[tokio::test]
async fn a_private_output_has_its_size() {
    let (api, ids) = with(1, &[("SITE_API_MAX_OUTPUT_BYTES", "1024")]).await;
    let answer = api.send(&api.output(&ids[0], &[0; 1025])).await;
    assert_eq!(answer.code(), "body_too_large");
    assert_eq!(answer.json()["limitBytes"], 1024);
    assert_eq!(api.send(&api.output(&ids[0], &[0; 1024])).await.status, 201);
}

#[tokio::test]
async fn a_batch_and_what_it_brings_along_have_their_number() {
    let (api, ids) = with(3, &[("SITE_API_PAGE_COMMANDS", "2")]).await;
    let result = r#"{"outcome":"succeeded"}"#;
    let results: Vec<_> = ids.iter().map(|id| (id.as_str(), result)).collect();
    let refused = api.send(&api.batch(&results)).await;
    assert_eq!(refused.code(), "invalid_request", "{}", refused.text());
    assert_eq!(api.send(&api.batch(&results[..2])).await.status, 200);
    let last = api.result(&ids[2], result.as_bytes());
    assert_eq!(api.send(&last.clone().query("next=3")).await.code(), "invalid_request");
    assert_eq!(api.send(&last.query("next=2")).await.status, 201);
}

#[tokio::test]
async fn a_page_has_its_number_of_commands() {
    let (api, _) = with(4, &[("SITE_API_PAGE_COMMANDS", "3")]).await;
    let count = async |query: &str| {
        let page = api.send(&api.poll(query)).await.json();
        page["commands"].as_array().unwrap().len()
    };
    assert_eq!((count("after=0").await, count("after=0&limit=3").await), (3, 3));
    let refused = api.send(&api.poll("after=0&limit=4")).await;
    assert_eq!(refused.code(), "invalid_request");
    assert!(refused.text().contains("to 3"), "{}", refused.text());
}

#[tokio::test]
async fn a_page_has_its_bytes() {
    let place = Place::prepare().await;
    let body = format!("\"{}\"", "x".repeat(510));
    place.enqueue(&[body.as_str(); 3]);
    let mut command = place.command();
    command.env("SITE_API_PAGE_BYTES", "1024");
    let api = place.start_by(command).await;
    let page = api.send(&api.poll("after=0")).await.json();
    assert_eq!(page["commands"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_wait_has_its_end() {
    let (api, _) = with(0, &[("SITE_API_LONGEST_WAIT_SECONDS", "1")]).await;
    let refused = api.send(&api.poll("after=0&wait=2")).await;
    assert_eq!(refused.code(), "invalid_request");
    assert!(refused.text().contains("from 0 to 1"), "{}", refused.text());
    assert_eq!(api.send(&api.poll("after=0&wait=1")).await.status, 200);
}

#[tokio::test]
async fn a_wait_may_be_longer_than_the_default() {
    let (api, _) = with(1, &[("SITE_API_LONGEST_WAIT_SECONDS", "55")]).await;
    assert_eq!(api.send(&api.poll("after=0&wait=55")).await.status, 200);
    assert_eq!(api.send(&api.poll("after=0&wait=56")).await.code(), "invalid_request");
}

#[tokio::test]
async fn requests_at_once_have_their_number() {
    let (api, ids) = with(1, &[("SITE_API_MAX_REQUESTS", "1")]).await;
    let mut connection = api.wire.open().await;
    let request = api.result(&ids[0], b"{}").header("expect", "100-continue");
    connection.write(&request.body_left_out()).await;
    connection.interim().await;
    assert_eq!(api.send(&api.poll("after=0")).await.code(), "overloaded");
    assert_eq!(api.send(&Request::new("GET", "/healthz")).await.status, 200);
    drop(connection);
    eventually(LONG, "the freed place", async || {
        (api.send(&api.poll("after=0")).await.status == 200).then_some(())
    })
    .await;
}

#[tokio::test]
async fn connections_have_their_number() {
    let (api, _) = with(0, &[("SITE_API_MAX_CONNECTIONS", "2")]).await;
    let mut silent = Vec::new();
    for _ in 0..6 {
        silent.push(TcpStream::connect(api.wire.address()).await.unwrap());
    }
    eventually(LONG, "four that gave way", async || {
        let metrics = plain(api.admin, &Request::new("GET", "/metrics")).await;
        let line = "connections_ended_total{end=\"evicted\"} 4";
        metrics.text().lines().any(|metric| metric == line).then_some(())
    })
    .await;
    // The newest stay, the others have ended.
    for stream in silent.drain(..4) {
        lasts(stream).await;
    }
    assert_eq!(api.send(&Request::new("GET", "/healthz")).await.status, 200);
}

#[tokio::test]
async fn the_pool_has_its_number_of_connections() {
    for (setting, expected) in [("1", 1), ("3", 3)] {
        let (api, _) = with(1, &[("SITE_COORDINATION_DATABASE_CONNECTIONS", setting)]).await;
        let mut sql = api.sql().await;
        let lock = sql.transaction().await.unwrap();
        let exclusive = "LOCK TABLE site_coordination.command IN ACCESS EXCLUSIVE MODE";
        lock.batch_execute(exclusive).await.unwrap();
        let polls: Vec<_> = (0..6)
            .map(|_| {
                let (wire, request) = (api.wire.clone(), api.poll("after=0"));
                tokio::spawn(async move { wire.send(&request).await.status })
            })
            .collect();
        let waiting = "SELECT count(*) FROM pg_stat_activity
                        WHERE datname = current_database() AND usename = 'site_coordination_api'
                          AND wait_event_type = 'Lock'";
        let observer = api.sql().await;
        eventually(LONG, "statements that wait", async || {
            let count: i64 = observer.query_one(waiting, &[]).await.unwrap().get(0);
            (count == expected).then_some(())
        })
        .await;
        lock.rollback().await.unwrap();
        for poll in polls {
            let status = poll.await.unwrap();
            assert!(status == 200 || status == 503, "{status}");
        }
    }
}
