//! Every answer that was seen of a real API server, and those that nobody should believe.

use callers::{
    parsers::verdict,
    review::{Pod, ReviewError, ReviewRefusal, ReviewTrouble},
};
use http::StatusCode;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::support::{AUDIENCE, SUBJECT, good_status};

const SENT: &str = "eyJh.the-token-that-was-sent.c2ln";

/// A review of the sent token with this status.
fn review(status: Value) -> Value {
    json!({
        "kind": "TokenReview",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": { "creationTimestamp": null },
        "spec": { "token": SENT, "audiences": [AUDIENCE] },
        "status": status,
    })
}

fn judged(status: u16, body: &str) -> Result<(String, String, Pod), ReviewError> {
    let status = StatusCode::from_u16(status).unwrap();
    let (account, uid, pod) = verdict(status, body.as_bytes(), SENT, AUDIENCE)?;
    Ok((account.to_string(), uid, pod))
}

fn refusal(status: &Value) -> ReviewRefusal {
    match judged(201, &review(status.clone()).to_string()) {
        Err(ReviewError::Refused(refusal)) => refusal,
        other => panic!("{status}: {other:?}"),
    }
}

fn trouble(status: u16, body: &str) -> ReviewTrouble {
    match judged(status, body) {
        Err(ReviewError::Trouble(trouble)) => trouble,
        other => panic!("{status} {body}: {other:?}"),
    }
}

/// The good status with one part exchanged, by its place; left out where `value` is missing.
fn with(place: &[&str], value: Option<Value>) -> Value {
    let mut status = good_status();
    let (last, way) = place.split_last().unwrap();
    let mut at = &mut status;
    for name in way {
        at = &mut at[*name];
    }
    match value {
        Some(value) => at[*last] = value,
        None => drop(at.as_object_mut().unwrap().remove(*last).unwrap()),
    }
    status
}

const EXTRA: [&str; 2] = ["user", "extra"];
const POD_UID: &str = "authentication.kubernetes.io/pod-uid";
const POD_NAME: &str = "authentication.kubernetes.io/pod-name";

fn with_extra(name: &str, value: Option<Value>) -> Value {
    with(&[EXTRA[0], EXTRA[1], name], value)
}

#[test]
fn the_right_token_is_taken_for_whom_it_is() {
    let expected = |name: Option<&str>| {
        let pod = Pod { name: name.map(str::to_owned), uid: "uid-of-pod".to_owned() };
        (SUBJECT.to_owned(), "uid-of-account".to_owned(), pod)
    };
    for status in [
        good_status(),
        // The intersection with what was asked.
        with(&["audiences"], Some(json!(["other", AUDIENCE]))),
        with(&["error"], Some(json!(""))),
        with(&["error"], Some(json!(null))),
        with(&["a-later-field"], Some(json!({ "a": [1] }))),
        with(&["user", "groups"], None),
    ] {
        for code in [200, 201] {
            let judged = judged(code, &review(status.clone()).to_string());
            assert_eq!(judged.unwrap(), expected(Some("runtime-0")), "{status}");
        }
    }
    for name in
        [None, Some(json!([])), Some(json!(["a", "b"])), Some(json!(["a\nb"])), Some(json!(null))]
    {
        let status = with_extra(POD_NAME, name);
        assert_eq!(judged(201, &review(status).to_string()).unwrap(), expected(None));
    }
}

#[test]
fn what_the_api_server_refuses_is_refused() {
    use ReviewRefusal::{AccountGone, Invalid, Invalidated, OtherAudience};
    for (error, reason) in [
        ("invalid bearer token", Invalid),
        ("[invalid bearer token, square/go-jose: error in cryptographic primitive]", Invalid),
        ("[invalid bearer token, service account token has expired]", Invalid),
        (
            "[invalid bearer token, token audiences [\"x\"] is invalid for the target audiences [\"site-control\"]]",
            OtherAudience,
        ),
        ("[invalid bearer token, service account token has been invalidated]", Invalidated),
        ("[invalid bearer token, serviceaccounts \"runtime\" not found]", AccountGone),
        ("[invalid bearer token, service account UID (a) does not match claim (b)]", AccountGone),
        ("", Invalid),
    ] {
        // The key `authenticated` is absent.
        assert_eq!(refusal(&json!({ "user": {}, "error": error })), reason, "{error}");
        for not in [json!(false), json!(null)] {
            let status = json!({ "authenticated": not, "user": {}, "error": error });
            assert_eq!(refusal(&status), reason, "{error}");
        }
        // Whatever else it says.
        let mut status = with(&["authenticated"], None);
        status["error"] = error.into();
        assert_eq!(refusal(&status), reason, "{error}");
    }
    assert_eq!(refusal(&json!({})), Invalid);
}

#[test]
fn a_question_that_is_sent_back_is_no_verdict() {
    let mut echoed = review(json!(null));
    let no_verdict = ReviewTrouble::NotATokenReview.to_string();
    assert_eq!(trouble(201, &echoed.to_string()).to_string(), no_verdict);
    echoed.as_object_mut().unwrap().remove("status").unwrap();
    assert_eq!(trouble(201, &echoed.to_string()).to_string(), no_verdict);
}

#[test]
fn what_was_authenticated_for_others_than_us_is_refused() {
    use ReviewRefusal::{AudienceNotConfirmed, Contradiction, NoPod, NoUid, NotAServiceAccount};
    assert_eq!(refusal(&with(&["error"], Some(json!("half a mistake")))), Contradiction);
    for audiences in [
        None,
        Some(json!([])),
        Some(json!(null)),
        Some(json!(["https://kubernetes.default.svc"])),
        Some(json!(["site-control-2", "site", "Site-Control", "site-control "])),
    ] {
        assert_eq!(refusal(&with(&["audiences"], audiences)), AudienceNotConfirmed);
    }
    for name in [
        "system:node:node-0",
        "kubernetes-admin",
        "system:serviceaccount:site-a:runtime:x",
        "system:serviceaccount:site-a",
        "system:serviceaccount:site-a:Runtime",
        "",
    ] {
        assert_eq!(refusal(&with(&["user", "username"], Some(name.into()))), NotAServiceAccount);
    }
    assert_eq!(refusal(&with(&["user", "username"], None)), NotAServiceAccount);
    assert_eq!(refusal(&with(&["user"], None)), NotAServiceAccount);
    for uid in [None, Some(json!("")), Some(json!("a b")), Some(json!("x".repeat(129)))] {
        assert_eq!(refusal(&with(&["user", "uid"], uid)), NoUid);
    }
    for uid in
        [None, Some(json!([])), Some(json!(["a", "a"])), Some(json!([""])), Some(json!(null))]
    {
        assert_eq!(refusal(&with_extra(POD_UID, uid)), NoPod);
    }
    assert_eq!(refusal(&with(&EXTRA, None)), NoPod);
}

#[test]
fn our_own_trouble_is_told_from_the_callers() {
    use ReviewTrouble as T;
    // Even where the body says yes or no.
    let bodies =
        [review(good_status()), review(json!({ "error": "x" })), json!({ "kind": "Status" })];
    for body in bodies.map(|body| body.to_string()) {
        assert!(matches!(trouble(401, &body), T::ReviewerUnknown));
        assert!(matches!(trouble(403, &body), T::ReviewerForbidden));
        for status in [429, 500, 502, 503, 504] {
            assert!(matches!(trouble(status, &body), T::Overloaded(told) if told == status));
        }
        for status in [300, 301, 307, 400, 404, 405, 409, 413, 415, 422] {
            assert!(matches!(trouble(status, &body), T::Status(told) if told == status));
        }
    }
    for body in ["", " \r\n"] {
        assert!(matches!(trouble(201, body), T::Empty));
    }
}

#[test]
fn a_success_that_is_no_review_says_nothing_about_the_token() {
    use ReviewTrouble as T;
    let good = review(good_status());
    let changed = |place: &str, value: Value| {
        let mut review = good.clone();
        review[place] = value;
        review.to_string()
    };
    let text = good.to_string();
    for body in [
        "<html>sign in</html>".to_owned(),
        "null".to_owned(),
        "[]".to_owned(),
        "{}".to_owned(),
        text[..text.len() - 1].to_owned(),
        format!("{text}{text}"),
        text.replacen("\"kind\"", "\"kind\":\"TokenReview\",\"kind\"", 1),
        changed("kind", json!("Status")),
        changed("kind", json!("tokenreview")),
        changed("apiVersion", json!("authentication.k8s.io/v1beta1")),
        changed("status", json!("ok")),
        changed("status", json!({ "authenticated": "true" })),
        changed("status", json!({ "authenticated": 1 })),
        changed("spec", json!({ "token": 1 })),
        changed("spec", json!([SENT])),
        changed("status", json!([true])),
        json!(["authentication.k8s.io/v1", "TokenReview", { "token": SENT }, good_status()])
            .to_string(),
        text.replacen(&format!("\"{POD_UID}\""), &format!("\"{POD_UID}\":[],\"{POD_UID}\""), 1),
        "[".repeat(100_000),
    ] {
        assert!(
            matches!(trouble(201, &body), T::NotATokenReview),
            "{}",
            &body[..body.len().min(99)]
        );
    }
    // Neither a yes nor a no.
    for status in [good_status(), json!({ "user": {}, "error": "invalid bearer token" })] {
        for token in [
            json!(null),
            json!({}),
            json!({ "token": null }),
            json!({ "token": "" }),
            json!({ "token": format!("{SENT}\n") }),
        ] {
            let mut review = review(status.clone());
            review["spec"] = token;
            assert!(matches!(trouble(201, &review.to_string()), T::OtherToken), "{review}");
        }
    }
}

#[test]
fn nothing_of_an_answer_is_told() {
    let secret = "s3cret";
    for (status, body) in [
        (201, review(json!({ "error": secret }))),
        (201, review(with(&["error"], Some(secret.into())))),
        (201, review(with(&["user", "username"], Some(secret.into())))),
        (201, review(with(&["audiences"], Some(json!([secret]))))),
        (201, json!({ "kind": secret })),
        (500, json!(secret)),
        (201, json!({ "apiVersion": 1, "spec": { "token": secret } })),
    ] {
        let error = judged(status, &body.to_string()).unwrap_err();
        let source = std::error::Error::source(&error).unwrap();
        let told = format!("{error} {source} {error:?}");
        assert!(!told.contains(secret) && !told.contains(SENT), "{told}");
    }
}

proptest! {
    /// Each rule by itself decides, whatever the others say.
    #[test]
    fn a_token_is_taken_only_where_every_rule_holds(rules in any::<[bool; 9]>()) {
        let [status, kind, token, authenticated, error, audience, user, uid, pod] = rules;
        let mut review = review(good_status());
        if !kind { review["kind"] = json!("Status"); }
        if !token { review["spec"]["token"] = json!("another"); }
        let of = &mut review["status"];
        if !authenticated { of["authenticated"] = json!(false); }
        if !error { of["error"] = json!("x"); }
        if !audience { of["audiences"] = json!([]); }
        if !user { of["user"]["username"] = json!("system:node:a"); }
        if !uid { of["user"]["uid"] = json!(""); }
        if !pod { of["user"]["extra"][POD_UID] = json!(["a", "b"]); }
        let judged = judged(if status { 201 } else { 403 }, &review.to_string());
        prop_assert_eq!(judged.is_ok(), rules.iter().all(|holds| *holds), "{:?}", judged);
        // What is no review of the token is no word about it.
        let is_refused = matches!(judged, Err(ReviewError::Refused(_)));
        prop_assert_eq!(is_refused, judged.is_err() && status && kind && token);
    }
}
