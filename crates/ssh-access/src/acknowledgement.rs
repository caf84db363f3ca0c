//! What the agent of a Site has made durable.

use chrono::{DateTime, Utc};
use serde::Serialize;
use ssh_keys::{Cursor, Digest, KeyId, UnixUser};

use crate::Invalid;

/// What an agent says.
#[derive(Clone, Debug)]
pub struct Acknowledgement {
    /// Up to where everything is in its files.
    pub cursor: Cursor,
    /// The chain digest there as the agent computed it.
    pub chain_digest: Digest,
    /// The digest over what the agent read back from its files, without what is in `failures`.
    pub set_digest: Option<Digest>,
    /// Everything that it could not apply, and that is still open.
    pub failures: Failures,
}

/// Something that an agent could not apply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The user.
    pub unix_user: UnixUser,
    /// The key.
    pub key_id: KeyId,
    reason: String,
}

impl Failure {
    /// A failure with its reason for a person: 1 to 200 visible ASCII characters and spaces.
    ///
    /// # Errors
    ///
    /// The rule that it broke.
    pub fn new(unix_user: UnixUser, key_id: KeyId, reason: &str) -> Result<Self, Invalid> {
        let printable = reason.bytes().all(|byte| matches!(byte, b' '..=b'~'));
        if (1..=200).contains(&reason.len()) && printable {
            return Ok(Self { unix_user, key_id, reason: reason.to_owned() });
        }
        Err(Invalid("a reason is 1 to 200 printable ASCII characters"))
    }

    /// Why.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }
}

/// At most 1,000 failures, each user and key once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failures(Vec<Failure>);

/// A failure as it is stored.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Stored {
    unix_user: String,
    key_id: String,
    reason: String,
}

impl Failures {
    /// The most that are taken.
    pub const MOST: usize = 1000;

    /// Takes the failures, in whatever order.
    ///
    /// # Errors
    ///
    /// The rule that they broke.
    pub fn new(mut failures: Vec<Failure>) -> Result<Self, Invalid> {
        if failures.len() > Self::MOST {
            return Err(Invalid("at most 1000 failures are taken"));
        }
        let place = |failure: &Failure| (failure.unix_user.clone(), failure.key_id.clone());
        failures.sort_by_key(place);
        if failures.windows(2).any(|pair| place(&pair[0]) == place(&pair[1])) {
            return Err(Invalid("a user and key fail once"));
        }
        Ok(Self(failures))
    }

    /// The failures, by user and key.
    #[must_use]
    pub fn as_slice(&self) -> &[Failure] {
        &self.0
    }

    /// Whether a key of a user is among them.
    #[must_use]
    pub fn names(&self, unix_user: &UnixUser, key_id: &KeyId) -> bool {
        let place =
            |failure: &Failure| (&failure.unix_user, &failure.key_id).cmp(&(unix_user, key_id));
        self.0.binary_search_by(place).is_ok()
    }

    pub(crate) fn to_json(&self) -> serde_json::Result<String> {
        let stored = self.0.iter().map(|failure| Stored {
            unix_user: failure.unix_user.as_str().to_owned(),
            key_id: failure.key_id.as_str().to_owned(),
            reason: failure.reason.clone(),
        });
        serde_json::to_string(&stored.collect::<Vec<_>>())
    }
}

/// What the comparison of a set gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attested {
    /// The Site has exactly what is in force.
    Match,
    /// It has something else: it should take a snapshot and write everything anew.
    Mismatch,
    /// The cursor is not the head, so nothing could be compared.
    Behind,
}

impl Attested {
    /// `match`, `mismatch` or `behind`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Match => "match",
            Self::Mismatch => "mismatch",
            Self::Behind => "behind",
        }
    }
}

/// What is stored of an agent now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acknowledged {
    /// Up to where it has acknowledged: further than what was sent, where that was an older place.
    pub cursor: Cursor,
    /// The newest place of the feed.
    pub head: Cursor,
    /// What the comparison gave, where there was something to compare.
    pub attested: Option<Attested>,
    /// When this was stored, by the database's clock.
    pub stored_at: DateTime<Utc>,
}
