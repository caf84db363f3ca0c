//! Which native account a member has at a Site.

use chrono::{DateTime, Utc};

use crate::{Account, BindingId, Gid, MemberId, SiteId, Uid, UnixUser};

/// A binding that is wanted: all of it is one decision, and none of it changes later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewBinding {
    /// The Site.
    pub site: SiteId,
    /// The member.
    pub member: MemberId,
    /// The user that the member's work runs as.
    pub unix_user: UnixUser,
    /// The user's number.
    pub uid: Uid,
    /// The number of the user's group.
    pub gid: Gid,
    /// The account that the work is counted for.
    pub account: Account,
}

/// A binding that there is, or was. Times are the database's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    /// What names it.
    pub id: BindingId,
    /// What was retained.
    pub retained: NewBinding,
    /// When.
    pub retained_at: DateTime<Utc>,
    /// Since when it is no longer, if it is not.
    pub released_at: Option<DateTime<Utc>>,
}
