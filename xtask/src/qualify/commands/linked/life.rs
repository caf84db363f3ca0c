//! A life of a linked Runtime: from its session to its end.

use std::{collections::VecDeque, time::Duration};

use site_client::Writer;
use site_protocol::{Command, CommandPage, Digest};
use test_support::Random;
use tokio::sync::watch;

use super::{
    results::Prepared,
    sender::{Cursor, Sender},
};
use crate::qualify::commands::history::{Answer, Refused};

/// Between two tries, at the most.
const BETWEEN_TRIES: Duration = Duration::from_millis(300);

/// What a life begins with.
#[derive(Clone, Debug)]
pub(super) struct Opening {
    /// The generation that it expects.
    pub(super) generation: u64,
    /// Stands in each of its results.
    pub(super) nonce: u64,
}

/// Why a life ended by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leaving {
    /// The stream is not where it was: go on where a new session says.
    Recover { generation: u64 },
    /// Another life has the stream.
    TakenOver,
    /// The lane ends.
    Stopped,
}

/// A Runtime with a session.
pub(super) struct Life {
    pub(super) senders: [Sender; 2],
    pub(super) random: Random,
    pub(super) writer: Writer,
    pub(super) cursor: Cursor,
    pub(super) nonce: u64,
    /// Commands that it was told of and has not answered, the first after the cursor.
    pub(super) ahead: VecDeque<Command>,
    /// What was acknowledged last.
    pub(super) stored: Vec<Prepared>,
    stop: watch::Receiver<bool>,
}

impl Life {
    pub(super) fn new(senders: [Sender; 2], random: Random, stop: watch::Receiver<bool>) -> Self {
        Self {
            senders,
            random,
            writer: Writer::FIRST,
            cursor: Cursor { seq: 0, digest: Digest::ZERO },
            nonce: 0,
            ahead: VecDeque::new(),
            stored: Vec::new(),
            stop,
        }
    }

    pub(super) async fn run(mut self, opening: Opening) -> Leaving {
        let Err(leaving) = self.live(opening).await;
        if leaving == Leaving::TakenOver {
            self.go_on_trying().await;
        }
        leaving
    }

    async fn live(&mut self, opening: Opening) -> Result<std::convert::Infallible, Leaving> {
        self.nonce = opening.nonce;
        self.open_session(opening.generation).await?;
        let mut brought = None;
        loop {
            let page = match brought.take() {
                Some(page) => page,
                None => self.poll().await?,
            };
            brought = self.go_through(page).await?;
        }
    }

    async fn open_session(&mut self, mut expected: u64) -> Result<(), Leaving> {
        loop {
            let id = format!("{:016x}{:016x}", self.random.number(), self.random.number());
            loop {
                match self.ask_for_session(&id, expected).await {
                    Answer::Good(session) => {
                        self.writer = Writer::of(&session);
                        self.cursor = Cursor { seq: session.done_seq, digest: session.done_digest };
                        return Ok(());
                    }
                    Answer::Refused(Refused { generation: Some(current), code, .. })
                        if code == "stale_generation" =>
                    {
                        expected = current;
                    }
                    // Another life came after this one, and its id is of no use any more.
                    Answer::Refused(refused) if refused.code == "session_superseded" => break,
                    _ => {}
                }
                self.back_off().await?;
            }
        }
    }

    /// At times by both senders: the session is one.
    async fn ask_for_session(&mut self, id: &str, expected: u64) -> Answer<site_protocol::Session> {
        let [one, other] = &self.senders;
        if self.random.within(0..4) > 0 {
            return one.open_session(id, expected).await;
        }
        let both = tokio::join!(one.open_session(id, expected), other.open_session(id, expected));
        match both {
            (Answer::Good(session), _) | (_, Answer::Good(session)) => Answer::Good(session),
            (answer, _) => answer,
        }
    }

    pub(super) async fn poll(&mut self) -> Result<CommandPage, Leaving> {
        loop {
            let limit = u32::try_from(self.random.within(1..65)).unwrap_or(64);
            let wait = Duration::from_secs(self.random.within(0..3));
            let sender = self.a_sender();
            match self.senders[sender].poll(&self.writer, self.cursor, limit, wait).await {
                Answer::Good(page) => {
                    // The results after that are gone: the database was restored.
                    if page.head.is_some_and(|head| head.seq <= self.cursor.seq) {
                        return Err(self.recover());
                    }
                    if page.commands.is_empty() {
                        self.back_off().await?;
                    }
                    return Ok(page);
                }
                Answer::Refused(refused) => self.leave_for(&refused)?,
                Answer::Unknown(_) => {}
                Answer::Broken(_) => return Err(self.recover()),
            }
            self.back_off().await?;
        }
    }

    /// Nothing where a refusal passes by itself.
    pub(super) fn leave_for(&self, refused: &Refused) -> Result<(), Leaving> {
        match refused.code.as_str() {
            "stale_generation" | "session_superseded" => Err(Leaving::TakenOver),
            _ if refused.status >= 500 || refused.code == "request_timeout" => Ok(()),
            // Whatever it is, a new session says where the stream is.
            _ => Err(self.recover()),
        }
    }

    pub(super) fn recover(&self) -> Leaving {
        Leaving::Recover { generation: self.writer.generation() }
    }

    pub(super) fn a_sender(&mut self) -> usize {
        usize::from(self.random.within(0..2) == 0)
    }

    pub(super) fn is_stopped(&self) -> bool {
        *self.stop.borrow()
    }

    pub(super) async fn back_off(&mut self) -> Result<(), Leaving> {
        if self.is_stopped() {
            return Err(Leaving::Stopped);
        }
        tokio::time::sleep(self.random.duration(BETWEEN_TRIES)).await;
        Ok(())
    }
}
