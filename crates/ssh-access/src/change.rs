//! Changes of what is in force at a Site.

use chrono::{DateTime, Utc};
use ssh_keys::{ChangeFields, Cursor, Digest, KeyId, Operation, UnixUser};

use crate::MemberId;

/// A change as the feed has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Its place: 1 and up, without a gap, in the order of commits.
    pub seq: i64,
    /// What it does.
    pub operation: Operation,
    /// The user at the Site.
    pub unix_user: UnixUser,
    /// The key.
    pub key_id: KeyId,
    /// Whose key it is.
    pub member: MemberId,
    /// The key as `<type> <base64>`, of an addition.
    pub public_key: Option<String>,
    /// The end that the key has of its own.
    pub expires_at: Option<DateTime<Utc>>,
    /// By when a removal has to be in force.
    pub enforce_by: Option<DateTime<Utc>>,
    /// Its digest.
    pub digest: Digest,
}

impl Change {
    /// What its digest is over.
    #[must_use]
    pub fn fields(&self) -> ChangeFields<'_> {
        ChangeFields {
            seq: self.seq,
            operation: self.operation,
            unix_user: self.unix_user.as_str(),
            key_id: self.key_id.as_str(),
            member_id: self.member.as_str(),
            public_key: self.public_key.as_deref(),
            expires_at: self.expires_at,
            enforce_by: self.enforce_by,
        }
    }
}

/// Changes after a cursor, in order and without a gap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangePage {
    /// The changes; none where there is nothing new.
    pub changes: Vec<Change>,
    /// The place after them: where to go on.
    pub next: Cursor,
    /// The newest place. It may be behind `next` by what was committed while this was read.
    pub head: Cursor,
    /// When this was read, by the database's clock.
    pub read_at: DateTime<Utc>,
    /// Until when the Site may count on what it has, once it has applied everything up to `head`.
    pub lease_until: DateTime<Utc>,
    /// Since when a change waits to be brought to the feed, where one does. Before it is known which Site
    /// it concerns, it waits for each.
    pub waits_since: Option<DateTime<Utc>>,
}
