//! Taking the stream over.

use site_client::{Refusal, Writer, new_session_id};
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
        if let (Some(cursor), Occasion::Start) = (self.journal.cursor(), occasion) {
            if cursor.seq <= session.done_seq {
                return Ok(cursor);
            }
            events::results_lost(cursor.seq);
        }
        let cursor = Cursor { seq: session.done_seq, chain_digest: session.done_digest };
        while let Err(error) = self.journal.begin_after(cursor) {
            self.own_trouble("journal.not_written", &error).await?;
        }
        Ok(cursor)
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
