use http::{Method, StatusCode, header};
use service_kit::{Call, Routes, json as answer};

use crate::support::{Gate, InMemory, json, request, routes};

fn service() -> InMemory {
    InMemory::of(routes(&Gate::default()), 16)
}

async fn empty(_: Call) -> service_kit::Answer {
    answer(StatusCode::OK, &())
}

#[tokio::test]
async fn a_pattern_gives_its_parts_as_they_were_sent() {
    for id in ["7", "a%2Fb", "%41", "a.b_c-d", "{id}", "+"] {
        let response = service().get(&format!("/items/{id}/")).await;
        assert_eq!(response.status(), StatusCode::OK, "{id}");
        assert_eq!(json(response).await["id"], id);
    }
}

#[tokio::test]
async fn another_path_is_not_found() {
    for path in
        ["/", "/hello/", "/Hello", "/%68ello", "//hello", "/items//", "/items/7", "/items/7/8/"]
    {
        let response = service().get(path).await;
        assert_eq!(response.status(), StatusCode::NOT_FOUND, "{path}");
        assert_eq!(json(response).await["code"], "not_found");
    }
}

#[tokio::test]
async fn a_query_is_no_part_of_the_path() {
    assert_eq!(service().get("/hello?x=/items/7/").await.status(), StatusCode::OK);
}

#[tokio::test]
async fn another_method_is_refused_with_those_that_there_are() {
    for method in [Method::DELETE, Method::HEAD, Method::OPTIONS, "BREW".parse().unwrap()] {
        let response = service().call(request(method.clone(), "/items/7/")).await;
        assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED, "{method}");
        assert_eq!(response.headers()[header::ALLOW], "GET, PUT");
        assert_eq!(json(response).await["code"], "method_not_allowed");
    }
}

#[test]
fn routes_that_contradict_each_other_are_refused() {
    let twice = Routes::new()
        .route(Method::GET, "/a", empty)
        .route(Method::PUT, "/a", empty)
        .route(Method::GET, "/a", empty);
    assert_eq!(twice.build().err().map(|error| error.pattern), Some("/a"));

    let names = Routes::new().route(Method::GET, "/{a}", empty).route(Method::PUT, "/{b}", empty);
    assert_eq!(names.build().err().map(|error| error.pattern), Some("/{b}"));
}
