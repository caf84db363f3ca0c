//! A place in the changes of a Site.

use std::fmt;

use crate::{Digest, Invalid};

/// A sequence and the chain digest there, `<seq>.<64 hexadecimal characters>`. Who presents it proves
/// which history it saw. For everybody but our own agent it is opaque.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cursor {
    seq: i64,
    digest: Digest,
}

impl Cursor {
    /// The place before the first change.
    pub const START: Self = Self { seq: 0, digest: Digest::ZERO };

    /// The place after the change `seq`, from 0 up, where the chain digest is `digest`. At 0 there is
    /// one digest, so nothing else is a place there.
    ///
    /// # Errors
    ///
    /// The rule that it broke.
    pub fn new(seq: i64, digest: Digest) -> Result<Self, Invalid> {
        match seq {
            0 if digest == Digest::ZERO => Ok(Self::START),
            1.. => Ok(Self { seq, digest }),
            _ => Err(INVALID),
        }
    }

    /// Takes a text that is a cursor, in its one spelling.
    ///
    /// # Errors
    ///
    /// The rule that it broke.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let (seq, digest) = text.split_once('.').ok_or(INVALID)?;
        let digits = seq.bytes().all(|byte| byte.is_ascii_digit());
        let plain = digits && (seq == "0" || !seq.starts_with('0'));
        let seq = if plain { seq.parse().ok() } else { None };
        let digest = Digest::parse(digest).map_err(|_| INVALID)?;
        Self::new(seq.ok_or(INVALID)?, digest)
    }

    /// The sequence of the last change before the place; 0 before the first.
    #[must_use]
    pub fn seq(self) -> i64 {
        self.seq
    }

    /// The chain digest there.
    #[must_use]
    pub fn digest(self) -> Digest {
        self.digest
    }

    /// The place after one more change with the digest `change`; nowhere after the last number.
    #[must_use]
    pub fn after(self, change: Digest) -> Option<Self> {
        let seq = self.seq.checked_add(1)?;
        Some(Self { seq, digest: self.digest.chain(change) })
    }
}

const INVALID: Invalid =
    Invalid("a cursor is a sequence, a dot, and the chain digest there, as the Site API gave it");

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.seq, self.digest)
    }
}
