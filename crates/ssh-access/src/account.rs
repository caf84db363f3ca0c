//! Which user of a Site a member is.

use chrono::{DateTime, Utc};
use ssh_keys::UnixUser;

use crate::{Invalid, MemberId, SiteId};

/// The id of an account: a whole number from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AccountId(i64);

impl AccountId {
    /// Takes a decimal number.
    ///
    /// # Errors
    ///
    /// The rule that it broke.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let digits = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
        let number = if digits { text.parse().ok() } else { None };
        number.and_then(Self::new).ok_or(Invalid("an account's id is a whole number from 1"))
    }

    pub(crate) fn new(number: i64) -> Option<Self> {
        (number >= 1).then_some(Self(number))
    }

    /// The number.
    #[must_use]
    pub fn get(self) -> i64 {
        self.0
    }
}

/// An account of a member at a Site. Times are the database's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Its id.
    pub id: AccountId,
    /// The Site.
    pub site: SiteId,
    /// The member.
    pub member: MemberId,
    /// The user at the Site.
    pub unix_user: UnixUser,
    /// When it was added.
    pub added_at: DateTime<Utc>,
    /// When it was removed, if it was.
    pub removed_at: Option<DateTime<Utc>>,
}
