//! Names and numbers that can't hold anything wrong: each is made by parsing.

use crate::digest::Fields;

/// Why a value was refused: the rule that it broke, for a person.
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

/// The environment of a stream within its Site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Environment {
    /// A Kubernetes cluster.
    K8s,
    /// A Slurm cluster.
    Slurm,
}

impl Environment {
    /// Each environment: a Site has at most one stream for each.
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

/// One value for each environment.
#[derive(Default)]
pub(crate) struct PerEnvironment<T> {
    k8s: T,
    slurm: T,
}

impl<T> PerEnvironment<T> {
    pub(crate) fn of(&self, environment: Environment) -> &T {
        match environment {
            Environment::K8s => &self.k8s,
            Environment::Slurm => &self.slurm,
        }
    }
}

/// A stream: a Site and an environment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Stream {
    /// The Site.
    pub site: SiteId,
    /// The environment.
    pub environment: Environment,
}

/// What makes an enqueue idempotent: 1 to 200 visible ASCII characters of the producer's choice.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ProducerKey(String);

impl ProducerKey {
    /// Takes a text that is a producer's key.
    ///
    /// # Errors
    ///
    /// The rule that it broke.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        visible_ascii(text, 200)
            .map(Self)
            .ok_or(Invalid("a producer's key is 1 to 200 visible ASCII characters"))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What a command asks for, in the words of the producer: 1 to 64 of lower-case letters, digits,
/// `.`, `_` and `-`, beginning with a letter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandKind(String);

impl CommandKind {
    /// Takes a text that is a kind.
    ///
    /// # Errors
    ///
    /// The rule that it broke.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let inner =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-".contains(&byte);
        if text.len() <= 64
            && text.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase())
            && text.bytes().all(inner)
        {
            return Ok(Self(text.to_owned()));
        }
        Err(Invalid(
            "a kind is 1 to 64 lower-case letters, digits, '.', '_' and '-', beginning with a letter",
        ))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The Run that a command belongs to: 1 to 128 visible ASCII characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunId(String);

impl RunId {
    /// Takes a text that is a Run's id.
    ///
    /// # Errors
    ///
    /// The rule that it broke.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        visible_ascii(text, 128)
            .map(Self)
            .ok_or(Invalid("a Run's id is 1 to 128 visible ASCII characters"))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// `cmd_` and 32 lower-case Crockford base32 characters: 160 bits, derived from Site, environment
/// and the producer's key, so that a producer that enqueues again, even after a restored database,
/// gets the same id.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CommandId(String);

impl CommandId {
    /// The id of the command that `key` names in `stream`.
    #[must_use]
    pub fn derive(stream: &Stream, key: &ProducerKey) -> Self {
        let mut fields = Fields::new("site-control/command-id");
        fields.add("site", stream.site.as_str());
        fields.add("environment", stream.environment.as_str());
        fields.add("producerKey", key.as_str());
        let digest = fields.finish();
        let text = base32::encode(base32::Alphabet::Crockford, &digest.as_bytes()[..20]);
        Self(format!("cmd_{}", text.to_ascii_lowercase()))
    }

    /// Takes a text of the shape of an id.
    ///
    /// # Errors
    ///
    /// The rule that it broke.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        const ALPHABET: &[u8] = b"0123456789abcdefghjkmnpqrstvwxyz";
        match text.strip_prefix("cmd_") {
            Some(rest) if rest.len() == 32 && rest.bytes().all(|b| ALPHABET.contains(&b)) => {
                Ok(Self(text.to_owned()))
            }
            _ => Err(Invalid("a command id is cmd_ and 32 characters of Crockford base32")),
        }
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The generation that a Runtime writes with: 1 and up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Generation(i64);

impl Generation {
    /// The generation of a stream that nobody took over.
    pub const FIRST: Self = Self(1);

    /// Takes a decimal number from 1 up.
    ///
    /// # Errors
    ///
    /// The rule that it broke.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        decimal(text)
            .filter(|number| *number >= 1)
            .map(Self)
            .ok_or(Invalid("a generation is a decimal number from 1 up"))
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

/// A place in a stream: 0 before the first command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seq(i64);

impl Seq {
    /// Before the first command.
    pub const ZERO: Self = Self(0);

    /// Takes a decimal number from 0 up.
    ///
    /// # Errors
    ///
    /// The rule that it broke.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        decimal(text).map(Self).ok_or(Invalid("a sequence is a decimal number from 0 up"))
    }

    pub(crate) fn from_database(number: i64) -> Self {
        Self(number)
    }

    /// The number.
    #[must_use]
    pub fn get(self) -> i64 {
        self.0
    }

    /// The number as an unsigned one.
    #[must_use]
    pub fn to_u64(self) -> u64 {
        self.0.unsigned_abs()
    }
}

fn visible_ascii(text: &str, longest: usize) -> Option<String> {
    let fits = (1..=longest).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic());
    fits.then(|| text.to_owned())
}

/// A number without sign or leading zero that fits PostgreSQL's `bigint`.
fn decimal(text: &str) -> Option<i64> {
    let plain = !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_digit())
        && (text == "0" || !text.starts_with('0'));
    if plain { text.parse().ok() } else { None }
}
