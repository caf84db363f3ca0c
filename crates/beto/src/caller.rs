//! Who asks: the four callers, each a user of the broker with replies of its own.

use std::fmt;

use crate::Permission;

/// The responder's user, where nothing else is set.
pub const RESPONDER: &str = "beto";

/// Whose question it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Caller {
    /// Site coordination, before a private output is read.
    SiteCoordination,
    /// Resource provisioning, about a Run.
    ResourceProvisioning,
    /// Source control, about a grant for a repository.
    SourceControl,
    /// Join tokens, about a Site.
    JoinTokens,
}

/// The queue that answers to one connection of a caller go to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplyQueue(String);

impl Caller {
    /// Each caller.
    pub const ALL: [Self; 4] =
        [Self::SiteCoordination, Self::ResourceProvisioning, Self::SourceControl, Self::JoinTokens];

    /// The broker's user, which begins the names of its reply queues.
    #[must_use]
    pub fn user(self) -> &'static str {
        match self {
            Self::SiteCoordination => "site_coordination",
            Self::ResourceProvisioning => "resource_provisioning",
            Self::SourceControl => "source_control",
            Self::JoinTokens => "join_tokens",
        }
    }

    /// The caller that a user of the broker is.
    #[must_use]
    pub fn of_user(user: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|caller| caller.user() == user)
    }

    /// What it may ask for.
    #[must_use]
    pub fn permissions(self) -> &'static [Permission] {
        match self {
            Self::SiteCoordination => &[Permission::RunsOutputView],
            Self::ResourceProvisioning => &[Permission::RunsExecute],
            Self::SourceControl => &[Permission::RepositoriesRead, Permission::RepositoriesWrite],
            Self::JoinTokens => &[Permission::ComputeSitesManage],
        }
    }
}

impl fmt::Display for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.user())
    }
}

impl ReplyQueue {
    /// The random part, in bytes.
    pub(crate) const RANDOM_BYTES: usize = 16;

    /// A caller's queue with this random part.
    pub(crate) fn new(caller: Caller, random: [u8; Self::RANDOM_BYTES]) -> Self {
        Self(format!("{caller}.reply.{}", hex::encode(random)))
    }

    /// Takes the name of a queue of this caller, and of no other.
    #[must_use]
    pub fn of(caller: Caller, name: &str) -> Option<Self> {
        let random = name.strip_prefix(caller.user())?.strip_prefix(".reply.")?;
        let digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        let whole = random.len() == 2 * Self::RANDOM_BYTES && random.bytes().all(digit);
        whole.then(|| Self(name.to_owned()))
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_queue_belongs_to_one_caller() {
        for caller in Caller::ALL {
            let queue = ReplyQueue::new(caller, [0xa5; 16]);
            for other in Caller::ALL {
                let taken = ReplyQueue::of(other, queue.as_str());
                assert_eq!(taken.is_some(), other == caller, "{queue:?} of {other}");
            }
            let name = queue.as_str();
            for wrong in [
                name.to_uppercase(),
                format!("{name}0"),
                name[..name.len() - 1].to_owned(),
                name.replace("a5a5", "...."),
                format!("x{name}"),
                format!("{caller}.reply."),
                "beto.questions".to_owned(),
                String::new(),
            ] {
                assert_eq!(ReplyQueue::of(caller, &wrong), None, "{wrong}");
            }
        }
    }

    #[test]
    fn every_permission_has_one_caller() {
        for permission in Permission::ALL {
            let callers = Caller::ALL.into_iter();
            let may = callers.filter(|caller| caller.permissions().contains(&permission));
            assert_eq!(may.count(), 1, "{permission}");
        }
        for caller in Caller::ALL {
            assert_eq!(Caller::of_user(caller.user()), Some(caller));
        }
        assert_eq!(Caller::of_user(RESPONDER), None);
    }
}
