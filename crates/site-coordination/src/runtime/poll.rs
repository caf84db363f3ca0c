//! Reading the commands after a sequence, and waiting for them.

use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::{sync::watch, time::Instant};

use super::RuntimeSide;
use crate::{
    CommandId, Digest, Environment, PollError, ReadError, Seq, StoredCommand, Stream, Writer,
    store::Snapshot, writer::Standing,
};

/// What a Runtime asks for.
#[derive(Clone, Debug)]
pub struct PollRequest {
    /// Who asks.
    pub writer: Writer,
    /// The sequence after which it wants commands.
    pub after: Seq,
    /// The chain digest that it computed at `after`, where it knows one.
    pub after_digest: Option<Digest>,
    /// The count of cancels that it was told last; 0 for none.
    pub cancel_rev: u64,
    /// Commands at the most, up to 1,000. With 0 it waits for cancels only.
    pub limit: u16,
    /// Bytes of bodies at the most; the first command comes whatever its size.
    pub bytes: u32,
    /// How long to wait where there is nothing new.
    pub wait: Duration,
}

/// What ends a wait, besides its release.
pub(super) struct Waiting {
    deadline: Instant,
    news: watch::Receiver<()>,
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
    /// The stream's count of cancels, up to the last that is told here. 0 where the caller knew more
    /// than the stream, as after a restore: it has to begin again.
    pub cancel_rev: u64,
    /// The commands without an ending that were cancelled after the count that the caller knew, in
    /// the order of the cancels, at most [`Page::MOST_CANCELLED`].
    pub cancelled: Vec<CancelMark>,
    /// The database's time at the read.
    pub time: DateTime<Utc>,
    /// Whether a later poll of the stream released this one.
    pub superseded: bool,
}

/// A command that somebody wants to end early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CancelMark {
    /// Its id.
    pub id: CommandId,
    /// Its place.
    pub seq: Seq,
}

/// The command whose result is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// Its place.
    pub seq: Seq,
    /// Its age in seconds.
    pub age_seconds: u64,
}

impl Page {
    /// How many cancels a page tells; `sql/page_rows.sql` has the same number.
    pub const MOST_CANCELLED: usize = 256;

    /// Whether there is anything that the caller waits for, or has to know before it waits.
    fn has_news(&self, request: &PollRequest) -> bool {
        !self.commands.is_empty()
            || !self.cancelled.is_empty()
            || self.cancel_rev < request.cancel_rev
    }
}

impl RuntimeSide {
    /// Reads the commands after a sequence and the newer cancels; waits for either where there is
    /// none, at most `request.wait` and not beyond `release`. Claims nothing: the same question gets
    /// the same commands again. A waiting poll holds no database connection.
    ///
    /// Voided commands are among them, marked: the chain goes through them.
    ///
    /// # Errors
    ///
    /// [`PollError::CursorAhead`], [`PollError::CursorTrimmed`] and [`PollError::HistoryDiverged`]
    /// come before [`PollError::StaleGeneration`]; a generation above the current one counts as
    /// diverged. A stream that is taken over while the poll waits is told at once.
    pub async fn poll(
        &self,
        environment: Environment,
        request: PollRequest,
        release: impl Future<Output = ()>,
    ) -> Result<Page, PollError> {
        let stream = self.stream(environment);
        // Before the read, so that nothing falls between.
        let waiting = self.waiting(environment, request.wait);
        let page = page(self.store.page(&stream, &request).await?, &request)?;
        self.until_news(&stream, &request, page, waiting, release).await
    }

    /// Arms what ends a wait that begins now.
    pub(super) fn waiting(&self, environment: Environment, wait: Duration) -> Waiting {
        Waiting { deadline: Instant::now() + wait, news: self.wakeups.subscribe(environment) }
    }

    /// Waits until a page has news, from one that was read after `waiting` was armed.
    pub(super) async fn until_news(
        &self,
        stream: &Stream,
        request: &PollRequest,
        mut latest: Page,
        mut waiting: Waiting,
        release: impl Future<Output = ()>,
    ) -> Result<Page, PollError> {
        // Only now: a refused poll releases nobody.
        let mut later = std::pin::pin!(self.until_later_poll(stream.environment));
        let mut release = std::pin::pin!(release);
        while !latest.has_news(request) && !request.wait.is_zero() {
            tokio::select! {
                biased;
                () = &mut later => {
                    latest.superseded = true;
                    break;
                }
                () = &mut release => break,
                () = tokio::time::sleep_until(waiting.deadline) => break,
                Ok(()) = waiting.news.changed() => {}
            }
            latest = page(self.store.page(stream, request).await?, request)?;
        }
        Ok(latest)
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

pub(super) fn page(snapshot: Snapshot, request: &PollRequest) -> Result<Page, PollError> {
    let after = snapshot.after;
    if let (trimmed, digest) = snapshot.trimmed
        && after < trimmed
    {
        let digest = digest.ok_or(ReadError::Corrupt("a trimmed stream without its digest"))?;
        return Err(PollError::CursorTrimmed { after: trimmed, digest });
    }
    let Some(digest) = snapshot.digest.filter(|_| after <= snapshot.last_seq) else {
        return Err(PollError::CursorAhead { last_seq: snapshot.last_seq });
    };
    if request.after_digest.is_some_and(|presented| presented != digest) {
        return Err(PollError::HistoryDiverged);
    }
    match request.writer.standing(&snapshot.writer) {
        Standing::Current => {}
        Standing::Above => return Err(PollError::HistoryDiverged),
        Standing::Stale => {
            return Err(PollError::StaleGeneration { current: snapshot.writer.generation() });
        }
    }
    let consecutive =
        snapshot.commands.iter().zip(after.get() + 1..).all(|(c, seq)| c.seq.get() == seq);
    if !consecutive {
        return Err(ReadError::Corrupt("a gap in a stream").into());
    }
    let (next_after, next_digest) =
        snapshot.commands.last().map_or((after, digest), |last| (last.seq, last.chain_digest));
    let due = snapshot.due_age.map(|age| Due {
        seq: Seq::from_database(snapshot.done_seq.get() + 1),
        age_seconds: age.max(0).unsigned_abs(),
    });
    let cancel_rev = match snapshot.cancelled.last() {
        // It counts the cancels of a history that is gone. Those that come now would be below it.
        _ if request.cancel_rev > snapshot.cancel_rev => 0,
        Some((told, _)) if snapshot.cancelled.len() == Page::MOST_CANCELLED => *told,
        _ => snapshot.cancel_rev,
    };
    Ok(Page {
        commands: snapshot.commands,
        next_after,
        next_digest,
        last_seq: snapshot.last_seq,
        due,
        cancel_rev,
        cancelled: snapshot.cancelled.into_iter().map(|(_, mark)| mark).collect(),
        time: snapshot.time,
        superseded: false,
    })
}
