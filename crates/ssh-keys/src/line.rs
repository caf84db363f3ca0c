//! The line of a key in a file for sshd.

use std::fmt;

use chrono::{DateTime, NaiveDateTime, Utc};

use crate::{Invalid, KeyId, PublicKey};

/// The first line of every file that is managed, by which it is known. A file without it is somebody
/// else's.
pub const MANAGED_MARK: &str = "# site-control: managed by site-agent ssh-keys; do not edit";

/// A key as sshd reads it: until a moment, for a terminal and commands, without forwarding.
///
/// Its text is one line without its line break, `expiry-time="YYYYMMDDHHMMSSZ",restrict,pty <type>
/// <base64> <keyId>`. sshd itself refuses the key after the moment, whoever is cut off from whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthorizedLine {
    key: PublicKey,
    id: KeyId,
    until: DateTime<Utc>,
}

const BEFORE_TIME: &str = "expiry-time=\"";
const AFTER_TIME: &str = "\",restrict,pty ";
const TIME: &str = "%Y%m%d%H%M%SZ";

impl AuthorizedLine {
    /// The line of a key that is good until a moment, which is rounded down to a second: the earlier
    /// of the lease's end and the key's own. Moments before 1970 and after 9999 count as the first and
    /// last of these years, as sshd has no text for others.
    #[must_use]
    pub fn new(key: PublicKey, id: KeyId, until: DateTime<Utc>) -> Self {
        let seconds = until.timestamp().clamp(0, LAST_SECOND);
        let until = DateTime::from_timestamp(seconds, 0).unwrap_or(DateTime::UNIX_EPOCH);
        Self { key, id, until }
    }

    /// Takes a line that this crate wrote, without its line break, and no other.
    ///
    /// # Errors
    ///
    /// The rule that it broke.
    pub fn parse(line: &str) -> Result<Self, Invalid> {
        let read = || {
            let (time, rest) = line.strip_prefix(BEFORE_TIME)?.split_once(AFTER_TIME)?;
            let until = NaiveDateTime::parse_from_str(time, TIME).ok()?.and_utc();
            let (key, id) = rest.rsplit_once(' ')?;
            let key = PublicKey::parse(key).ok()?;
            let read = Self::new(key, KeyId::parse(id).ok()?, until);
            // There is one spelling: no comment is left, and the time is what it was.
            (read.to_string() == line).then_some(read)
        };
        read().ok_or(Invalid("the line is none that was written for sshd"))
    }

    /// The key.
    #[must_use]
    pub fn key(&self) -> &PublicKey {
        &self.key
    }

    /// The key's id.
    #[must_use]
    pub fn id(&self) -> &KeyId {
        &self.id
    }

    /// Until when it is good, to the second.
    #[must_use]
    pub fn until(&self) -> DateTime<Utc> {
        self.until
    }
}

/// 9999-12-31T23:59:59Z.
const LAST_SECOND: i64 = 253_402_300_799;

impl fmt::Display for AuthorizedLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (time, key, id) = (self.until.format(TIME), &self.key, self.id.as_str());
        write!(f, "{BEFORE_TIME}{time}{AFTER_TIME}{key} {id}")
    }
}
