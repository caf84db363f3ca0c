//! By what a token is remembered.

use ring::{
    error::Unspecified,
    hmac::{self, HMAC_SHA256},
    rand::SecureRandom,
};

/// A token and the audience it is for. Without the process's own key it says nothing about them, and
/// nobody can make two tokens with one key.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Key([u8; 32]);

/// Makes the keys of one process.
pub(super) struct Keys(hmac::Key);

impl Keys {
    pub(super) fn new(random: &dyn SecureRandom) -> Result<Self, Unspecified> {
        hmac::Key::generate(HMAC_SHA256, random).map(Self)
    }

    pub(super) fn of(&self, audience: &str, token: &str) -> Key {
        let mut context = hmac::Context::with_key(&self.0);
        // With their lengths, so that nothing can move from one to the other.
        for part in [audience, token] {
            context.update(&(part.len() as u64).to_be_bytes());
            context.update(part.as_bytes());
        }
        let mut key = [0; 32];
        key.copy_from_slice(context.sign().as_ref());
        Key(key)
    }
}
