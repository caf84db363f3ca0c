//! The loop of a Site Runtime: pull the commands in order, run the handler for each, return the
//! results.
//!
//! One command at a time, because the order of the stream is the order of their effects. For each:
//! note the start, run the handler, keep its result on disk, send exactly those bytes until a
//! receipt is here, note the receipt. After a kill at any point the journal says where to go on; a
//! handler is run again only when its result was not on disk, and then it is told which try it is.
//!
//! Every trouble is answered with jittered back-off; what can't pass is an alarm, see `verdict`.

mod calls;
mod events;
mod place;

use std::time::Duration;

use chrono::{DateTime, Utc};
use site_client::{Backoff, PollRequest, RandomSource, SiteClient, Writer, next_chain_digest};
use site_protocol::{Command, CommandPage};
use tokio::time::Instant;

use crate::{
    exit::Exit,
    handler::{Ending, Handler, invocation},
    journal::{Cursor, Journal},
    stop::Stop,
};

use calls::Sent;

/// An empty answer that comes sooner than this was not waited for: the next poll backs off.
const HASTY: Duration = Duration::from_millis(200);

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
    stop: Stop,
    backoff: Backoff,
}

/// The loop does not go on.
#[derive(Debug)]
struct Halt(Exit);

/// Where the work on a command stands after a step.
enum Step {
    /// Its receipt is here.
    Done,
    /// The rest of the page is stale: poll again.
    PollAgain,
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
        let backoff = Backoff::new(random);
        Self { client, journal, handler, polling, clock, stop, backoff }
    }

    /// Works until something ends it, and says what that was.
    pub(crate) async fn run(mut self) -> Exit {
        let Halt(exit) = match self.work().await {
            Ok(never) => match never {},
            Err(halt) => halt,
        };
        exit
    }

    async fn work(&mut self) -> Result<std::convert::Infallible, Halt> {
        self.end_leftover().await?;
        let mut cursor = match self.journal.cursor() {
            Some(cursor) => cursor,
            None => self.find_place().await?,
        };
        tracing::info!(command.seq = cursor.seq, "runtime.started");
        let mut seen = cursor.seq;
        loop {
            let asked_at = Instant::now();
            let page = self.poll(&self.next_question(cursor)).await?;
            if page.superseded {
                tracing::warn!(detail = "another Runtime polls this stream", "poll.superseded");
                self.back_off(None).await?;
            } else if page.commands.is_empty() {
                if asked_at.elapsed() < HASTY {
                    self.back_off(None).await?;
                } else {
                    self.backoff.reset();
                }
            }
            for command in page.commands.iter().filter(|command| command.seq > seen) {
                events::received(command, (self.clock)());
            }
            seen = seen.max(page.next_after);
            // The back-off starts anew with a receipt and not with a page: commands that can't be
            // answered are not asked for without a pause.
            for command in &page.commands {
                match self.carry_out(command, &page, cursor).await? {
                    Step::Done => cursor = after(cursor, command),
                    Step::PollAgain => break,
                }
            }
        }
    }

    /// Ends what is left of a try that was cut short. When this agent is stopped meanwhile, the
    /// note stays for the next.
    async fn end_leftover(&mut self) -> Result<(), Halt> {
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

    fn next_question(&self, cursor: Cursor) -> PollRequest {
        PollRequest {
            writer: Writer::FIRST,
            after: cursor.seq,
            after_digest: Some(cursor.chain_digest),
            cancel_rev: 0,
            limit: self.polling.limit,
            wait: self.polling.wait,
        }
    }

    /// Takes one command from where the journal has it to its receipt.
    async fn carry_out(
        &mut self,
        command: &Command,
        page: &CommandPage,
        cursor: Cursor,
    ) -> Result<Step, Halt> {
        let known = self.journal.entry(&command.command_id);
        if known.is_some_and(|entry| entry.digest != command.digest) {
            tracing::error!(
                alarm.name = "command_changed",
                command.id = command.command_id,
                detail = "the journal knows another command of this id",
                "runtime.refused"
            );
            return Err(Halt(Exit::Stream));
        }
        let stored = known.and_then(|entry| Some((entry.tries, entry.result.clone()?)));
        let has_result = page.head.is_none_or(|head| command.seq < head.seq);
        let (try_number, handler_ms, result) = match stored {
            Some((tries, result)) => (tries, None, result),
            None if has_result => {
                // Running the handler would repeat effects, and its result could only conflict.
                tracing::warn!(
                    command.id = command.command_id,
                    command.seq = command.seq,
                    detail = "the Site API has a result that is not from this journal",
                    "command.skipped"
                );
                self.record_receipt(command, cursor).await?;
                return Ok(Step::Done);
            }
            None => {
                let (try_number, result, time) = self.run_handler(command).await?;
                self.record_result(command, &result).await?;
                (try_number, Some(time.as_secs_f64() * 1_000.0), result)
            }
        };
        let outcome = match self.send(command, after(cursor, command), &result).await? {
            Sent::Received(outcome) => outcome,
            Sent::PredecessorMissing => return Ok(Step::PollAgain),
        };
        self.record_receipt(command, cursor).await?;
        events::answered(command, try_number, outcome, handler_ms);
        Ok(Step::Done)
    }

    /// Runs the handler until it gives a result; only the agent's own trouble is tried again. Each
    /// time that it had its command counts as a try.
    async fn run_handler(&mut self, command: &Command) -> Result<(u32, String, Duration), Halt> {
        let mut try_number = self.record_start(command).await?;
        loop {
            let started_at = Instant::now();
            let ending = match invocation(command, try_number) {
                Ok(input) => self.handler.run(input, &mut self.stop).await,
                Err(error) => Err(error.into()),
            };
            match ending {
                Ok(Ending::Answered(result)) => {
                    return Ok((try_number, result, started_at.elapsed()));
                }
                Ok(Ending::Interrupted) => return Err(self.stopped()),
                Ok(Ending::Lost(error)) => {
                    self.own_trouble("handler.lost", &error).await?;
                    self.end_leftover().await?;
                    try_number = self.record_start(command).await?;
                }
                Err(error) => self.own_trouble("handler.not_started", &error).await?,
            }
        }
    }

    async fn record_start(&mut self, command: &Command) -> Result<u32, Halt> {
        loop {
            match self.journal.start(command) {
                Ok(try_number) => return Ok(try_number),
                Err(error) => self.own_trouble("journal.not_written", &error).await?,
            }
        }
    }

    async fn record_result(&mut self, command: &Command, result: &str) -> Result<(), Halt> {
        while let Err(error) = self.journal.finish(command, result) {
            self.own_trouble("journal.not_written", &error).await?;
        }
        self.handler.forget();
        self.backoff.reset();
        Ok(())
    }

    async fn record_receipt(&mut self, command: &Command, cursor: Cursor) -> Result<(), Halt> {
        let Cursor { chain_digest, .. } = after(cursor, command);
        while let Err(error) = self.journal.receive(command, chain_digest) {
            self.own_trouble("journal.not_written", &error).await?;
        }
        self.backoff.reset();
        Ok(())
    }

    /// Trouble of this machine, such as a full disk: an alarm and back-off.
    async fn own_trouble(&mut self, alarm: &str, error: &std::io::Error) -> Result<(), Halt> {
        tracing::error!(alarm.name = alarm, error = %error, "runtime.own_trouble");
        self.back_off(None).await
    }

    async fn back_off(&mut self, advice: Option<Duration>) -> Result<(), Halt> {
        let time = self.backoff.next(advice);
        if self.stop.sleep(time).await { Ok(()) } else { Err(self.stopped()) }
    }

    fn stopped(&self) -> Halt {
        Halt(if self.stop.is_asked_now() { Exit::Hurried } else { Exit::Stopped })
    }
}

/// The cursor after a command that follows `cursor`.
fn after(cursor: Cursor, command: &Command) -> Cursor {
    let chain_digest = next_chain_digest(&cursor.chain_digest, &command.digest);
    Cursor { seq: command.seq, chain_digest }
}

#[cfg(test)]
mod tests;
