//! The text of `grants.json`.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Datelike, SecondsFormat, Utc};
use serde::Serialize;
use serde_json::value::RawValue;

use super::{Grant, Grants, GrantsErrors, object::Object};
use crate::{
    bearer::BearerId,
    principal::{Environment, Principal, Scope, SiteId},
};

/// The only version there is.
const VERSION: u64 = 1;

/// The largest file that is read, in bytes: several thousand grants.
const LIMIT_BYTES: usize = 1024 * 1024;

pub(super) fn parse(text: &str, now: DateTime<Utc>) -> Result<Grants, GrantsErrors> {
    let mut mistakes = Vec::new();
    let grants = read(text, &mut mistakes);
    let mut ids = HashSet::new();
    let mut active: HashMap<String, usize> = HashMap::new();
    for (index, grant) in &grants {
        if !ids.insert(&grant.id) {
            mistakes.push(format!("grants[{index}].id: {} is there more than once", grant.id));
        }
        if grant.is_active(now)
            && let Some(first) = active.insert(grant.principal.to_string(), *index)
        {
            let principal = &grant.principal;
            mistakes.push(format!(
                "grants[{index}]: {principal} has an active grant already, grants[{first}]"
            ));
        }
    }
    if !mistakes.is_empty() {
        return Err(GrantsErrors(mistakes));
    }
    let mut whole = Grants::default();
    for (_, grant) in grants {
        whole.add(grant);
    }
    Ok(whole)
}

pub(super) fn to_json(grants: &[Grant]) -> String {
    let file = File { version: VERSION, grants: grants.iter().map(Row::of).collect() };
    // Strings and numbers only: writing them to memory can't fail.
    let mut text = serde_json::to_string_pretty(&file).unwrap_or_default();
    text.push('\n');
    text
}

/// The grants that are right by themselves, each with its place in the file.
fn read(text: &str, mistakes: &mut Vec<String>) -> Vec<(usize, Grant)> {
    if text.len() > LIMIT_BYTES {
        mistakes.push(format!("the file: has more than {LIMIT_BYTES} bytes"));
        return Vec::new();
    }
    let Some(mut file) = Object::open(String::new(), text, mistakes) else { return Vec::new() };
    if let Some(version) = file.raw("version")
        && serde_json::from_str::<u64>(version.get()).ok() != Some(VERSION)
    {
        file.wrong("version", "must be 1");
    }
    let mut list = Vec::new();
    if let Some(grants) = file.raw("grants") {
        match serde_json::from_str::<Vec<&RawValue>>(grants.get()) {
            Ok(grants) => list = grants,
            Err(_) => file.wrong("grants", "must be a list"),
        }
    }
    file.finish();
    let mut good = Vec::new();
    for (index, raw) in list.into_iter().enumerate() {
        let read = Object::open(format!("grants[{index}]"), raw.get(), mistakes).and_then(grant);
        good.extend(read.map(|grant| (index, grant)));
    }
    good
}

fn grant(mut fields: Object<'_, '_>) -> Option<Grant> {
    let id = fields.required("id", |text| BearerId::parse(text).ok(), ID_RULE);
    let named = fields.required("principal", |text| Some(text.to_owned()), PRINCIPAL_RULE);
    let scope = fields.required("scope", |text| Scope::parse(text).ok(), SCOPE_RULE);
    let site = fields.required("site", |text| SiteId::parse(text).ok(), SITE_RULE);
    let environment =
        fields.optional("environment", |text| Environment::parse(text).ok(), ENVIRONMENT_RULE);
    let digest = fields.required("digest", digest, DIGEST_RULE);
    let issued_at = fields.required("issuedAt", time, TIME_RULE);
    let expires_at = fields.required("expiresAt", time, TIME_RULE);
    let revoked_at = fields.optional("revokedAt", time, TIME_RULE);

    if let (Some(named), Some(scope), Some(site)) = (named, scope, &site)
        && named != format!("{scope}@{site}")
    {
        fields.wrong("principal", PRINCIPAL_RULE);
    }
    if let (Some(issued_at), Some(expires_at)) = (issued_at, expires_at)
        && expires_at <= issued_at
    {
        fields.wrong("expiresAt", "must be later than issuedAt");
    }
    let principal = match (scope, environment) {
        (Some(Scope::Commands), Some(None)) => {
            fields.wrong("environment", "is missing, as the scope is commands");
            None
        }
        (Some(Scope::SshAccess), Some(Some(_))) => {
            fields.wrong("environment", "must be absent, as the scope is ssh-access");
            None
        }
        (Some(Scope::Commands), Some(Some(environment))) => {
            site.map(|site| Principal::Commands { site, environment })
        }
        (Some(Scope::SshAccess), Some(None)) => site.map(|site| Principal::SshAccess { site }),
        (None, _) | (_, None) => None,
    };
    fields.finish();
    Some(Grant {
        id: id?,
        principal: principal?,
        digest: digest?,
        issued_at: issued_at?,
        expires_at: expires_at?,
        revoked_at: revoked_at?,
    })
}

const ID_RULE: &str = "must be 16 lower-case Crockford base32 characters";
const PRINCIPAL_RULE: &str = "must be the scope, @ and the site";
const SCOPE_RULE: &str = "must be commands or ssh-access";
const SITE_RULE: &str = "must be the name of a Site";
const ENVIRONMENT_RULE: &str = "must be k8s or slurm";
const DIGEST_RULE: &str = "must be 64 lower-case hexadecimal characters";
const TIME_RULE: &str = "must be a time in RFC 3339";

fn digest(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    let lower = !text.bytes().any(|byte| byte.is_ascii_uppercase());
    (lower && hex::decode_to_slice(text, &mut bytes).is_ok()).then_some(bytes)
}

/// Takes a time that can be written again: with an offset, a text can mean a year that has no
/// spelling in RFC 3339.
fn time(text: &str) -> Option<DateTime<Utc>> {
    let time = DateTime::parse_from_rfc3339(text).ok()?.with_timezone(&Utc);
    (0..=9999).contains(&time.year()).then_some(time)
}

#[derive(Serialize)]
struct File<'a> {
    version: u64,
    grants: Vec<Row<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Row<'a> {
    id: &'a str,
    principal: String,
    scope: &'static str,
    site: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    environment: Option<&'static str>,
    digest: String,
    issued_at: String,
    expires_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    revoked_at: Option<String>,
}

impl<'a> Row<'a> {
    fn of(grant: &'a Grant) -> Self {
        let time = |time: DateTime<Utc>| time.to_rfc3339_opts(SecondsFormat::AutoSi, true);
        Self {
            id: grant.id.as_str(),
            principal: grant.principal.to_string(),
            scope: grant.principal.scope().as_str(),
            site: grant.principal.site().as_str(),
            environment: grant.principal.environment().map(Environment::as_str),
            digest: hex::encode(grant.digest),
            issued_at: time(grant.issued_at),
            expires_at: time(grant.expires_at),
            revoked_at: grant.revoked_at.map(time),
        }
    }
}
