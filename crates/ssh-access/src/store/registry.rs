//! What the registry asks and stores.

use chrono::{DateTime, Utc};
use database::DatabaseError;
use ssh_keys::{KeyId, PublicKey, UnixUser};

use super::{Store, known};
use crate::{
    Account, AccountId, KeyState, MemberId, NewKey, ReadError, SiteId, StoredKey,
    registry::{AccountListing, KeyListing},
    statements::registry::{
        AccountRow, AddAccount, AddKey, AddKeys, KeyRow, ReadAccount, ReadAccounts, ReadKey,
        ReadKeys, ReadSameKeys, RemoveAccount, RemoveKey, RetireKeys,
    },
};

impl Store {
    /// Stores a key and says when; no time where its member has as many as it may have, or where its
    /// end has passed, which is the second.
    pub(crate) async fn add_key(
        &self,
        id: &KeyId,
        new: &NewKey,
    ) -> Result<(Option<DateTime<Utc>>, bool), DatabaseError> {
        let statement = AddKey {
            key_id: id.as_str().to_owned(),
            member: new.member.as_str().to_owned(),
            public_key: new.key.to_string(),
            fingerprint: new.key.fingerprint().to_string(),
            expires_at: new.end.map(crate::KeyEnd::time),
        };
        Ok(self.pool.load(statement).await?.into_iter().next().unwrap_or_default())
    }

    /// Stores keys that are plainly new, each under its id, and says which they were, and when.
    pub(crate) async fn add_keys(
        &self,
        ids: &[KeyId],
        new: &[NewKey],
    ) -> Result<Vec<(KeyId, DateTime<Utc>)>, ReadError> {
        let texts = |text: fn(&NewKey) -> String| new.iter().map(text).collect();
        let statement = AddKeys {
            key_ids: ids.iter().map(|id| id.as_str().to_owned()).collect(),
            members: texts(|new| new.member.as_str().to_owned()),
            public_keys: texts(|new| new.key.to_string()),
            fingerprints: texts(|new| new.key.fingerprint().to_string()),
            expires_at: new.iter().map(|new| new.end.map(crate::KeyEnd::time)).collect(),
        };
        let rows = self.pool.load(statement).await?;
        rows.into_iter().map(|(id, at)| Ok((known(KeyId::parse(&id), "a key's id")?, at))).collect()
    }

    /// Marks the keys of a member that have expired as removed, and says how many.
    pub(crate) async fn retire_keys(&self, member: &MemberId) -> Result<i64, DatabaseError> {
        let rows = self.pool.load(RetireKeys { member: member.as_str().to_owned() }).await?;
        Ok(rows.into_iter().next().map_or(0, |(count,)| count))
    }

    /// Removes a key; `None` where it is absent, another member's, or removed already.
    pub(crate) async fn remove_key(
        &self,
        id: &KeyId,
        member: Option<&MemberId>,
    ) -> Result<Option<DateTime<Utc>>, DatabaseError> {
        let member = member.map(|member| member.as_str().to_owned());
        let statement = RemoveKey { key_id: id.as_str().to_owned(), member };
        Ok(self.pool.load(statement).await?.into_iter().next().map(|(at,)| at))
    }

    /// A key, whatever has become of it.
    pub(crate) async fn key(&self, id: &KeyId) -> Result<Option<StoredKey>, ReadError> {
        let key_id = Some(id.as_str().to_owned());
        let statement = ReadKey { key_id, member: None, fingerprint: None };
        self.pool.load(statement).await?.into_iter().next().map(stored_key).transpose()
    }

    /// The key of a member that is not removed and is this one.
    pub(crate) async fn same_key(
        &self,
        member: &MemberId,
        key: &PublicKey,
    ) -> Result<Option<StoredKey>, ReadError> {
        let statement = ReadKey {
            key_id: None,
            member: Some(member.as_str().to_owned()),
            fingerprint: Some(key.fingerprint().to_string()),
        };
        self.pool.load(statement).await?.into_iter().next().map(stored_key).transpose()
    }

    /// Those of some keys that their members have, removed ones aside.
    pub(crate) async fn same_keys<'k>(
        &self,
        keys: impl Iterator<Item = &'k NewKey>,
    ) -> Result<Vec<StoredKey>, ReadError> {
        let texts =
            |new: &NewKey| (new.member.as_str().to_owned(), new.key.fingerprint().to_string());
        let (members, fingerprints): (Vec<_>, Vec<_>) = keys.map(texts).unzip();
        if members.is_empty() {
            return Ok(Vec::new());
        }
        let rows = self.pool.load(ReadSameKeys { members, fingerprints }).await?;
        rows.into_iter().map(stored_key).collect()
    }

    pub(crate) async fn keys(
        &self,
        member: &MemberId,
        listing: &KeyListing,
    ) -> Result<Vec<StoredKey>, ReadError> {
        let statement = ReadKeys {
            member: member.as_str().to_owned(),
            all: listing.all,
            after: listing.after.as_ref().map_or_else(String::new, |id| id.as_str().to_owned()),
            limit: i64::from(listing.limit),
        };
        self.pool.load(statement).await?.into_iter().map(stored_key).collect()
    }

    /// Gives a user to a member; `None` where it belongs to somebody.
    pub(crate) async fn add_account(
        &self,
        site: &SiteId,
        member: &MemberId,
        unix_user: &UnixUser,
    ) -> Result<Option<Account>, ReadError> {
        let statement = AddAccount {
            site: site.as_str().to_owned(),
            member: member.as_str().to_owned(),
            unix_user: unix_user.as_str().to_owned(),
        };
        self.pool.load(statement).await?.into_iter().next().map(account).transpose()
    }

    /// Takes a user from its member; `None` where it belongs to nobody.
    pub(crate) async fn remove_account(
        &self,
        site: &SiteId,
        unix_user: &UnixUser,
    ) -> Result<Option<Account>, ReadError> {
        let (site, unix_user) = (site.as_str().to_owned(), unix_user.as_str().to_owned());
        let rows = self.pool.load(RemoveAccount { site, unix_user }).await?;
        rows.into_iter().next().map(account).transpose()
    }

    /// The newest account with a user.
    pub(crate) async fn account(
        &self,
        site: &SiteId,
        unix_user: &UnixUser,
    ) -> Result<Option<Account>, ReadError> {
        let (site, unix_user) = (site.as_str().to_owned(), unix_user.as_str().to_owned());
        let rows = self.pool.load(ReadAccount { site, unix_user }).await?;
        rows.into_iter().next().map(account).transpose()
    }

    pub(crate) async fn accounts(
        &self,
        site: &SiteId,
        listing: &AccountListing,
    ) -> Result<Vec<Account>, ReadError> {
        let statement = ReadAccounts {
            site: site.as_str().to_owned(),
            member: listing.member.as_ref().map(|member| member.as_str().to_owned()),
            all: listing.all,
            after: listing.after.map_or(0, AccountId::get),
            limit: i64::from(listing.limit),
        };
        self.pool.load(statement).await?.into_iter().map(account).collect()
    }
}

fn stored_key(row: KeyRow) -> Result<StoredKey, ReadError> {
    let ((id, member, key), (added_at, expires_at, removed_at), expired) = row;
    Ok(StoredKey {
        id: known(KeyId::parse(&id), "a key's id")?,
        member: known(MemberId::parse(&member), "a member")?,
        key: known(PublicKey::parse(&key), "a key")?,
        added_at,
        expires_at,
        removed_at,
        state: match (removed_at, expired) {
            // One that had expired before it was marked has expired.
            (Some(removed), _) if expires_at.is_none_or(|end| removed < end) => KeyState::Removed,
            (None, false) => KeyState::Active,
            _ => KeyState::Expired,
        },
    })
}

fn account(row: AccountRow) -> Result<Account, ReadError> {
    let (id, site, member, unix_user, added_at, removed_at) = row;
    Ok(Account {
        id: AccountId::new(id).ok_or(ReadError::Corrupt("an account's id"))?,
        site: known(SiteId::parse(&site), "a Site")?,
        member: known(MemberId::parse(&member), "a member")?,
        unix_user: known(UnixUser::parse(&unix_user), "a user")?,
        added_at,
        removed_at,
    })
}
