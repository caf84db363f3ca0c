//! What an answer of the API server means. It is pure, so that every answer can be tried.

use std::{borrow::Cow, collections::HashMap};

use http::StatusCode;
use serde::Deserialize;
use subtle::ConstantTimeEq;

use super::outcome::{Pod, ReviewError, ReviewRefusal, ReviewTrouble};
use crate::service_account::ServiceAccount;

const API_VERSION: &str = "authentication.k8s.io/v1";
const KIND: &str = "TokenReview";

/// The Pod to which a token is bound, in `extra`.
const POD_NAME: &str = "authentication.kubernetes.io/pod-name";
const POD_UID: &str = "authentication.kubernetes.io/pod-uid";

/// The longest uid that is taken, in bytes.
const MOST_UID_BYTES: usize = 128;

/// Who the sent token is, by an answer about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) account: ServiceAccount,
    pub(crate) uid: String,
    pub(crate) pod: Pod,
}

/// Judges an answer about `sent`, which was asked with our `audience`.
///
/// Only a review of that very token is a yes or a no: it is accepted where it was authenticated
/// without a mistake, our audience is confirmed, it is that of a ServiceAccount, and it is bound to
/// one Pod. Every other answer says nothing about the token.
pub(crate) fn verdict(
    status: StatusCode,
    body: &[u8],
    sent: &str,
    audience: &str,
) -> Result<Identity, ReviewError> {
    let status = review(status, body, sent)?;
    if status.authenticated != Some(true) {
        return Err(refusal(status.error.as_deref().unwrap_or_default()).into());
    }
    if status.error.is_some_and(|error| !error.is_empty()) {
        return Err(ReviewRefusal::Contradiction.into());
    }
    // Without any it is good for the API server alone.
    if !status.audiences.unwrap_or_default().iter().any(|confirmed| confirmed == audience) {
        return Err(ReviewRefusal::AudienceNotConfirmed.into());
    }
    let user = status.user.unwrap_or_default();
    let account = ServiceAccount::parse(&user.username.unwrap_or_default())
        .map_err(|_| ReviewRefusal::NotAServiceAccount)?;
    let uid = user.uid.filter(|uid| is_uid(uid)).ok_or(ReviewRefusal::NoUid)?;
    let mut extra = user.extra.unwrap_or_default();
    let mut only = |key| {
        let values: [String; 1] = extra.remove(key).flatten()?.try_into().ok()?;
        values.into_iter().next()
    };
    let pod_uid = only(POD_UID).filter(|uid| is_uid(uid)).ok_or(ReviewRefusal::NoPod)?;
    let name = only(POD_NAME).filter(|name| is_name(name));
    Ok(Identity { account, uid, pod: Pod { name, uid: pod_uid } })
}

/// Whether an answer is a review of the sent token at all, whatever it says.
pub(super) fn is_review(status: StatusCode, body: &[u8], sent: &str) -> Result<(), ReviewTrouble> {
    review(status, body, sent).map(|_| ())
}

/// What a review of the sent token says.
fn review(status: StatusCode, body: &[u8], sent: &str) -> Result<Status, ReviewTrouble> {
    match status {
        StatusCode::UNAUTHORIZED => return Err(ReviewTrouble::ReviewerUnknown),
        StatusCode::FORBIDDEN => return Err(ReviewTrouble::ReviewerForbidden),
        StatusCode::TOO_MANY_REQUESTS => return Err(ReviewTrouble::Overloaded(status)),
        status if status.is_server_error() => return Err(ReviewTrouble::Overloaded(status)),
        // 400 and 405 as well: what we send is never the caller's fault.
        status if !status.is_success() => return Err(ReviewTrouble::Status(status)),
        _ => {}
    }
    if body.trim_ascii().is_empty() {
        return Err(ReviewTrouble::Empty);
    }
    let review: TokenReview<'_> =
        serde_json::from_slice(body).map_err(|_| ReviewTrouble::NotATokenReview)?;
    if review.api_version != API_VERSION || review.kind != KIND {
        return Err(ReviewTrouble::NotATokenReview);
    }
    if !bool::from(review.spec.token.as_bytes().ct_eq(sent.as_bytes())) {
        return Err(ReviewTrouble::OtherToken);
    }
    Ok(review.status.unwrap_or_default())
}

/// What kind of refusal the API server's words are. They are not kept, as nobody knows what else
/// stands in them.
fn refusal(error: &str) -> ReviewRefusal {
    if error.contains("for the target audiences") {
        ReviewRefusal::OtherAudience
    } else if error.contains("has been invalidated") {
        ReviewRefusal::Invalidated
    } else if error.contains("serviceaccounts \"") && error.contains("not found")
        || error.contains("service account UID")
    {
        ReviewRefusal::AccountGone
    } else {
        ReviewRefusal::Invalid
    }
}

fn is_uid(text: &str) -> bool {
    (1..=MOST_UID_BYTES).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// A Pod's name is an RFC 1123 subdomain; it goes into logs, so nothing else is taken for one.
fn is_name(text: &str) -> bool {
    let inner =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-".contains(&byte);
    (1..=253).contains(&text.len()) && text.bytes().all(inner)
}

/// Absent and `null` are the same for the API server, whose structures leave empty fields out.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TokenReview<'a> {
    #[serde(borrow)]
    api_version: Cow<'a, str>,
    #[serde(borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    spec: Spec<'a>,
    status: Option<Status>,
}

/// Borrowed, so that the token is not copied again.
#[derive(Deserialize)]
struct Spec<'a> {
    #[serde(borrow, default)]
    token: Cow<'a, str>,
}

#[derive(Default, Deserialize)]
struct Status {
    authenticated: Option<bool>,
    error: Option<String>,
    audiences: Option<Vec<String>>,
    user: Option<User>,
}

#[derive(Default, Deserialize)]
struct User {
    username: Option<String>,
    uid: Option<String>,
    extra: Option<HashMap<String, Option<Vec<String>>>>,
}
