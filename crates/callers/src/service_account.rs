//! ServiceAccounts of a Kubernetes cluster, and the tokens that they present.

mod token;

use std::fmt;

pub use token::ServiceAccountToken;

/// What a cluster calls a ServiceAccount begins with this.
const PREFIX: &str = "system:serviceaccount:";

/// A ServiceAccount, by the subject that the cluster has for it:
/// `system:serviceaccount:<namespace>:<name>`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ServiceAccount {
    namespace: String,
    name: String,
}

/// A text that is not the subject of a ServiceAccount. It does not repeat the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a subject is system:serviceaccount:<namespace>:<name>, both as Kubernetes names them")]
pub struct NotAServiceAccount;

impl ServiceAccount {
    /// Takes a subject: exactly four parts. The namespace is an RFC 1123 label of 1 to 63 characters,
    /// the name an RFC 1123 subdomain of 1 to 253, as Kubernetes has it.
    ///
    /// # Errors
    ///
    /// [`NotAServiceAccount`].
    pub fn parse(subject: &str) -> Result<Self, NotAServiceAccount> {
        let named = subject.strip_prefix(PREFIX).and_then(|rest| rest.split_once(':'));
        let (namespace, name) = named.ok_or(NotAServiceAccount)?;
        let good = namespace.len() <= 63
            && is_label(namespace)
            && name.len() <= 253
            && name.split('.').all(is_label);
        if good {
            Ok(Self { namespace: namespace.to_owned(), name: name.to_owned() })
        } else {
            Err(NotAServiceAccount)
        }
    }

    /// Its namespace.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Its name within the namespace.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// The subject.
impl fmt::Display for ServiceAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}:{}", self.namespace, self.name)
    }
}

/// Lower-case letters, digits and hyphens, with no hyphen at an end; not empty.
fn is_label(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty() && text.bytes().all(inner) && !text.starts_with('-') && !text.ends_with('-')
}
