//! What a token says, and whether that makes it one of a member for us.

use chrono::{DateTime, TimeDelta, Utc};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::{
    Audience, Issuer, Login, LoginRefusal, MemberName, members::Members, token::HeaderType,
};

/// So far the issuer's clock and ours may be apart.
pub const LEEWAY: TimeDelta = TimeDelta::seconds(30);

/// The payload's own `typ` of an access token at Keycloak; an ID token has `ID` there, and a refresh
/// token `Refresh` or `Offline`.
const BEARER: &str = "Bearer";

/// The claims that are looked at. What else a token says is its issuer's matter.
pub(crate) struct Claims {
    issuer: String,
    audiences: Vec<String>,
    subject: MemberName,
    expires_at: DateTime<Utc>,
    not_before: Option<DateTime<Utc>>,
    issued_at: Option<DateTime<Utc>>,
    is_access_token: bool,
    is_sender_constrained: bool,
}

/// Whose tokens are taken, and for whom they must be.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    pub(crate) issuer: Issuer,
    pub(crate) audience: Audience,
}

impl Claims {
    pub(super) fn read(json: &[u8], header_type: HeaderType) -> Result<Self, LoginRefusal> {
        let mut claims = Members::read(json).ok_or(LoginRefusal::Malformed)?;
        let own_type: Option<String> = optional(&mut claims, "typ")?;
        let subject: String = required(&mut claims, "sub")?;
        Ok(Self {
            issuer: required(&mut claims, "iss")?,
            audiences: audiences(claims.raw("aud")).ok_or(LoginRefusal::Claim("aud"))?,
            subject: MemberName::parse(&subject).map_err(|_| LoginRefusal::Claim("sub"))?,
            expires_at: time(&mut claims, "exp")?.ok_or(LoginRefusal::Claim("exp"))?,
            not_before: time(&mut claims, "nbf")?,
            issued_at: time(&mut claims, "iat")?,
            is_access_token: is_access_token(header_type, own_type.as_deref()),
            is_sender_constrained: claims.has("cnf"),
        })
    }

    /// Who logged in, if all that the token says is so. Whether the issuer says it is another matter.
    ///
    /// # Errors
    ///
    /// The first rule that the token breaks at `now`.
    pub(crate) fn judge(&self, rules: &Rules, now: DateTime<Utc>) -> Result<Login, LoginRefusal> {
        if self.issuer != rules.issuer.as_str() {
            return Err(LoginRefusal::OtherIssuer);
        }
        // Whoever a token is for may present it. One for us alone is the only one that nobody else
        // has had.
        match &self.audiences[..] {
            [only] if only == rules.audience.as_str() => {}
            all if all.iter().any(|one| one == rules.audience.as_str()) => {
                return Err(LoginRefusal::SeveralAudiences);
            }
            _ => return Err(LoginRefusal::OtherAudience),
        }
        if !self.is_access_token {
            return Err(LoginRefusal::NotAnAccessToken);
        }
        if self.is_sender_constrained {
            return Err(LoginRefusal::SenderConstrained);
        }
        if now - LEEWAY >= self.expires_at {
            return Err(LoginRefusal::Expired);
        }
        if self.not_before.max(self.issued_at).is_some_and(|begins| begins > now + LEEWAY) {
            return Err(LoginRefusal::NotYetValid);
        }
        Ok(Login { member: self.subject.clone(), expires_at: self.expires_at })
    }
}

/// An access token says so itself: by the header's `typ` (RFC 9068), or, where that leaves it open,
/// by the payload's. An ID token has neither, whatever its audience; the payload of one that has a
/// `typ` says another.
fn is_access_token(header: HeaderType, own: Option<&str>) -> bool {
    match (header, own) {
        (HeaderType::AccessToken, None) => true,
        (HeaderType::AccessToken | HeaderType::Any, own) => own == Some(BEARER),
    }
}

fn optional<T: DeserializeOwned>(
    claims: &mut Members<'_>,
    name: &'static str,
) -> Result<Option<T>, LoginRefusal> {
    claims.take(name).map_err(|_| LoginRefusal::Claim(name))
}

fn required<T: DeserializeOwned>(
    claims: &mut Members<'_>,
    name: &'static str,
) -> Result<T, LoginRefusal> {
    optional(claims, name)?.ok_or(LoginRefusal::Claim(name))
}

/// Whole seconds since 1970.
fn time(
    claims: &mut Members<'_>,
    name: &'static str,
) -> Result<Option<DateTime<Utc>>, LoginRefusal> {
    let Some(seconds) = optional::<u64>(claims, name)? else { return Ok(None) };
    let time = i64::try_from(seconds).ok().and_then(|seconds| DateTime::from_timestamp(seconds, 0));
    time.map(Some).ok_or(LoginRefusal::Claim(name))
}

/// One text, or a list of texts.
fn audiences(value: Option<&RawValue>) -> Option<Vec<String>> {
    let text = value?.get();
    serde_json::from_str(text).map(|one| vec![one]).or_else(|_| serde_json::from_str(text)).ok()
}
