//! The loop of a Site Runtime: take the stream over, pull the commands in order, run the handler
//! for each, return the results.
//!
//! One command at a time, because the order of the stream is the order of their effects. For each:
//! note the start, run the handler, keep its result on disk, send exactly those bytes until a
//! receipt is here, note the receipt. After a kill at any point the journal says where to go on; a
//! handler is run again only when its result was not on disk, and then it is told which try it is.
//!
//! A result brings what follows it along, so a busy stream costs one round trip a command. It does
//! not wait there for commands: its receipt would wait with them. For that there is the poll.
//!
//! | File | What happens there |
//! |---|---|
//! | `session` | the stream is taken over, at the start and after it was found to be another one |
//! | `page` | commands and marks arrive, and are gone through |
//! | `attempt` | the handler runs, and is watched over |
//! | `send` | results and private outputs leave |
//! | `calls` | a call failed |
//!
//! Every trouble is answered with jittered back-off; what can't pass is an alarm, see `verdict`.

mod attempt;
mod calls;
mod cancels;
mod events;
mod page;
mod send;
mod session;
mod watch;

use std::time::Duration;

use chrono::{DateTime, Utc};
use site_client::{Backoff, RandomSource, SiteClient, Writer, next_chain_digest};
use site_protocol::Command;

use crate::{
    exit::Exit,
    handler::Handler,
    journal::{Cursor, Journal},
    stop::Stop,
};

use cancels::Cancels;
use session::Occasion;

pub(crate) use calls::tell_failure;

/// How the loop polls.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Polling {
    /// The most commands in one answer.
    pub(crate) limit: u32,
    /// How long the Site API may wait for a command.
    pub(crate) wait: Duration,
}

/// The time now. A parameter, so that nothing below reads a clock of its own.
pub(crate) type Clock = fn() -> DateTime<Utc>;

/// A Site Runtime.
pub(crate) struct Runtime {
    client: SiteClient,
    journal: Journal,
    handler: Handler,
    polling: Polling,
    clock: Clock,
    random: RandomSource,
    stop: Stop,
    backoff: Backoff,
    writer: Writer,
    cancels: Cancels,
    /// The last command that the log has told.
    told: u64,
    /// The try of a command whose handler then could not be started: it is still to be used.
    unused_try: Option<(String, u32)>,
    /// A batch was refused: results leave one by one in this session.
    singly: bool,
}

/// Why the work does not simply go on.
#[derive(Debug)]
enum Break {
    /// The agent ends.
    End(Exit),
    /// The stream is not where the agent left it: another session.
    Recover,
}

impl Runtime {
    pub(crate) fn new(
        client: SiteClient,
        journal: Journal,
        handler: Handler,
        polling: Polling,
        clock: Clock,
        random: RandomSource,
        stop: Stop,
    ) -> Self {
        Self {
            client,
            journal,
            handler,
            polling,
            clock,
            backoff: Backoff::new(random.clone()),
            random,
            stop,
            writer: Writer::FIRST,
            cancels: Cancels::default(),
            told: 0,
            unused_try: None,
            singly: false,
        }
    }

    /// Works until something ends it, and says what that was.
    pub(crate) async fn run(mut self) -> Exit {
        let mut occasion = Occasion::Start;
        loop {
            match self.work(occasion).await {
                Ok(never) => match never {},
                Err(Break::End(exit)) => return exit,
                Err(Break::Recover) => occasion = Occasion::Recovery,
            }
        }
    }

    /// Works with one session.
    async fn work(&mut self, occasion: Occasion) -> Result<std::convert::Infallible, Break> {
        self.end_leftover().await?;
        let mut cursor = self.open_session(occasion).await?;
        tracing::info!(command.seq = cursor.seq, "runtime.started");
        self.told = cursor.seq;
        let mut brought = None;
        loop {
            let page = match brought.take() {
                Some(page) => page,
                None => self.poll(&mut cursor).await?,
            };
            brought = self.go_through(page, &mut cursor).await?;
        }
    }

    /// Ends what is left of a try that was cut short. When this agent is stopped meanwhile, the
    /// note stays for the next.
    async fn end_leftover(&mut self) -> Result<(), Break> {
        if !self.journal.has_try_without_result() {
            self.handler.forget();
            return Ok(());
        }
        loop {
            let ended = tokio::select! {
                () = self.stop.asked() => return Err(self.stopped()),
                ended = self.handler.end_leftover() => ended,
            };
            match ended {
                Ok(()) => return Ok(()),
                Err(error) => self.own_trouble("handler.leftover_not_ended", &error).await?,
            }
        }
    }

    /// Notes that a command has its ending.
    async fn record_ending(&mut self, command: &Command, cursor: &mut Cursor) -> Result<(), Break> {
        let reached = after(*cursor, command);
        while let Err(error) = self.journal.receive(command, reached.chain_digest) {
            self.own_trouble("journal.not_written", &error).await?;
        }
        *cursor = reached;
        self.cancels.forget(&command.command_id);
        self.backoff.reset();
        Ok(())
    }

    /// Trouble of this machine, such as a full disk: an alarm and back-off.
    async fn own_trouble(&mut self, alarm: &str, error: &std::io::Error) -> Result<(), Break> {
        tracing::error!(alarm.name = alarm, error = %error, "runtime.own_trouble");
        self.back_off(None).await
    }

    async fn back_off(&mut self, advice: Option<Duration>) -> Result<(), Break> {
        let time = self.backoff.next(advice);
        if self.stop.sleep(time).await { Ok(()) } else { Err(self.stopped()) }
    }

    fn stopped(&self) -> Break {
        Break::End(if self.stop.is_asked_now() { Exit::Hurried } else { Exit::Stopped })
    }
}

/// The cursor after a command that follows `cursor`.
fn after(cursor: Cursor, command: &Command) -> Cursor {
    let chain_digest = next_chain_digest(&cursor.chain_digest, &command.digest);
    Cursor { seq: command.seq, chain_digest }
}

#[cfg(test)]
mod tests;
