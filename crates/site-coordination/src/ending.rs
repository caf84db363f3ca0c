//! Waiting for the ending of a command.

use std::time::Duration;

use crate::{CommandId, Environment, Producer, StoredResult, Stream, Voided, WaitError, Wakeups};

/// How a command ended.
#[derive(Clone, Debug)]
pub enum Ending {
    /// With a result.
    Result(StoredResult),
    /// Without one: it was voided.
    Voided(Voided),
}

impl Producer {
    /// Reads how a command of the Site of `wakeups` ended; waits for it where it has not, at most
    /// `wait`, and answers `None` then. A waiting call holds no database connection.
    ///
    /// # Errors
    ///
    /// [`WaitError::UnknownCommand`] where the stream has no such command, or retention has taken
    /// it.
    pub async fn wait_result(
        &self,
        wakeups: &Wakeups,
        environment: Environment,
        id: &CommandId,
        wait: Duration,
    ) -> Result<Option<Ending>, WaitError> {
        let stream = Stream { site: wakeups.site().clone(), environment };
        let mut over = std::pin::pin!(tokio::time::sleep(wait));
        let mut news = wakeups.subscribe_done(environment);
        loop {
            // Before the read: an ending that comes after it wakes this call again.
            news.mark_unchanged();
            let ending = self.store.ending(&stream, id).await?.ok_or(WaitError::UnknownCommand)?;
            if ending.is_some() || wait.is_zero() {
                return Ok(ending);
            }
            tokio::select! {
                biased;
                () = over.as_mut() => return Ok(None),
                Ok(()) = news.changed() => {}
            }
        }
    }
}
