//! Proof that a page of changes continues the feed that this side has seen: no gap, swap or fork.
//!
//! As for commands, the digests are computed here a second time, from the documentation:
//!
//! - A field is written as its length (`u64`, big-endian) and its bytes.
//! - A change's digest is the SHA-256 of the fields `site-control/ssh-change/1`, the sequence in
//!   decimal, `add` or `remove`, `unixUser`, `keyId`, `memberId`, `publicKey`, `expiresAt` and
//!   `enforceBy`; what is absent is empty, times are in UTC with six places of the second.
//! - The chain digest goes on as that of commands does, see [`crate::next_chain_digest`].

use std::{fmt, str::FromStr};

use chrono::{DateTime, SecondsFormat, Utc};
use ring::digest::{Context, SHA256};
use site_protocol::{Digest, SshChange, SshChanges, SshOperation};

use crate::chain::{next_chain_digest, ours};

/// A place in the changes of a Site: a sequence and the chain digest there,
/// `<seq>.<64 hexadecimal characters>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SshCursor {
    seq: u64,
    chain_digest: Digest,
}

/// A text that is no cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a cursor is a sequence, a dot, and the chain digest there")]
pub struct SshCursorError;

/// How a page of changes contradicts the question or itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FeedError {
    /// A change has another sequence than the one that is next.
    #[error("change {expected} should follow, the page has {found}")]
    Gap {
        /// The sequence that should follow.
        expected: u64,
        /// The sequence that the page has.
        found: u64,
    },
    /// A change's fields do not give the digest that it carries.
    #[error("the digest of change {seq} does not match its fields")]
    ChangeDigest {
        /// The change's sequence.
        seq: u64,
    },
    /// An addition without a key, or a removal with one.
    #[error("change {seq} has not the fields of what it does")]
    Fields {
        /// The change's sequence.
        seq: u64,
    },
    /// `next` is not what the presented place and the changes give.
    #[error("the place after change {seq} does not follow from the one that was presented")]
    Next {
        /// The sequence at which it should be.
        seq: u64,
    },
    /// `head` is before `next`, or another history.
    #[error("the head contradicts the place after the changes")]
    Head,
}

impl SshCursor {
    /// The place before the first change.
    pub const START: Self = Self { seq: 0, chain_digest: Digest::ZERO };

    /// The sequence of the last change before the place; 0 before the first.
    #[must_use]
    pub fn seq(self) -> u64 {
        self.seq
    }

    /// The chain digest there.
    #[must_use]
    pub fn chain_digest(self) -> Digest {
        self.chain_digest
    }

    /// The place after one more change with this digest; nowhere after the last number.
    #[must_use]
    pub fn after(self, change: &Digest) -> Option<Self> {
        let seq = self.seq.checked_add(1)?;
        Some(Self { seq, chain_digest: next_chain_digest(&self.chain_digest, change) })
    }

    /// Whether `later` can be a place of the same history: the same one, or a later one.
    pub(super) fn can_be_before(self, later: Self) -> bool {
        self == later || self.seq < later.seq
    }
}

impl FromStr for SshCursor {
    type Err = SshCursorError;

    fn from_str(text: &str) -> Result<Self, SshCursorError> {
        let (seq, digest) = text.split_once('.').ok_or(SshCursorError)?;
        let decimal = seq.bytes().all(|byte| byte.is_ascii_digit());
        let one_spelling = decimal && (seq == "0" || !seq.starts_with('0'));
        let seq: u64 = seq.parse().map_err(|_| SshCursorError)?;
        let chain_digest: Digest = digest.parse().map_err(|_| SshCursorError)?;
        // Before the first change there is one digest.
        let possible = seq > 0 || chain_digest == Digest::ZERO;
        // The database counts in 63 bits.
        if one_spelling && possible && i64::try_from(seq).is_ok() {
            Ok(Self { seq, chain_digest })
        } else {
            Err(SshCursorError)
        }
    }
}

impl fmt::Display for SshCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.seq, self.chain_digest)
    }
}

/// Checks a page that answers the question after `after`; gives the place after its changes and the
/// head.
pub(super) fn check(
    page: &SshChanges,
    after: SshCursor,
) -> Result<(SshCursor, SshCursor), FeedError> {
    let mut place = after;
    for change in &page.changes {
        let found = change.seq;
        // After the last number there is none.
        let Some(next) = place.after(&change.digest).filter(|next| next.seq == found) else {
            return Err(FeedError::Gap { expected: place.seq.saturating_add(1), found });
        };
        if ssh_change_digest(change) != change.digest {
            return Err(FeedError::ChangeDigest { seq: found });
        }
        let fits = match change.op {
            SshOperation::Add => change.public_key.is_some() && change.enforce_by.is_none(),
            SshOperation::Remove => change.public_key.is_none() && change.enforce_by.is_some(),
        };
        if !fits {
            return Err(FeedError::Fields { seq: found });
        }
        place = next;
    }
    if page.next.parse() != Ok(place) {
        return Err(FeedError::Next { seq: place.seq });
    }
    let head: SshCursor = page.head.parse().map_err(|SshCursorError| FeedError::Head)?;
    if place.can_be_before(head) { Ok((place, head)) } else { Err(FeedError::Head) }
}

/// The digest of a change, computed from its fields.
#[must_use]
pub fn ssh_change_digest(change: &SshChange) -> Digest {
    let operation = match change.op {
        SshOperation::Add => "add",
        SshOperation::Remove => "remove",
    };
    let mut context = Context::new(&SHA256);
    for field in [
        "site-control/ssh-change/1",
        &change.seq.to_string(),
        operation,
        &change.unix_user,
        &change.key_id,
        &change.member_id,
        change.public_key.as_deref().unwrap_or_default(),
        &spelled(change.expires_at),
        &spelled(change.enforce_by),
    ] {
        context.update(&(field.len() as u64).to_be_bytes());
        context.update(field.as_bytes());
    }
    ours(&context.finish())
}

fn spelled(time: Option<DateTime<Utc>>) -> String {
    time.map(|time| time.to_rfc3339_opts(SecondsFormat::Micros, true)).unwrap_or_default()
}

#[cfg(test)]
mod tests;
