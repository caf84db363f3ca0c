//! Tokens as the server issues them: a JWT with the claims of a ServiceAccount's.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::json;

use super::cluster::Object;
use crate::Random;

/// The audience of a token that is for the API server itself, such as a reviewer's own.
pub const API_AUDIENCE: &str = "https://kubernetes.default.svc.cluster.local";

/// Life of a projected token where nothing else is said, as the smallest that Kubernetes issues.
const LIFE: Duration = Duration::from_secs(600);

/// What a token is to be.
#[derive(Clone, Copy, Debug)]
pub struct TokenRequest<'a> {
    pub(super) namespace: &'a str,
    pub(super) account: &'a str,
    pub(super) audiences: &'a [&'a str],
    pub(super) pod: Option<&'a str>,
    pub(super) life: Duration,
}

impl<'a> TokenRequest<'a> {
    /// A token of an account for an audience, bound to no Pod, that lives for ten minutes.
    #[must_use]
    pub fn new(namespace: &'a str, account: &'a str, audiences: &'a [&'a str]) -> Self {
        Self { namespace, account, audiences, pod: None, life: LIFE }
    }

    /// Binds it to a Pod of its namespace, as a projected token is.
    #[must_use]
    pub fn pod(self, pod: &'a str) -> Self {
        Self { pod: Some(pod), ..self }
    }

    /// Gives it another life.
    #[must_use]
    pub fn life(self, life: Duration) -> Self {
        Self { life, ..self }
    }
}

/// What an issued token says.
#[derive(Clone)]
pub(super) struct Claims {
    pub(super) namespace: String,
    pub(super) account: Object,
    pub(super) audiences: Vec<String>,
    pub(super) pod: Option<Object>,
    /// In seconds since 1970.
    pub(super) expires_at: u64,
    pub(super) id: String,
}

impl Claims {
    pub(super) fn subject(&self) -> String {
        format!("system:serviceaccount:{}:{}", self.namespace, self.account.name)
    }

    /// The text of the token. What stands for the signature is random.
    pub(super) fn to_jwt(&self, random: &mut Random) -> String {
        let object = |object: &Object| json!({ "name": object.name, "uid": object.uid });
        let mut bound = json!({
            "namespace": self.namespace,
            "serviceaccount": object(&self.account),
        });
        if let Some(pod) = &self.pod {
            bound["pod"] = object(pod);
        }
        let header = json!({ "alg": "RS256", "kid": "the-key-of-the-double" });
        let claims = json!({
            "aud": self.audiences,
            "exp": self.expires_at,
            "iss": API_AUDIENCE,
            "jti": self.id,
            "kubernetes.io": bound,
            "sub": self.subject(),
        });
        let signature: Vec<u8> = (0..32).flat_map(|_| random.number().to_be_bytes()).collect();
        let parts = [header.to_string().into_bytes(), claims.to_string().into_bytes(), signature];
        parts.map(|part| base64url(&part)).join(".")
    }
}

/// Seconds since 1970, by the clock of the machine, as a real server has it.
#[expect(clippy::disallowed_methods, reason = "a server has a clock of its own")]
pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// RFC 4648, section 5, without padding.
fn base64url(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let at = |index: usize| u32::from(three.get(index).copied().unwrap_or_default());
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for place in 0..=three.len() {
            let index = (bits >> (18 - 6 * place)) & 0x3f;
            text.push(char::from(ALPHABET[index as usize]));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of RFC 4648, section 10.
    #[test]
    fn bytes_are_spelt_as_the_rfc_has_them() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg"),
            ("fo", "Zm8"),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg"),
            ("fooba", "Zm9vYmE"),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64url(bytes.as_bytes()), text);
        }
        assert_eq!(base64url(&[0xfb, 0xff]), "-_8");
    }
}
