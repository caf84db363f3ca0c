//! Taking a stream over.

use chrono::{DateTime, Utc};

use super::RuntimeSide;
use crate::{
    Digest, Environment, Generation, OpenSessionError, ReadError, Seq, SessionId, Writer,
    store::OpenTry, wakeups::News,
};

/// An open session, and where its Runtime goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenedSession {
    /// The session.
    pub session_id: SessionId,
    /// Its generation, from 2.
    pub generation: Generation,
    /// The last command that has a result or is voided.
    pub done_seq: Seq,
    /// The chain digest there.
    pub done_digest: Digest,
    /// The newest command of the stream.
    pub last_seq: Seq,
    /// The database's time.
    pub time: DateTime<Utc>,
}

/// Whether a call opened the session or found it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opened {
    /// This call opened it.
    New,
    /// It was open before; also where this call opened it and the answer got lost between the
    /// database and this process, so that the statement was repeated.
    Same,
}

impl RuntimeSide {
    /// How often the statement is run again: each lost race means that the generation grew or that
    /// the stream came to be, so that the next run tells.
    const OPEN_TRIES: usize = 4;

    /// Takes a stream over: its generation grows from `expected` by one, and what writes with an
    /// older one is refused from then on. The session that is open gets its generation again,
    /// whatever it expects. The stream may be one without a command yet.
    ///
    /// # Errors
    ///
    /// In this order: the session was superseded before, the generation is not the expected one.
    /// Nothing is changed then.
    pub async fn open_session(
        &self,
        environment: Environment,
        session: SessionId,
        expected: Generation,
    ) -> Result<(OpenedSession, Opened), OpenSessionError> {
        let stream = self.stream(environment);
        for _ in 0..Self::OPEN_TRIES {
            let Some(tried) = self.store.open_session(&stream, &session, expected).await? else {
                if expected != Generation::FIRST {
                    return Err(OpenSessionError::StaleGeneration { current: Generation::FIRST });
                }
                self.store.open_stream(&stream).await?;
                continue;
            };
            let Some(verdict) = verdict(&tried, &session, expected) else { continue };
            let (generation, opened) = verdict?;
            // Also of one that was open: whoever opened it may not have lived to tell.
            self.wakeups.wake(environment);
            self.announcer.announce(&stream, News::Commands);
            // In a statement of its own: beside the change it would mix new with old.
            let place = self.store.place(&stream).await?;
            let place = place.ok_or(ReadError::Corrupt("a session without its stream"))?;
            let opened_session = OpenedSession {
                session_id: session,
                generation,
                done_seq: place.done_seq,
                done_digest: place.done_digest,
                last_seq: place.last_seq,
                time: place.time,
            };
            return Ok((opened_session, opened));
        }
        Err(OpenSessionError::Contended)
    }
}

impl OpenedSession {
    /// How its Runtime presents itself.
    #[must_use]
    pub fn writer(&self) -> Writer {
        Writer::from_session(self.generation, self.session_id.clone())
    }
}

/// What follows from one run of the statement; `None` where it lost a race and its snapshot is too
/// old to tell.
fn verdict(
    tried: &OpenTry,
    session: &SessionId,
    expected: Generation,
) -> Option<Result<(Generation, Opened), OpenSessionError>> {
    if let Some(generation) = tried.opened {
        return Some(Ok((generation, Opened::New)));
    }
    let current = tried.writer.generation();
    if tried.writer.session() == Some(session) {
        return Some(Ok((current, Opened::Same)));
    }
    if tried.known {
        return Some(Err(OpenSessionError::Superseded { current }));
    }
    if expected != current {
        return Some(Err(OpenSessionError::StaleGeneration { current }));
    }
    None
}
