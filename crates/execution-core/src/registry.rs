//! The side of the control plane: what is accepted, tried, cancelled and over.

use chrono::{DateTime, Utc};
use database::Pool;

use crate::{
    AcceptError, Attempt, AttemptNumber, CancelError, FinishError, NewRun, ReadError, Run, RunId,
    SubmitError, store::Store,
};

/// Writes Runs and their Attempts, with the role `execution_core_writer`. Cloning shares the
/// connections.
///
/// Each call may be repeated: it then changes nothing and says so. What an answer tells is durable.
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

impl Registry {
    /// How often a statement is run when others move the Run on between it and the reading that says
    /// why it did nothing.
    const TRIES: usize = 8;

    /// Works through `pool`.
    #[must_use]
    pub fn new(pool: Pool) -> Self {
        Self { store: Store::new(pool) }
    }

    /// Accepts a Run. The same again is the same Run, whatever has become of it.
    ///
    /// A deadline that has passed is accepted: what a Run may do is asked when it wants to do it.
    ///
    /// # Errors
    ///
    /// [`AcceptError::Conflict`] where the id stands for another Run, of whatever Site.
    pub async fn accept(&self, run: NewRun) -> Result<Done<Run>, AcceptError> {
        if let Some(accepted_at) = self.store.accept(run.clone()).await.map_err(ReadError::from)? {
            let run = Run { accepted: run, accepted_at, cancelled_at: None, attempts: Vec::new() };
            return Ok(Done { value: run, new: true });
        }
        let known = self.show(&run.id).await?;
        let known = known.ok_or(ReadError::Corrupt("a Run that was there is not"))?;
        if known.accepted != run {
            return Err(AcceptError::Conflict { run: run.id });
        }
        Ok(Done { value: known, new: false })
    }

    /// Submits the next Attempt of a Run. One that was submitted before is answered as it is, also
    /// when the Run was cancelled since.
    ///
    /// The Attempt before it need not be over. From now on it is the latest one, and the only one
    /// that may do anything.
    ///
    /// # Errors
    ///
    /// The Run is unknown or cancelled, or another number is next.
    pub async fn submit(
        &self,
        run: &RunId,
        number: AttemptNumber,
    ) -> Result<Done<Attempt>, SubmitError> {
        for _ in 0..Self::TRIES {
            let submitted = self.store.submit(run, number).await.map_err(ReadError::from)?;
            if let Some(submitted_at) = submitted {
                let attempt = Attempt { number, submitted_at, final_at: None };
                return Ok(Done { value: attempt, new: true });
            }
            let known = self.show(run).await?.ok_or(SubmitError::UnknownRun)?;
            if let Some(attempt) = known.attempt(number) {
                return Ok(Done { value: attempt.clone(), new: false });
            }
            if known.cancelled_at.is_some() {
                return Err(SubmitError::Cancelled);
            }
            let latest = known.latest_attempt().map(|attempt| attempt.number);
            if latest.map_or(0, AttemptNumber::get) + 1 != number.get() {
                return Err(SubmitError::NotNext { latest });
            }
            // It is the next one by now: the one before it came in between.
        }
        Err(SubmitError::Contended)
    }

    /// Cancels a Run, for ever. Its Attempts may do nothing from now on.
    ///
    /// # Errors
    ///
    /// The Run is unknown.
    pub async fn cancel(&self, run: &RunId) -> Result<Done<DateTime<Utc>>, CancelError> {
        for _ in 0..Self::TRIES {
            if let Some(at) = self.store.cancel(run).await.map_err(ReadError::from)? {
                return Ok(Done { value: at, new: true });
            }
            let known = self.show(run).await?.ok_or(CancelError::UnknownRun)?;
            if let Some(at) = known.cancelled_at {
                return Ok(Done { value: at, new: false });
            }
            // It was accepted in between.
        }
        Err(ReadError::Corrupt("a Run that can't be cancelled").into())
    }

    /// Notes that an Attempt is over, for ever; also one that is not the latest, or whose Run was
    /// cancelled.
    ///
    /// # Errors
    ///
    /// The Run or the Attempt is unknown.
    pub async fn finish(
        &self,
        run: &RunId,
        number: AttemptNumber,
    ) -> Result<Done<Attempt>, FinishError> {
        for _ in 0..Self::TRIES {
            let new = self.store.finish(run, number).await.map_err(ReadError::from)?.is_some();
            let known = self.show(run).await?.ok_or(FinishError::UnknownRun)?;
            let attempt = known.attempt(number).ok_or(FinishError::UnknownAttempt)?;
            if attempt.final_at.is_some() {
                return Ok(Done { value: attempt.clone(), new });
            }
            // It was submitted in between.
        }
        Err(ReadError::Corrupt("an Attempt that can't be over").into())
    }

    /// A Run of any Site as it is now.
    ///
    /// # Errors
    ///
    /// The database failed, or holds what is no Run.
    pub async fn show(&self, run: &RunId) -> Result<Option<Run>, ReadError> {
        Ok(self.store.run(run, None).await?.map(|(run, _)| run))
    }
}
