//! What is read for the agent of a Site, and what it acknowledges.

use chrono::{DateTime, Utc};
use database::{DatabaseError, ReadTransaction};
use ssh_keys::{Cursor, Digest, KeyId, Operation, PublicKey, UnixUser};

use super::{Store, cursor, digest, known};
use crate::{
    Acknowledgement, Attested, Change, KeyInForce, MemberId, ReadError, SiteId, Window,
    statements::feed::{
        ChangeRow, ReadChanges, ReadHead, ReadSet, ReadState, StateRow, StoreAcknowledgement,
    },
};

/// Where a feed is.
pub(crate) struct State {
    pub(crate) head: Cursor,
    pub(crate) floor: i64,
    /// The chain digest at the sequence that was asked for.
    pub(crate) digest: Option<Digest>,
    pub(crate) read_at: DateTime<Utc>,
    pub(crate) lease_until: DateTime<Utc>,
    pub(crate) waits_since: Option<DateTime<Utc>>,
}

/// A part of what is in force.
pub(crate) type KeyPage = Vec<KeyInForce>;

/// What was stored of an acknowledgement, and what the feed is there.
pub(crate) struct StoredAcknowledgement {
    pub(crate) stored: Option<Cursor>,
    pub(crate) new: bool,
    pub(crate) digest: Option<Digest>,
    pub(crate) head: Cursor,
    pub(crate) floor: i64,
    pub(crate) at: DateTime<Utc>,
}

impl Store {
    /// Where the feed is, and its digest at a sequence.
    pub(crate) async fn state(
        &self,
        site: &SiteId,
        seq: i64,
        window: Window,
    ) -> Result<State, ReadError> {
        state(self.pool.load(state_statement(site, seq, window)).await?)
    }

    /// Changes after a sequence, each with the place after it.
    pub(crate) async fn changes(
        &self,
        site: &SiteId,
        after: i64,
        limit: u16,
    ) -> Result<Vec<(Change, Cursor)>, ReadError> {
        let statement =
            ReadChanges { site: site.as_str().to_owned(), after, limit: i64::from(limit) };
        self.pool.load(statement).await?.into_iter().map(change).collect()
    }

    /// The newest place; 0 where the Site has no feed.
    pub(crate) async fn head(&self, site: &SiteId) -> Result<i64, DatabaseError> {
        let rows = self.pool.load(ReadHead { site: site.as_str().to_owned() }).await?;
        Ok(rows.into_iter().next().map_or(0, |(head,)| head))
    }

    pub(crate) async fn acknowledge(
        &self,
        site: &SiteId,
        acknowledgement: &Acknowledgement,
        attested: Option<Attested>,
    ) -> Result<StoredAcknowledgement, ReadError> {
        let failures = &acknowledgement.failures;
        let compared = attested.filter(|attested| *attested != Attested::Behind);
        let statement = StoreAcknowledgement {
            site: site.as_str().to_owned(),
            seq: acknowledgement.cursor.seq(),
            digest: *acknowledgement.cursor.digest().as_bytes(),
            attested: compared.map(Attested::as_str),
            failing: known(i32::try_from(failures.as_slice().len()), "failures")?,
            failures: known(failures.to_json(), "failures")?,
        };
        let row = self.pool.load(statement).await?.into_iter().next();
        let (seq, bytes, new, here, head, head_digest, floor, at) =
            row.ok_or(ReadError::Corrupt("no state of a feed"))?;
        let stored = seq.zip(bytes).map(|(seq, bytes)| cursor(seq, &bytes)).transpose()?;
        let here = here.map(|bytes| digest(&bytes)).transpose()?;
        let head = cursor(head, &head_digest)?;
        Ok(StoredAcknowledgement { stored, new, digest: here, head, floor, at })
    }
}

/// Where the feed is, at the moment of a transaction.
pub(crate) async fn read_state(
    transaction: &mut ReadTransaction,
    site: &SiteId,
    seq: i64,
    window: Window,
) -> Result<State, ReadError> {
    state(transaction.load(&state_statement(site, seq, window)).await?)
}

/// What is in force after a key, at the moment of a transaction.
pub(crate) async fn read_keys(
    transaction: &mut ReadTransaction,
    site: &SiteId,
    after: Option<&KeyInForce>,
    limit: u16,
) -> Result<KeyPage, ReadError> {
    let text = |text: fn(&KeyInForce) -> &str| after.map_or("", text).to_owned();
    let statement = ReadSet {
        site: site.as_str().to_owned(),
        after_user: text(|key| key.unix_user.as_str()),
        after_key: text(|key| key.key_id.as_str()),
        limit: i64::from(limit),
    };
    let rows = transaction.load(&statement).await?;
    rows.into_iter()
        .map(|(unix_user, key_id, member, key, expires_at)| {
            Ok(KeyInForce {
                unix_user: known(UnixUser::parse(&unix_user), "a user")?,
                key_id: known(KeyId::parse(&key_id), "a key's id")?,
                member: known(MemberId::parse(&member), "a member")?,
                key: known(PublicKey::parse(&key), "a key")?,
                expires_at,
            })
        })
        .collect()
}

fn state_statement(site: &SiteId, seq: i64, window: Window) -> ReadState {
    ReadState { site: site.as_str().to_owned(), seq, window: window.seconds() }
}

fn state(rows: Vec<StateRow>) -> Result<State, ReadError> {
    let row = rows.into_iter().next();
    let (head, head_digest, floor, here, read_at, lease_until, waits_since) =
        row.ok_or(ReadError::Corrupt("no state of a feed"))?;
    Ok(State {
        head: cursor(head, &head_digest)?,
        floor,
        digest: here.map(|bytes| digest(&bytes)).transpose()?,
        read_at,
        lease_until,
        waits_since,
    })
}

fn change(row: ChangeRow) -> Result<(Change, Cursor), ReadError> {
    let ((seq, operation, unix_user, key_id, member), (public_key, expires_at, enforce_by), bytes) =
        row;
    let change = Change {
        seq,
        operation: known(Operation::parse(&operation), "an operation")?,
        unix_user: known(UnixUser::parse(&unix_user), "a user")?,
        key_id: known(KeyId::parse(&key_id), "a key's id")?,
        member: known(MemberId::parse(&member), "a member")?,
        public_key,
        expires_at,
        enforce_by,
        digest: digest(&bytes.0)?,
    };
    Ok((change, cursor(seq, &bytes.1)?))
}
