//! The repository that a Run works on, as it was saved when the Run was accepted.

use crate::{Invalid, ids::name};

/// A commit of a project of a provider. It is saved with the Run and never changes, so what a Run
/// may touch is decided by what was accepted, not by where a ref points to later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repository {
    /// The provider's installation.
    pub instance: RepositoryInstance,
    /// The project's number there, which a move of the project does not change.
    pub project: RepositoryProject,
    /// The project's path when the Run was accepted.
    pub path: RepositoryPath,
    /// The ref that was asked for.
    pub reference: GitRef,
    /// The commit that it stood for.
    pub commit: Commit,
}

/// The name of a provider's installation: 1 to 64 of letters, digits, `.`, `_` and `-`, beginning
/// with a letter or digit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepositoryInstance(String);

impl RepositoryInstance {
    /// Takes a text that is a name of an installation.
    ///
    /// # Errors
    ///
    /// The rule that it broke.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        name(text, 64, b"._-").map(Self).ok_or(Invalid(
            "an instance is 1 to 64 letters, digits, '.', '_' and '-', beginning with a letter or \
             digit",
        ))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The number of a project at its provider: 1 and up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RepositoryProject(pub(crate) i64);

impl RepositoryProject {
    /// Takes a decimal number.
    ///
    /// # Errors
    ///
    /// The rule that it broke.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let plain = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
        let number = if plain { text.parse().ok() } else { None };
        number.and_then(Self::new).ok_or(Invalid("a project's number is a whole number from 1 up"))
    }

    pub(crate) fn new(number: i64) -> Option<Self> {
        (number >= 1).then_some(Self(number))
    }

    /// The number.
    #[must_use]
    pub fn get(self) -> i64 {
        self.0
    }
}

/// The path of a project at its provider: at least a group and the project, at most 1,024 bytes.
/// Each segment has at most 255 letters, digits, `.`, `_` and `-`, begins with a letter, a digit or
/// `_`, and ends neither with `.` nor with `.git` or `.atom`: what a provider gives out, and nothing
/// that a path in a URL could make into something else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepositoryPath(String);

impl RepositoryPath {
    /// Takes a text that is a path.
    ///
    /// # Errors
    ///
    /// The rule that it broke.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let fits = text.len() <= 1024 && text.contains('/') && text.split('/').all(segment);
        fits.then(|| Self(text.to_owned())).ok_or(Invalid(
            "a path is a group and a project, such as group/project, of letters, digits, '.', '_' \
             and '-'; no part begins with '.' or '-' or ends with '.', '.git' or '.atom'",
        ))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn segment(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    text.len() <= 255
        && text.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && text.bytes().all(inner)
        && ![".", ".git", ".atom"].iter().any(|end| text.ends_with(end))
}

/// A ref by the rules of `git check-ref-format --branch`, at most 255 bytes of UTF-8 without white
/// space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitRef(String);

impl GitRef {
    /// Takes a text that is a ref.
    ///
    /// # Errors
    ///
    /// The rule that it broke.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let never = |c: char| c.is_control() || c.is_whitespace() || "~^:?*[\\".contains(c);
        let part =
            |part: &str| !part.is_empty() && !part.starts_with('.') && !part.ends_with(".lock");
        let fits = text.len() <= 255
            && !text.contains(never)
            && !text.contains("..")
            && !text.contains("@{")
            && !text.starts_with('-')
            && !text.ends_with('.')
            && text != "@"
            && text != "HEAD"
            && text.split('/').all(part);
        fits.then(|| Self(text.to_owned())).ok_or(Invalid(
            "a ref is 1 to 255 bytes without white space, as git takes them for a branch or tag",
        ))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A commit: 40 or 64 lower-case hexadecimal characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit(String);

impl Commit {
    /// Takes a text that is a commit.
    ///
    /// # Errors
    ///
    /// The rule that it broke.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let hexadecimal = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        let fits = [40, 64].contains(&text.len()) && text.bytes().all(hexadecimal);
        fits.then(|| Self(text.to_owned()))
            .ok_or(Invalid("a commit is 40 or 64 lower-case hexadecimal characters"))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}
