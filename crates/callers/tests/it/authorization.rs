use callers::{Presented, Unauthenticated, presented};
use http::{HeaderMap, HeaderValue, header::AUTHORIZATION};
use proptest::prelude::*;

use crate::support::BEARER;

fn headers(values: &[&str]) -> HeaderMap {
    values
        .iter()
        .map(|value| (AUTHORIZATION, HeaderValue::from_bytes(value.as_bytes()).unwrap()))
        .collect()
}

#[test]
fn a_native_bearer_is_presented_under_any_case_of_the_scheme() {
    for scheme in ["Bearer", "bearer", "BEARER", "bEARER"] {
        let headers = headers(&[&format!("{scheme} {BEARER}")]);
        let Ok(Presented::NativeBearer(bearer)) = presented(&headers) else { panic!("{scheme}") };
        assert_eq!(bearer.expose(), BEARER);
    }
}

#[test]
fn a_token_of_another_form_is_told_apart() {
    for token in ["bcjt_abc.def", "eyJh.eyJi", "scn_x", "x"] {
        let headers = headers(&[&format!("Bearer {token}")]);
        assert!(matches!(presented(&headers), Ok(Presented::Other)), "{token}");
    }
}

#[test]
fn a_jwt_is_presented_as_one_whoever_issued_it() {
    // As long as a request's head could be; a cluster is asked about shorter ones alone.
    let longest = format!("a.b.{}", "c".repeat(16 * 1024 - 4));
    for token in ["eyJh.eyJi.c2ln", &longest] {
        let headers = headers(&[&format!("Bearer {token}")]);
        let Ok(Presented::Jwt(jwt)) = presented(&headers) else { panic!("{token}") };
        assert_eq!(jwt.expose(), token);
        assert_eq!(format!("{jwt:?}"), "Jwt");
    }
    let headers = headers(&[&format!("Bearer {longest}c")]);
    assert!(matches!(presented(&headers), Ok(Presented::Other)));
}

#[test]
fn a_missing_header_presents_nothing() {
    assert_eq!(presented(&HeaderMap::new()).unwrap_err(), Unauthenticated::Missing);
}

#[test]
fn two_headers_are_refused_even_when_they_are_equal() {
    let bearer = format!("Bearer {BEARER}");
    for second in [bearer.as_str(), "Basic eDp5", ""] {
        let headers = headers(&[&bearer, second]);
        assert_eq!(presented(&headers).unwrap_err(), Unauthenticated::Repeated, "{second:?}");
    }
}

#[test]
fn anything_but_one_token_after_one_space_is_refused() {
    for value in [
        String::new(),
        "Bearer".to_owned(),
        "Bearer ".to_owned(),
        BEARER.to_owned(),
        format!("Basic {BEARER}"),
        format!("Bearer: {BEARER}"),
        format!("Bearer  {BEARER}"),
        format!("Bearer\t{BEARER}"),
        format!(" Bearer {BEARER}"),
        format!("Bearer {BEARER} "),
        format!("Bearer {BEARER} again"),
        format!("Bearer {BEARER}\tagain"),
        format!("Bearer {BEARER}, Bearer {BEARER}"),
        format!("Bearer {BEARER}ä"),
    ] {
        let headers = headers(&[&value]);
        assert_eq!(presented(&headers).unwrap_err(), Unauthenticated::NotABearer, "{value:?}");
    }
}

#[test]
fn a_malformed_native_bearer_is_not_taken_for_another_form() {
    for token in ["scnb_", "scnb_x.y", &BEARER[..BEARER.len() - 1], &format!("{BEARER}0")] {
        let headers = headers(&[&format!("Bearer {token}")]);
        let refused = presented(&headers).unwrap_err();
        assert_eq!(refused, Unauthenticated::MalformedNativeBearer, "{token}");
    }
}

#[test]
fn a_refusal_does_not_repeat_the_header() {
    let headers = headers(&["Bearer scnb_topsecret"]);
    let refused = presented(&headers).unwrap_err();
    assert!(!format!("{refused} {refused:?}").contains("topsecret"));
}

proptest! {
    #[test]
    fn any_header_is_refused_or_read_without_a_panic(value in proptest::collection::vec(any::<u8>(), 0..80)) {
        if let Ok(value) = HeaderValue::from_bytes(&value) {
            let _ = presented(&HeaderMap::from_iter([(AUTHORIZATION, value)]));
        }
    }
}
