//! The side of who may see the private output of a Run. Whether somebody may is decided elsewhere,
//! before anything of it is read.

use chrono::{DateTime, Utc};
use database::{DatabaseError, Pool};

use crate::{CommandId, Digest, Environment, ReadError, RunId, Seq, SiteId, Stream, store::Store};

/// Reads the private outputs of one Site, with the role `site_coordination_api`. Cloning shares the
/// connections.
#[derive(Clone)]
pub struct Views {
    store: Store,
    site: SiteId,
}

/// The private output of a Run: that which the newest result of its commands names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunOutput {
    pub(crate) stream: Stream,
    pub(crate) seq: Seq,
    /// The command whose result names it.
    pub command: CommandId,
    /// The digest of its bytes.
    pub digest: Digest,
    /// How many bytes it has.
    pub bytes: u64,
    /// When it was stored, by the database's clock.
    pub stored_at: DateTime<Utc>,
}

/// Why a part of a private output could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadPartError {
    /// It was deleted by age since it was found.
    #[error("the private output was deleted meanwhile")]
    Gone,
    /// The place is not one of an output.
    #[error("no private output has a byte there")]
    Beyond,
    /// The database failed.
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

impl Views {
    /// Reads outputs of a Site through `pool`.
    #[must_use]
    pub fn new(pool: Pool, site: SiteId) -> Self {
        Self { store: Store::new(pool), site }
    }

    /// The private output of a Run, without its bytes. `None` where no result of its commands in the
    /// stream names one, and where it was deleted by age.
    ///
    /// # Errors
    ///
    /// The database failed, or holds what is no output.
    pub async fn output_of(
        &self,
        environment: Environment,
        run: &RunId,
    ) -> Result<Option<RunOutput>, ReadError> {
        let stream = Stream { site: self.site.clone(), environment };
        self.store.run_output(&stream, run).await
    }

    /// At most `most` bytes of an output after the first `after` ones; fewer at its end. What was
    /// stored under a digest never changes.
    ///
    /// # Errors
    ///
    /// It was deleted since, or the database failed.
    pub async fn part(
        &self,
        output: &RunOutput,
        after: u64,
        most: u32,
    ) -> Result<Vec<u8>, ReadPartError> {
        let number = |number: u64| i32::try_from(number).ok().filter(|number| *number < i32::MAX);
        let place = number(after).zip(number(most.into()));
        let (after, most) = place.ok_or(ReadPartError::Beyond)?;
        self.store.output_part(output, after, most).await?.ok_or(ReadPartError::Gone)
    }
}
