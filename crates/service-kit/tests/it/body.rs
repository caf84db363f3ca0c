//! Bodies over the wire: the answer must reach a caller that is still sending.

use http::{Method, Request, StatusCode};
use service_kit::Limits;

use crate::support::{Gate, InMemory, Received, Server, json, routes};

/// The limit of the route `/body`.
const LIMIT: usize = 64;

async fn put(server: &Server, head: &str, body: &str) -> Received {
    let mut client = server.connect().await;
    let request = format!("PUT /body HTTP/1.1\r\nhost: localhost\r\n{head}\r\n{body}");
    client.send(request).await.unwrap();
    client.receive().await
}

const JSON: &str = "content-type: application/json\r\n";

#[tokio::test]
async fn a_body_of_the_limit_is_read_with_and_without_its_length() {
    let server = Server::start(Limits::default()).await;
    let body = "x".repeat(LIMIT);
    let answer = put(&server, &format!("{JSON}content-length: {LIMIT}\r\n"), &body).await;
    assert_eq!((answer.status, &answer.json()["bytes"]), (200, &LIMIT.into()));
    let chunks = format!("20\r\n{0}\r\n20\r\n{0}\r\n0\r\n\r\n", &body[..32]);
    let answer = put(&server, &format!("{JSON}transfer-encoding: chunked\r\n"), &chunks).await;
    assert_eq!((answer.status, &answer.json()["bytes"]), (200, &LIMIT.into()));
}

#[tokio::test]
async fn a_body_that_says_to_be_too_large_is_refused_before_it_comes() {
    let server = Server::start(Limits::default()).await;
    let answer = put(&server, &format!("{JSON}content-length: {}\r\n", LIMIT + 1), "").await;
    assert_eq!(answer.status, 413);
    assert_eq!(answer.json()["code"], "body_too_large");
    assert_eq!(answer.json()["limitBytes"], LIMIT);
}

#[tokio::test]
async fn a_body_that_turns_out_too_large_is_refused_while_it_comes() {
    let server = Server::start(Limits::default()).await;
    let chunks = format!("41\r\n{}\r\n", "x".repeat(LIMIT + 1));
    let answer = put(&server, &format!("{JSON}transfer-encoding: chunked\r\n"), &chunks).await;
    assert_eq!(answer.status, 413);
    assert_eq!(answer.json()["limitBytes"], LIMIT);
}

#[tokio::test]
async fn the_refusal_of_a_large_body_reaches_a_caller_that_sends_all_of_it_first() {
    let server = Server::start(Limits::default()).await;
    let length = 4 << 20;
    let head = format!("{JSON}content-length: {length}\r\n");
    let answer = put(&server, &head, &"x".repeat(length)).await;
    assert_eq!(answer.status, 413);
}

#[tokio::test]
async fn a_body_that_does_not_come_in_time_is_refused() {
    let server = Server::start(Limits::default()).await;
    let answer = put(&server, &format!("{JSON}content-length: 10\r\n"), "123").await;
    assert_eq!(answer.status, 408);
    assert_eq!(answer.json()["code"], "request_timeout");
    assert_eq!(answer.json()["retryable"], true);
}

#[tokio::test]
async fn a_caller_that_waits_to_be_asked_is_asked_only_for_a_body_that_is_wanted() {
    let server = Server::start(Limits::default()).await;
    let mut client = server.connect().await;
    let head = |length: usize| {
        format!(
            "PUT /body HTTP/1.1\r\nhost: localhost\r\n{JSON}expect: 100-continue\r\n\
             content-length: {length}\r\n\r\n"
        )
    };
    client.send(head(2)).await.unwrap();
    assert_eq!(client.receive().await.status, 100);
    client.send("{}").await.unwrap();
    assert_eq!(client.receive().await.status, 200);
    client.send(head(LIMIT + 1)).await.unwrap();
    assert_eq!(client.receive().await.status, 413);
}

#[tokio::test]
async fn only_json_in_utf8_is_taken() {
    let service = InMemory::of(routes(&Gate::default()), 1);
    for (content_type, status) in [
        ("application/json", StatusCode::OK),
        ("Application/JSON", StatusCode::OK),
        ("application/json; charset=utf-8", StatusCode::OK),
        ("application/json;charset=\"UTF-8\"", StatusCode::OK),
        ("application/json; profile=x", StatusCode::OK),
        ("application/json; charset=latin1", StatusCode::UNSUPPORTED_MEDIA_TYPE),
        ("application/json; CHARSET = utf-16", StatusCode::UNSUPPORTED_MEDIA_TYPE),
        ("application/jsonp", StatusCode::UNSUPPORTED_MEDIA_TYPE),
        ("application/problem+json", StatusCode::UNSUPPORTED_MEDIA_TYPE),
        ("text/plain", StatusCode::UNSUPPORTED_MEDIA_TYPE),
        ("", StatusCode::UNSUPPORTED_MEDIA_TYPE),
    ] {
        let request = Request::builder().method(Method::PUT).uri("/body");
        let request = request.header("content-type", content_type);
        let response = service.call(request.body("{}".into()).unwrap()).await;
        assert_eq!(response.status(), status, "{content_type:?}");
    }
}

#[tokio::test]
async fn a_missing_or_doubled_content_type_is_refused() {
    let service = InMemory::of(routes(&Gate::default()), 1);
    for count in [0, 2] {
        let mut request = Request::builder().method(Method::PUT).uri("/body");
        for _ in 0..count {
            request = request.header("content-type", "application/json");
        }
        let response = service.call(request.body("{}".into()).unwrap()).await;
        assert_eq!(json(response).await["code"], "unsupported_media_type", "{count}");
    }
}

#[tokio::test]
async fn an_encoded_body_is_refused() {
    let service = InMemory::of(routes(&Gate::default()), 1);
    for (encoding, status) in [
        ("identity", StatusCode::OK),
        ("Identity", StatusCode::OK),
        ("gzip", StatusCode::UNSUPPORTED_MEDIA_TYPE),
        ("identity, gzip", StatusCode::UNSUPPORTED_MEDIA_TYPE),
        ("", StatusCode::UNSUPPORTED_MEDIA_TYPE),
    ] {
        let request = Request::builder()
            .method(Method::PUT)
            .uri("/body")
            .header("content-type", "application/json")
            .header("content-encoding", encoding);
        let response = service.call(request.body("{}".into()).unwrap()).await;
        assert_eq!(response.status(), status, "{encoding:?}");
    }
}
