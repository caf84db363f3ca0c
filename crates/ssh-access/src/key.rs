//! A key of a member.

use chrono::{DateTime, Datelike, Utc};
use ssh_keys::{KeyId, PublicKey};

use crate::{Invalid, MemberId};

/// A key that is to be added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewKey {
    /// Whose it is.
    pub member: MemberId,
    /// The key.
    pub key: PublicKey,
    /// Until when it is good, where it has an end of its own.
    pub end: Option<KeyEnd>,
}

/// When a key expires, by the database's clock: in the years 1970 to 9999, to the microsecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyEnd(DateTime<Utc>);

impl KeyEnd {
    /// Takes a time; what is below a microsecond is cut off.
    ///
    /// # Errors
    ///
    /// The rule that it broke.
    pub fn new(time: DateTime<Utc>) -> Result<Self, Invalid> {
        // The way through the number takes a leap second for the second after it.
        DateTime::from_timestamp_micros(time.timestamp_micros())
            .filter(|time| (1970..=9999).contains(&time.year()))
            .map(Self)
            .ok_or(Invalid("the end of a key lies in the years 1970 to 9999"))
    }

    /// Takes a time in RFC 3339.
    ///
    /// # Errors
    ///
    /// The rule that it broke.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let time = DateTime::parse_from_rfc3339(text);
        let time = time.map_err(|_| {
            Invalid("the end of a key is a time in RFC 3339, such as 2030-01-01T00:00:00Z")
        })?;
        Self::new(time.with_timezone(&Utc))
    }

    /// The time.
    #[must_use]
    pub fn time(self) -> DateTime<Utc> {
        self.0
    }
}

/// A key as it is stored. Times are the database's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredKey {
    /// Its id.
    pub id: KeyId,
    /// Whose it is.
    pub member: MemberId,
    /// The key.
    pub key: PublicKey,
    /// When it was added.
    pub added_at: DateTime<Utc>,
    /// When it expires, if it does.
    pub expires_at: Option<DateTime<Utc>>,
    /// When it was removed, if it was.
    pub removed_at: Option<DateTime<Utc>>,
    /// What has become of it.
    pub state: KeyState,
}

/// What has become of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyState {
    /// It is good.
    Active,
    /// Its end has come.
    Expired,
    /// It was removed.
    Removed,
}

impl KeyState {
    /// `active`, `expired` or `removed`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Expired => "expired",
            Self::Removed => "removed",
        }
    }
}
