//! What the tests share.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use callers::{Environment, NativeBearer, Principal, ServiceAccountToken, SiteId};
use chrono::{DateTime, Utc};
use ring::rand::SystemRandom;
use serde_json::{Value, json};

/// A bearer in its only spelling, for tests that read one.
pub(crate) const BEARER: &str = "scnb_0123456789abcdef.ghjkmnpqrstvwxyz0123456789abcdef";

pub(crate) fn at(time: &str) -> DateTime<Utc> {
    time.parse().unwrap()
}

pub(crate) fn now() -> DateTime<Utc> {
    at("2030-01-15T12:00:00Z")
}

pub(crate) fn bearer() -> NativeBearer {
    NativeBearer::generate(&random()).unwrap()
}

#[expect(clippy::disallowed_methods, reason = "the one place of these tests that makes it")]
pub(crate) fn random() -> SystemRandom {
    SystemRandom::new()
}

pub(crate) fn runtime(site: &str) -> Principal {
    Principal::Commands { site: SiteId::parse(site).unwrap(), environment: Environment::Slurm }
}

pub(crate) fn agent(site: &str) -> Principal {
    Principal::SshAccess { site: SiteId::parse(site).unwrap() }
}

/// The row of a Runtime's grant at the Site `hpc-1`, active at `now()`.
pub(crate) fn row(bearer: &NativeBearer) -> Value {
    json!({
        "id": bearer.id().as_str(),
        "principal": "commands@hpc-1",
        "scope": "commands",
        "site": "hpc-1",
        "environment": "slurm",
        "digest": hex::encode(bearer.digest()),
        "issuedAt": "2030-01-01T00:00:00Z",
        "expiresAt": "2030-02-01T00:00:00Z",
    })
}

/// The row of an SSH agent's grant at the same Site.
pub(crate) fn agent_row(bearer: &NativeBearer) -> Value {
    let mut row = row(bearer);
    row["principal"] = "ssh-access@hpc-1".into();
    row["scope"] = "ssh-access".into();
    row.as_object_mut().unwrap().remove("environment");
    row
}

pub(crate) fn file(rows: &[Value]) -> String {
    json!({ "version": 1, "grants": rows }).to_string()
}

/// A token of a ServiceAccount with these claims and this name in place of a signature.
pub(crate) fn with_claims(name: &str, claims: &str) -> ServiceAccountToken {
    let claims = URL_SAFE_NO_PAD.encode(claims);
    // A part is not empty, and nobody can read this one.
    let claims = if claims.is_empty() { "A".to_owned() } else { claims };
    ServiceAccountToken::parse(&format!("eyJhbGciOiJub25lIn0.{claims}.{name}")).unwrap()
}

pub(crate) fn token_of(name: &str, claims: &Value) -> ServiceAccountToken {
    with_claims(name, &claims.to_string())
}
