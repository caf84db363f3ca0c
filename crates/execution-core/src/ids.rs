//! Names and numbers that can't hold anything wrong: each is made by parsing.

/// Why a value was refused: the rule that it broke, for a person. It never repeats the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Invalid(pub(crate) &'static str);

/// A Run: 1 to 128 of letters, digits, `.`, `_`, `~`, `:` and `-`, beginning with a letter or digit.
/// It stands in a path as it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RunId(String);

impl RunId {
    /// Takes a text that is a Run's id.
    ///
    /// # Errors
    ///
    /// The rule that it broke.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        name(text, 128, b"._~:-").map(Self).ok_or(Invalid(
            "a Run's id is 1 to 128 letters, digits, '.', '_', '~', ':' and '-', beginning with a \
             letter or digit",
        ))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

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
        name(text, 64, b"._-").map(Self).ok_or(Invalid(
            "a Site is 1 to 64 letters, digits, '.', '_' and '-', beginning with a letter or digit",
        ))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The environment of a Site in which a Run executes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Environment {
    /// A Kubernetes cluster.
    K8s,
    /// A Slurm cluster.
    Slurm,
}

impl Environment {
    /// Each environment.
    pub const ALL: [Self; 2] = [Self::K8s, Self::Slurm];

    /// Takes `k8s` or `slurm`.
    ///
    /// # Errors
    ///
    /// The rule that it broke.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        Self::ALL
            .into_iter()
            .find(|environment| environment.as_str() == text)
            .ok_or(Invalid("an environment is k8s or slurm"))
    }

    /// `k8s` or `slurm`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::K8s => "k8s",
            Self::Slurm => "slurm",
        }
    }
}

/// Where a Run executes: a Site and an environment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// The Site.
    pub site: SiteId,
    /// The environment.
    pub environment: Environment,
}

/// The Project that a Run belongs to: 1 to 128 visible ASCII characters, and not
/// [`ProjectId::OF_NO_RUN`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ProjectId(String);

impl ProjectId {
    /// What is asked about in place of the Project of a Run that is not there; no Project has it as
    /// its id.
    pub const OF_NO_RUN: &str = "no-project-of-an-absent-run";

    /// Takes a text that is a Project's id.
    ///
    /// # Errors
    ///
    /// The rule that it broke.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        visible_ascii(text, 128).filter(|text| text != Self::OF_NO_RUN).map(Self).ok_or(Invalid(
            "a Project's id is 1 to 128 visible ASCII characters, and not the one that is \
                 reserved for a Run that is not there",
        ))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The member whose Run it is: 1 to 255 visible ASCII characters, as long as a subject of OpenID
/// Connect may be.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MemberId(String);

impl MemberId {
    /// Takes a text that is a member's id.
    ///
    /// # Errors
    ///
    /// The rule that it broke.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        visible_ascii(text, 255)
            .map(Self)
            .ok_or(Invalid("a member's id is 1 to 255 visible ASCII characters"))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The number of an Attempt within its Run: 1 and up, without a gap, to 1,000.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AttemptNumber(i32);

impl AttemptNumber {
    /// The first Attempt of a Run.
    pub const FIRST: Self = Self(1);

    /// The last one that a Run can have.
    pub const LAST: Self = Self(1000);

    /// Takes a decimal number.
    ///
    /// # Errors
    ///
    /// The rule that it broke.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let plain = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
        let number = if plain { text.parse().ok() } else { None };
        number
            .and_then(Self::new)
            .ok_or(Invalid("an Attempt's number is a whole number from 1 to 1000"))
    }

    pub(crate) fn new(number: i32) -> Option<Self> {
        (Self::FIRST.0..=Self::LAST.0).contains(&number).then_some(Self(number))
    }

    /// The number.
    #[must_use]
    pub fn get(self) -> i32 {
        self.0
    }
}

/// Letters, digits and some more, beginning with a letter or digit.
pub(crate) fn name(text: &str, longest: usize, more: &[u8]) -> Option<String> {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || more.contains(&byte);
    let fits = text.len() <= longest
        && text.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric())
        && text.bytes().all(inner);
    fits.then(|| text.to_owned())
}

fn visible_ascii(text: &str, longest: usize) -> Option<String> {
    let fits = (1..=longest).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic());
    fits.then(|| text.to_owned())
}
