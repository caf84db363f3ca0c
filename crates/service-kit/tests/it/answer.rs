//! Answers that are made while they are written.

use std::{
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use service_kit::{Limits, Metrics};
use test_support::eventually;

use crate::support::{GENEROUS, MADE_BYTES, MADE_CHUNK, MADE_UNTIL, Server};

const REQUEST: &str = "GET /made HTTP/1.1\r\nhost: localhost\r\n\r\n";

/// What the sockets of this machine and TLS hold between the two sides, and far from everything.
const UNDER_WAY: usize = 24 * 1024 * 1024;

#[tokio::test]
async fn a_body_that_is_made_comes_whole_with_its_length() {
    let server = Server::start(Limits::default()).await;
    let mut client = server.connect().await;
    let received = client.get("/made").await;
    assert_eq!(received.status, 200);
    assert_eq!(received.header("content-length"), Some(MADE_BYTES.to_string().as_str()));
    assert_eq!(received.header("transfer-encoding"), None);
    assert!(received.body.len() as u64 == MADE_BYTES && received.body.iter().all(|b| *b == 7));
    // The connection goes on behind it.
    assert_eq!(client.get("/hello").await.status, 200);
}

#[tokio::test]
async fn no_chunk_is_made_before_those_in_front_of_it_are_taken() {
    let server = Server::start(Limits::default()).await;
    let mut client = server.connect().await;
    client.send(REQUEST).await.unwrap();
    let mut taken = 0;
    while (taken as u64) < MADE_BYTES {
        let more = client.take(MADE_CHUNK).await;
        assert!(more > 0, "ended after {taken} bytes");
        taken += more;
        let made = server.gate.made.load(Ordering::Relaxed) * MADE_CHUNK;
        assert!(made < taken + UNDER_WAY, "{made} bytes made, {taken} taken");
    }
}

#[tokio::test]
async fn a_body_that_breaks_off_ends_its_connection_before_its_length() {
    let server = Server::start(Limits::default()).await;
    let mut client = server.connect().await;
    client.send("GET /broken-off HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    let came = client.closed().await;
    let end = came.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
    let (head, body) = came.split_at(end + 4);
    let head = String::from_utf8_lossy(head);
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    assert!(head.contains(&format!("content-length: {MADE_BYTES}\r\n")), "{head}");
    assert!(body.len() <= 1 << 20 && body.iter().all(|byte| *byte == 7), "{}", body.len());
}

/// Who takes nothing is not waited for, and nothing is made for it that has no room.
#[tokio::test]
async fn a_caller_that_takes_nothing_loses_its_connection() {
    let limits = Limits { stalled_write: Duration::from_millis(300), ..Limits::default() };
    let server = Server::start(limits).await;
    let mut client = server.connect().await;
    client.send(REQUEST).await.unwrap();
    server.gate.left().await;
    let made = server.gate.made.load(Ordering::Relaxed);
    assert!(made > 0 && made * MADE_CHUNK < UNDER_WAY, "{made} chunks");
    // What was under way still comes, and then the end.
    assert!((client.closed().await.len() as u64) < MADE_BYTES);
    assert_eq!(server.gate.made.load(Ordering::Relaxed), made);
}

/// Nothing asks for its rest while its caller takes nothing, so that nothing but a clock can end it.
#[tokio::test]
async fn an_answer_with_an_end_is_not_waited_for_beyond_it() {
    let metrics = Metrics::install().unwrap();
    let server = Server::start(Limits::default()).await;
    let mut client = server.connect().await;
    let began = Instant::now();
    client.send("GET /made-until HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    eventually(GENEROUS, "the connection to be given up", async || {
        metrics.render().contains("connections_ended_total{end=\"overdue_answer\"} 1").then_some(())
    })
    .await;
    // Not by what ends a connection that takes nothing.
    assert!((MADE_UNTIL..Limits::default().stalled_write).contains(&began.elapsed()));
    assert!((client.closed().await.len() as u64) < MADE_BYTES);
    // One that is taken in time is whole, and its connection goes on beyond the moment.
    let mut client = server.connect().await;
    assert_eq!(client.get("/little-until").await.body, b"abc");
    let taken = Instant::now();
    eventually(GENEROUS, "its end", async || (taken.elapsed() > MADE_UNTIL).then_some(())).await;
    assert_eq!(client.get("/hello").await.status, 200);
}
