//! Names of those who call: Sites, environments, scopes and principals.

use std::fmt;

/// The name of a Site: 1 to 64 characters of `A-Z a-z 0-9 . _ -`, the first a letter or a digit.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SiteId(String);

/// The environment of a Site whose command stream a Runtime takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Environment {
    /// Kubernetes.
    K8s,
    /// Slurm.
    Slurm,
}

/// What a native bearer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// A Runtime: pulls commands and returns results.
    Commands,
    /// An SSH access agent: pulls members' keys.
    SshAccess,
}

/// Whom a native bearer stands for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Principal {
    /// The Runtime of one environment of a Site, `commands@<site>`.
    Commands {
        /// The Site.
        site: SiteId,
        /// The environment whose stream it takes.
        environment: Environment,
    },
    /// The SSH access agent of a Site, `ssh-access@<site>`.
    SshAccess {
        /// The Site.
        site: SiteId,
    },
}

/// A text that is not a name of the wanted kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// Not a Site's name.
    #[error("a Site is 1 to 64 of A-Z a-z 0-9 . _ -, the first a letter or a digit")]
    Site,
    /// Not an environment.
    #[error("an environment is k8s or slurm")]
    Environment,
    /// Not a scope.
    #[error("a scope is commands or ssh-access")]
    Scope,
}

impl SiteId {
    /// Takes a Site's name.
    ///
    /// # Errors
    ///
    /// [`NameError::Site`].
    pub fn parse(text: &str) -> Result<Self, NameError> {
        let follows = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        let good = (1..=64).contains(&text.len())
            && text.as_bytes()[0].is_ascii_alphanumeric()
            && text.bytes().all(follows);
        if good { Ok(Self(text.to_owned())) } else { Err(NameError::Site) }
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Environment {
    /// Takes the word of an environment.
    ///
    /// # Errors
    ///
    /// [`NameError::Environment`].
    pub fn parse(text: &str) -> Result<Self, NameError> {
        match text {
            "k8s" => Ok(Self::K8s),
            "slurm" => Ok(Self::Slurm),
            _ => Err(NameError::Environment),
        }
    }

    /// Its word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::K8s => "k8s",
            Self::Slurm => "slurm",
        }
    }
}

impl Scope {
    /// Takes the word of a scope.
    ///
    /// # Errors
    ///
    /// [`NameError::Scope`].
    pub fn parse(text: &str) -> Result<Self, NameError> {
        match text {
            "commands" => Ok(Self::Commands),
            "ssh-access" => Ok(Self::SshAccess),
            _ => Err(NameError::Scope),
        }
    }

    /// Its word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Commands => "commands",
            Self::SshAccess => "ssh-access",
        }
    }
}

impl Principal {
    /// What it is for.
    #[must_use]
    pub fn scope(&self) -> Scope {
        match self {
            Self::Commands { .. } => Scope::Commands,
            Self::SshAccess { .. } => Scope::SshAccess,
        }
    }

    /// Its Site.
    #[must_use]
    pub fn site(&self) -> &SiteId {
        match self {
            Self::Commands { site, .. } | Self::SshAccess { site } => site,
        }
    }

    /// Its environment, for a Runtime.
    #[must_use]
    pub fn environment(&self) -> Option<Environment> {
        match self {
            Self::Commands { environment, .. } => Some(*environment),
            Self::SshAccess { .. } => None,
        }
    }
}

impl fmt::Display for SiteId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.scope(), self.site())
    }
}
