//! A SHA-256 digest, and the digest over fields that no two lists of fields share.

use std::fmt;

use ring::digest::{Context, SHA256};

use crate::Invalid;

/// A SHA-256 digest.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The chain digest before the first change.
    pub const ZERO: Self = Self([0; 32]);

    /// Takes 64 hexadecimal characters in lower case, the one spelling that there is.
    ///
    /// # Errors
    ///
    /// The rule that it broke.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let mut bytes = [0; 32];
        let lower = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if lower && hex::decode_to_slice(text, &mut bytes).is_ok() {
            return Ok(Self(bytes));
        }
        Err(Invalid("a digest is 64 hexadecimal characters in lower case"))
    }

    /// Takes 32 bytes.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The 32 bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The chain digest after this one when a change with the digest `change` follows.
    #[must_use]
    pub fn chain(self, change: Self) -> Self {
        let mut context = Context::new(&SHA256);
        context.update(&self.0);
        context.update(&change.0);
        Self::finish(context)
    }

    pub(crate) fn finish(context: Context) -> Self {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(context.finish().as_ref());
        Self(bytes)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A digest over fields with their lengths, so that no two lists of fields can be read as each other.
pub(crate) struct Fields(Context);

impl Fields {
    pub(crate) fn new(domain: &str) -> Self {
        let mut fields = Self(Context::new(&SHA256));
        fields.add(domain);
        fields
    }

    pub(crate) fn add(&mut self, field: &str) {
        self.0.update(&(field.len() as u64).to_be_bytes());
        self.0.update(field.as_bytes());
    }

    pub(crate) fn finish(self) -> Digest {
        Digest::finish(self.0)
    }
}
