//! Names that can't hold anything wrong: each is made by parsing.

/// Why a value was refused: the rule that it broke, for a person. It never repeats the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Invalid(pub(crate) &'static str);

/// A Site: 1 to 64 of letters, digits, `.`, `_` and `-`, beginning with a letter or digit.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SiteId(String);

impl SiteId {
    /// Takes a text that is a Site.
    ///
    /// # Errors
    ///
    /// The rule that it broke.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let inner = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        if text.len() <= 64
            && text.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric())
            && text.bytes().all(inner)
        {
            return Ok(Self(text.to_owned()));
        }
        Err(Invalid(
            "a Site is 1 to 64 letters, digits, '.', '_' and '-', beginning with a letter or digit",
        ))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A member: 1 to 255 visible ASCII characters, as long as a subject of OpenID Connect may be.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemberId(String);

impl MemberId {
    /// Takes a text that is a member's id.
    ///
    /// # Errors
    ///
    /// The rule that it broke.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        if (1..=255).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Ok(Self(text.to_owned()));
        }
        Err(Invalid("a member's id is 1 to 255 visible ASCII characters"))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}
