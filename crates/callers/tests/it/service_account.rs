use callers::{NotAServiceAccount, ServiceAccount, ServiceAccountToken};
use chrono::DateTime;
use proptest::prelude::*;

use crate::support::{token_of, with_claims};

#[test]
fn a_subject_is_read_and_printed_as_the_cluster_spells_it() {
    for (namespace, name) in
        [("site-a", "runtime"), ("0", "a.b-c.1"), (&"n".repeat(63), &"x".repeat(253))]
    {
        let text = format!("system:serviceaccount:{namespace}:{name}");
        let account = ServiceAccount::parse(&text).unwrap();
        assert_eq!((account.namespace(), account.name()), (namespace, name));
        assert_eq!(account.to_string(), text);
    }
}

#[test]
fn everything_else_is_no_subject() {
    for text in [
        "",
        "system:serviceaccount:",
        "system:serviceaccount:a",
        "system:serviceaccount:a:",
        "system:serviceaccount::b",
        "system:serviceaccount:a:b:",
        "system:serviceaccount:a:b:c",
        "system:serviceaccounts:a:b",
        "System:serviceaccount:a:b",
        " system:serviceaccount:a:b",
        "system:serviceaccount:a:b\n",
        "system:serviceaccount:a.b:c",
        "system:serviceaccount:-a:b",
        "system:serviceaccount:a-:b",
        "system:serviceaccount:a:.b",
        "system:serviceaccount:a:b..c",
        "system:serviceaccount:a:b.-c",
        "system:serviceaccount:a:B",
        "system:serviceaccount:a:b_c",
        "system:serviceaccount:a:é",
        "system:serviceaccount:*:b",
        "system:node:a",
        &format!("system:serviceaccount:{}:b", "a".repeat(64)),
        &format!("system:serviceaccount:a:{}", "b".repeat(254)),
    ] {
        assert_eq!(ServiceAccount::parse(text), Err(NotAServiceAccount), "{text:?}");
    }
}

#[test]
fn a_token_is_told_by_three_parts_in_base64url() {
    let longest = format!("a.b.{}", "c".repeat(8188));
    for text in ["a.b.c", "eyJh.eyJi.c2ln", "-._.0", &longest] {
        let token = ServiceAccountToken::parse(text).unwrap();
        assert_eq!(token.expose(), text);
        assert_eq!(format!("{token:?}"), "ServiceAccountToken");
    }
    let too_long = format!("{longest}c");
    for text in [
        "", ".", "..", "a", "a.b", "a.b.", "a..c", ".b.c", "a.b.c.", "a.b.c.d", "a.b.c\n",
        " a.b.c", "a.b.c=", "a.b.c+", "a.b.c/", "a.b.é", &too_long,
    ] {
        assert!(ServiceAccountToken::parse(text).is_none(), "{text:?}");
    }
}

#[test]
fn an_expiry_is_read_where_there_is_one() {
    let at = |seconds| DateTime::from_timestamp(seconds, 0);
    for (claims, expected) in [
        (r#"{"exp":1893456000}"#, at(1_893_456_000)),
        (r#"{"iss":"x","exp":0,"aud":["a"]}"#, at(0)),
        (r#"{"exp":-1}"#, at(-1)),
        (r#"{"exp":1893456000.5}"#, None),
        (r#"{"exp":"1893456000"}"#, None),
        (r#"{"exp":null}"#, None),
        (r#"{"exp":9223372036854775807}"#, None),
        (r#"{"exp":9223372036854775808}"#, None),
        (r#"{"exp":1,"exp":2}"#, None),
        (r#"{"EXP":1}"#, None),
        ("{}", None),
        ("[1]", None),
        ("", None),
    ] {
        assert_eq!(with_claims("x", claims).expires_at(), expected, "{claims}");
    }
    // No base64 has this length.
    assert_eq!(ServiceAccountToken::parse("a.bbbbb.c").unwrap().expires_at(), None);
    assert_eq!(token_of("x", &serde_json::json!({ "exp": 7 })).expires_at(), at(7));
}

#[test]
fn an_account_is_claimed_where_one_is_named() {
    let subject = "system:serviceaccount:site-a:runtime";
    let account = ServiceAccount::parse(subject).ok();
    let claimed = |claims: &str| with_claims("x", claims).claimed_account();
    assert_eq!(claimed(&format!(r#"{{"iss":"x","sub":"{subject}","exp":7}}"#)), account);
    for claims in [
        format!(r#"{{"sub":"{subject}","sub":"{subject}"}}"#),
        format!(r#"{{"sub":"{subject} "}}"#),
        format!(r#"{{"sub":["{subject}"]}}"#),
        format!(r#"{{"Sub":"{subject}"}}"#),
        format!(r#"["sub","{subject}"]"#),
        r#"{"sub":"system:node:a"}"#.to_owned(),
        r#"{"sub":null}"#.to_owned(),
        "{}".to_owned(),
        String::new(),
    ] {
        assert_eq!(claimed(&claims), None, "{claims}");
    }
    assert_eq!(ServiceAccountToken::parse("a.bbbbb.c").unwrap().claimed_account(), None);
}

proptest! {
    #[test]
    fn a_subject_that_is_taken_has_four_parts_and_prints_back(
        text in "(system:serviceaccount:)?[a-c.:-]{0,12}|[a-z]{1,4}(:[a-z0-9.-]{0,4}){0,5}",
    ) {
        let label = |text: &str| {
            !text.is_empty() && !text.starts_with('-') && !text.ends_with('-')
                && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
        };
        let good = match text.split(':').collect::<Vec<_>>()[..] {
            ["system", "serviceaccount", namespace, name] => label(namespace) && name.split('.').all(label),
            _ => false,
        };
        let parsed = ServiceAccount::parse(&text).ok();
        prop_assert_eq!(parsed.map(|account| account.to_string()), good.then_some(text));
    }

    #[test]
    fn a_token_that_is_taken_has_its_form(text in "[a-zA-Z0-9_-]{0,3}(\\.[a-zA-Z0-9_=+-]{0,3}){0,4}") {
        let parts: Vec<_> = text.split('.').collect();
        let good = parts.len() == 3 && parts.iter().all(|part| !part.is_empty() && !part.contains(['=', '+']));
        let token = ServiceAccountToken::parse(&text);
        prop_assert_eq!(token.as_ref().map(ServiceAccountToken::expose), good.then_some(text.as_str()));
        if let Some(token) = token {
            let _ = (token.expires_at(), token.claimed_account());
        }
    }
}
