//! The only files that run statements: this one and those in `store/`.

mod feed;
mod outbox;
mod propagator;
mod registry;

use database::{DatabaseError, Pool};
use ssh_keys::{Cursor, Digest};

pub(crate) use self::{
    feed::{State, read_keys, read_state},
    propagator::{Due, Wanted},
};
use crate::{ReadError, statements::Announce};

/// Statements of this context over one pool.
#[derive(Clone)]
pub(crate) struct Store {
    pool: Pool,
}

impl Store {
    pub(crate) fn new(pool: Pool) -> Self {
        Self { pool }
    }

    pub(crate) fn pool(&self) -> &Pool {
        &self.pool
    }

    /// Sends hints on channels.
    pub(crate) async fn announce(&self, channels: Vec<String>) -> Result<(), DatabaseError> {
        self.pool.load(Announce { channels }).await.map(drop)
    }
}

/// What was parsed when it was stored.
fn known<T, E>(parsed: Result<T, E>, what: &'static str) -> Result<T, ReadError> {
    parsed.map_err(|_| ReadError::Corrupt(what))
}

fn digest(bytes: &[u8]) -> Result<Digest, ReadError> {
    known(bytes.try_into(), "a digest").map(Digest::from_bytes)
}

fn cursor(seq: i64, bytes: &[u8]) -> Result<Cursor, ReadError> {
    known(Cursor::new(seq, digest(bytes)?), "a place of a feed")
}
