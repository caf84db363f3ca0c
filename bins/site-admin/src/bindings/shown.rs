//! A binding as it is printed.

use std::fmt;

use chrono::{DateTime, Utc};
use resource_provisioning::Binding;
use serde::Serialize;

use crate::commands::time;

/// A binding with all that is known of it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Shown {
    pub(super) binding_id: i64,
    site: String,
    member_id: String,
    unix_user: String,
    uid: i64,
    gid: i64,
    account: String,
    pub(super) retained_at: DateTime<Utc>,
    pub(super) released_at: Option<DateTime<Utc>>,
}

impl Shown {
    pub(super) fn of(binding: &Binding) -> Self {
        let retained = &binding.retained;
        Self {
            binding_id: binding.id.get(),
            site: retained.site.as_str().to_owned(),
            member_id: retained.member.as_str().to_owned(),
            unix_user: retained.unix_user.as_str().to_owned(),
            uid: retained.uid.get(),
            gid: retained.gid.get(),
            account: retained.account.as_str().to_owned(),
            retained_at: binding.retained_at,
            released_at: binding.released_at,
        }
    }

    /// The line above a list.
    pub(super) fn heading() -> String {
        format!(
            "{:>8} {:24} {:16} {:>10} {:>10} {:16} {:24} RELEASED",
            "BINDING", "MEMBER", "USER", "UID", "GID", "ACCOUNT", "RETAINED"
        )
    }
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { binding_id, member_id, unix_user, uid, gid, account, .. } = self;
        let retained = time(self.retained_at);
        let released = self.released_at.map_or_else(|| "-".to_owned(), time);
        write!(
            f,
            "{binding_id:>8} {member_id:24} {unix_user:16} {uid:>10} {gid:>10} {account:16} \
             {retained:24} {released}"
        )
    }
}
