//! Who is let in: every route that takes a caller refuses everybody else, before it reads any
//! storage.

use serde_json::{Value, json};

use crate::support::{Answer, Api, CASES, Caller, Case, Place, Request};

/// A bearer of the right form that nobody issued.
const UNKNOWN: &str = "scnb_0123456789abcdef.0123456789abcdefghjkmnpqrstvwxyz";

/// What is left of a problem that belongs to every request of its kind.
fn without_id(answer: &Answer) -> Value {
    answer.problem();
    let mut body = answer.json();
    body.as_object_mut().unwrap().remove("requestId").unwrap();
    body
}

#[tokio::test]
async fn everybody_without_an_accepted_credential_gets_the_same_401() {
    let place = Place::prepare().await;
    let expired = place.site.bearer().unwrap();
    place.edit_grants(|grants| grants[0]["expiresAt"] = json!("2026-01-02T00:00:00Z"));
    place.edit_grants(|grants| grants[0]["issuedAt"] = json!("2026-01-01T00:00:00Z"));
    place.site.issue_bearer("commands", "bearer").unwrap();
    let revoked = place.site.bearer().unwrap();
    place.edit_grants(|grants| grants[1]["revokedAt"] = json!("2026-01-03T00:00:00Z"));
    place.site.issue_bearer("commands", "bearer").unwrap();
    let ids = place.enqueue(&["{}"]);
    let api = place.start().await;
    api.without_storage().await;

    let good = api.bearer();
    let (id, secret) = good.split_once('.').unwrap();
    let headers: Vec<(&str, Vec<String>)> = vec![
        ("no token", vec![]),
        ("another scheme", vec![format!("Basic {good}")]),
        ("no scheme", vec![good.clone()]),
        ("only the scheme", vec!["Bearer".to_owned()]),
        ("an empty token", vec!["Bearer ".to_owned()]),
        ("two headers", vec![format!("Bearer {good}"), format!("Bearer {good}")]),
        ("two headers, one empty", vec![format!("Bearer {good}"), String::new()]),
        ("two tokens with a comma", vec![format!("Bearer {good},{good}")]),
        ("a trailing word", vec![format!("Bearer {good} more")]),
        ("white space in the token", vec![format!("Bearer {id} .{secret}")]),
        ("a tab in the token", vec![format!("Bearer {id}.\t{secret}")]),
        ("a tab after the scheme", vec![format!("Bearer\t{good}")]),
        ("two spaces after the scheme", vec![format!("Bearer  {good}")]),
        ("quotes", vec![format!("Bearer \"{good}\"")]),
        ("an unknown form", vec!["Bearer eyJhbGciOiJub25lIn0.e30.".to_owned()]),
        ("a join bearer", vec!["Bearer bcjt_0123456789abcdef.0123".to_owned()]),
        ("an agent's bearer", vec!["Bearer bcag_0123456789abcdef.0123".to_owned()]),
        ("a malformed bearer", vec![format!("Bearer {id}")]),
        ("a bearer that is too short", vec![format!("Bearer {}", &good[..good.len() - 1])]),
        ("a bearer in capitals", vec![format!("Bearer {}", good.to_uppercase())]),
        ("an unknown bearer", vec![format!("Bearer {UNKNOWN}")]),
        ("another's secret", vec![format!("Bearer {id}.{}", &UNKNOWN[22..])]),
        ("an expired bearer", vec![format!("Bearer {expired}")]),
        ("a revoked bearer", vec![format!("Bearer {revoked}")]),
    ];
    let mut bodies = Vec::new();
    for case in Case::authenticated() {
        for (what, values) in &headers {
            let mut request = case.request(&ids[0]);
            for value in values {
                request = request.header("authorization", value);
            }
            let answer = api.send(&request).await;
            assert_eq!(answer.status, 401, "{what}: {case:?}");
            assert_eq!(answer.header("www-authenticate"), Some("Bearer"), "{what}");
            bodies.push(without_id(&answer));
        }
    }
    assert_eq!(bodies.len(), Case::authenticated().count() * headers.len());
    assert!(bodies.iter().all(|body| *body == bodies[0]), "{bodies:#?}");
}

#[tokio::test]
async fn another_sites_bearer_is_refused_before_any_storage_is_read() {
    let place = Place::prepare().await;
    let scope = ["--scope", "commands", "--site", "south-1", "--environment", "slurm"];
    let runtime = place.issue(&scope);
    let agent = place.issue(&["--scope", "ssh-access", "--site", "south-1"]);
    // The Site's name is compared to the letter.
    let capital = place.issue(&["--scope", "ssh-access", "--site", "North-1"]);
    let ids = place.enqueue(&["{}"]);
    let api = place.start().await;
    api.without_storage().await;
    for case in Case::granted() {
        for bearer in [&runtime, &agent, &capital] {
            let answer = api.send(&case.request(&ids[0]).bearer(bearer)).await;
            assert_eq!(answer.code(), "site_mismatch", "{case:?}");
            assert!(!answer.text().contains("south-1"), "the other Site is not named");
        }
    }
}

#[tokio::test]
async fn a_bearer_of_another_scope_is_forbidden_before_any_storage_is_read() {
    let place = Place::prepare().await;
    let agent = place.issue(&["--scope", "ssh-access", "--site", "north-1"]);
    let ids = place.enqueue(&["{}"]);
    let api = place.start().await;
    api.without_storage().await;
    for case in Case::granted() {
        let answer = api.send(&case.request(&ids[0]).bearer(&agent)).await;
        assert_eq!(answer.code(), "forbidden", "{case:?}");
    }
}

#[tokio::test]
async fn a_refusal_comes_before_the_body_is_read() {
    let (api, ids) = Api::with_commands(1).await;
    for case in Case::with_body() {
        let mut connection = api.wire.open().await;
        let request = case.request(&ids[0]).without("content-length");
        // A body that never comes.
        let head = request.header("content-length", "1000000").body_left_out();
        connection.write(&head).await;
        assert_eq!(connection.answer().await.unwrap().code(), "unauthenticated");
    }
}

#[tokio::test]
async fn the_bearer_of_a_runtime_reaches_its_own_stream_and_no_other() {
    let place = Place::prepare().await;
    let ids = place.enqueue(&["{}"]);
    place.edit_grants(|grants| grants[0]["environment"] = json!("k8s"));
    let api = place.start().await;
    let page = api.send(&api.poll("after=0")).await.json();
    assert_eq!((&page["commands"], &page["lastSeq"]), (&json!([]), &json!(0)));
    let answer = api.send(&api.result(&ids[0], b"{\"outcome\":\"failed\"}")).await;
    assert_eq!(answer.code(), "not_found");
}

#[tokio::test]
async fn the_scheme_is_read_without_regard_to_case() {
    let (api, _) = Api::with_commands(0).await;
    for scheme in ["Bearer", "bearer", "BEARER", "bEaReR"] {
        let value = format!("{scheme} {}", api.bearer());
        let request = api.poll("after=0").without("authorization").header("authorization", &value);
        assert_eq!(api.send(&request).await.status, 200, "{scheme}");
    }
}

#[tokio::test]
async fn a_probe_asks_for_no_caller_and_takes_any() {
    let (api, _) = Api::with_commands(0).await;
    api.without_storage().await;
    let open: Vec<_> = CASES.iter().filter(|case| case.caller == Caller::Anyone).collect();
    assert_eq!(open.len(), 1, "no other route is open to everybody");
    for request in [
        Request::new("GET", "/healthz"),
        Request::new("GET", "/healthz").bearer(UNKNOWN),
        Request::new("GET", "/healthz").bearer("not a bearer"),
    ] {
        let answer = api.send(&request).await;
        assert_eq!((answer.status, answer.json()), (200, json!({"status": "ok"})));
    }
}
