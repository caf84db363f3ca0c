//! Everything that is in force at a Site, of one moment.

use chrono::{DateTime, Utc};
use database::ReadTransaction;
use ssh_keys::{Cursor, KeyId, PublicKey, UnixUser};

use crate::{MemberId, ReadError, SiteId, store::read_keys};

/// A key that is in force at a Site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyInForce {
    /// The user whom it lets in.
    pub unix_user: UnixUser,
    /// Its id.
    pub key_id: KeyId,
    /// Whose it is.
    pub member: MemberId,
    /// The key.
    pub key: PublicKey,
    /// The end that it has of its own.
    pub expires_at: Option<DateTime<Utc>>,
}

/// The set that is in force, read part by part from one moment, so that it may be of any size. It holds
/// a connection of the pool until it is read to its end or dropped.
pub struct Snapshot {
    pub(crate) head: Cursor,
    pub(crate) read_at: DateTime<Utc>,
    pub(crate) lease_until: DateTime<Utc>,
    pub(crate) site: SiteId,
    /// `None` at the end.
    pub(crate) transaction: Option<ReadTransaction>,
    pub(crate) last: Option<KeyInForce>,
}

impl Snapshot {
    /// Keys of a part at the most.
    pub const PART: u16 = 1000;

    /// The place of the feed at which this was in force.
    #[must_use]
    pub fn head(&self) -> Cursor {
        self.head
    }

    /// When it was read, by the database's clock.
    #[must_use]
    pub fn read_at(&self) -> DateTime<Utc> {
        self.read_at
    }

    /// Until when the Site may count on it.
    #[must_use]
    pub fn lease_until(&self) -> DateTime<Utc> {
        self.lease_until
    }

    /// The next keys, in the order of users and key ids as bytes; `None` when there are no more.
    ///
    /// # Errors
    ///
    /// The read failed: the rest of this moment can't be had any more.
    pub async fn next(&mut self) -> Result<Option<Vec<KeyInForce>>, ReadError> {
        let Some(mut transaction) = self.transaction.take() else { return Ok(None) };
        let part = read_keys(&mut transaction, &self.site, self.last.as_ref(), Self::PART).await?;
        if part.len() < usize::from(Self::PART) {
            transaction.end().await?;
        } else {
            self.last = part.last().cloned();
            self.transaction = Some(transaction);
        }
        Ok((!part.is_empty()).then_some(part))
    }
}
