//! Keys, and tokens that they sign.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use callers::{
    Jwt,
    login::{Audience, Issuer, Login, LoginRefusal},
    parsers,
};
use ring::{
    rand::SecureRandom,
    signature::{
        ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair,
        Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256, RSA_PSS_SHA256, RsaKeyPair,
        RsaPublicKeyComponents,
    },
};
use serde_json::{Value, json};

use crate::support::{now, random};

pub(crate) const ISSUER: &str = "https://login.example/realms/members";
pub(crate) const AUDIENCE: &str = "site-control-api";
pub(crate) const MEMBER: &str = "5f0c4a8e-member";

/// Made for these tests: nobody's. ring makes no RSA keys.
const RSA: &[u8] = include_bytes!("rsa.pk8");

/// A key of an issuer.
pub(crate) struct SigningKey {
    pub(crate) kid: &'static str,
    pub(crate) alg: &'static str,
    pair: Pair,
}

enum Pair {
    Rsa(Box<RsaKeyPair>),
    Ecdsa(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

impl SigningKey {
    /// A new key for the algorithm; of RSA there is one.
    pub(crate) fn new(kid: &'static str, alg: &'static str) -> Self {
        let random = random();
        let ecdsa = |algorithm| {
            let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
            Pair::Ecdsa(EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random).unwrap())
        };
        let pair = match alg {
            "RS256" | "PS256" => Pair::Rsa(Box::new(RsaKeyPair::from_pkcs8(RSA).unwrap())),
            "ES256" => ecdsa(&ECDSA_P256_SHA256_FIXED_SIGNING),
            "ES384" => ecdsa(&ECDSA_P384_SHA384_FIXED_SIGNING),
            "EdDSA" => {
                let mut seed = [0; 32];
                random.fill(&mut seed).unwrap();
                Pair::Ed25519(Ed25519KeyPair::from_seed_unchecked(&seed).unwrap())
            }
            other => panic!("{other}"),
        };
        Self { kid, alg, pair }
    }

    /// The public key, with nothing that it need not say.
    pub(crate) fn bare_jwk(&self) -> Value {
        match &self.pair {
            Pair::Rsa(pair) => {
                let RsaPublicKeyComponents { n, e } =
                    RsaPublicKeyComponents::<Vec<u8>>::from(pair.public());
                json!({ "kty": "RSA", "kid": self.kid, "n": base64(&n), "e": base64(&e) })
            }
            Pair::Ecdsa(pair) => {
                let point = &pair.public_key().as_ref()[1..];
                let (x, y) = point.split_at(point.len() / 2);
                let crv = if x.len() == 32 { "P-256" } else { "P-384" };
                json!({ "kty": "EC", "crv": crv, "kid": self.kid, "x": base64(x), "y": base64(y) })
            }
            Pair::Ed25519(pair) => {
                let x = base64(pair.public_key().as_ref());
                json!({ "kty": "OKP", "crv": "Ed25519", "kid": self.kid, "x": x })
            }
        }
    }

    /// The public key as issuers publish it.
    pub(crate) fn jwk(&self) -> Value {
        let mut jwk = self.bare_jwk();
        jwk["alg"] = self.alg.into();
        jwk["use"] = "sig".into();
        jwk
    }

    /// The header of an access token.
    pub(crate) fn header(&self) -> Value {
        json!({ "alg": self.alg, "kid": self.kid, "typ": "at+jwt" })
    }

    /// A token of these exact texts, signed by the key's own algorithm whatever the header says.
    pub(crate) fn sign_text(&self, header: &str, claims: &str) -> String {
        let signed = format!("{}.{}", base64(header.as_bytes()), base64(claims.as_bytes()));
        let signature = self.signature(signed.as_bytes());
        format!("{signed}.{}", base64(&signature))
    }

    pub(crate) fn sign(&self, header: &Value, claims: &Value) -> Jwt {
        jwt(&self.sign_text(&header.to_string(), &claims.to_string()))
    }

    /// An access token with these claims.
    pub(crate) fn token(&self, claims: &Value) -> Jwt {
        self.sign(&self.header(), claims)
    }

    fn signature(&self, message: &[u8]) -> Vec<u8> {
        let random = random();
        match &self.pair {
            Pair::Rsa(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                if self.alg == "PS256" {
                    pair.sign(&RSA_PSS_SHA256, &random, message, &mut signature).unwrap();
                } else {
                    pair.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature).unwrap();
                }
                signature
            }
            Pair::Ecdsa(pair) => pair.sign(&random, message).unwrap().as_ref().to_vec(),
            Pair::Ed25519(pair) => pair.sign(message).as_ref().to_vec(),
        }
    }
}

/// The claims of a member's access token for us, as of `now()`.
pub(crate) fn claims() -> Value {
    let now = now().timestamp();
    json!({
        "iss": ISSUER,
        "aud": AUDIENCE,
        "sub": MEMBER,
        "client_id": "control-plane",
        "scope": "openid runs",
        "jti": "a-jti",
        "iat": now - 10,
        "exp": now + 300,
    })
}

/// Claims with one changed, or taken away by `null`.
pub(crate) fn with(name: &str, value: Value) -> Value {
    let mut claims = claims();
    if value.is_null() {
        claims.as_object_mut().unwrap().remove(name);
    } else {
        claims[name] = value;
    }
    claims
}

/// A set of keys, as the issuer answers it.
pub(crate) fn set(keys: &[Value]) -> Vec<u8> {
    json!({ "keys": keys }).to_string().into_bytes()
}

pub(crate) fn jwt(text: &str) -> Jwt {
    Jwt::parse(text).unwrap()
}

pub(crate) fn issuer() -> Issuer {
    Issuer::parse(ISSUER).unwrap()
}

pub(crate) fn audience() -> Audience {
    Audience::parse(AUDIENCE).unwrap()
}

/// Who logged in at `now()`, by these keys.
pub(crate) fn verify(token: &Jwt, keys: &[Value]) -> Result<Login, LoginRefusal> {
    parsers::login(token, &set(keys), issuer(), audience(), now())
}

pub(crate) fn base64(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}
