//! What is sent, and what a bad answer, or none, becomes.

use std::time::Duration;

use bytes::Bytes;
use http::Request;
use https_client::{Answer, HttpsClient, Origin, SendError, roots_from_pem};
use test_support::{Peer, Received, Reply, TestCa};
use tokio::time::Instant;

const MOST_BYTES: usize = 1000;
const SECRET: &str = "s3cret-of-this-test";

async fn peer(answer: impl FnMut(&Received) -> Reply + Send + 'static) -> (Peer, HttpsClient) {
    let ca = TestCa::new();
    let peer = Peer::start(&ca, answer).await;
    let client = client(&peer, &ca);
    (peer, client)
}

fn client(peer: &Peer, trusted: &TestCa) -> HttpsClient {
    let roots = roots_from_pem(trusted.cert_pem().as_bytes()).unwrap();
    HttpsClient::new(Origin::parse(peer.origin()).unwrap(), roots, MOST_BYTES)
}

fn request(path: &str) -> Request<Bytes> {
    let request = Request::post(path).header("authorization", format!("Bearer {SECRET}"));
    request.body(Bytes::from_static(SECRET.as_bytes())).unwrap()
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(30)
}

async fn send(client: &HttpsClient) -> Result<Answer, SendError> {
    client.send(request("/a/b?c=d"), soon()).await
}

async fn failure(reply: Reply) -> SendError {
    let (_peer, client) = peer(move |_| reply.clone()).await;
    send(&client).await.unwrap_err()
}

#[tokio::test]
async fn the_request_arrives_whole_and_any_status_is_an_answer() {
    for status in [201, 307, 401, 503] {
        let (peer, client) = peer(move |_| Reply::json(status, "{\"a\": 1}")).await;
        let answer = send(&client).await.unwrap();
        assert_eq!((answer.status.as_u16(), &answer.body[..]), (status, &b"{\"a\": 1}"[..]));
        assert_eq!(answer.headers["content-type"], "application/json");
        let received = peer.received();
        let [request] = &received[..] else { panic!("{received:?}") };
        assert_eq!((request.method.as_str(), request.target.as_str()), ("POST", "/a/b?c=d"));
        assert_eq!(request.headers["host"], peer.origin().trim_start_matches("https://"));
        assert_eq!(request.headers["authorization"], format!("Bearer {SECRET}"));
        assert_eq!(request.body, SECRET.as_bytes());
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let (target, _) = peer(|_| Reply::json(200, "{}")).await;
    let extra_head = format!("location: {}/a\r\n", target.origin());
    let (_peer, client) = peer(move |_| Reply::Whole {
        status: 308,
        content_type: "text/html",
        extra_head: extra_head.clone(),
        body: Vec::new(),
    })
    .await;
    assert_eq!(send(&client).await.unwrap().status, 308);
    assert!(target.received().is_empty());
}

#[tokio::test]
async fn an_address_in_place_of_a_path_is_not_sent() {
    let (other, _) = peer(|_| Reply::json(200, "{}")).await;
    let (peer, client) = peer(|_| Reply::json(200, "{}")).await;
    let address = format!("{}/a", other.origin());
    let refused = client.send(request(&address), soon()).await;
    assert!(matches!(refused, Err(SendError::Path)), "{refused:?}");
    assert!(peer.received().is_empty() && other.received().is_empty());
}

#[tokio::test]
async fn a_body_is_read_to_the_bound_and_no_further() {
    let (_peer, client) = peer(|_| Reply::json(200, vec![b'a'; MOST_BYTES])).await;
    assert_eq!(send(&client).await.unwrap().body.len(), MOST_BYTES);
    let error = failure(Reply::json(502, vec![b'a'; MOST_BYTES + 1])).await;
    let SendError::TooLarge { status: 502, most_bytes: MOST_BYTES } = error else {
        panic!("{error:?}")
    };
    // Without its length it is not known before.
    let head = "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n";
    let endless = [head.as_bytes(), &[b'a'; MOST_BYTES + 1]].concat();
    assert!(matches!(failure(Reply::Cut(endless)).await, SendError::TooLarge { status: 200, .. }));
}

#[tokio::test]
async fn an_answer_that_is_cut_or_none_is_no_answer() {
    for bytes in ["", "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf", "{}", "SSH-2.0\r\n\r\n"] {
        let error = failure(Reply::Cut(bytes.into())).await;
        assert!(matches!(error, SendError::Transport(_)), "{bytes:?}: {error:?}");
    }
}

/// A peer that gives these answers, one after the other, and then the last one.
async fn in_turn(replies: Vec<Reply>) -> (Peer, HttpsClient) {
    let mut replies = replies.into_iter().peekable();
    peer(move |_| {
        let reply = replies.next().unwrap();
        if replies.peek().is_none() {
            replies = vec![reply.clone()].into_iter().peekable();
        }
        reply
    })
    .await
}

async fn send_repeatable(client: &HttpsClient) -> Result<Answer, SendError> {
    client.send_repeatable(request("/a/b?c=d"), soon()).await
}

#[tokio::test]
async fn what_is_repeatable_is_sent_once_more_where_a_kept_connection_fails() {
    let good = || Reply::json(200, "{}");
    let half = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf".to_vec();
    for cut in [Reply::Cut(Vec::new()), Reply::Cut(half)] {
        let (peer, client) = in_turn(vec![good(), cut, good()]).await;
        for _ in 0..2 {
            assert_eq!(send_repeatable(&client).await.unwrap().status, 200);
        }
        let received = peer.received();
        assert_eq!(received.len(), 3);
        for request in &received {
            assert_eq!((request.method.as_str(), request.target.as_str()), ("POST", "/a/b?c=d"));
            assert_eq!(request.headers["authorization"], format!("Bearer {SECRET}"));
            assert_eq!(request.body, SECRET.as_bytes());
        }
    }
}

#[tokio::test]
async fn it_is_sent_once_more_and_not_again() {
    let cut = || Reply::Cut(Vec::new());
    let (peer, client) = in_turn(vec![Reply::json(200, "{}"), cut()]).await;
    assert_eq!(send_repeatable(&client).await.unwrap().status, 200);
    let error = send_repeatable(&client).await.unwrap_err();
    assert!(matches!(error, SendError::Transport(_)), "{error:?}");
    assert_eq!(peer.received().len(), 3);
}

#[tokio::test]
async fn no_kept_connection_is_used_for_the_second_try() {
    let permits = std::sync::Arc::new(tokio::sync::Semaphore::new(0));
    let held = std::sync::Arc::clone(&permits);
    let mut times = 0;
    let (peer, client) = peer(move |_| {
        times += 1;
        match times {
            1..=3 => Reply::Held(held.clone(), Box::new(Reply::json(200, "{}"))),
            4 => Reply::Cut(Vec::new()),
            _ => Reply::json(201, "{}"),
        }
    })
    .await;
    let three = async { tokio::join!(send(&client), send(&client), send(&client)) };
    let permit = async {
        // Each has a connection of its own then.
        test_support::eventually(Duration::from_secs(20), "three requests", async || {
            (peer.received().len() == 3).then_some(())
        })
        .await;
        permits.add_permits(3);
    };
    let ((first, second, third), ()) = tokio::join!(three, permit);
    assert!([first, second, third].iter().all(Result::is_ok));
    let before = peer.connections();
    assert_eq!((before, send_repeatable(&client).await.unwrap().status.as_u16()), (3, 201));
    assert_eq!(peer.connections(), 4);
}

#[tokio::test]
async fn what_is_not_repeatable_or_of_a_new_connection_is_sent_once() {
    let cut = || Reply::Cut(Vec::new());
    let (peer, client) = in_turn(vec![Reply::json(200, "{}"), cut()]).await;
    send(&client).await.unwrap();
    let error = send(&client).await.unwrap_err();
    assert!(matches!(error, SendError::Transport(_)), "{error:?}");
    assert_eq!(peer.received().len(), 2);
    let (peer, client) = in_turn(vec![cut()]).await;
    let error = send_repeatable(&client).await.unwrap_err();
    assert!(matches!(error, SendError::Transport(_)), "{error:?}");
    assert_eq!(peer.received().len(), 1);
}

#[tokio::test]
async fn both_tries_have_one_deadline() {
    let replies = vec![Reply::json(200, "{}"), Reply::Cut(Vec::new()), Reply::Silence];
    let (peer, client) = in_turn(replies).await;
    send(&client).await.unwrap();
    let begun = Instant::now();
    let within = Duration::from_millis(300);
    let late = client.send_repeatable(request("/"), begun + within).await;
    assert!(matches!(late, Err(SendError::Deadline)), "{late:?}");
    let took = begun.elapsed();
    assert!(within <= took && took < Duration::from_secs(10), "{took:?}");
    assert_eq!(peer.received().len(), 3);
}

#[tokio::test]
async fn the_deadline_ends_what_is_silent_and_what_drips() {
    let drip = b"HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n{\"a\":1}".to_vec();
    for reply in [Reply::Silence, Reply::Drip(drip, Duration::from_millis(20))] {
        let (_peer, client) = peer(move |_| reply.clone()).await;
        let begun = Instant::now();
        let within = Duration::from_millis(300);
        let late = client.send(request("/"), begun + within).await;
        assert!(matches!(late, Err(SendError::Deadline)), "{late:?}");
        let took = begun.elapsed();
        assert!(within <= took && took < Duration::from_secs(10), "{took:?}");
    }
}

#[tokio::test]
async fn a_handshake_that_is_never_answered_ends_by_the_deadline() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origin = Origin::parse(&format!("https://{}", listener.local_addr().unwrap())).unwrap();
    let roots = roots_from_pem(TestCa::new().cert_pem().as_bytes()).unwrap();
    let client = HttpsClient::new(origin, roots, MOST_BYTES);
    let late = client.send(request("/"), Instant::now() + Duration::from_millis(200)).await;
    assert!(matches!(late, Err(SendError::Deadline)), "{late:?}");
}

#[tokio::test]
async fn a_server_that_nobody_vouches_for_gets_nothing() {
    let (peer, _) = peer(|_| Reply::json(200, "{}")).await;
    let error = send(&client(&peer, &TestCa::new())).await.unwrap_err();
    assert!(matches!(error, SendError::Untrusted(_)), "{error:?}");
    assert!(peer.received().is_empty());
}

#[tokio::test]
async fn what_was_sent_and_what_came_is_in_no_error_and_no_debug_output() {
    let echo = format!("HTTP/1.1 200 OK\r\ncontent-length: 999\r\n\r\n{SECRET}").into_bytes();
    let large = Reply::json(200, SECRET.repeat(100));
    let no_http = Reply::Cut(format!("{SECRET}\r\n{SECRET}: {SECRET}\r\n\r\n").into_bytes());
    for reply in [Reply::Cut(echo), large, no_http] {
        let error = failure(reply).await;
        let mut told = format!("{error:?} {error}");
        let mut next = std::error::Error::source(&error);
        while let Some(source) = next {
            told.push_str(&source.to_string());
            next = source.source();
        }
        assert!(!told.contains(SECRET), "{told}");
    }
    let (_peer, client) = peer(|_| {
        let extra_head = format!("x: {SECRET}\r\n");
        let body = SECRET.into();
        Reply::Whole { status: 200, content_type: "text/plain", extra_head, body }
    })
    .await;
    let answer = send(&client).await.unwrap();
    assert!(!format!("{answer:?} {client:?}").contains(SECRET), "{answer:?}");
}
