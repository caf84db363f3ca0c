//! Names and numbers that can't hold anything wrong: each is made by parsing.

/// Why a value was refused: the rule that it broke, for a person. It never repeats the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Invalid(&'static str);

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
        name(text).map(Self).ok_or(Invalid(
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
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MemberId(String);

impl MemberId {
    /// Takes a text that is a member's id.
    ///
    /// # Errors
    ///
    /// The rule that it broke.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let visible = text.bytes().all(|byte| byte.is_ascii_graphic());
        if visible && (1..=255).contains(&text.len()) {
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

/// The account that a member's work at a Site is counted for, such as one of Slurm: 1 to 64 of
/// letters, digits, `.`, `_` and `-`, beginning with a letter or digit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account(String);

impl Account {
    /// Takes a text that is an account.
    ///
    /// # Errors
    ///
    /// The rule that it broke.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        name(text).map(Self).ok_or(Invalid(
            "an account is 1 to 64 letters, digits, '.', '_' and '-', beginning with a letter or \
             digit",
        ))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A Unix user by the rules of `useradd`: 1 to 32 of small letters, digits, `_` and `-`, beginning
/// with a small letter or `_`; the last character may be `$`. Never `root`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnixUser(String);

impl UnixUser {
    /// Takes a text that is a Unix user.
    ///
    /// # Errors
    ///
    /// The rule that it broke.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let small = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
        let inner = |byte: u8| small(byte) || byte.is_ascii_digit() || byte == b'-';
        let begins = text.bytes().next().is_some_and(small);
        let body = text.strip_suffix('$').unwrap_or(text);
        if text == "root" {
            return Err(Invalid("root is nobody's account"));
        }
        if text.len() <= 32 && begins && body.bytes().all(inner) {
            return Ok(Self(text.to_owned()));
        }
        Err(Invalid(
            "a Unix user is 1 to 32 small letters, digits, '_' and '-', beginning with a small \
             letter or '_'",
        ))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The highest id of a user or group: above it some programs read a negative number.
const HIGHEST: i64 = 2_147_483_647;

/// The ids of `nobody`, and of what 16 bits have for "no id".
const NOBODYS: [i64; 2] = [65_534, 65_535];

/// The number of a Unix user: 1,000 to 2,147,483,647, where the users of people are. Neither 65,534
/// nor 65,535: those are nobody's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uid(pub(crate) i64);

impl Uid {
    const LOWEST: i64 = 1000;

    /// Takes a decimal number.
    ///
    /// # Errors
    ///
    /// The rule that it broke.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        id(text, Self::LOWEST)
            .map(Self)
            .ok_or(Invalid("a uid is a whole number from 1000 to 2147483647, but 65534 and 65535"))
    }

    /// The number.
    #[must_use]
    pub fn get(self) -> i64 {
        self.0
    }
}

/// The number of a Unix group: 100 to 2,147,483,647, as many systems have the group of all users at
/// 100. Neither 65,534 nor 65,535: those are nobody's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gid(pub(crate) i64);

impl Gid {
    const LOWEST: i64 = 100;

    /// Takes a decimal number.
    ///
    /// # Errors
    ///
    /// The rule that it broke.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        id(text, Self::LOWEST)
            .map(Self)
            .ok_or(Invalid("a gid is a whole number from 100 to 2147483647, but 65534 and 65535"))
    }

    /// The number.
    #[must_use]
    pub fn get(self) -> i64 {
        self.0
    }
}

/// What names a binding: 1 and up, given by the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BindingId(i64);

impl BindingId {
    /// Takes a decimal number.
    ///
    /// # Errors
    ///
    /// The rule that it broke.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        decimal(text)
            .filter(|number| *number >= 1)
            .map(Self)
            .ok_or(Invalid("a binding's id is a whole number from 1 up"))
    }

    pub(crate) fn from_database(number: i64) -> Self {
        Self(number)
    }

    /// The number.
    #[must_use]
    pub fn get(self) -> i64 {
        self.0
    }
}

fn name(text: &str) -> Option<String> {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let fits = text.len() <= 64
        && text.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric())
        && text.bytes().all(inner);
    fits.then(|| text.to_owned())
}

fn id(text: &str, lowest: i64) -> Option<i64> {
    decimal(text).filter(|id| (lowest..=HIGHEST).contains(id) && !NOBODYS.contains(id))
}

/// A number without sign or leading zero that fits PostgreSQL's `bigint`.
fn decimal(text: &str) -> Option<i64> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
    if plain { text.parse().ok() } else { None }
}
