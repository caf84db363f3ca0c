//! Requests that a caller got wrong: each is told what, and nothing else happens.

use serde_json::json;

use crate::support::{Answer, Api, CASES, Case, Request};

const MIB: usize = 1024 * 1024;

/// The names of the wrong fields, in their order.
fn wrong_fields(answer: &Answer) -> Vec<String> {
    let problem = answer.problem();
    assert_eq!(problem.code, "invalid_request");
    assert!(problem.fields.iter().all(|field| !field.detail.is_empty()));
    problem.fields.into_iter().map(|field| field.field).collect()
}

#[tokio::test]
async fn another_method_is_refused_with_those_that_there_are() {
    let (api, ids) = Api::with_commands(1).await;
    for case in CASES {
        for method in ["GET", "PUT", "POST", "DELETE", "PATCH", "HEAD", "OPTIONS", "TRACE", "get"] {
            if method == case.method {
                continue;
            }
            // With and without a token: which methods a path has is no secret.
            for request in [
                Request::new(method, &case.path(&ids[0])),
                Request::new(method, &case.path(&ids[0])).bearer(&api.bearer()),
            ] {
                let answer = api.send(&request).await;
                assert_eq!(answer.status, 405, "{method} {case:?}");
                assert_eq!(answer.header("allow"), Some(case.method), "{method} {case:?}");
                if method != "HEAD" {
                    assert_eq!(answer.code(), "method_not_allowed");
                }
            }
        }
    }
}

#[tokio::test]
async fn a_body_of_another_type_or_with_an_encoding_is_refused() {
    let (api, ids) = Api::with_authority(3).await;
    for case in Case::with_body() {
        let good = case.idle_request(&ids[2]).bearer(&api.bearer());
        let plain = api.send(&good).await;
        let typed = |value| good.clone().without("content-type").header("content-type", value);
        let own_type = case.body.unwrap().content_type();
        let json = own_type == "application/json";
        let other = if json { "application/octet-stream" } else { "application/json" };
        for request in [
            good.clone().without("content-type"),
            typed(""),
            typed("text/plain"),
            typed("application/jsonp"),
            typed("application/json; charset=iso-8859-1"),
            typed("application/x-www-form-urlencoded"),
            typed(other),
            good.clone().header("content-type", own_type),
            good.clone().header("content-encoding", "gzip"),
            good.clone().header("content-encoding", "identity, br"),
        ] {
            let answer = api.send(&request).await;
            assert_eq!(answer.code(), "unsupported_media_type", "{:?}", request.headers);
        }
        let spelt =
            if json { "Application/JSON; charset=\"UTF-8\"" } else { "Application/Octet-Stream" };
        let request = typed(spelt).header("content-encoding", "identity");
        assert_eq!(api.send(&request).await.status, plain.status, "{case:?}");
    }
}

#[tokio::test]
async fn a_body_above_the_limit_is_refused_with_the_limit() {
    let (api, ids) = Api::with_authority(1).await;
    for case in Case::with_body() {
        let good = case.request(&ids[0]).bearer(&api.bearer());
        let large = vec![b' '; case.most_bytes() + 1];
        let told = good.clone().body(&large);
        let mut chunked =
            good.clone().without("content-length").header("transfer-encoding", "chunked");
        chunked.body = [format!("{:x}\r\n", large.len()).as_bytes(), &large, b"\r\n"].concat();
        for request in [told, chunked] {
            let answer = api.send(&request).await;
            assert_eq!(answer.code(), "body_too_large");
            assert_eq!(answer.json()["limitBytes"], case.most_bytes());
        }
    }
}

#[tokio::test]
async fn a_result_of_exactly_the_limit_is_stored() {
    let (api, ids) = Api::with_commands(1).await;
    let frame = br#"{"outcome":"succeeded","output":""}"#.len();
    let output = "x".repeat(MIB - frame);
    let body = format!(r#"{{"outcome":"succeeded","output":"{output}"}}"#);
    assert_eq!(body.len(), MIB);
    assert_eq!(api.send(&api.result(&ids[0], body.as_bytes())).await.status, 201);
}

#[tokio::test]
async fn every_wrong_field_of_a_poll_is_named_at_once() {
    let (api, _) = Api::with_commands(0).await;
    let query = "after=-1&afterDigest=00&limit=65&wait=26&cancelRev=x&nonsense=1&other";
    let poll = api.poll(query).without("runtime-generation").header("runtime-session", "short");
    let all = [
        "after",
        "afterDigest",
        "cancelRev",
        "limit",
        "nonsense",
        "other",
        "runtime-generation",
        "runtime-session",
        "wait",
    ];
    assert_eq!(wrong_fields(&api.send(&poll).await), all);
}

#[tokio::test]
async fn every_wrong_field_of_a_result_is_named_at_once() {
    let (api, ids) = Api::with_commands(1).await;
    let body = br#"{"outcome":"done","detail":7,"output":[],"privateOutput":"00","extra":1,"another":null}"#;
    let path = format!("/v1/site/commands/{}/result?wait=1", ids[0]);
    let request = Request::new("PUT", &path)
        .bearer(&api.bearer())
        .header("runtime-generation", "0")
        .header("content-type", "application/json")
        .body(body);
    let all =
        ["another", "detail", "extra", "outcome", "privateOutput", "runtime-generation", "wait"];
    assert_eq!(wrong_fields(&api.send(&request).await), all);
}

#[tokio::test]
async fn what_comes_along_with_a_result_is_asked_for_within_its_range() {
    let (api, ids) = Api::with_commands(1).await;
    let single = api.result(&ids[0], b"{\"outcome\":\"failed\"}");
    let batch = api.batch(&[(&ids[0], r#"{"outcome":"failed"}"#)]);
    for good in [single, batch] {
        for (query, fields) in [
            ("next=0", &["next"][..]),
            ("next=65", &["next"]),
            ("next=", &["next"]),
            ("next=1&next=1", &["next"]),
            ("next=1&wait=26", &["wait"]),
            ("next=1&cancelRev=-1", &["cancelRev"]),
            ("cancelRev=1&wait=1", &["cancelRev", "wait"]),
            ("after=0&limit=1", &["after", "limit"]),
        ] {
            let answer = api.send(&good.clone().query(query)).await;
            assert_eq!(wrong_fields(&answer), fields, "{query}");
        }
    }
    assert_eq!(api.send(&api.poll("after=0")).await.json()["head"]["seq"], 1);
}

#[tokio::test]
async fn a_generation_is_one_decimal_number_from_one_up() {
    let (api, ids) = Api::with_commands(1).await;
    let wrong =
        ["", "0", "-1", "+1", "01", "1.0", "1e0", "0x1", "x", "1 1", "1,2", "9223372036854775808"];
    for case in CASES.into_iter().filter(|case| case.writer) {
        let good = case.request(&ids[0]).bearer(&api.bearer());
        let missing = good.clone().without("runtime-generation");
        let mut requests = vec![missing.clone(), good.header("runtime-generation", "1")];
        requests.extend(wrong.map(|value| missing.clone().header("runtime-generation", value)));
        for request in requests {
            let answer = api.send(&request).await;
            assert_eq!(wrong_fields(&answer), ["runtime-generation"], "{:?}", request.headers);
        }
    }
}

#[tokio::test]
async fn each_parameter_of_a_poll_has_one_spelling_and_a_range() {
    let (api, _) = Api::with_commands(0).await;
    let zeros = "0".repeat(64);
    for (name, wrong) in [
        ("after", ["-1", "01", "+1", "", "1.0", "x", "%00", "9223372036854775808"].as_slice()),
        ("afterDigest", &["", "0", &zeros[1..], &"0A".repeat(32), &"g".repeat(64)]),
        ("cancelRev", &["-1", "01", "", "x", "9223372036854775808"]),
        ("limit", &["65", "x", "", "-1", "01", "+1", "1e1", "99999999999999999999"]),
        ("wait", &["26", "-1", "x", "", "01", "0.5", "%2B1", "1s"]),
    ] {
        for value in wrong {
            let answer = api.send(&api.poll(&format!("{name}={value}"))).await;
            assert_eq!(wrong_fields(&answer), [name], "{name}={value}");
        }
        let twice = api.send(&api.poll(&format!("{name}=1&{name}=1"))).await;
        assert_eq!(wrong_fields(&twice), [name], "there twice");
    }
    for good in [
        "",
        "after=0",
        "limit=0",
        "limit=64",
        "wait=0",
        "cancelRev=9",
        &format!("afterDigest={zeros}"),
    ] {
        assert_eq!(api.send(&api.poll(good)).await.status, 200, "{good}");
    }
}

#[tokio::test]
async fn a_poll_takes_nothing_from_its_body() {
    let (api, _) = Api::with_commands(0).await;
    let request = api.poll("after=0").body(b"{\"after\": -1");
    assert_eq!(api.send(&request).await.status, 200);
}

#[tokio::test]
async fn only_a_paths_exact_spelling_is_a_path() {
    let (api, ids) = Api::with_commands(1).await;
    let id = &ids[0];
    let results = [
        format!("/v1/site/commands/{id}/result/"),
        format!("/v1/site/commands/{id}//result"),
        format!("/v1/site/commands/{id}%2Fresult"),
        format!("/v1/site/commands/{id}/resul%74"),
        format!("/v1/site/commands//{id}/result"),
        format!("//v1/site/commands/{id}/result"),
        format!("/v1/site/commands/./{id}/result"),
        format!("/v1/site/commands/x/../{id}/result"),
        format!("/v1/site/commands/{}/result", id.replace('_', "%5F")),
        format!("/v1/site/commands/{}/result", id.to_uppercase()),
        format!("/v1/site/commands/{id}0/result"),
        format!("/v1/site/commands/{id}/RESULT"),
        format!("/v1/site/commands/{id}"),
        "/v1/site/commands//result".to_owned(),
        "/v1/site/commands/results/result".to_owned(),
        "/v1/site/commands/sessions/result".to_owned(),
        "/v1/site/commands/results/".to_owned(),
        "/v1/site/commands/Results".to_owned(),
        "/v1/site/commands/session".to_owned(),
        format!("/v1/site/commands/{id}/outputs/"),
        format!("/v1/site/commands/{id}/outputs/{}", "0A".repeat(32)),
        format!("/v1/site/commands/{id}/outputs/{}", "0".repeat(63)),
        format!("/v1/site/commands/results/outputs/{}", "0".repeat(64)),
        format!("/v1/site/commands/{id}/output/{}", "0".repeat(64)),
        "/v1/site/commands/%00/result".to_owned(),
        format!("/v1/site/commands/{}/result", "x".repeat(8000)),
    ];
    for path in &results {
        let request = Request::new("PUT", path)
            .bearer(&api.bearer())
            .header("runtime-generation", "1")
            .header("content-type", "application/json")
            .body(b"{\"outcome\":\"failed\"}");
        assert_eq!(api.send(&request).await.code(), "not_found", "{path}");
    }
    for path in [
        "/v1/site/commands",
        "/v1/site/commands//",
        "//v1/site/commands/",
        "/v1/site//commands/",
        "/v1/site/%63ommands/",
        "/v1/site/commands/%3Fafter=0",
        "/V1/site/commands/",
        "/v1/site/commands/.",
        "/v1/site/commands;x/",
        "/healthz/",
        "//healthz",
        "/health%7A",
        "/metrics",
        "/alarms",
        "/",
        "*",
    ] {
        let request = Request::new("GET", path).bearer(&api.bearer());
        let answer = api.send(&request.header("runtime-generation", "1")).await;
        assert_eq!(answer.code(), "not_found", "{path}");
    }
    let page = api.send(&api.poll("after=0")).await.json();
    assert_eq!(page["head"], json!({"seq": 1, "ageSeconds": page["head"]["ageSeconds"]}));
}
