//! The digest over all keys that are in force.

use ring::digest::{Context, SHA256};

use crate::{Digest, KeyId, PublicKey, UnixUser};

/// Computes the digest of a set, key by key, in whatever memory the caller has for one of them.
#[derive(Clone)]
pub struct SetDigest {
    context: Context,
    last: Option<(UnixUser, KeyId)>,
}

/// A key came that does not follow the one before it: the digest would say nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the keys of a set are added once each, in the order of user and key's id")]
pub struct OutOfOrder;

impl SetDigest {
    /// The digest of no keys so far.
    #[must_use]
    pub fn new() -> Self {
        Self { context: Context::new(&SHA256), last: None }
    }

    /// Adds the next key, in the order of users and then ids, as bytes.
    ///
    /// # Errors
    ///
    /// It does not follow the last one.
    pub fn add(&mut self, user: &UnixUser, id: &KeyId, key: &PublicKey) -> Result<(), OutOfOrder> {
        let place = (user.clone(), id.clone());
        if self.last.as_ref().is_some_and(|last| *last >= place) {
            return Err(OutOfOrder);
        }
        self.context.update(format!("{} {} {key}\n", user.as_str(), id.as_str()).as_bytes());
        self.last = Some(place);
        Ok(())
    }

    /// The digest of what was added.
    #[must_use]
    pub fn finish(self) -> Digest {
        Digest::finish(self.context)
    }
}

impl Default for SetDigest {
    fn default() -> Self {
        Self::new()
    }
}
