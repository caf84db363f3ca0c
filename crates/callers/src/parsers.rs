//! What reads bytes from outside, for tests without an API server. No promise is made to anybody else.

use http::StatusCode;

use crate::{
    review::{self, Pod, ReviewError},
    service_account::ServiceAccount,
};

/// Who the sent token is, by an answer about it: the ServiceAccount, its uid, the Pod.
///
/// # Errors
///
/// As [`crate::review::Reviewer::review`].
pub fn verdict(
    status: StatusCode,
    body: &[u8],
    sent: &str,
    audience: &str,
) -> Result<(ServiceAccount, String, Pod), ReviewError> {
    let review::Identity { account, uid, pod } = review::verdict(status, body, sent, audience)?;
    Ok((account, uid, pod))
}
