//! Taking the stream over.

use std::time::Duration;

use site_client::{PollRequest, Refusal, Writer, new_session_id};
use site_protocol::{Session, SessionRequest};

use super::{Break, Runtime, events};
use crate::journal::Cursor;

/// When a session is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Occasion {
    /// The agent starts: it goes on at its own place, if the stream has come as far.
    Start,
    /// The stream is another one than the journal's: it goes on at the Site API's place.
    Recovery,
}

impl Runtime {
    /// Opens a session and gives the place after which the work goes on. A journal without a place
    /// goes on at the Site API's too, so that a new Runtime does not repeat a stream's whole past.
    pub(super) async fn open_session(&mut self, occasion: Occasion) -> Result<Cursor, Break> {
        if occasion == Occasion::Recovery {
            self.see_that_it_is_ours().await?;
        }
        let session = self.ask_for_session().await?;
        while let Err(error) = self.journal.adopt(session.generation) {
            self.own_trouble("journal.not_written", &error).await?;
        }
        tracing::info!(
            session.id = session.session_id,
            session.generation = session.generation,
            command.seq = session.done_seq,
            "session.opened"
        );
        self.writer = Writer::of(&session);
        // Of another database the marks are others.
        self.cancels = Default::default();
        self.singly = false;
        if let (Some(cursor), Occasion::Start) = (self.journal.cursor(), occasion) {
            if cursor.seq <= session.done_seq {
                return Ok(cursor);
            }
            events::results_lost(cursor.seq);
        }
        let cursor = Cursor { seq: session.done_seq, chain_digest: session.done_digest };
        self.begin_after(cursor).await?;
        Ok(cursor)
    }

    /// Records where the work goes on.
    pub(super) async fn begin_after(&mut self, cursor: Cursor) -> Result<(), Break> {
        while let Err(error) = self.journal.begin_after(cursor) {
            self.own_trouble("journal.not_written", &error).await?;
        }
        Ok(())
    }

    /// A place that is not in the stream is refused before a look at the session. So a Runtime that
    /// was taken over before the database was restored learns it only from a place that is there.
    async fn see_that_it_is_ours(&mut self) -> Result<(), Break> {
        let mut question = PollRequest {
            writer: self.writer.clone(),
            after: 0,
            after_digest: None,
            cancel_rev: 0,
            limit: 0,
            wait: Duration::ZERO,
        };
        loop {
            let answer = tokio::select! {
                biased;
                () = self.stop.asked() => return Err(self.stopped()),
                answer = self.client.poll(&question) => answer,
            };
            let Err(error) = answer else { return Ok(()) };
            match error.refusal() {
                // The generation: the database is older than the session.
                Some(Refusal::HistoryDiverged) => return Ok(()),
                Some(Refusal::CursorTrimmed { place: Some((seq, _)) }) if seq > question.after => {
                    question.after = seq;
                }
                _ => self.call_failed("poll", &error).await?,
            }
        }
    }

    /// One id for all tries: a call whose answer was lost may have opened the session.
    async fn ask_for_session(&mut self) -> Result<Session, Break> {
        let session_id = loop {
            match new_session_id(&self.random) {
                Some(id) => break id,
                None => {
                    let error = std::io::Error::other("the random source has failed");
                    self.own_trouble("session.no_id", &error).await?;
                }
            }
        };
        let expected_generation = self.journal.generation().unwrap_or(1);
        let mut request = SessionRequest { session_id, expected_generation };
        loop {
            let answer = tokio::select! {
                biased;
                () = self.stop.asked() => return Err(self.stopped()),
                answer = self.client.open_session(&request) => answer,
            };
            let error = match answer {
                Ok((session, _)) => return Ok(session),
                Err(error) => error,
            };
            match error.refusal() {
                Some(Refusal::StaleGeneration { generation: Some(generation @ 1..) }) => {
                    tracing::info!(
                        session.expected_generation = request.expected_generation,
                        session.generation = generation,
                        "session.expectation_corrected"
                    );
                    request.expected_generation = generation;
                    self.back_off(None).await?;
                }
                _ => self.call_failed("open_session", &error).await?,
            }
        }
    }
}
