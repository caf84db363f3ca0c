//! The side of the control plane: members' keys, and which users of Sites they are.

mod many;

use chrono::{DateTime, Utc};
use database::{DatabaseError, Pool};
use ring::rand::SecureRandom;
use ssh_keys::{KeyId, UnixUser};

use crate::{
    Account, AccountId, AddAccountError, AddKeyError, KeyState, MemberId, NewKey, ReadError,
    RemoveAccountError, RemoveKeyError, SiteId, StoredKey,
    announcer::{CHANGED_CHANNEL, announce},
    store::Store,
};

/// Adds and removes keys and accounts, with the role `ssh_access_registry`. Cloning shares the
/// connections.
///
/// Each call may be repeated: it then changes nothing and says so. What an answer tells is durable, and
/// with it that whoever propagates has to look at the member.
#[derive(Clone)]
pub struct Registry {
    store: Store,
}

/// What a call did, or found done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done<T> {
    /// What there is now.
    pub value: T,
    /// Whether this call did it. False also where it did and the answer got lost between the
    /// database and this process, so that the statement was repeated.
    pub new: bool,
}

/// Which keys of a member to list.
#[derive(Clone, Debug)]
pub struct KeyListing {
    /// Also those that were removed or have expired.
    pub all: bool,
    /// Only those after this one.
    pub after: Option<KeyId>,
    /// At most so many.
    pub limit: u16,
}

/// Which accounts of a Site to list.
#[derive(Clone, Debug)]
pub struct AccountListing {
    /// Only those of this member.
    pub member: Option<MemberId>,
    /// Also those that were removed.
    pub all: bool,
    /// Only those after this one.
    pub after: Option<AccountId>,
    /// At most so many.
    pub limit: u16,
}

impl Registry {
    /// Keys that a member may have at once.
    pub const MOST_KEYS: u32 = 32;

    /// How often a statement is run when others change the same things between it and the reading that
    /// says why it did nothing.
    const TRIES: usize = 8;

    /// Works through `pool`.
    #[must_use]
    pub fn new(pool: Pool) -> Self {
        Self { store: Store::new(pool) }
    }

    /// Adds a key to its member. The same key again is the stored one. Another member may have it too.
    ///
    /// # Errors
    ///
    /// The member has too many keys, or this one with another end, or the end has passed.
    pub async fn add_key(
        &self,
        new: &NewKey,
        random: &(dyn SecureRandom + Sync),
    ) -> Result<Done<StoredKey>, AddKeyError> {
        let id = new_id(random)?;
        for _ in 0..Self::TRIES {
            match self.store.add_key(&id, new).await {
                Ok((Some(added_at), _)) => {
                    self.announce_change().await;
                    return Ok(Done { value: added(id, new, added_at), new: true });
                }
                Ok((None, true)) => return Err(AddKeyError::EndPassed),
                // The key itself may be one of those that the member has.
                Ok((None, false)) | Err(DatabaseError::UniqueViolation { .. }) => {}
                Err(error) => return Err(ReadError::from(error).into()),
            }
            let same = self.store.same_key(&new.member, &new.key).await?;
            match same {
                Some(same) if same.state == KeyState::Active => {
                    let end = new.end.map(crate::KeyEnd::time);
                    if same.id != id && same.expires_at != end {
                        let expires_at = same.expires_at;
                        return Err(AddKeyError::OtherEnd { id: same.id, expires_at });
                    }
                    return Ok(Done { value: same, new: false });
                }
                // What has expired no longer counts, nor is it in the way.
                _ => {
                    let retired = self.store.retire_keys(&new.member).await;
                    let retired = retired.map_err(ReadError::from)?;
                    if retired == 0 && same.is_none() && self.is_full(&new.member).await? {
                        return Err(AddKeyError::TooMany { limit: Self::MOST_KEYS });
                    }
                }
            }
        }
        Err(AddKeyError::Contended)
    }

    async fn is_full(&self, member: &MemberId) -> Result<bool, ReadError> {
        let listing = KeyListing { all: false, after: None, limit: u16::MAX };
        let keys = self.store.keys(member, &listing).await?;
        Ok(keys.len() >= Self::MOST_KEYS as usize)
    }

    /// Removes a key, for ever; of `member` alone where one is named. Every Site that has it in force
    /// refuses it within its window.
    ///
    /// # Errors
    ///
    /// There is no such key, or it is another member's, which is told in the same way.
    pub async fn remove_key(
        &self,
        id: &KeyId,
        member: Option<&MemberId>,
    ) -> Result<Done<StoredKey>, RemoveKeyError> {
        for _ in 0..Self::TRIES {
            let removed = self.store.remove_key(id, member).await.map_err(ReadError::from)?;
            if removed.is_some() {
                self.announce_change().await;
            }
            let stored = self.store.key(id).await?.ok_or(RemoveKeyError::UnknownKey)?;
            if member.is_some_and(|member| *member != stored.member) {
                return Err(RemoveKeyError::UnknownKey);
            }
            if stored.removed_at.is_some() {
                return Ok(Done { value: stored, new: removed.is_some() });
            }
            // It was added in between.
        }
        Err(ReadError::Corrupt("a key that can't be removed").into())
    }

    /// A key by its id, whatever has become of it.
    ///
    /// # Errors
    ///
    /// The database failed, or holds what is no key.
    pub async fn key(&self, id: &KeyId) -> Result<Option<StoredKey>, ReadError> {
        self.store.key(id).await
    }

    /// Keys of a member, in the order of their ids.
    ///
    /// # Errors
    ///
    /// The database failed, or holds what is no key.
    pub async fn keys(
        &self,
        member: &MemberId,
        listing: &KeyListing,
    ) -> Result<Vec<StoredKey>, ReadError> {
        self.store.keys(member, listing).await
    }

    /// Makes a member a user of a Site: its keys let it in there from now on. A member may be several
    /// users.
    ///
    /// # Errors
    ///
    /// The user belongs to another member.
    pub async fn add_account(
        &self,
        site: &SiteId,
        member: &MemberId,
        unix_user: &UnixUser,
    ) -> Result<Done<Account>, AddAccountError> {
        for _ in 0..Self::TRIES {
            if let Some(account) = self.store.add_account(site, member, unix_user).await? {
                self.announce_change().await;
                return Ok(Done { value: account, new: true });
            }
            match self.store.account(site, unix_user).await? {
                Some(account) if account.removed_at.is_none() => {
                    if account.member != *member {
                        return Err(AddAccountError::Taken { member: account.member });
                    }
                    return Ok(Done { value: account, new: false });
                }
                // It was removed in between.
                _ => {}
            }
        }
        Err(AddAccountError::Contended)
    }

    /// Takes a user of a Site from its member: no key lets it in there any more, within the window.
    ///
    /// # Errors
    ///
    /// Nobody ever had the user.
    pub async fn remove_account(
        &self,
        site: &SiteId,
        unix_user: &UnixUser,
    ) -> Result<Done<Account>, RemoveAccountError> {
        for _ in 0..Self::TRIES {
            if let Some(account) = self.store.remove_account(site, unix_user).await? {
                self.announce_change().await;
                return Ok(Done { value: account, new: true });
            }
            let known = self.store.account(site, unix_user).await?;
            let known = known.ok_or(RemoveAccountError::UnknownAccount)?;
            if known.removed_at.is_some() {
                return Ok(Done { value: known, new: false });
            }
            // It was added in between.
        }
        Err(ReadError::Corrupt("an account that can't be removed").into())
    }

    /// Accounts of a Site, in the order in which they were added.
    ///
    /// # Errors
    ///
    /// The database failed, or holds what is no account.
    pub async fn accounts(
        &self,
        site: &SiteId,
        listing: &AccountListing,
    ) -> Result<Vec<Account>, ReadError> {
        self.store.accounts(site, listing).await
    }

    async fn announce_change(&self) {
        announce(&self.store, vec![CHANGED_CHANNEL.to_owned()]).await;
    }
}

fn new_id(random: &(dyn SecureRandom + Sync)) -> Result<KeyId, AddKeyError> {
    let mut bytes = [0; 16];
    random.fill(&mut bytes).map_err(|_| AddKeyError::Random)?;
    Ok(KeyId::from_bytes(bytes))
}

fn added(id: KeyId, new: &NewKey, added_at: DateTime<Utc>) -> StoredKey {
    StoredKey {
        id,
        member: new.member.clone(),
        key: new.key.clone(),
        added_at,
        expires_at: new.end.map(crate::KeyEnd::time),
        removed_at: None,
        state: KeyState::Active,
    }
}
