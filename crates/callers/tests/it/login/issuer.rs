//! Whose tokens are taken, whom they are for, and what an issuer says about itself.

use callers::{
    login::{Audience, DiscoveryError, Issuer, IssuerError, NotAnAudience},
    parsers::login_keys_path,
};
use proptest::prelude::*;
use serde_json::{Value, json};

#[test]
fn an_issuer_is_an_https_url_and_its_document_is_below_its_path() {
    for (text, origin, path) in [
        ("https://a.example", "https://a.example", ""),
        ("https://a.example/", "https://a.example", ""),
        ("https://a.example:8443/realms/x", "https://a.example:8443", "/realms/x"),
        ("https://a.example/realms/x/", "https://a.example", "/realms/x"),
        ("https://127.0.0.1:1", "https://127.0.0.1:1", ""),
        ("https://[::1]:1/a%20b", "https://[::1]:1", "/a%20b"),
    ] {
        let issuer = Issuer::parse(text).unwrap();
        assert_eq!((issuer.as_str(), issuer.to_string().as_str()), (text, text));
        assert_eq!(issuer.origin().as_str(), origin);
        assert_eq!(issuer.discovery_path(), format!("{path}/.well-known/openid-configuration"));
    }
}

#[test]
fn everything_else_is_no_issuer() {
    use IssuerError::{NotAUrl, NotHttps, NotNormal, QueryOrFragment, UserInfo};
    let long = format!("https://a.example/{}", "p".repeat(238));
    for (text, reason) in [
        ("", NotAUrl),
        ("a.example", NotAUrl),
        ("https://", NotAUrl),
        ("https://a b", NotAUrl),
        ("https://a.example/\u{e9}", NotAUrl),
        ("https://a.example\n", NotAUrl),
        ("https://a..example", NotAUrl),
        (&long, NotAUrl),
        ("http://a.example", NotHttps),
        ("urn:a", NotHttps),
        ("https://a.example?", QueryOrFragment),
        ("https://a.example/#x", QueryOrFragment),
        ("https://u@a.example", UserInfo),
        ("https://u:p@a.example", UserInfo),
        ("https://@a.example", NotNormal),
        ("https://A.example", NotNormal),
        ("https://a.example:443", NotNormal),
        ("https://a.example/x/../y", NotNormal),
        ("https://a.example\\y", NotNormal),
        ("https:a.example", NotNormal),
        ("HTTPS://a.example", NotNormal),
    ] {
        assert_eq!(Issuer::parse(text).map(|_| ()), Err(reason), "{text:?}");
    }
    assert!(Issuer::parse(&long[..255]).is_ok());
}

#[test]
fn an_audience_is_1_to_255_visible_ascii_characters() {
    for good in ["a", "https://site.example/api", &"a".repeat(255)] {
        assert_eq!(Audience::parse(good).unwrap().as_str(), good);
    }
    for bad in ["", "a b", "a\n", "\u{e9}", &"a".repeat(256)] {
        assert_eq!(Audience::parse(bad), Err(NotAnAudience), "{bad:?}");
    }
}

const ISSUER: &str = "https://a.example:8443/realms/x";

fn document(issuer: &Value, keys: &Value) -> Vec<u8> {
    json!({ "issuer": issuer, "jwks_uri": keys, "claims_supported": ["sub"] }).to_string().into()
}

#[test]
fn the_keys_are_at_the_issuers_own_origin() {
    let issuer = Issuer::parse(ISSUER).unwrap();
    let path = |keys: &str| login_keys_path(&document(&ISSUER.into(), &keys.into()), &issuer);
    for (keys, expected) in [
        ("https://a.example:8443/realms/x/certs", "/realms/x/certs"),
        ("https://A.example:8443/jwks?v=1", "/jwks?v=1"),
        ("https://a.example:8443", "/"),
    ] {
        assert_eq!(path(keys).as_deref(), Ok(expected));
    }
    for keys in [
        "",
        "/jwks",
        "jwks",
        "http://a.example:8443/jwks",
        "https://a.example/jwks",
        "https://a.example:8444/jwks",
        "https://b.example:8443/jwks",
        "https://a.example.evil.example:8443/jwks",
        "https://a.example:8443@evil.example/jwks",
        "https://user@a.example:8443/jwks",
        "https://a.example:8443/jwks#x",
        "file:///etc/passwd",
        "data:application/json,{}",
    ] {
        assert_eq!(path(keys), Err(DiscoveryError::KeysElsewhere), "{keys}");
    }
}

#[test]
fn a_document_is_that_of_the_exact_issuer() {
    use DiscoveryError::{NotADocument, OtherIssuer};
    let issuer = Issuer::parse(ISSUER).unwrap();
    let keys: Value = "https://a.example:8443/jwks".into();
    for named in ["", "https://a.example:8443/realms/x/", "https://a.example:8443/realms/y", "x"] {
        let refused = login_keys_path(&document(&named.into(), &keys), &issuer);
        assert_eq!(refused, Err(OtherIssuer), "{named}");
    }
    for body in [
        document(&Value::Null, &keys),
        document(&ISSUER.into(), &Value::Null),
        document(&json!([ISSUER]), &keys),
        document(&ISSUER.into(), &json!(1)),
        format!(r#"{{"issuer":"{ISSUER}"}}"#).into(),
        format!(r#"{{"issuer":"x","issuer":"{ISSUER}","jwks_uri":{keys}}}"#).into(),
        format!(r#"["{ISSUER}",{keys}]"#).into(),
        b"<html>".to_vec(),
        Vec::new(),
    ] {
        let refused = login_keys_path(&body, &issuer);
        assert_eq!(refused, Err(NotADocument), "{}", String::from_utf8_lossy(&body));
    }
}

proptest! {
    #[test]
    fn an_issuer_prints_back_and_its_document_is_on_its_origin(
        text in "https://[a-c.:@/?#A%0-9-]{0,20}|\\PC{0,20}",
    ) {
        if let Ok(issuer) = Issuer::parse(&text) {
            prop_assert_eq!(issuer.as_str(), &text);
            let origin = issuer.origin().as_str();
            prop_assert!(text.starts_with(origin) && issuer.discovery_path().starts_with('/'));
            let document = format!("{origin}{}", issuer.discovery_path());
            prop_assert_eq!(document, format!(
                "{}/.well-known/openid-configuration", text.strip_suffix('/').unwrap_or(&text)
            ));
        }
    }
}
