//! Digests: of a command, of a result, and the chain over a stream.

use std::fmt;

use ring::digest::{Context, SHA256};

/// A SHA-256 digest.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The chain digest before the first command.
    pub const ZERO: Self = Self([0; 32]);

    /// The digest of some bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        let mut context = Context::new(&SHA256);
        context.update(bytes);
        Self::finish(context)
    }

    /// The chain digest after this one when a command with the digest `command` follows.
    #[must_use]
    pub fn chain(self, command: Self) -> Self {
        let mut context = Context::new(&SHA256);
        context.update(&self.0);
        context.update(&command.0);
        Self::finish(context)
    }

    /// Takes 32 bytes.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Takes the bytes where there are 32.
    #[must_use]
    pub(crate) fn from_slice(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// The 32 bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    fn finish(context: Context) -> Self {
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

/// A digest over named fields with their lengths, so that no two lists of fields can be read as
/// each other. `docs/PROTOCOL.md` gives the layout.
pub(crate) struct Fields(Context);

impl Fields {
    pub(crate) fn new(domain: &str) -> Self {
        let mut fields = Self(Context::new(&SHA256));
        fields.add(domain, "1");
        fields
    }

    pub(crate) fn add(&mut self, name: &str, value: &str) {
        // A name is a literal of this file, so its length always fits.
        let name_length = u32::try_from(name.len()).unwrap_or(u32::MAX);
        self.0.update(&name_length.to_be_bytes());
        self.0.update(name.as_bytes());
        self.0.update(&(value.len() as u64).to_be_bytes());
        self.0.update(value.as_bytes());
    }

    pub(crate) fn finish(self) -> Digest {
        Digest::finish(self.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn digest_of(fields: &[(String, String)]) -> Digest {
        let mut digest = Fields(Context::new(&SHA256));
        for (name, value) in fields {
            digest.add(name, value);
        }
        digest.finish()
    }

    /// The text of a list of fields and every way to cut it into a list of the same number.
    fn cut(text: &str, cuts: &[prop::sample::Index]) -> Vec<(String, String)> {
        let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
        places.extend([0, text.len()]);
        places.sort_unstable();
        let parts: Vec<String> =
            places.windows(2).map(|part| text[part[0]..part[1]].to_owned()).collect();
        parts
            .chunks(2)
            .map(|pair| (pair[0].clone(), pair.get(1).cloned().unwrap_or_default()))
            .collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

        #[test]
        fn no_two_lists_of_fields_have_one_digest(
            text in "[ab\u{0}\u{1}]{0,12}",
            one in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
            other in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
        ) {
            let (one, other) = (cut(&text, &one), cut(&text, &other));
            prop_assert_eq!(one == other, digest_of(&one) == digest_of(&other));
        }
    }

    #[test]
    fn the_domain_is_a_field_of_every_digest() {
        assert_ne!(Fields::new("one").finish(), Fields::new("other").finish());
        assert_ne!(Fields::new("one").finish(), Digest::of(b""));
    }
}
