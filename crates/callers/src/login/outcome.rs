//! What verifying can come to.

use std::{fmt, sync::Arc};

use chrono::{DateTime, Utc};
use http::StatusCode;
use https_client::SendError;

use super::{DiscoveryError, KeysError};

/// Who logged in, by an access token of the issuer for us.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Login {
    /// The member or operator: the token's `sub`.
    pub member: MemberName,
    /// The token's `exp`. It is taken for [`super::LEEWAY`] longer.
    pub expires_at: DateTime<Utc>,
}

/// What the issuer calls a member: 1 to 255 visible ASCII characters, as long as a subject of OpenID
/// Connect may be.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MemberName(String);

/// A text that is no member's name. It does not repeat the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a member's name is 1 to 255 visible ASCII characters")]
pub struct NotAMemberName;

impl MemberName {
    /// Takes a text that is a member's name.
    ///
    /// # Errors
    ///
    /// [`NotAMemberName`].
    pub fn parse(text: &str) -> Result<Self, NotAMemberName> {
        let good = (1..=255).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic());
        if good { Ok(Self(text.to_owned())) } else { Err(NotAMemberName) }
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for MemberName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Why a token gave nobody.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoginError {
    /// The token is not good here: the caller's matter.
    #[error("the token is no access token of a member for us")]
    Refused(#[source] LoginRefusal),
    /// Nothing can be said about the token: our matter, or the issuer's.
    #[error("the token could not be verified")]
    Trouble(#[source] LoginTrouble),
    /// Too many tokens with keys that are not known wait for the issuer.
    #[error("too many tokens wait for the issuer's keys")]
    Busy,
}

/// Why a token is refused. For the log: the caller gets the same 401 for each. Nothing of the token is
/// in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LoginRefusal {
    /// A part is not exactly base64url, or header or claims are no JSON object with each member once.
    #[error("the token's header or claims can't be read")]
    Malformed,
    /// A member of the header is missing, or of another type than it should be.
    #[error("`{0}` of the token's header is missing or wrong")]
    Header(&'static str),
    /// The header has `crit`: we understand none of what it could name.
    #[error("the token's header asks for an extension")]
    Critical,
    /// It is signed by an algorithm that is not on the list.
    #[error("the token's algorithm is not taken")]
    Algorithm,
    /// A claim is missing, or of another type or range than it should be.
    #[error("`{0}` of the token's claims is missing or wrong")]
    Claim(&'static str),
    /// It is an ID token, a refresh token, or nothing that says that it is an access token.
    #[error("the token is no access token")]
    NotAnAccessToken,
    /// It is bound to a key of its holder (`cnf`), whose proof nobody asks for here.
    #[error("the token is bound to a key of its holder")]
    SenderConstrained,
    /// It is of another issuer.
    #[error("the token is of another issuer")]
    OtherIssuer,
    /// It is for somebody else, such as an action of a Runtime.
    #[error("the token is for another audience")]
    OtherAudience,
    /// It is for us and for somebody else, who could use it here.
    #[error("the token is for others beside us")]
    SeveralAudiences,
    /// Its time is over.
    #[error("the token has expired")]
    Expired,
    /// Its time has not begun, or it was issued in the future.
    #[error("the token is not valid yet")]
    NotYetValid,
    /// The issuer has no key of this id.
    #[error("the token's key is not one of the issuer's")]
    UnknownKey,
    /// The key of this id is for another algorithm.
    #[error("the token's key is for another algorithm")]
    OtherAlgorithm,
    /// The key did not make the signature.
    #[error("the token's signature is not good")]
    Signature,
}

/// Why nothing can be said about a token. None of it is the caller's fault.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoginTrouble {
    /// No answer, one that was cut, one that is too large, or of a server that nobody vouches for.
    #[error("the login issuer gave no usable answer for its {document}")]
    Unanswered {
        /// What was asked for.
        document: Document,
        /// What there was instead.
        #[source]
        source: Arc<SendError>,
    },
    /// The time was over.
    #[error("the login issuer did not give its {document} in time")]
    TooLate {
        /// What was asked for.
        document: Document,
    },
    /// Another status than 200, also a redirect.
    #[error("the login issuer answers status {} for its {document}", .status.as_u16())]
    Status {
        /// What was asked for.
        document: Document,
        /// The status.
        status: StatusCode,
    },
    /// What came is no discovery document of this issuer.
    #[error("the login issuer's discovery document can't be used")]
    Discovery(#[source] DiscoveryError),
    /// What came are no keys.
    #[error("the login issuer's keys can't be used")]
    Keys(#[source] KeysError),
    /// The fetch ended before it was done: a fault of ours, or the process ends.
    #[error("the fetch of the login issuer's keys ended before it was done")]
    Ended,
}

/// What the issuer is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Document {
    /// Where its keys are.
    Discovery,
    /// Its keys.
    Keys,
}

impl fmt::Display for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Discovery => "discovery document",
            Self::Keys => "keys",
        })
    }
}

impl From<LoginRefusal> for LoginError {
    fn from(refusal: LoginRefusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<LoginTrouble> for LoginError {
    fn from(trouble: LoginTrouble) -> Self {
        Self::Trouble(trouble)
    }
}
