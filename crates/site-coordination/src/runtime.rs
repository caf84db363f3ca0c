//! The side of a Runtime: read the commands in order, store the results in order.

use std::time::Duration;

use chrono::{DateTime, Utc};
use database::Pool;
use tokio::{sync::watch, time::Instant};

use crate::{
    CommandId, Digest, Environment, Generation, JsonText, Outcome, PollError, Receipt, Seq, SiteId,
    StoreResultError, StoredCommand, Stream, Wakeups,
    ids::PerEnvironment,
    store::{ResultTry, Snapshot, Store},
};

/// Serves the Runtimes of one Site, with the role `site_coordination_api`.
pub struct RuntimeSide {
    store: Store,
    wakeups: Wakeups,
    /// For each environment the number of polls so far: a later one releases the one that waits.
    polls: PerEnvironment<watch::Sender<u64>>,
}

/// What a Runtime asks for.
#[derive(Clone, Copy, Debug)]
pub struct PollRequest {
    /// The generation that it writes with.
    pub generation: Generation,
    /// The sequence after which it wants commands.
    pub after: Seq,
    /// The chain digest that it computed at `after`, where it knows one.
    pub after_digest: Option<Digest>,
    /// Commands at the most, from 1 up.
    pub limit: u16,
    /// Bytes of bodies at the most; the first command comes whatever its size.
    pub bytes: u32,
    /// How long to wait for a command when there is none.
    pub wait: Duration,
}

/// The commands after a sequence.
#[derive(Clone, Debug)]
pub struct Page {
    /// Consecutive commands, the first right after the asked sequence.
    pub commands: Vec<StoredCommand>,
    /// Where to go on.
    pub next_after: Seq,
    /// The chain digest there.
    pub next_digest: Digest,
    /// The newest command of the stream.
    pub last_seq: Seq,
    /// The command whose result is due.
    pub due: Option<Due>,
    /// The database's time at the read.
    pub time: DateTime<Utc>,
    /// Whether a later poll of the stream released this one.
    pub superseded: bool,
}

/// The command whose result is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// Its place.
    pub seq: Seq,
    /// Its age in seconds.
    pub age_seconds: u64,
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
    /// How often a result's statement is run again after a lost race. Each loss means that the
    /// stream moved on; two were the most that a hammered stream ever needed.
    const TRIES: usize = 8;

    /// Serves the Site of `wakeups` through `pool`.
    #[must_use]
    pub fn new(pool: Pool, wakeups: Wakeups) -> Self {
        Self { store: Store::new(pool), wakeups, polls: Default::default() }
    }

    /// The Site that is served.
    #[must_use]
    pub fn site(&self) -> &SiteId {
        self.wakeups.site()
    }

    /// Reads the commands after a sequence; waits for one where there is none, at most
    /// `request.wait` and not beyond `release`. Claims nothing: the same question gets the same
    /// commands again. A waiting poll holds no database connection.
    ///
    /// # Errors
    ///
    /// [`PollError::CursorAhead`] and [`PollError::HistoryDiverged`] come before
    /// [`PollError::StaleGeneration`]; a generation above the current one counts as diverged.
    pub async fn poll(
        &self,
        environment: Environment,
        request: PollRequest,
        release: impl Future<Output = ()>,
    ) -> Result<Page, PollError> {
        let stream = Stream { site: self.site().clone(), environment };
        let deadline = Instant::now() + request.wait;
        let mut news = self.wakeups.subscribe(environment);
        let mut release = std::pin::pin!(release);
        let mut later = None;
        loop {
            news.mark_unchanged();
            let snapshot =
                self.store.page(&stream, request.after, request.limit, request.bytes).await?;
            let mut page = page(snapshot, &request)?;
            // Only now: a refused poll releases nobody.
            let later = later.get_or_insert_with(|| Box::pin(self.until_later_poll(environment)));
            if !page.commands.is_empty() || request.wait.is_zero() {
                return Ok(page);
            }
            tokio::select! {
                biased;
                () = later.as_mut() => {
                    page.superseded = true;
                    return Ok(page);
                }
                () = &mut release => return Ok(page),
                () = tokio::time::sleep_until(deadline) => return Ok(page),
                Ok(()) = news.changed() => {}
            }
        }
    }

    /// Stores the result of the command that is due, or answers what is stored.
    ///
    /// # Errors
    ///
    /// In this order: another result is stored, the generation is not the current one, an earlier
    /// result is missing. Nothing is changed then.
    pub async fn store_result(
        &self,
        environment: Environment,
        generation: Generation,
        command: &CommandId,
        outcome: Outcome,
        body: &JsonText,
    ) -> Result<(Receipt, Stored), StoreResultError> {
        let stream = Stream { site: self.site().clone(), environment };
        for _ in 0..Self::TRIES {
            let tried = self
                .store
                .store_result(&stream, command, generation, outcome, body)
                .await?
                .ok_or(StoreResultError::UnknownCommand)?;
            let digest = body.digest();
            if let Some(received_at) = tried.stored_at {
                let receipt = Receipt {
                    command_id: command.clone(),
                    seq: tried.seq,
                    digest,
                    outcome,
                    received_at,
                };
                return Ok((receipt, Stored::New));
            }
            if let Some(verdict) = verdict(tried, generation, digest) {
                return verdict.map(|receipt| (receipt, Stored::Same));
            }
        }
        Err(StoreResultError::Contended)
    }

    /// Counts a poll, which releases the one that waits; ends when a later poll is counted.
    fn until_later_poll(&self, environment: Environment) -> impl Future<Output = ()> + use<> {
        let polls = self.polls.of(environment);
        let mut number = 0;
        polls.send_modify(|count| {
            *count += 1;
            number = *count;
        });
        let mut receiver = polls.subscribe();
        async move {
            if receiver.wait_for(|count| *count > number).await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }
}

/// What follows from a statement that stored nothing; `None` where it lost a race and its snapshot
/// is too old to tell.
fn verdict(
    tried: ResultTry,
    generation: Generation,
    digest: Digest,
) -> Option<Result<Receipt, StoreResultError>> {
    let ResultTry { seq, done_seq, generation: current, earlier, .. } = tried;
    if let Some(earlier) = earlier {
        if earlier.digest == digest {
            return Some(Ok(earlier));
        }
        return Some(Err(StoreResultError::Conflict { stored: earlier.digest }));
    }
    if generation < current {
        return Some(Err(StoreResultError::StaleGeneration { current }));
    }
    if generation > current {
        return Some(Err(StoreResultError::HistoryDiverged { current }));
    }
    // At or below the progress there is a result, and exactly above it this one was due: in both
    // cases the progress moved under the statement.
    if seq.get() <= done_seq.get() + 1 {
        return None;
    }
    Some(Err(StoreResultError::PredecessorMissing { done_seq }))
}

fn page(snapshot: Snapshot, request: &PollRequest) -> Result<Page, PollError> {
    let Some(digest) = snapshot.digest.filter(|_| request.after <= snapshot.last_seq) else {
        return Err(PollError::CursorAhead { last_seq: snapshot.last_seq });
    };
    if request.after_digest.is_some_and(|presented| presented != digest)
        || request.generation > snapshot.generation
    {
        return Err(PollError::HistoryDiverged);
    }
    if request.generation < snapshot.generation {
        return Err(PollError::StaleGeneration { current: snapshot.generation });
    }
    let consecutive =
        snapshot.commands.iter().zip(request.after.get() + 1..).all(|(c, seq)| c.seq.get() == seq);
    if !consecutive {
        return Err(crate::ReadError::Corrupt("a gap in a stream").into());
    }
    let (next_after, next_digest) = snapshot
        .commands
        .last()
        .map_or((request.after, digest), |last| (last.seq, last.chain_digest));
    let due = snapshot.due_age.map(|age| Due {
        seq: Seq::from_database(snapshot.done_seq.get() + 1),
        age_seconds: age.max(0).unsigned_abs(),
    });
    Ok(Page {
        commands: snapshot.commands,
        next_after,
        next_digest,
        last_seq: snapshot.last_seq,
        due,
        time: snapshot.time,
        superseded: false,
    })
}
