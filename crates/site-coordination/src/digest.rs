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

    type Field = (String, String);

    fn digest_of(fields: &[Field]) -> Digest {
        let mut digest = Fields(Context::new(&SHA256));
        for (name, value) in fields {
            digest.add(name, value);
        }
        digest.finish()
    }

    /// Fields as text, with the lengths of names and values or without: what a forger would put
    /// into a name or a value to make it read as several fields.
    fn written(fields: &[Field], names: bool, values: bool) -> String {
        let mut bytes = Vec::new();
        for (name, value) in fields {
            if names {
                bytes.extend((name.len() as u32).to_be_bytes());
            }
            bytes.extend(name.as_bytes());
            if values {
                bytes.extend((value.len() as u64).to_be_bytes());
            }
            bytes.extend(value.as_bytes());
        }
        String::from_utf8(bytes).unwrap()
    }

    fn field() -> impl Strategy<Value = Field> {
        ("[ab\u{0}\u{1}]{0,3}", "[ab\u{0}\u{1}]{0,3}")
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

        #[test]
        fn no_two_lists_of_fields_have_one_digest(
            first in field(), between in prop::collection::vec(field(), 0..3), last in field(),
        ) {
            let list = [vec![first.clone()], between.clone(), vec![last.clone()]].concat();
            let digest = digest_of(&list);
            prop_assert_eq!(digest_of(&list), digest);
            let (front, back) = (&list[..list.len() - 1], &list[1..]);
            for (names, values) in [(false, false), (false, true), (true, false), (true, true)] {
                let tail = format!("{}{}", first.1, written(back, names, values));
                prop_assert_ne!(digest_of(&[(first.0.clone(), tail)]), digest);
                let head = format!("{}{}", written(front, names, values), last.0);
                prop_assert_ne!(digest_of(&[(head, last.1.clone())]), digest);
            }
            prop_assert_ne!(digest_of(front), digest);
            prop_assert_ne!(digest_of(back), digest);
        }

        #[test]
        fn a_byte_that_moves_between_fields_changes_the_digest(
            text in "[ab\u{0}\u{1}]{1,8}", one in any::<prop::sample::Index>(),
            other in any::<prop::sample::Index>(),
        ) {
            let (one, other) = (one.index(text.len() + 1), other.index(text.len() + 1));
            let cut = |place: usize| (text[..place].to_owned(), text[place..].to_owned());
            let values = |(one, two): Field| digest_of(&[("x".into(), one), ("y".into(), two)]);
            prop_assert_eq!(one == other, digest_of(&[cut(one)]) == digest_of(&[cut(other)]));
            prop_assert_eq!(one == other, values(cut(one)) == values(cut(other)));
        }
    }

    #[test]
    fn the_domain_is_a_field_of_every_digest() {
        assert_ne!(Fields::new("one").finish(), Fields::new("other").finish());
        assert_ne!(Fields::new("one").finish(), Digest::of(b""));
    }
}
