use std::{
    io,
    sync::{Arc, Mutex},
};

use http::Request;
use serde_json::Value;
use service_kit::init_logs;
use tracing::subscriber::DefaultGuard;

use crate::support::{Gate, InMemory, routes};

/// What was logged, in memory.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Log {
    /// Takes this thread's events down until the guard goes.
    fn take() -> (Self, DefaultGuard) {
        let log = Self::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .json()
            .flatten_event(true)
            .with_max_level(tracing::Level::DEBUG)
            .with_writer(move || writer.clone())
            .finish();
        (log, tracing::subscriber::set_default(subscriber))
    }

    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }

    fn events(&self) -> Vec<Value> {
        self.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

#[tokio::test]
async fn a_request_is_one_event_with_its_id_route_status_and_time() {
    let (log, _guard) = Log::take();
    let service = InMemory::of(routes(&Gate::default()), 1);
    let request = Request::builder()
        .uri("/items/secret-path/?secret-query")
        .header("authorization", "Bearer secret-token")
        .header("x-request-id", "id-1");
    service.call(request.body("secret-body".into()).unwrap()).await;
    let [event] = &log.events()[..] else { panic!("{}", log.text()) };
    assert_eq!(event["level"], "INFO");
    assert_eq!(event["http.status"], 200);
    assert_eq!(event["http.route"], "/items/{id}/");
    assert!(event["http.duration_ms"].as_f64().unwrap() >= 0.0);
    assert_eq!(event["span"]["request.id"], "id-1");
    assert_eq!(event["span"]["http.method"], "GET");
    assert!(!log.text().contains("secret"), "{}", log.text());
}

#[tokio::test]
async fn the_causes_of_a_refusal_are_logged_once_in_their_order() {
    let (log, _guard) = Log::take();
    InMemory::of(routes(&Gate::default()), 1).get("/fault").await;
    let [event] = &log.events()[..] else { panic!("{}", log.text()) };
    assert_eq!(event["level"], "ERROR");
    assert_eq!(event["problem.code"], "internal");
    assert_eq!(event["error"], "the outer reason: the innermost reason");
}

#[tokio::test]
async fn the_reason_of_a_401_is_in_the_log() {
    let (log, _guard) = Log::take();
    InMemory::of(routes(&Gate::default()), 1).get("/private").await;
    let [event] = &log.events()[..] else { panic!("{}", log.text()) };
    assert_eq!(event["error"], "no grant has this bearer's id");
    assert_eq!(event["http.status"], 401);
}

#[tokio::test]
async fn a_healthy_probe_is_not_worth_a_line() {
    let (log, _guard) = Log::take();
    InMemory::of(routes(&Gate::default()), 1).get("/healthz").await;
    assert_eq!(log.events()[0]["level"], "DEBUG");
}

#[tokio::test]
async fn a_caller_that_hung_up_is_logged() {
    let (log, _guard) = Log::take();
    let gate = Gate::default();
    let service = InMemory::of(routes(&gate), 1);
    {
        let call = service.get("/held");
        tokio::pin!(call);
        tokio::select! {
            _ = &mut call => panic!("the gate is closed"),
            () = gate.entered() => {}
        }
    }
    let [event] = &log.events()[..] else { panic!("{}", log.text()) };
    assert_eq!(event["http.status"], 499);
    assert_eq!(event["http.route"], "/held");
}

#[test]
fn a_filter_that_is_none_is_refused() {
    assert!(init_logs(Some("service_kit=loud")).is_err());
}
