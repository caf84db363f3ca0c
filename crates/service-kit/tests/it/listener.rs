use std::time::{Duration, Instant};

use service_kit::{Limits, Metrics};
use test_support::eventually;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use crate::support::{Client, GENEROUS, Received, Server};

/// Short, where a test waits for the limit; everything else stays long.
const SHORT: Duration = Duration::from_millis(300);

/// What a raw connection gets until its end.
async fn rest_of(stream: &mut TcpStream) -> Vec<u8> {
    let mut rest = Vec::new();
    let read = timeout(GENEROUS, stream.read_to_end(&mut rest)).await;
    // A reset is an end as well.
    let _ = read.expect("the connection ends");
    rest
}

#[tokio::test]
async fn a_connection_serves_one_request_after_the_other() {
    let server = Server::start(Limits::default()).await;
    let mut client = server.connect().await;
    for _ in 0..3 {
        assert_eq!(client.get("/hello").await.status, 200);
    }
    assert_eq!(client.get("/nothing").await.status, 404);
    assert_eq!(client.get("/hello").await.json()["hello"], "world");
}

#[tokio::test]
async fn requests_that_are_sent_ahead_are_answered_in_order() {
    let server = Server::start(Limits::default()).await;
    let mut client = server.connect().await;
    let get = |path: &str| format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n");
    client.send(get("/hello") + &get("/nothing") + &get("/items/7/")).await.unwrap();
    assert_eq!(client.receive().await.status, 200);
    assert_eq!(client.receive().await.status, 404);
    assert_eq!(client.receive().await.json()["id"], "7");
}

#[tokio::test]
async fn http_1_1_is_chosen_and_nothing_else() {
    let server = Server::start(Limits::default()).await;
    let client = server.connect_offering(&[b"h2", b"http/1.1"]).await.unwrap();
    assert_eq!(client.protocol(), Some(&b"http/1.1"[..]));
    let mut client = server.connect_offering(&[]).await.unwrap();
    assert_eq!(client.get("/hello").await.status, 200);
    assert!(server.connect_offering(&[b"h2"]).await.is_err());
}

#[tokio::test]
async fn a_handshake_that_sends_nothing_is_closed() {
    let server = Server::start(Limits { handshake: SHORT, ..Limits::default() }).await;
    let began = Instant::now();
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    assert_eq!(rest_of(&mut stream).await, b"");
    assert!(began.elapsed() >= SHORT);
}

#[tokio::test]
async fn plain_text_at_the_tls_port_gets_no_http() {
    let server = Server::start(Limits::default()).await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(b"GET /hello HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    let answer = rest_of(&mut stream).await;
    assert!(!answer.starts_with(b"HTTP"), "{answer:?}");
    assert_eq!(server.connect().await.get("/hello").await.status, 200);
}

#[tokio::test]
async fn a_slow_head_is_cut_at_its_deadline_while_an_idle_connection_lives_on() {
    let server = Server::start(Limits { head: SHORT, ..Limits::default() }).await;
    let (mut fresh, mut used) = (server.connect().await, server.connect().await);
    assert_eq!(used.get("/hello").await.status, 200);

    let mut slow = server.connect().await;
    let began = Instant::now();
    slow.send("GET /hello HTTP/1.1\r\nhost: loc").await.unwrap();
    assert_eq!(slow.closed().await, b"");
    assert!(began.elapsed() >= SHORT);

    // Both have been without a request for longer than a head may take.
    assert_eq!(fresh.get("/hello").await.status, 200);
    assert_eq!(used.get("/hello").await.status, 200);
}

#[tokio::test]
async fn a_request_that_takes_longer_than_a_head_may_is_answered() {
    let server = Server::start(Limits { head: SHORT, ..Limits::default() }).await;
    let mut held = server.connect().await;
    held.send("GET /held HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    server.gate.entered().await;
    // A connection that is cut at the same limit tells that the time is over.
    let mut slow = server.connect().await;
    slow.send("GET").await.unwrap();
    slow.closed().await;
    server.gate.open();
    assert_eq!(held.receive().await.status, 200);
}

#[tokio::test]
async fn an_idle_connection_is_closed_after_its_time() {
    // Long enough that even a slow machine sends its request before.
    let idle = Duration::from_secs(2);
    let server = Server::start(Limits { idle, ..Limits::default() }).await;
    let (mut fresh, mut used) = (server.connect().await, server.connect().await);
    assert_eq!(used.get("/hello").await.status, 200);
    let began = Instant::now();
    assert_eq!(used.closed().await, b"");
    assert!(began.elapsed() >= idle / 2);
    assert_eq!(fresh.closed().await, b"");
}

#[tokio::test]
async fn a_head_without_measure_is_431() {
    let server = Server::start(Limits::default()).await;
    let fits = format!(
        "GET /hello HTTP/1.1\r\nhost: localhost\r\nx-filler: {}\r\n\r\n",
        "x".repeat(15 * 1024)
    );
    let mut client = server.connect().await;
    client.send(&fits).await.unwrap();
    assert_eq!(client.receive().await.status, 200);

    let too_large = format!(
        "GET /hello HTTP/1.1\r\nhost: localhost\r\nx-filler: {}\r\n\r\n",
        "x".repeat(200 * 1024)
    );
    let mut client = server.connect().await;
    client.send(&too_large).await.unwrap();
    assert_problem(&client.receive().await, 431, "head_too_large");
    assert_eq!(client.closed().await, b"");

    let many: String = (0..200).map(|number| format!("x-{number}: 1\r\n")).collect();
    let mut client = server.connect().await;
    client.send(format!("GET /hello HTTP/1.1\r\nhost: a\r\n{many}\r\n")).await.unwrap();
    assert_problem(&client.receive().await, 431, "head_too_large");
}

/// A problem that says that it is the last answer of its connection.
fn assert_problem(answer: &Received, status: u16, code: &str) {
    let problem = answer.json();
    assert_eq!((answer.status, problem["code"].as_str()), (status, Some(code)), "{problem}");
    assert_eq!(answer.header("content-type"), Some("application/problem+json"));
    assert_eq!(answer.header("connection"), Some("close"));
    assert_eq!(answer.header("x-request-id"), problem["requestId"].as_str());
}

#[tokio::test]
async fn what_is_not_http_is_a_problem_and_the_end() {
    let server = Server::start(Limits::default()).await;
    for garbage in [
        "\0\0\0\0\r\n\r\n",
        "hello\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "GET /hello HTTP/9.9\r\n\r\n",
        "GET /hello HTTP/1.1\r\na b: c\r\n\r\n",
    ] {
        let mut client = server.connect().await;
        client.send(garbage).await.unwrap();
        assert_problem(&client.receive().await, 400, "malformed_request");
        assert_eq!(client.closed().await, b"", "{garbage:?}");
    }
    assert_eq!(server.connect().await.get("/hello").await.status, 200);
}

#[tokio::test]
async fn a_head_that_can_be_read_in_two_ways_is_a_problem_and_the_end() {
    let server = Server::start(Limits::default()).await;
    for (head, word) in [
        ("GET /hello HTTP/1.1\r\n\r\n", "host"),
        ("GET /hello HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n", "host"),
        ("GET http://b/hello HTTP/1.1\r\nhost: a\r\n\r\n", "host"),
        (
            "GET /hello HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\
             transfer-encoding: chunked\r\n\r\n0\r\n\r\n",
            "transfer-encoding",
        ),
        ("GET /hello HTTP/1.1\nhost: a\n\n", "carriage return"),
    ] {
        let mut client = server.connect().await;
        // One in order before it: where a head begins is known on a used connection as well.
        assert_eq!(client.get("/hello").await.status, 200);
        client.send(head).await.unwrap();
        let answer = client.receive().await;
        assert_problem(&answer, 400, "malformed_request");
        assert!(answer.json()["detail"].as_str().unwrap().contains(word), "{head:?}");
        assert_eq!(client.closed().await, b"", "{head:?}");
    }
    let mut client = server.connect().await;
    client.send("GET http://a/hello HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
    assert_eq!(client.receive().await.status, 200);
}

#[tokio::test]
async fn a_request_in_chunks_is_the_last_of_its_connection() {
    let server = Server::start(Limits::default()).await;
    let mut client = server.connect().await;
    let chunked = "GET /hello HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n";
    client.send(format!("{chunked}GET /hello HTTP/1.1\r\nhost: a\r\n\r\n")).await.unwrap();
    let answer = client.receive().await;
    assert_eq!((answer.status, answer.header("connection")), (200, Some("close")));
    assert_eq!(client.closed().await, b"");
}

#[tokio::test]
async fn garbage_behind_a_request_does_not_cost_the_requests_answer() {
    let server = Server::start(Limits::default()).await;
    for path in ["/hello", "/nothing-here"] {
        let mut client = server.connect().await;
        let both = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n\0\0\0\r\n\r\n");
        client.send(both).await.unwrap();
        let status = if path == "/hello" { 200 } else { 404 };
        assert_eq!(client.receive().await.status, status);
        assert_problem(&client.receive().await, 400, "malformed_request");
        assert_eq!(client.closed().await, b"");
    }
}

/// A connection whose caller is known and whose request is under way.
async fn busy(server: &Server) -> Client {
    let mut client = server.connect().await;
    client.send("GET /vouched-held HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    server.gate.entered().await;
    client
}

#[tokio::test]
async fn one_connection_too_many_waits_while_all_others_are_busy_for_known_callers() {
    let limits = Limits { connections: 2, ..Limits::default() };
    let server = Server::start(limits).await;
    let (mut first, mut second) = (busy(&server).await, busy(&server).await);
    let mut third = Box::pin(server.connect());
    // The kernel takes the connection; its handshake must stay without an answer.
    assert!(timeout(SHORT, &mut third).await.is_err());
    server.gate.open();
    server.gate.open();
    // Each of them answers; the one that has answered first gives way.
    assert_eq!((first.receive().await.status, second.receive().await.status), (200, 200));
    assert_eq!(third.await.get("/hello").await.status, 200);
}

#[tokio::test]
async fn one_connection_too_many_takes_the_place_of_the_oldest_stranger() {
    let limits = Limits { connections: 3, ..Limits::default() };
    let server = Server::start(limits).await;
    let mut known = server.connect().await;
    assert_eq!(known.get("/vouched").await.status, 200);
    // One without a handshake, and one with requests that nobody vouches for.
    let mut silent = TcpStream::connect(server.address).await.unwrap();
    let mut stranger = server.connect().await;
    assert_eq!(stranger.get("/hello").await.status, 200);

    let mut fourth = server.connect().await;
    assert_eq!(rest_of(&mut silent).await, b"");
    assert_eq!(stranger.get("/hello").await.status, 200);
    let mut fifth = server.connect().await;
    assert_eq!(stranger.closed().await, b"");
    for client in [&mut known, &mut fourth, &mut fifth] {
        assert_eq!(client.get("/hello").await.status, 200);
    }
}

#[tokio::test]
async fn where_all_callers_are_known_the_one_without_a_request_for_longest_gives_way() {
    let limits = Limits { connections: 3, ..Limits::default() };
    let server = Server::start(limits).await;
    let mut held = busy(&server).await;
    let (mut early, mut late) = (server.connect().await, server.connect().await);
    assert_eq!(early.get("/vouched").await.status, 200);
    assert_eq!(late.get("/vouched").await.status, 200);
    // What nobody vouches for does not count as a request.
    assert_eq!(early.get("/hello").await.status, 200);
    let mut newcomer = server.connect().await;
    assert_eq!(early.closed().await, b"");
    assert_eq!(newcomer.get("/vouched").await.status, 200);
    assert_eq!(late.get("/vouched").await.status, 200);
    server.gate.open();
    assert_eq!(held.receive().await.status, 200);
}

#[tokio::test]
async fn a_flood_of_connections_lets_a_newcomer_in() {
    let limits = Limits { connections: 32, ..Limits::default() };
    let server = Server::start(limits).await;
    let mut held = busy(&server).await;
    let address = server.address;
    let flood = tokio::spawn(async move {
        let mut open = std::collections::VecDeque::new();
        loop {
            open.extend(TcpStream::connect(address).await.ok());
            if open.len() > 200 {
                open.pop_front();
            }
            tokio::task::yield_now().await;
        }
    });
    for _ in 0..10 {
        let came = eventually(GENEROUS, "an answer in the flood", async || {
            let mut client = server.connect_offering(&[]).await.ok()?;
            let get = "GET /hello HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
            client.send(get).await.ok()?;
            (!client.closed().await.is_empty()).then_some(())
        });
        came.await;
    }
    flood.abort();
    server.gate.open();
    assert_eq!(held.receive().await.status, 200, "it was under way all the time");
}

#[tokio::test]
async fn a_caller_that_hangs_up_drops_its_handler() {
    let server = Server::start(Limits::default()).await;
    let mut client = server.connect().await;
    client.send("GET /held HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    server.gate.entered().await;
    drop(client);
    server.gate.left().await;
}

#[tokio::test]
async fn an_answer_that_nobody_takes_is_given_up() {
    let metrics = Metrics::install().unwrap();
    let limits = Limits { stalled_write: SHORT, ..Limits::default() };
    let server = Server::start(limits).await;
    let mut client = server.connect().await;
    client.send("GET /huge HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    eventually(GENEROUS, "the connection to be given up", async || {
        let given_up = "connections_ended_total{end=\"stalled_write\"} 1";
        metrics.render().contains(given_up).then_some(())
    })
    .await;
    eventually(GENEROUS, "its slot to be free", async || {
        metrics.render().contains("connections 0").then_some(())
    })
    .await;
}
