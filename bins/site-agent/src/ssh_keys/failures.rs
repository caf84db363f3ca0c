//! What could not be applied, told at each acknowledgement and tried again.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use site_protocol::{MAX_SSH_FAILURES, SshFailure};
use ssh_keys::{KeyId, PublicKey, UnixUser};

use super::file::HeldKey;

/// The most characters of a reason.
const MAX_REASON: usize = 200;

/// The failures that are open, by user and key's id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Failures {
    open: BTreeMap<(String, String), Failure>,
    /// There were more than are kept and told.
    more: bool,
}

/// A key whose change can't be applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    reason: String,
    again: Again,
}

/// What to try again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Again {
    /// To add this key.
    Add(HeldKey),
    /// To remove it.
    Remove,
    /// Nothing: what came is refused whatever stands in its place.
    Nothing,
}

/// A change of a user's keys: one that is in force from now on, or `None` for one that is not.
pub(super) type Wanted = (KeyId, Option<HeldKey>);

/// A failure as the state keeps it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct KeptFailure {
    unix_user: String,
    key_id: String,
    reason: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    remove: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    public_key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ends: Option<DateTime<Utc>>,
}

impl Failures {
    /// Notes a failure in the place of an older one of the same key.
    pub(super) fn note(&mut self, user: &str, key_id: &str, reason: &str, again: Again) {
        let reason = visible(reason);
        let place = (user.to_owned(), key_id.to_owned());
        let known = self.open.get(&place).is_some_and(|known| known.reason == reason);
        if !self.open.contains_key(&place) && self.open.len() >= MAX_SSH_FAILURES {
            if !std::mem::replace(&mut self.more, true) {
                tracing::error!(
                    alarm.name = "ssh_key_not_applied",
                    detail =
                        "there are more failures than can be told: each try again takes a snapshot",
                    "ssh_keys.too_many_failures"
                );
            }
            return;
        }
        if !known {
            tracing::error!(
                alarm.name = "ssh_key_not_applied",
                unix.user = visible(user),
                key.id = visible(key_id),
                error = reason,
                "ssh_keys.not_applied"
            );
        }
        self.open.insert(place, Failure { reason, again });
    }

    /// Forgets the failure of a key, if there is one: it was applied, or is not wanted any more.
    pub(super) fn forget(&mut self, user: &str, key_id: &str) {
        if self.open.remove(&(user.to_owned(), key_id.to_owned())).is_some() {
            tracing::info!(
                unix.user = visible(user),
                key.id = visible(key_id),
                "ssh_keys.failure_over"
            );
        }
    }

    /// Whether this key's change is not applied.
    pub(super) fn has(&self, user: &UnixUser, key_id: &KeyId) -> bool {
        !self.open.is_empty()
            && self.open.contains_key(&(user.as_str().to_owned(), key_id.as_str().to_owned()))
    }

    /// Whether a key of a user could not be removed.
    pub(super) fn have_a_removal(&self, user: &UnixUser) -> bool {
        !self.open.is_empty() && self.of(user).iter().any(|(_, held)| held.is_none())
    }

    /// Whether something was refused whatever stood in its place: by the rules of the agent that noted
    /// it.
    pub(super) fn have_a_refusal(&self) -> bool {
        self.open.values().any(|failure| failure.again == Again::Nothing)
    }

    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// How many are told.
    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    /// Whether there were more than are told, so that the set can't be attested.
    pub(super) fn are_cut(&self) -> bool {
        self.more
    }

    /// What to try again for a user.
    pub(super) fn of(&self, user: &UnixUser) -> Vec<Wanted> {
        let first = (user.as_str().to_owned(), String::new());
        let mine = self.open.range(first..).take_while(|((name, _), _)| name == user.as_str());
        mine.filter_map(|((_, id), failure)| Some((KeyId::parse(id).ok()?, failure.wanted()?)))
            .collect()
    }

    /// The users of whom something can be tried again.
    pub(super) fn users(&self) -> Vec<UnixUser> {
        let again = self.open.iter().filter(|(_, failure)| failure.again != Again::Nothing);
        let mut users: Vec<_> =
            again.filter_map(|((user, _), _)| UnixUser::parse(user).ok()).collect();
        users.dedup();
        users
    }

    /// As they are told.
    pub(super) fn told(&self) -> Vec<SshFailure> {
        let told = self.open.iter().map(|((unix_user, key_id), failure)| SshFailure {
            unix_user: unix_user.clone(),
            key_id: key_id.clone(),
            reason: failure.reason.clone(),
        });
        told.collect()
    }

    /// As the state keeps them.
    pub(super) fn kept(&self) -> (Vec<KeptFailure>, bool) {
        let kept = self.open.iter().map(|((unix_user, key_id), failure)| {
            let added = match &failure.again {
                Again::Add(held) => Some(held),
                Again::Remove | Again::Nothing => None,
            };
            KeptFailure {
                unix_user: unix_user.clone(),
                key_id: key_id.clone(),
                reason: failure.reason.clone(),
                remove: failure.again == Again::Remove,
                public_key: added.map(|held| held.key.to_string()),
                ends: added.and_then(|held| held.ends),
            }
        });
        (kept.collect(), self.more)
    }

    /// Takes what the state kept; `None` where it kept something that was never noted.
    pub(super) fn from_kept((kept, more): (Vec<KeptFailure>, bool)) -> Option<Self> {
        let mut open = BTreeMap::new();
        for failure in kept {
            let again = match (failure.remove, failure.public_key) {
                (true, None) => Again::Remove,
                (false, Some(key)) => {
                    Again::Add(HeldKey::new(PublicKey::parse(&key).ok()?, failure.ends))
                }
                (false, None) => Again::Nothing,
                (true, Some(_)) => return None,
            };
            let place = (failure.unix_user, failure.key_id);
            open.insert(place, Failure { reason: failure.reason, again });
        }
        (open.len() <= MAX_SSH_FAILURES).then_some(Self { open, more })
    }
}

impl Failure {
    fn wanted(&self) -> Option<Option<HeldKey>> {
        match &self.again {
            Again::Add(held) => Some(Some(held.clone())),
            Again::Remove => Some(None),
            Again::Nothing => None,
        }
    }
}

/// What may be told: visible ASCII and spaces, and not much of it.
pub(super) fn visible(text: &str) -> String {
    let shown = text.chars().map(|c| if matches!(c, ' '..='~') { c } else { '?' });
    shown.take(MAX_REASON).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str =
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIIq0FswFZ8OL+YrfKI7fSR87uGqP9oBgWHWbOnvfcEc";

    fn id(byte: u8) -> KeyId {
        KeyId::from_bytes([byte; 16])
    }

    fn held() -> HeldKey {
        HeldKey::new(PublicKey::parse(KEY).unwrap(), None)
    }

    #[test]
    fn what_failed_is_told_and_kept_until_it_is_over() {
        let mut failures = Failures::default();
        failures.note("alice", id(1).as_str(), "a reason", Again::Add(held()));
        failures.note("alice", id(2).as_str(), "another", Again::Remove);
        failures.note("bob", "not an id", "refused", Again::Nothing);
        let alice = UnixUser::parse("alice").unwrap();
        assert_eq!(failures.of(&alice), [(id(1), Some(held())), (id(2), None)]);
        assert_eq!(failures.users(), std::slice::from_ref(&alice));
        assert_eq!(Failures::from_kept(failures.kept()), Some(failures.clone()));
        let reasons: Vec<_> = failures.told().into_iter().map(|told| told.reason).collect();
        assert_eq!(reasons, ["a reason", "another", "refused"]);
        assert!(failures.has(&alice, &id(1)));
        failures.forget("alice", id(1).as_str());
        assert!(!failures.has(&alice, &id(1)) && failures.has(&alice, &id(2)));
    }

    #[test]
    fn a_reason_is_bounded_and_visible() {
        let mut failures = Failures::default();
        failures.note("alice", "k", &format!("a\nb\u{e9}{}", "x".repeat(300)), Again::Nothing);
        let reason = failures.told().remove(0).reason;
        assert_eq!(reason.len(), MAX_REASON);
        assert!(reason.starts_with("a?b?x"));
    }

    #[test]
    fn there_are_no_more_than_can_be_told() {
        let mut failures = Failures::default();
        for number in 0..MAX_SSH_FAILURES {
            failures.note(&format!("u{number}"), "k", "r", Again::Nothing);
        }
        assert!(!failures.are_cut());
        failures.note("u1", "k", "another reason", Again::Nothing);
        assert!(!failures.are_cut());
        failures.note("another", "k", "r", Again::Nothing);
        assert!(failures.are_cut());
        assert_eq!(failures.len(), MAX_SSH_FAILURES);
        assert!(Failures::from_kept(failures.kept()).unwrap().are_cut());
    }
}
