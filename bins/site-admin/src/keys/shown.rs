//! A key as it is printed.

use std::fmt;

use chrono::{DateTime, Utc};
use serde::Serialize;
use ssh_access::{Done, StoredKey};

use crate::commands::time;

/// A key with all that is known of it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Shown {
    pub(super) key_id: String,
    member_id: String,
    public_key: String,
    fingerprint: String,
    state: &'static str,
    pub(super) added_at: DateTime<Utc>,
    expires_at: Option<DateTime<Utc>>,
    pub(super) removed_at: Option<DateTime<Utc>>,
}

impl Shown {
    pub(super) fn of(key: &StoredKey) -> Self {
        Self {
            key_id: key.id.as_str().to_owned(),
            member_id: key.member.as_str().to_owned(),
            public_key: key.key.to_string(),
            fingerprint: key.key.fingerprint().to_string(),
            state: key.state.as_str(),
            added_at: key.added_at,
            expires_at: key.expires_at,
            removed_at: key.removed_at,
        }
    }

    /// The line above a list.
    pub(super) fn heading() -> String {
        format!(
            "{:30} {:8} {:50} {:20} {:24} {:24} REMOVED",
            "KEY", "STATE", "FINGERPRINT", "TYPE", "ADDED", "EXPIRES"
        )
    }
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key_id, state, fingerprint, .. } = self;
        let kind = self.public_key.split(' ').next().unwrap_or_default();
        let kind = kind.strip_suffix("@openssh.com").unwrap_or(kind);
        let added = time(self.added_at);
        let moment = |moment: Option<DateTime<Utc>>| moment.map_or_else(|| "-".to_owned(), time);
        let (expires, removed) = (moment(self.expires_at), moment(self.removed_at));
        write!(
            f,
            "{key_id:30} {state:8} {fingerprint:50} {kind:20} {added:24} {expires:24} {removed}"
        )
    }
}

/// A key that is added.
#[derive(Serialize)]
pub(super) struct Added {
    #[serde(flatten)]
    key: Shown,
    new: bool,
    /// What its member should hear of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<String>,
}

impl Added {
    pub(super) fn of(done: &Done<StoredKey>) -> Self {
        let warning = done.value.key.warning().map(|warning| warning.to_string());
        Self { key: Shown::of(&done.value), new: done.new, warning }
    }
}

impl fmt::Display for Added {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = if self.new { "new" } else { "known" };
        let Shown { key_id, fingerprint, .. } = &self.key;
        write!(f, "{key_id}: {fingerprint}, added at {}, {state}", time(self.key.added_at))
    }
}
