//! A change of what is in force at a Site, and its digest.

use chrono::{DateTime, SecondsFormat, Utc};

use crate::{Digest, Invalid, digest::Fields};

/// What a change does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// A key is in force from now on, or has another end.
    Add,
    /// A key is no longer in force.
    Remove,
}

impl Operation {
    /// Takes `add` or `remove`.
    ///
    /// # Errors
    ///
    /// The rule that it broke.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        [Self::Add, Self::Remove]
            .into_iter()
            .find(|operation| operation.as_str() == text)
            .ok_or(Invalid("an operation is add or remove"))
    }

    /// `add` or `remove`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::Remove => "remove",
        }
    }
}

/// Everything that the digest of a change is over, in its order.
#[derive(Clone, Copy, Debug)]
pub struct ChangeFields<'a> {
    /// Its place, from 1.
    pub seq: i64,
    /// What it does.
    pub operation: Operation,
    /// The user at the Site.
    pub unix_user: &'a str,
    /// The key's id.
    pub key_id: &'a str,
    /// The member whose key it is.
    pub member_id: &'a str,
    /// The key, `<type> <base64>`, of an addition.
    pub public_key: Option<&'a str>,
    /// The end that the key has of its own.
    pub expires_at: Option<DateTime<Utc>>,
    /// By when a removal has to be in force.
    pub enforce_by: Option<DateTime<Utc>>,
}

impl ChangeFields<'_> {
    /// Its digest, by which the chain goes on.
    #[must_use]
    pub fn digest(&self) -> Digest {
        let mut fields = Fields::new("site-control/ssh-change/1");
        fields.add(&self.seq.to_string());
        fields.add(self.operation.as_str());
        fields.add(self.unix_user);
        fields.add(self.key_id);
        fields.add(self.member_id);
        fields.add(self.public_key.unwrap_or_default());
        fields.add(&spelled(self.expires_at));
        fields.add(&spelled(self.enforce_by));
        fields.finish()
    }
}

/// A time to the microsecond; nothing for one that is not.
fn spelled(time: Option<DateTime<Utc>>) -> String {
    time.map(|time| time.to_rfc3339_opts(SecondsFormat::Micros, true)).unwrap_or_default()
}
