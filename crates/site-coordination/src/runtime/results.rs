//! Storing results in order, and going on after them.

use std::{collections::HashMap, future::pending, time::Duration};

use super::{
    Page, PollRequest, RuntimeSide,
    poll::{Waiting, page},
};
use crate::{
    CommandId, Digest, Environment, JsonText, Outcome, ReadError, Receipt, Seq, StoreResultError,
    Stream, Writer,
    store::{ResultsTry, Snapshot, Target},
    wakeups::News,
    writer::Standing,
};

/// A result that a Runtime wants stored.
#[derive(Clone, Debug)]
pub struct NewResult {
    /// Its command.
    pub command: CommandId,
    /// How the command ended.
    pub outcome: Outcome,
    /// The result; its bytes are its identity.
    pub body: JsonText,
    /// The private output that counts, which was stored before.
    pub output: Option<Digest>,
}

/// What a Runtime wants to read after its results.
#[derive(Clone, Copy, Debug)]
pub struct NextRequest {
    /// Commands at the most, up to 1,000.
    pub limit: u16,
    /// Bytes of bodies at the most; the first command comes whatever its size.
    pub bytes: u32,
    /// How long to wait where there is nothing new.
    pub wait: Duration,
    /// The count of cancels that it was told last; 0 for none.
    pub cancel_rev: u64,
}

/// What became of results.
#[derive(Debug)]
pub struct StoredResults {
    /// One for each result, in their order.
    pub verdicts: Vec<Result<(Receipt, Stored), StoreResultError>>,
    /// What a poll after the last leading result that was stored, or whose command was voided, would
    /// bring. `None` where it was not asked for, where the first result is neither, and where a poll
    /// would be refused: the results of a writer that was taken over are repetitions.
    pub next: Option<Page>,
}

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
    /// How often the statement is run beyond once for each result. A lost race means that another
    /// caller gave one of the commands its ending, so no command can lose twice; the rest is for a
    /// stream that is taken over, and room to spare.
    const SPARE_TRIES: usize = 4;

    /// Stores the result of the command that is due, or answers what is stored.
    ///
    /// # Errors
    ///
    /// In this order: another result is stored or the command is voided, the writer is not the
    /// current one, an earlier command has no ending, the output is missing. Nothing is changed
    /// then.
    pub async fn store_result(
        &self,
        environment: Environment,
        writer: &Writer,
        result: NewResult,
    ) -> Result<(Receipt, Stored), StoreResultError> {
        let stored = self.store_result_and_next(environment, writer, result, None, pending());
        stored.await.map(|(receipt, stored, _)| (receipt, stored))
    }

    /// The same, and with `next` also reads the commands after it and waits for one, like
    /// [`RuntimeSide::store_results`]. A result that is refused is refused at once, and is no poll.
    ///
    /// # Errors
    ///
    /// Those of [`RuntimeSide::store_result`].
    pub async fn store_result_and_next(
        &self,
        environment: Environment,
        writer: &Writer,
        result: NewResult,
        next: Option<NextRequest>,
        release: impl Future<Output = ()>,
    ) -> Result<(Receipt, Stored, Option<Page>), StoreResultError> {
        let stream = self.stream(environment);
        // Before the statement, so that nothing falls between it and the wait.
        let waiting = self.waiting(environment, next.map_or(Duration::ZERO, |next| next.wait));
        let (verdicts, snapshot) =
            self.store_and_tell(&stream, writer, &[result], next.as_ref()).await?;
        let verdict = verdicts.into_iter().next();
        let verdict = verdict.ok_or(ReadError::Corrupt("a result without a verdict"))?;
        // Also one whose command was voided: of a list that one leads, and here it is a refusal.
        let (receipt, stored) = verdict?;
        let next = self.next_page(&stream, writer, next, snapshot, waiting, release).await;
        Ok((receipt, stored, next))
    }

    /// Stores results of consecutive commands in one transaction, as if each came alone, in their
    /// order. With `next` it also reads the commands after them, and waits for one like a poll: at
    /// most `next.wait` and not beyond `release`. What is stored stays stored whatever becomes of
    /// the wait.
    ///
    /// # Errors
    ///
    /// The statement failed; sending the same again is safe. What is wrong with a single result is
    /// its verdict: see [`RuntimeSide::store_result`].
    pub async fn store_results(
        &self,
        environment: Environment,
        writer: &Writer,
        results: Vec<NewResult>,
        next: Option<NextRequest>,
        release: impl Future<Output = ()>,
    ) -> Result<StoredResults, ReadError> {
        let stream = self.stream(environment);
        // As above.
        let waiting = self.waiting(environment, next.map_or(Duration::ZERO, |next| next.wait));
        let (verdicts, snapshot) =
            self.store_and_tell(&stream, writer, &results, next.as_ref()).await?;
        let next = self.next_page(&stream, writer, next, snapshot, waiting, release).await;
        Ok(StoredResults { verdicts, next })
    }

    /// Stores and tells who waits for an ending.
    async fn store_and_tell(
        &self,
        stream: &Stream,
        writer: &Writer,
        results: &[NewResult],
        next: Option<&NextRequest>,
    ) -> Result<(Verdicts, Option<Snapshot>), ReadError> {
        let (verdicts, snapshot) = self.store_until_told(stream, writer, results, next).await?;
        // Also of one that was there: whoever stored it may not have lived to tell.
        if verdicts.iter().any(Result::is_ok) {
            self.wakeups.wake_done(stream.environment);
            self.announcer.announce(stream, News::Done);
        }
        Ok((verdicts, snapshot))
    }

    /// The page that was read with results, as soon as it has news; `None` where there is none, or a
    /// poll would be refused.
    async fn next_page(
        &self,
        stream: &Stream,
        writer: &Writer,
        next: Option<NextRequest>,
        snapshot: Option<Snapshot>,
        waiting: Waiting,
        release: impl Future<Output = ()>,
    ) -> Option<Page> {
        let (next, snapshot) = next.zip(snapshot)?;
        let request = PollRequest {
            writer: writer.clone(),
            after: snapshot.after,
            after_digest: None,
            cancel_rev: next.cancel_rev,
            limit: next.limit,
            bytes: next.bytes,
            wait: next.wait,
        };
        let first = page(snapshot, &request).ok()?;
        let known = Page { commands: Vec::new(), cancelled: Vec::new(), ..first.clone() };
        let waited = self.until_news(stream, &request, first, waiting, release).await;
        // A wait that fails, or that ends with the writer, takes no receipt back.
        Some(waited.unwrap_or(known))
    }

    /// Runs the statement until it lost no race.
    async fn store_until_told(
        &self,
        stream: &Stream,
        writer: &Writer,
        results: &[NewResult],
        next: Option<&NextRequest>,
    ) -> Result<(Verdicts, Option<Snapshot>), ReadError> {
        for _ in 0..results.len() + Self::SPARE_TRIES {
            let tried = self.store.store_results(stream, writer, results, next).await?;
            if let Some(verdicts) = verdicts(&tried, writer, results) {
                return Ok((verdicts, tried.next));
            }
        }
        Ok((results.iter().map(|_| Err(StoreResultError::Contended)).collect(), None))
    }
}

type Verdicts = Vec<Result<(Receipt, Stored), StoreResultError>>;

/// What one run of the statement says of each result; `None` where it lost a race and its snapshot
/// is too old to tell.
fn verdicts(tried: &ResultsTry, writer: &Writer, results: &[NewResult]) -> Option<Verdicts> {
    // The last command with an ending, as far as the results before have brought the stream.
    let mut done_seq = None;
    // A command may stand in the list twice. The statement takes its first result; a second finds
    // that one, or is refused for the same reason.
    let mut stored_now: HashMap<&CommandId, Receipt> = HashMap::new();
    let mut done_at: HashMap<&CommandId, Seq> = HashMap::new();
    let mut verdicts = Verdicts::with_capacity(results.len());
    for result in results {
        let Some(target) = tried.targets.get(&result.command) else {
            verdicts.push(Err(StoreResultError::UnknownCommand));
            continue;
        };
        let digest = result.body.digest();
        let done = *done_at.entry(&result.command).or_insert(done_seq.unwrap_or(target.done_seq));
        let earlier = stored_now.get(&result.command).or(target.earlier.as_ref());
        verdicts.push(match (earlier, target.stored_at) {
            (Some(earlier), _) if earlier.digest == digest => Ok((earlier.clone(), Stored::Same)),
            (Some(earlier), _) => Err(StoreResultError::Conflict { stored: earlier.digest }),
            (None, Some(received_at)) => {
                done_seq = Some(target.seq);
                let receipt = Receipt {
                    command_id: result.command.clone(),
                    seq: target.seq,
                    digest,
                    outcome: result.outcome,
                    received_at,
                };
                stored_now.insert(&result.command, receipt.clone());
                Ok((receipt, Stored::New))
            }
            (None, None) => Err(refusal(target, writer, done)?),
        });
    }
    Some(verdicts)
}

/// Why a result was not stored that was not there before either; `None` where it should have been.
fn refusal(target: &Target, writer: &Writer, done_seq: Seq) -> Option<StoreResultError> {
    if let Some(at) = target.voided_at {
        return Some(StoreResultError::AlreadyVoided { at });
    }
    let current = target.writer.generation();
    match writer.standing(&target.writer) {
        Standing::Above => return Some(StoreResultError::HistoryDiverged { current }),
        Standing::Stale => return Some(StoreResultError::StaleGeneration { current }),
        Standing::Current => {}
    }
    match target.seq.get() - done_seq.get() {
        2.. => Some(StoreResultError::PredecessorMissing { done_seq }),
        1 if !target.has_output => Some(StoreResultError::OutputMissing),
        // Right above the progress this one was due, and below it a command has its ending: in both
        // cases the progress moved under the statement.
        _ => None,
    }
}
