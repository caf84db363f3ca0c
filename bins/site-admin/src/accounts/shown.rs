//! An account as it is printed.

use std::fmt;

use chrono::{DateTime, Utc};
use serde::Serialize;
use ssh_access::Account;

use crate::commands::time;

/// An account with all that is known of it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Shown {
    pub(super) account_id: i64,
    site: String,
    member_id: String,
    unix_user: String,
    pub(super) added_at: DateTime<Utc>,
    pub(super) removed_at: Option<DateTime<Utc>>,
}

impl Shown {
    pub(super) fn of(account: &Account) -> Self {
        Self {
            account_id: account.id.get(),
            site: account.site.as_str().to_owned(),
            member_id: account.member.as_str().to_owned(),
            unix_user: account.unix_user.as_str().to_owned(),
            added_at: account.added_at,
            removed_at: account.removed_at,
        }
    }

    /// The line above a list.
    pub(super) fn heading() -> String {
        format!("{:>8} {:32} {:24} {:24} REMOVED", "ACCOUNT", "USER", "MEMBER", "ADDED")
    }
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { account_id, unix_user, member_id, .. } = self;
        let added = time(self.added_at);
        let removed = self.removed_at.map_or_else(|| "-".to_owned(), time);
        write!(f, "{account_id:>8} {unix_user:32} {member_id:24} {added:24} {removed}")
    }
}
