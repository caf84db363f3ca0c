//! The side of a process that answers Runtimes.

use chrono::{DateTime, Utc};
use database::Pool;

use crate::{Place, ReadError, Run, RunId, store::Store};

/// Reads accepted Runs, with the role `execution_core_api`. Cloning shares the connections.
#[derive(Clone)]
pub struct Runs {
    store: Store,
}

/// A Run as it was at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadRun {
    /// The Run.
    pub run: Run,
    /// When it was read, by the database's clock: what `now` is for its deadline.
    pub now: DateTime<Utc>,
}

impl Runs {
    /// Reads through `pool`.
    #[must_use]
    pub fn new(pool: Pool) -> Self {
        Self { store: Store::new(pool) }
    }

    /// A Run of a place as it is now, read in one statement. One of another Site or environment is
    /// absent, and nothing tells the two apart.
    ///
    /// # Errors
    ///
    /// The database failed, or holds what is no Run.
    pub async fn run(&self, place: &Place, run: &RunId) -> Result<Option<ReadRun>, ReadError> {
        Ok(self.store.run(run, Some(place)).await?.map(|(run, now)| ReadRun { run, now }))
    }
}
