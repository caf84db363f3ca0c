use std::sync::Arc;

use http::{Method, Request, StatusCode};
use service_kit::Response;

use crate::support::{Gate, InMemory, json, request, routes};

fn service(gate: &Gate, requests: usize) -> InMemory {
    InMemory::of(routes(gate), requests)
}

fn id_of(response: &Response) -> String {
    response.headers()["x-request-id"].to_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_usable_request_id_is_taken_over_and_given_back() {
    let service = service(&Gate::default(), 1);
    for id in ["a", "A-Z_a.z0", &"x".repeat(64)] {
        let mut request = request(Method::GET, "/nothing");
        request.headers_mut().insert("x-request-id", id.parse().unwrap());
        let response = service.call(request).await;
        assert_eq!(id_of(&response), id);
        assert_eq!(json(response).await["requestId"], id);
    }
}

#[tokio::test]
async fn any_other_request_id_is_replaced_by_one_of_ours() {
    let service = service(&Gate::default(), 1);
    for ids in [&[""][..], &["a b"], &["a/b"], &["a\"b"], &["a,b"], &[&"x".repeat(65)], &["a", "a"]]
    {
        let mut request = Request::builder().uri("/hello");
        for id in ids {
            request = request.header("x-request-id", *id);
        }
        let response = service.call(request.body(Default::default()).unwrap()).await;
        let given = id_of(&response);
        assert!(!ids.contains(&given.as_str()), "{ids:?}");
        assert_eq!(given.split_once('-').unwrap().0.len(), 16, "{given}");
    }
}

#[tokio::test]
async fn our_ids_do_not_repeat() {
    let service = service(&Gate::default(), 1);
    let (one, two) = (service.get("/hello").await, service.get("/hello").await);
    assert_ne!(id_of(&one), id_of(&two));
}

#[tokio::test]
async fn a_handler_that_panics_is_a_500_with_the_request_id() {
    let service = service(&Gate::default(), 1);
    for path in ["/panic", "/early-panic"] {
        let mut request = request(Method::GET, path);
        request.headers_mut().insert("x-request-id", "find-me".parse().unwrap());
        let response = service.call(request).await;
        assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
        let body = json(response).await;
        assert_eq!(body["code"], "internal");
        assert_eq!(body["requestId"], "find-me");
        assert!(!body.to_string().contains("on purpose"), "{body}");
    }
    // The one slot was given back each time.
    assert_eq!(service.get("/hello").await.status(), StatusCode::OK);
}

#[tokio::test]
async fn one_request_too_many_is_refused_but_a_probe_is_not() {
    let gate = Gate::default();
    let service = Arc::new(service(&gate, 2));
    let held: Vec<_> = (0..2)
        .map(|_| {
            let service = Arc::clone(&service);
            tokio::spawn(async move { service.get("/held").await.status() })
        })
        .collect();
    gate.entered().await;
    gate.entered().await;

    let refused = service.get("/hello").await;
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(refused.headers().contains_key("retry-after"));
    assert_eq!(json(refused).await["code"], "overloaded");
    assert_eq!(service.get("/healthz").await.status(), StatusCode::OK);
    assert_eq!(service.get("/nothing").await.status(), StatusCode::NOT_FOUND);

    gate.open();
    gate.open();
    for held in held {
        assert_eq!(held.await.unwrap(), StatusCode::OK);
    }
    assert_eq!(service.get("/hello").await.status(), StatusCode::OK);
}

#[tokio::test]
async fn the_probe_tells_that_the_process_is_stopping() {
    let service = service(&Gate::default(), 1);
    assert_eq!(service.get("/healthz").await.status(), StatusCode::OK);
    service.trigger.drain();
    let refused = service.get("/healthz").await;
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(json(refused).await["code"], "draining");
}

#[tokio::test]
async fn no_answer_is_kept_by_a_cache() {
    let service = service(&Gate::default(), 1);
    for path in ["/hello", "/nothing", "/panic"] {
        assert_eq!(service.get(path).await.headers()["cache-control"], "no-store", "{path}");
    }
}
