//! No bytes make a reader panic, or tell what they held.

use callers::{
    Jwt,
    login::Issuer,
    parsers::{login_keys, login_keys_path},
};
use proptest::prelude::*;

use super::support::{ISSUER, SigningKey, base64, jwt, verify};

proptest! {
    #[test]
    fn any_three_parts_are_refused_without_a_panic(text in "[a-zA-Z0-9_-]{1,40}\\.[a-zA-Z0-9_-]{1,40}\\.[a-zA-Z0-9_-]{1,40}") {
        let key = SigningKey::new("k", "EdDSA");
        prop_assert!(verify(&Jwt::parse(&text).unwrap(), &[key.jwk()]).is_err());
    }

    #[test]
    fn any_header_and_claims_are_refused_without_a_panic_and_without_telling_them(
        header in ".{0,60}|\\{(\"(alg|kid|typ|crit|s3cret)\":(\"(EdDSA|k|JWT|at\\+jwt|s3cret)\"|1|null|\\[\\])){0,1}(,\"(alg|kid|typ)\":\"(EdDSA|k|JWT|s3cret)\"){0,3}\\}",
        claims in prop_oneof![proptest::collection::vec(any::<u8>(), 0..60), "\\{\"(iss|aud|exp|sub)\":(\"s3cret\"|1|null|\\[\"s3cret\"\\])\\}".prop_map(String::into_bytes)],
    ) {
        let key = SigningKey::new("k", "EdDSA");
        let text = key.sign_text(&header, "");
        let (signed, signature) = text.rsplit_once('.').unwrap();
        let header = signed.strip_suffix('.').unwrap();
        // A part is not empty.
        let [header, claims] = [header.to_owned(), base64(&claims)].map(|part| if part.is_empty() { "AA".into() } else { part });
        let refused = verify(&jwt(&format!("{header}.{claims}.{signature}")), &[key.jwk()]).unwrap_err();
        let told = format!("{} {:?}", refused, refused);
        prop_assert!(!told.contains("s3cret"));
    }

    #[test]
    fn any_documents_are_refused_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), text in "[\\[\\]{}:,\"a-z0-9]{0,80}") {
        let issuer = Issuer::parse(ISSUER).unwrap();
        for bytes in [&bytes[..], text.as_bytes()] {
            prop_assert!(login_keys(bytes).is_err());
            prop_assert!(login_keys_path(bytes, &issuer).is_err());
        }
    }
}
