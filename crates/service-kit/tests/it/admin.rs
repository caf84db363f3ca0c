use std::sync::atomic::{AtomicI64, Ordering};

use chrono::{DateTime, TimeDelta, Utc};
use http::header;
use service_kit::{Alarms, Limits, Listener, Metrics, admin, alarms::Alarm};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use crate::support::{GENEROUS, Gate, InMemory, request_ids, routes};

fn clock() -> DateTime<Utc> {
    "2030-01-15T12:00:00Z".parse().unwrap()
}

/// Head and body of a `GET`.
async fn get(address: std::net::SocketAddr, path: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    timeout(GENEROUS, stream.read_to_string(&mut text)).await.unwrap().unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}

#[test]
fn an_alarm_that_is_raised_again_keeps_its_beginning() {
    /// Each reading is a second later.
    fn ticking() -> DateTime<Utc> {
        static TICKS: AtomicI64 = AtomicI64::new(0);
        clock() + TimeDelta::seconds(TICKS.fetch_add(1, Ordering::Relaxed))
    }
    let alarms = Alarms::new(ticking, &[]);
    let since = || alarms.current()[0].since;
    alarms.raise("grants", "the file is not valid");
    let first = since();
    alarms.raise("grants", "the file is gone");
    assert_eq!(since(), first);
    alarms.clear("grants");
    alarms.raise("grants", "the file is gone");
    assert!(since() > first);
}

#[test]
fn an_alarm_is_there_from_its_raising_to_its_clearing() {
    let alarms = Alarms::new(clock, &[]);
    assert_eq!(alarms.current(), []);
    alarms.raise("grants", "the file is not valid");
    alarms.raise("database", "no answer");
    alarms.raise("grants", "the file is gone");
    let alarm = |name, reason: &str| Alarm { name, reason: reason.to_owned(), since: clock() };
    assert_eq!(
        alarms.clone().current(),
        [alarm("database", "no answer"), alarm("grants", "the file is gone")]
    );
    alarms.clear("grants");
    alarms.clear("never raised");
    assert_eq!(alarms.current(), [alarm("database", "no answer")]);
}

#[tokio::test]
async fn metrics_and_alarms_are_told_on_a_listener_of_their_own() {
    let metrics = Metrics::install().unwrap();
    let alarms = Alarms::new(clock, &["database", "grants"]);
    let listener = Listener::bind("127.0.0.1:0".parse().unwrap(), Limits::default()).await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = admin::serve(listener, metrics, alarms.clone(), request_ids()).unwrap();
    let serving = tokio::spawn(serving);

    alarms.raise("grants", "the file is gone");
    let service = InMemory::of(routes(&Gate::default()), 1);
    service.get("/items/7/").await;
    service.get("/items/secret-path/").await;
    service.get("/no/such/path").await;
    let odd = http::Method::from_bytes(b"BREW").unwrap();
    service.call(crate::support::request(odd, "/hello")).await;

    let (head, text) = get(address, "/metrics").await;
    assert!(head.contains("text/plain; version=0.0.4"), "{head}");
    for line in [
        "alarm{name=\"database\"} 0",
        "alarm{name=\"grants\"} 1",
        "http_requests_total{route=\"/items/{id}/\",method=\"GET\",status=\"200\"} 2",
        "http_requests_total{route=\"unmatched\",method=\"GET\",status=\"404\"} 1",
        "http_requests_total{route=\"/hello\",method=\"other\",status=\"405\"} 1",
        "http_request_duration_seconds_count{route=\"/items/{id}/\"} 2",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
    }
    assert!(text.contains("http_request_duration_seconds_bucket{route=\"/hello\",le=\"0.001\"}"));
    assert!(!text.contains("secret-path"), "{text}");

    let (head, text) = get(address, "/alarms").await;
    assert!(head.contains(header::CONTENT_TYPE.as_str()), "{head}");
    let body: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        body,
        serde_json::json!({ "alarms": [
            { "name": "grants", "reason": "the file is gone", "since": "2030-01-15T12:00:00Z" }
        ] })
    );
    alarms.clear("grants");
    assert!(get(address, "/metrics").await.1.contains("alarm{name=\"grants\"} 0"));
    assert!(get(address, "/other").await.0.starts_with("HTTP/1.1 404"));
    assert!(!serving.is_finished());
}
