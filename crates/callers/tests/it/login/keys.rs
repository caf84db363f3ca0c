//! Which keys of an issuer are of use, and which sets are none.

use callers::{
    login::{KeysError, LoginRefusal},
    parsers::login_keys,
};
use serde_json::{Value, json};

use super::support::{SigningKey, base64, claims, set, verify};

/// A key with one member changed, or taken away by `null`.
fn changed(key: &Value, name: &str, value: &Value) -> Value {
    let mut key = key.clone();
    if value.is_null() {
        key.as_object_mut().unwrap().remove(name);
    } else {
        key[name] = value.clone();
    }
    key
}

fn is_usable(key: &Value) -> bool {
    match login_keys(&set(std::slice::from_ref(key))) {
        Ok(ids) => {
            assert_eq!(ids, [key["kid"].as_str().unwrap()]);
            true
        }
        Err(error) => {
            assert_eq!(error, KeysError::NoneUsable, "{key}");
            false
        }
    }
}

#[test]
fn each_member_of_a_key_has_its_rule() {
    let of = |alg| SigningKey::new("k", alg).jwk();
    let (rsa, p256, p384, ed) = (of("RS256"), of("ES256"), of("ES384"), of("EdDSA"));
    for key in [&rsa, &p256, &p384, &ed] {
        assert!(is_usable(key), "{key}");
        for (name, value, expected) in [
            ("kid", Value::Null, false),
            ("kid", json!(""), false),
            ("kid", json!(1), false),
            ("kid", json!("k".repeat(255)), true),
            ("kid", json!("k".repeat(256)), false),
            ("kty", Value::Null, false),
            ("kty", json!("oct"), false),
            ("kty", json!(["RSA"]), false),
            ("use", Value::Null, true),
            ("use", json!("enc"), false),
            ("use", json!(""), false),
            ("use", json!(["sig"]), false),
            ("key_ops", json!(["verify"]), true),
            ("key_ops", json!(["sign", "verify"]), true),
            ("key_ops", json!(["encrypt"]), false),
            ("key_ops", json!([]), false),
            ("key_ops", json!("verify"), false),
            ("alg", Value::Null, true),
            ("alg", json!("none"), false),
            ("alg", json!("HS256"), false),
            ("alg", json!("RS512"), false),
            ("alg", json!("RSA-OAEP"), false),
            ("alg", json!(1), false),
            // Whoever publishes it has lost it.
            ("d", json!("AAAA"), false),
            ("k", json!("AAAA"), false),
            ("x5c", json!(["AAAA"]), true),
        ] {
            assert_eq!(is_usable(&changed(key, name, &value)), expected, "{name} {value} of {key}");
        }
    }
    for (key, alg) in [(&rsa, "ES256"), (&p256, "ES384"), (&p384, "ES256"), (&ed, "ES256")] {
        assert!(!is_usable(&changed(key, "alg", &json!(alg))), "{alg} of {key}");
    }
    assert!(is_usable(&changed(&rsa, "alg", &json!("PS256"))));
}

#[test]
fn a_key_has_the_length_of_its_kind() {
    let of = |alg| SigningKey::new("k", alg).jwk();
    let (rsa, p256, p384, ed) = (of("RS256"), of("ES256"), of("ES384"), of("EdDSA"));
    let octets = |length: usize| json!(base64(&vec![1; length]));
    for (key, name, length) in
        [(&p256, "x", 32), (&p256, "y", 32), (&p384, "x", 48), (&p384, "y", 48), (&ed, "x", 32)]
    {
        for (other, expected) in
            [(length - 1, false), (length, true), (length + 1, false), (0, false)]
        {
            assert_eq!(is_usable(&changed(key, name, &octets(other))), expected, "{other} {key}");
        }
        assert!(!is_usable(&changed(key, name, &Value::Null)));
        assert!(!is_usable(&changed(
            key,
            name,
            &json!(format!("{}=", key[name].as_str().unwrap()))
        )));
    }
    for crv in ["P-521", "secp256k1", "Ed448", "X25519", "p-256", "P-384", "Ed25519"] {
        assert!(!is_usable(&changed(&p256, "crv", &json!(crv))), "{crv}");
    }
    for crv in ["P-256", "X25519", "Ed448"] {
        assert!(!is_usable(&changed(&ed, "crv", &json!(crv))), "{crv}");
    }
    // The first byte has the bits above a multiple of eight.
    let modulus = |first: u8, bytes: usize, last: u8| {
        let mut n = vec![0xff; bytes];
        (n[0], n[bytes - 1]) = (first, last);
        json!(base64(&n))
    };
    for (n, expected) in [
        (modulus(0x80, 256, 1), true),
        (modulus(0x7f, 256, 1), false),
        (modulus(0x80, 128, 1), false),
        (modulus(0x80, 1024, 1), true),
        (modulus(0x01, 1025, 1), false),
        (modulus(0x80, 256, 2), false),
        (modulus(0x00, 257, 1), false),
        (json!(""), false),
        (Value::Null, false),
    ] {
        assert_eq!(is_usable(&changed(&rsa, "n", &n)), expected, "{n}");
    }
    for (e, expected) in [
        (&[1, 0, 1][..], true),
        (&[0xff, 0xff, 0xff, 0xff], true),
        (&[1, 0, 0], false),
        (&[1, 0, 2], false),
        (&[0, 1, 0, 1], false),
        (&[0, 0xff, 0xff], false),
        (&[0xff, 0xff], false),
        (&[3], false),
        (&[1, 0, 0, 0, 1], false),
        (&[], false),
    ] {
        assert_eq!(is_usable(&changed(&rsa, "e", &json!(base64(e)))), expected, "{e:?}");
    }
}

#[test]
fn what_is_of_no_use_is_passed_over_and_does_not_hide_what_is() {
    let key = SigningKey::new("k", "ES256");
    let keys = [json!(1), json!("x"), json!([]), json!({}), json!({ "kty": "oct" }), key.jwk()];
    assert!(verify(&key.token(&claims()), &keys).is_ok());
    // An encryption key may have the same id: it is not among those of use.
    let same = changed(&SigningKey::new("k", "RS256").jwk(), "use", &json!("enc"));
    assert!(verify(&key.token(&claims()), &[same.clone(), key.jwk()]).is_ok());
    assert!(verify(&key.token(&claims()), &[key.jwk(), same]).is_ok());
}

#[test]
fn an_id_that_two_keys_have_is_that_of_neither() {
    let (key, other) = (SigningKey::new("k", "ES256"), SigningKey::new("k", "EdDSA"));
    let third = SigningKey::new("third", "ES256");
    for keys in [
        [key.jwk(), other.jwk(), third.jwk()],
        [key.jwk(), key.jwk(), third.jwk()],
        [third.jwk(), other.jwk(), key.jwk()],
    ] {
        assert_eq!(verify(&key.token(&claims()), &keys), Err(LoginRefusal::UnknownKey));
        assert!(verify(&third.token(&claims()), &keys).is_ok());
    }
    let four = [key.jwk(), key.jwk(), key.jwk(), key.jwk()];
    assert_eq!(login_keys(&set(&four)), Err(KeysError::NoneUsable));
}

#[test]
fn a_set_is_an_object_with_one_list_of_at_most_64() {
    let key = SigningKey::new("k", "ES256").jwk();
    for text in [
        String::new(),
        "null".to_owned(),
        "[]".to_owned(),
        format!("[{key}]"),
        "{}".to_owned(),
        r#"{"keys":{}}"#.to_owned(),
        r#"{"keys":null}"#.to_owned(),
        format!(r#"{{"keys":[{key}],"keys":[]}}"#),
        format!(r#"{{"keys":[{key}]"#),
        format!(r#"{{"keys":[{key}]}} x"#),
        "<html></html>".to_owned(),
    ] {
        assert_eq!(login_keys(text.as_bytes()), Err(KeysError::NotASet), "{text}");
    }
    assert_eq!(login_keys(br#"{"keys":[]}"#), Err(KeysError::NoneUsable));
    let keys = |count: usize| -> Vec<_> {
        (0..count).map(|number| changed(&key, "kid", &json!(number.to_string()))).collect()
    };
    assert_eq!(login_keys(&set(&keys(64))).unwrap().len(), 64);
    assert_eq!(login_keys(&set(&keys(65))), Err(KeysError::TooMany));
    let twice = format!(r#"{{"keys":[{}]}}"#, key.to_string().replacen('{', r#"{"kty":"EC","#, 1));
    assert_eq!(login_keys(twice.as_bytes()), Err(KeysError::NoneUsable));
}

/// ring looks at the point when it verifies.
#[test]
fn a_point_that_is_not_on_its_curve_vouches_for_nothing() {
    let key = SigningKey::new("k", "ES256");
    let off = changed(&key.jwk(), "y", &json!(base64(&[1; 32])));
    assert_eq!(verify(&key.token(&claims()), &[off]), Err(LoginRefusal::Signature));
}
