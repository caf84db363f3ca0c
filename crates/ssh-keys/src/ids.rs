//! Names that can't hold anything wrong: each is made by parsing.

use crate::reserved::is_reserved;

/// Why a value was refused: the rule that it broke, for a person. It never repeats the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Invalid(pub(crate) &'static str);

/// The id of a key of a member: `key_` and 26 characters of Crockford's base32 in lower case, which
/// spell 16 bytes in one way.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId(String);

/// Crockford's base32, in lower case.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

impl KeyId {
    const PREFIX: &'static str = "key_";
    /// 128 bits in groups of five; the last has three of them and two zeros.
    const CHARACTERS: usize = 26;

    /// The id that 16 random bytes make.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        let number = u128::from_be_bytes(bytes);
        let groups = (0..Self::CHARACTERS).map(|place| match 123_usize.checked_sub(5 * place) {
            Some(shift) => (number >> shift) as u8 & 31,
            None => (number << 2) as u8 & 31,
        });
        let text = groups.map(|group| char::from(ALPHABET[usize::from(group)]));
        Self(Self::PREFIX.chars().chain(text).collect())
    }

    /// Takes a text that is a key's id.
    ///
    /// # Errors
    ///
    /// The rule that it broke.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let invalid = Invalid("a key's id is key_ and 26 characters, as it was printed");
        let id = text.strip_prefix(Self::PREFIX).ok_or(invalid)?;
        let value = |byte: &u8| ALPHABET.iter().position(|letter| letter == byte);
        let last = id.as_bytes().last().and_then(value);
        let fits = id.len() == Self::CHARACTERS && id.as_bytes().iter().all(|b| value(b).is_some());
        if fits && last.is_some_and(|value| value % 4 == 0) {
            return Ok(Self(text.to_owned()));
        }
        Err(invalid)
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A user at a Site whose keys are managed: 1 to 32 of lower-case letters, digits, `_` and `-`,
/// beginning with a letter or `_`, and none of [`crate::RESERVED_USERS`].
///
/// It is the name of a file at the Site: it can't hold a dot or a slash, nor begin with `-`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnixUser(String);

impl UnixUser {
    /// Takes a text that is such a user.
    ///
    /// # Errors
    ///
    /// The rule that it broke.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let inner =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-".contains(&byte);
        let first = text.bytes().next();
        let begins = first.is_some_and(|byte| byte.is_ascii_lowercase() || byte == b'_');
        if !(text.len() <= 32 && begins && text.bytes().all(inner)) {
            return Err(Invalid(
                "a user is 1 to 32 lower-case letters, digits, '_' and '-', beginning with a letter \
                 or '_'",
            ));
        }
        if is_reserved(text) {
            return Err(Invalid("the user is reserved for the system"));
        }
        Ok(Self(text.to_owned()))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}
