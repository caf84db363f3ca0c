//! What the file of a user holds: the mark by which it is ours, and a line for each key.
//!
//! A key that ends by itself has a comment before its line, with that end: the line alone does not
//! tell it from the end of the lease.

use std::{collections::BTreeMap, fmt};

use chrono::{DateTime, NaiveDateTime, Utc};
use ssh_keys::{AuthorizedLine, KeyId, MANAGED_MARK, PublicKey};

/// The most keys of a user. A member may have 32.
pub(super) const MAX_KEYS: usize = 256;

/// Above the size of every file that is written: a line is a key, at most as long as one that is
/// taken, with its options, and the comment before it.
pub(super) const MAX_FILE_BYTES: u64 = (MAX_KEYS as u64 + 1) * (PublicKey::MAX_BYTES as u64 + 256);

/// A key that is in force for a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HeldKey {
    /// The key.
    pub(super) key: PublicKey,
    /// When it ends by itself, to the second.
    pub(super) ends: Option<DateTime<Utc>>,
}

/// The keys of a user, by their ids.
pub(super) type Keys = BTreeMap<KeyId, HeldKey>;

/// The content of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UserFile {
    /// The keys.
    pub(super) keys: Keys,
    /// Until when sshd takes them without another look at the Site API, to the second.
    pub(super) lease: DateTime<Utc>,
}

const ENDS: &str = " ends ";
const TIME: &str = "%Y%m%d%H%M%SZ";

impl HeldKey {
    /// A key as it came. A part of a second of its end is cut off.
    pub(super) fn new(key: PublicKey, ends: Option<DateTime<Utc>>) -> Self {
        Self { key, ends: ends.map(to_second) }
    }
}

impl UserFile {
    /// Keys under a lease.
    pub(super) fn new(keys: Keys, lease: DateTime<Utc>) -> Self {
        Self { keys, lease: to_second(lease) }
    }

    /// Whether a file is ours by its mark, whatever else it holds.
    pub(super) fn is_marked(bytes: &[u8]) -> bool {
        bytes.strip_prefix(MANAGED_MARK.as_bytes()).is_some_and(|rest| rest.starts_with(b"\n"))
    }

    /// Takes a file that was written here, and no other: one that somebody edited is not it.
    ///
    /// The lease is the latest of its lines, as those of keys that end before it tell their ends.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(bytes).ok()?;
        let mut lines = text.lines().skip(1).peekable();
        let (mut keys, mut lease) = (Keys::new(), None);
        while let Some(line) = lines.next() {
            let (end, line) = match line.strip_prefix("# ") {
                Some(comment) => (Some(comment.split_once(ENDS)?), lines.next()?),
                None => (None, line),
            };
            let line = AuthorizedLine::parse(line).ok()?;
            let ends = match end {
                Some((id, time)) if id == line.id().as_str() => Some(parse_time(time)?),
                Some(_) => return None,
                None => None,
            };
            lease = lease.max(Some(line.until()));
            keys.insert(line.id().clone(), HeldKey { key: line.key().clone(), ends });
        }
        let file = Self { keys, lease: lease? };
        // There is one spelling.
        (file.to_string().as_bytes() == bytes).then_some(file)
    }
}

impl fmt::Display for UserFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{MANAGED_MARK}")?;
        for (id, HeldKey { key, ends }) in &self.keys {
            if let Some(ends) = ends {
                writeln!(f, "# {}{ENDS}{}", id.as_str(), ends.format(TIME))?;
            }
            let until = ends.map_or(self.lease, |ends| ends.min(self.lease));
            writeln!(f, "{}", AuthorizedLine::new(key.clone(), id.clone(), until))?;
        }
        Ok(())
    }
}

/// Cuts off a part of a second. What lies outside the years that sshd can read is the first or the
/// last second of them.
fn to_second(time: DateTime<Utc>) -> DateTime<Utc> {
    const LAST: i64 = 253_402_300_799;
    DateTime::from_timestamp(time.timestamp().clamp(0, LAST), 0).unwrap_or(DateTime::UNIX_EPOCH)
}

fn parse_time(text: &str) -> Option<DateTime<Utc>> {
    NaiveDateTime::parse_from_str(text, TIME).ok().map(|time| time.and_utc())
}

#[cfg(test)]
mod tests;
