use http::{Method, StatusCode, header};
use serde_json::json;
use service_kit::{ProblemReply, Response, Router, Routes};
use site_protocol::Code;
use std::time::Duration;

use crate::support::{Gate, InMemory, json as body, routes};

fn refusing(refuse: impl Fn() -> ProblemReply + Send + Sync + 'static) -> InMemory {
    let router: Router = Routes::new()
        .route(Method::GET, "/", move |_| {
            let refused = refuse();
            async { Err(refused) }
        })
        .build()
        .unwrap();
    InMemory::of(router, 1)
}

fn header_of<'a>(response: &'a Response, name: &str) -> Option<&'a str> {
    response.headers().get(name).map(|value| value.to_str().unwrap())
}

#[tokio::test]
async fn a_problem_has_every_member() {
    let service = refusing(|| {
        ProblemReply::new(Code::ResultConflict, "another one is stored").with("storedDigest", "ab")
    });
    let mut request = crate::support::request(Method::GET, "/");
    request.headers_mut().insert("x-request-id", "abc.1".parse().unwrap());
    let response = service.call(request).await;
    assert_eq!(response.status(), StatusCode::CONFLICT);
    assert_eq!(header_of(&response, "content-type"), Some("application/problem+json"));
    assert_eq!(header_of(&response, "retry-after"), None);
    assert_eq!(
        body(response).await,
        json!({
            "type": "urn:site-control:problem:result_conflict",
            "title": Code::ResultConflict.title(),
            "status": 409,
            "detail": "another one is stored",
            "code": "result_conflict",
            "retryable": false,
            "requestId": "abc.1",
            "source": "site-api",
            "storedDigest": "ab",
        })
    );
}

#[tokio::test]
async fn advice_is_given_in_milliseconds_and_in_whole_seconds_rounded_up() {
    for (millis, seconds) in [(0, "1"), (1, "1"), (1000, "1"), (1001, "2"), (90_500, "91")] {
        let service = refusing(move || {
            ProblemReply::new(Code::PredecessorMissing, "not yet")
                .retry_after(Duration::from_millis(millis))
        });
        let response = service.get("/").await;
        assert_eq!(header_of(&response, "retry-after"), Some(seconds), "{millis}");
        assert_eq!(body(response).await["retryAfterMs"], millis);
    }
}

#[tokio::test]
async fn every_503_says_when_to_try_again() {
    for code in Code::ALL.iter().copied().filter(|code| code.status() == 503) {
        let service = refusing(move || ProblemReply::new(code, "not now"));
        let response = service.get("/").await;
        assert_eq!(header_of(&response, "retry-after"), Some("1"), "{code:?}");
        assert_eq!(body(response).await["retryAfterMs"], 1000, "{code:?}");
    }
}

#[tokio::test]
async fn the_body_of_a_401_is_the_same_for_all_reasons() {
    let one = refusing(|| {
        ProblemReply::new(Code::Unauthenticated, "expired yesterday")
            .with("hint", 1)
            .fields(vec![site_protocol::FieldError { field: "a".into(), detail: "b".into() }])
    });
    let other = refusing(|| ProblemReply::unauthenticated("unknown id"));
    let mut bodies = Vec::new();
    for service in [one, other] {
        let response = service.get("/").await;
        assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
        assert_eq!(header_of(&response, "www-authenticate"), Some("Bearer"));
        let mut body = body(response).await;
        body.as_object_mut().unwrap().remove("requestId");
        bodies.push(body);
    }
    assert_eq!(bodies[0], bodies[1]);
    assert!(!bodies[0].to_string().contains("expired"), "{}", bodies[0]);
}

#[tokio::test]
async fn the_cause_of_a_fault_is_not_told_to_the_caller() {
    let response = InMemory::of(routes(&Gate::default()), 1).get("/fault").await;
    assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
    let body = body(response).await;
    assert_eq!(body["code"], "internal");
    assert!(!body.to_string().contains("reason\""), "{body}");
    assert!(!body.to_string().contains("innermost"), "{body}");
}

#[tokio::test]
async fn each_code_answers_with_its_status() {
    for code in Code::ALL.iter().copied() {
        let response = refusing(move || ProblemReply::new(code, "x")).get("/").await;
        assert_eq!(response.status().as_u16(), code.status());
        assert!(response.headers().contains_key(header::CACHE_CONTROL));
    }
}
