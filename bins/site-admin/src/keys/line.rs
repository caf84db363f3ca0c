//! A line of `site-admin keys import`.

use serde::Deserialize;
use ssh_access::{KeyEnd, MemberId, NewKey, PublicKey};

/// The bytes of a line at the most: a key, and names around it.
pub(crate) const MAX_BYTES: usize = PublicKey::MAX_BYTES + 1024;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Line<'a> {
    #[serde(borrow)]
    member_id: std::borrow::Cow<'a, str>,
    #[serde(borrow)]
    public_key: std::borrow::Cow<'a, str>,
    expires_at: Option<String>,
}

/// Takes a line, without its line break.
///
/// # Errors
///
/// What is wrong with it, without repeating it.
pub fn parse(line: &str) -> Result<NewKey, String> {
    if line.len() > MAX_BYTES {
        return Err(format!("a line has at most {MAX_BYTES} bytes"));
    }
    let line: Line<'_> = serde_json::from_str(line).map_err(|_| {
        "is no JSON object with memberId, publicKey and perhaps expiresAt, and nothing else"
            .to_owned()
    })?;
    let member = MemberId::parse(&line.member_id).map_err(|error| format!("memberId: {error}"))?;
    let key = PublicKey::parse(&line.public_key).map_err(|error| format!("publicKey: {error}"))?;
    let end = line.expires_at.as_deref().map(KeyEnd::parse).transpose();
    let end = end.map_err(|error| format!("expiresAt: {error}"))?;
    Ok(NewKey { member, key, end })
}
