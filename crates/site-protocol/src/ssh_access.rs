//! Bodies of the routes of SSH access.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{Digest, object};

/// The content type of a snapshot: JSON lines.
pub const SNAPSHOT_CONTENT_TYPE: &str = "application/x-ndjson";

/// The most bytes of one line of a snapshot, its line break included.
pub const MAX_SNAPSHOT_LINE_BYTES: usize = 16 * 1024;

/// The most changes in one answer.
pub const MAX_SSH_CHANGES: u32 = 1_000;

/// The most failures in one acknowledgement.
pub const MAX_SSH_FAILURES: usize = 1_000;

/// The answer to `GET /v1/site/ssh-access/changes?after=&limit=&wait=`: the changes after a place, in
/// order. Reading claims nothing: the same question gets the same changes again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SshChanges {
    /// Consecutive changes, the first with the sequence after `after`; empty when there are none.
    #[serde(deserialize_with = "object::list")]
    pub changes: Vec<SshChange>,
    /// The place to ask after next: that of the last change here, else `after`.
    #[schema(pattern = "^(0|[1-9][0-9]*)\\.[0-9a-f]{64}$")]
    pub next: String,
    /// The place after the newest change.
    #[schema(pattern = "^(0|[1-9][0-9]*)\\.[0-9a-f]{64}$")]
    pub head: String,
    /// The database's time when `head` was read.
    pub server_time: DateTime<Utc>,
    /// Until when everything that is in force at `head` may be used without asking again.
    pub lease_until: DateTime<Utc>,
}

/// A change of what is in force at the Site.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SshChange {
    /// Its place, from 1, without a gap.
    pub seq: u64,
    /// What it does.
    pub op: SshOperation,
    /// The user at the Site.
    pub unix_user: String,
    /// The key's id.
    pub key_id: String,
    /// The member whose key it is.
    pub member_id: String,
    /// Of an addition: the key, `<type> <base64>`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub public_key: Option<String>,
    /// Of an addition: when the key ends by itself, where it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub expires_at: Option<DateTime<Utc>>,
    /// Of a removal: by when it has to be in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub enforce_by: Option<DateTime<Utc>>,
    /// The change's own digest, by which the chain goes on.
    pub digest: Digest,
}

/// What a change does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum SshOperation {
    /// The key is in force from now on, or has another end.
    Add,
    /// The key is no longer in force.
    Remove,
}

/// The first line of `GET /v1/site/ssh-access/snapshot`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SshSnapshotHead {
    /// The place whose set it is.
    #[schema(pattern = "^(0|[1-9][0-9]*)\\.[0-9a-f]{64}$")]
    pub cursor: String,
    /// The database's time when the set was read.
    pub server_time: DateTime<Utc>,
    /// Until when the set may be used without asking again.
    pub lease_until: DateTime<Utc>,
}

/// A line of a snapshot: a key that is in force. They are sorted by user and key's id, as bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SshSnapshotKey {
    /// The user at the Site.
    pub unix_user: String,
    /// The key's id.
    pub key_id: String,
    /// The member whose key it is.
    pub member_id: String,
    /// The key, `<type> <base64>`.
    pub public_key: String,
    /// When the key ends by itself, where it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub expires_at: Option<DateTime<Utc>>,
}

/// The last line of a snapshot. What ends without it is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SshSnapshotEnd {
    /// `true`.
    pub complete: bool,
    /// How many keys there were.
    pub count: u64,
}

/// The body of `PUT /v1/site/ssh-access/acknowledgement`: what the Site has made durable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SshAcknowledgement {
    /// The place up to which every change is durable, but for `failures`.
    #[schema(pattern = "^(0|[1-9][0-9]*)\\.[0-9a-f]{64}$")]
    pub cursor: String,
    /// The chain digest there, as the agent computed it.
    pub chain_digest: Digest,
    /// The SHA-256 over a line `<unixUser> <keyId> <type> <base64>` with its line break for each key
    /// that was read back from the files, sorted by user and key's id, those of `failures` left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub set_digest: Option<Digest>,
    /// What can't be applied now, all of it: it replaces what was told before. At most 1,000.
    #[serde(deserialize_with = "object::list")]
    pub failures: Vec<SshFailure>,
}

/// A key whose change can't be applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SshFailure {
    /// The user at the Site.
    pub unix_user: String,
    /// The key's id.
    pub key_id: String,
    /// Why not: 1 to 200 characters of visible ASCII and spaces.
    pub reason: String,
}

/// The answer to it: the acknowledgement as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SshAcknowledged {
    /// The place that is stored. One that was stored before and is newer stays.
    #[schema(pattern = "^(0|[1-9][0-9]*)\\.[0-9a-f]{64}$")]
    pub cursor: String,
    /// The place after the newest change.
    #[schema(pattern = "^(0|[1-9][0-9]*)\\.[0-9a-f]{64}$")]
    pub head: String,
    /// What the comparison of `setDigest` gave; absent where there was none to compare.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub attested: Option<SshAttested>,
    /// The database's time.
    pub server_time: DateTime<Utc>,
}

/// How the set at the Site compares with the one that is in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum SshAttested {
    /// They are the same.
    Match,
    /// They differ: the agent takes a snapshot and writes everything anew.
    Mismatch,
    /// The head has moved on: nothing was compared.
    Behind,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_change_is_written_as_the_page_says_and_absent_fields_are_left_out() {
        let change = SshChange {
            seq: 7,
            op: SshOperation::Remove,
            unix_user: "alice".to_owned(),
            key_id: "key_a".to_owned(),
            member_id: "member-1".to_owned(),
            public_key: None,
            expires_at: None,
            enforce_by: Some("2026-01-02T03:04:05.000006Z".parse().unwrap()),
            digest: Digest::ZERO,
        };
        let expected = json!({"seq": 7, "op": "remove", "unixUser": "alice", "keyId": "key_a",
            "memberId": "member-1", "enforceBy": "2026-01-02T03:04:05.000006Z",
            "digest": "0".repeat(64)});
        assert_eq!(serde_json::to_value(&change).unwrap(), expected);
        assert_eq!(serde_json::from_value::<SshChange>(expected).unwrap(), change);
    }

    #[test]
    fn an_attestation_that_was_not_compared_may_be_null_or_absent() {
        for text in [
            r#"{"cursor":"0.0","head":"0.0","serverTime":"2026-01-02T03:04:05Z","attested":null}"#,
            r#"{"cursor":"0.0","head":"0.0","serverTime":"2026-01-02T03:04:05Z","later":1}"#,
        ] {
            assert_eq!(serde_json::from_str::<SshAcknowledged>(text).unwrap().attested, None);
        }
    }
}
