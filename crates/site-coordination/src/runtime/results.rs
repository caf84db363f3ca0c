//! Storing results in order.

use super::RuntimeSide;
use crate::{
    CommandId, Digest, Environment, JsonText, Outcome, Receipt, StoreResultError, Writer,
    store::ResultTry, wakeups::News, writer::Standing,
};

/// Whether a call stored the result or found it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// This call stored it.
    New,
    /// The same bytes were stored before; also where this call stored them and the answer got lost
    /// between the database and this process, so that the statement was repeated.
    Same,
}

impl RuntimeSide {
    /// How often a result's statement is run again after a lost race. Each loss means that the
    /// stream moved on; two were the most that a hammered stream ever needed.
    const TRIES: usize = 8;

    /// Stores the result of the command that is due, or answers what is stored.
    ///
    /// # Errors
    ///
    /// In this order: another result is stored, the generation is not the current one, an earlier
    /// result is missing. Nothing is changed then.
    pub async fn store_result(
        &self,
        environment: Environment,
        writer: &Writer,
        command: &CommandId,
        outcome: Outcome,
        body: &JsonText,
    ) -> Result<(Receipt, Stored), StoreResultError> {
        let stream = self.stream(environment);
        for _ in 0..Self::TRIES {
            let tried = self
                .store
                .store_result(&stream, writer, command, outcome, body)
                .await?
                .ok_or(StoreResultError::UnknownCommand)?;
            let digest = body.digest();
            if let Some(received_at) = tried.stored_at {
                self.wakeups.wake_done(environment);
                self.announcer.announce(&stream, News::Done);
                let receipt = Receipt {
                    command_id: command.clone(),
                    seq: tried.seq,
                    digest,
                    outcome,
                    received_at,
                };
                return Ok((receipt, Stored::New));
            }
            if let Some(verdict) = verdict(tried, writer, digest) {
                return verdict.map(|receipt| (receipt, Stored::Same));
            }
        }
        Err(StoreResultError::Contended)
    }
}

/// What follows from a statement that stored nothing; `None` where it lost a race and its snapshot
/// is too old to tell.
fn verdict(
    tried: ResultTry,
    writer: &Writer,
    digest: Digest,
) -> Option<Result<Receipt, StoreResultError>> {
    if let Some(earlier) = tried.earlier {
        if earlier.digest == digest {
            return Some(Ok(earlier));
        }
        return Some(Err(StoreResultError::Conflict { stored: earlier.digest }));
    }
    let current = tried.writer.generation();
    match writer.standing(&tried.writer) {
        Standing::Stale => return Some(Err(StoreResultError::StaleGeneration { current })),
        Standing::Above => return Some(Err(StoreResultError::HistoryDiverged { current })),
        Standing::Current => {}
    }
    // At or below the progress there is a result, and exactly above it this one was due: in both
    // cases the progress moved under the statement.
    if tried.seq.get() <= tried.done_seq.get() + 1 {
        return None;
    }
    Some(Err(StoreResultError::PredecessorMissing { done_seq: tried.done_seq }))
}
