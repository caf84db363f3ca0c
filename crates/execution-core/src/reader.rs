//! The side of a process that answers Runtimes.

use chrono::{DateTime, Utc};
use database::Pool;

use crate::{Environment, Place, ProjectId, ReadError, Run, RunId, SiteId, store::Store};

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

/// What a Run belongs to, which never changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Belonging {
    /// Its Project.
    pub project: ProjectId,
    /// Where at its Site it executes.
    pub environment: Environment,
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

    /// What a Run of a Site belongs to, in whatever environment it executes: for who is in none. One
    /// of another Site is absent.
    ///
    /// # Errors
    ///
    /// The database failed, or holds what is no Run.
    pub async fn belonging(
        &self,
        site: &SiteId,
        run: &RunId,
    ) -> Result<Option<Belonging>, ReadError> {
        self.store.belonging(site, run).await
    }
}
