//! What a review can come to.

use std::sync::Arc;

use http::StatusCode;
use https_client::SendError;
use tokio::time::Instant;

use crate::service_account::ServiceAccount;

/// Who a token is, by a review.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reviewed {
    /// The ServiceAccount.
    pub account: ServiceAccount,
    /// Its uid: one that was deleted and made again has another.
    pub uid: String,
    /// The Pod to which the token is bound.
    pub pod: Pod,
    /// Until when the answer is good: it is given without another review until then. Counted from
    /// before the cluster was asked.
    pub until: Instant,
}

/// A Pod, as the cluster names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pod {
    /// Its name, where the cluster told it.
    pub name: Option<String>,
    /// Its uid.
    pub uid: String,
}

/// Why a review gave nobody. Those who shared the review share the reason.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReviewError {
    /// The token is not good here: the caller's matter.
    #[error("the cluster does not vouch for the token")]
    Refused(#[source] ReviewRefusal),
    /// Nothing can be said about the token: our matter, or the cluster's.
    #[error("the token could not be reviewed")]
    Trouble(#[source] ReviewTrouble),
    /// Too many tokens are under review, and there was no place in time.
    #[error("too many tokens are under review")]
    Busy,
}

/// Why a token is refused. For the log: the caller gets the same 401 for each.
///
/// The first four are told apart by words of the API server, which may change: they say where to
/// look, and nothing is decided by them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReviewRefusal {
    /// Forged, expired, of another cluster, or no token at all.
    #[error("the cluster does not know the token, or it has expired")]
    Invalid,
    /// It was made for others than us.
    #[error("the token was made for another audience")]
    OtherAudience,
    /// Its ServiceAccount was deleted, or made again since.
    #[error("the token's ServiceAccount was deleted or made again")]
    AccountGone,
    /// Its Pod was deleted.
    #[error("the token was invalidated, as with its Pod")]
    Invalidated,
    /// It is good for the API server, but our audience is not among those that were confirmed.
    #[error("the token is not for our audience")]
    AudienceNotConfirmed,
    /// It was authenticated and a mistake was told as well.
    #[error("the cluster authenticated the token and told a mistake as well")]
    Contradiction,
    /// It is of a user, a node or something else.
    #[error("the token is not that of a ServiceAccount")]
    NotAServiceAccount,
    /// The cluster told no uid of the ServiceAccount.
    #[error("the cluster told no uid of the ServiceAccount")]
    NoUid,
    /// It is bound to no Pod, so it would outlive whoever used it.
    #[error("the token is not bound to a Pod")]
    NoPod,
}

/// Why nothing can be said about a token. None of it is the caller's fault.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReviewTrouble {
    /// 401: our reviewer's token is not good, also after it was read again.
    #[error("the API server does not know our reviewer's token (401)")]
    ReviewerUnknown,
    /// 403: our reviewer may not create token reviews.
    #[error("our reviewer may not create tokenreviews (403)")]
    ReviewerForbidden,
    /// 429 or 5xx.
    #[error("the API server can't answer at the moment (status {})", .0.as_u16())]
    Overloaded(StatusCode),
    /// Any other status that is no success.
    #[error("status {} of something that is no review", .0.as_u16())]
    Status(StatusCode),
    /// A success without a body.
    #[error("an answer without a body")]
    Empty,
    /// A success that is not the JSON of a TokenReview, such as a gateway's page.
    #[error("an answer that is no TokenReview")]
    NotATokenReview,
    /// A review of another token than the one that was sent.
    #[error("an answer about another token")]
    OtherToken,
    /// No answer, one that was cut, or one that is too large.
    #[error("the API server gave no usable answer")]
    Unanswered(#[source] Arc<SendError>),
    /// The time was over.
    #[error("the API server gave no answer in time")]
    TooLate,
    /// The review ended before it was done: a fault of ours, or the process ends.
    #[error("the review ended before it was done")]
    Ended,
}

impl From<ReviewRefusal> for ReviewError {
    fn from(refusal: ReviewRefusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<ReviewTrouble> for ReviewError {
    fn from(trouble: ReviewTrouble) -> Self {
        Self::Trouble(trouble)
    }
}

impl From<SendError> for ReviewTrouble {
    fn from(error: SendError) -> Self {
        match error {
            SendError::Deadline => Self::TooLate,
            error => Self::Unanswered(Arc::new(error)),
        }
    }
}
