//! What an answer of the API server means. It is pure, so that every answer can be tried.

use std::collections::HashMap;

use http::StatusCode;
use secrecy::zeroize::Zeroizing;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use subtle::ConstantTimeEq;

use super::outcome::{Pod, ReviewError, ReviewRefusal, ReviewTrouble};
use crate::{grants::Entries, service_account::ServiceAccount};

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
    if !status.authenticated {
        return Err(refusal(&status.error).into());
    }
    if !status.error.is_empty() {
        return Err(ReviewRefusal::Contradiction.into());
    }
    // Without any it is good for the API server alone.
    if !status.audiences.iter().any(|confirmed| confirmed == audience) {
        return Err(ReviewRefusal::AudienceNotConfirmed.into());
    }
    let account =
        ServiceAccount::parse(&status.username).map_err(|_| ReviewRefusal::NotAServiceAccount)?;
    let uid = Some(status.uid).filter(|uid| is_uid(uid)).ok_or(ReviewRefusal::NoUid)?;
    let pod_uid = only(status.pod_uid).filter(|uid| is_uid(uid)).ok_or(ReviewRefusal::NoPod)?;
    let name = only(status.pod_name).filter(|name| is_name(name));
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
    let Review { token, status } = Review::read(body).ok_or(ReviewTrouble::NotATokenReview)?;
    if !bool::from(token.as_bytes().ct_eq(sent.as_bytes())) {
        return Err(ReviewTrouble::OtherToken);
    }
    Ok(status)
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

/// The value of a key that has exactly one.
fn only(values: Vec<String>) -> Option<String> {
    let [value] = <[String; 1]>::try_from(values).ok()?;
    Some(value)
}

/// What is read of a TokenReview.
struct Review {
    token: Zeroizing<String>,
    status: Status,
}

/// What is absent is empty, as the API server leaves empty fields out.
struct Status {
    authenticated: bool,
    error: String,
    audiences: Vec<String>,
    username: String,
    uid: String,
    pod_name: Vec<String>,
    pod_uid: Vec<String>,
}

impl Review {
    /// `None` for what is no TokenReview. Fields that nobody asks for are not looked into.
    fn read(body: &[u8]) -> Option<Self> {
        let mut review = Fields::of(serde_json::from_slice(body).ok()?)?;
        let (version, kind): (String, String) = (review.take("apiVersion")?, review.take("kind")?);
        if version != API_VERSION || kind != KIND {
            return None;
        }
        let token = Zeroizing::new(review.take_object("spec")?.take("token")?);
        // Who sends our own question back gives no verdict.
        let mut status = review.take_required("status")?;
        let mut user = status.take_object("user")?;
        let mut extra = user.take_object("extra")?;
        let status = Status {
            authenticated: status.take("authenticated")?,
            error: status.take("error")?,
            audiences: status.take("audiences")?,
            username: user.take("username")?,
            uid: user.take("uid")?,
            pod_name: extra.take(POD_NAME)?,
            pod_uid: extra.take(POD_UID)?,
        };
        Some(Self { token, status })
    }
}

/// The fields of an object, each once. The derived readers would take a list for an object.
struct Fields<'a>(HashMap<String, &'a RawValue>);

impl<'a> Fields<'a> {
    fn of(Entries(entries): Entries<'a>) -> Option<Self> {
        let count = entries.len();
        let fields: HashMap<_, _> = entries.into_iter().collect();
        (fields.len() == count).then_some(Self(fields))
    }

    /// A field; where it is absent or `null`, the empty value. `None` where it is of another type.
    fn take<T: Default + DeserializeOwned>(&mut self, name: &str) -> Option<T> {
        let Some(value) = self.0.remove(name) else { return Some(T::default()) };
        serde_json::from_str::<Option<T>>(value.get()).ok().map(Option::unwrap_or_default)
    }

    /// A field that has to be there, and is an object itself.
    fn take_required(&mut self, name: &str) -> Option<Self> {
        self.0.remove(name).and_then(|value| Self::of(serde_json::from_str(value.get()).ok()?))
    }

    /// As [`Fields::take`], of a field that is an object itself.
    fn take_object(&mut self, name: &str) -> Option<Self> {
        match self.0.remove(name).map(RawValue::get) {
            None | Some("null") => Some(Self(HashMap::new())),
            Some(text) => Self::of(serde_json::from_str(text).ok()?),
        }
    }
}
