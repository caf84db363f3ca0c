//! Commands arrive, and are gone through in their order.

use std::time::Duration;

use chrono::{DateTime, Utc};
use site_client::{CallError, Next, PollRequest, Refusal};
use site_protocol::{Command, CommandPage};
use tokio::time::Instant;

use super::{
    Break, Runtime,
    attempt::Finished,
    calls::{HASTY, tell_failure},
    events,
    send::Sent,
};
use crate::{exit::Exit, handler::Answer, journal::Cursor};

/// How old a page may become before the next result brings another in its place: so long a cancel
/// of a command that waits in it may go unnoticed.
const FRESH: Duration = Duration::from_secs(1);
/// How old a page may be for another command of it to be begun, where a result took long and brought
/// none in its place.
const STALE: Duration = Duration::from_secs(5);

/// A page, and when it was read.
pub(super) struct Page {
    page: CommandPage,
    read_at: Instant,
}

/// Where the work on commands stands after a step.
pub(super) enum Step {
    /// That many have their ending; the page, where there is one, follows them.
    On(usize, Option<Page>),
    /// The rest of the page may be stale: poll again. So it is, too, after a result that was stored
    /// before, or whose command was voided. Both are answered without a look at the session: another
    /// Runtime may have the stream, and the next handler would be run beside that one's.
    PollAgain,
}

impl Page {
    pub(super) fn read_now(page: CommandPage) -> Self {
        Self { page, read_at: Instant::now() }
    }

    /// The time on the database's clock.
    fn server_now(&self) -> DateTime<Utc> {
        let since = chrono::Duration::from_std(self.read_at.elapsed()).unwrap_or_default();
        self.page.server_time.checked_add_signed(since).unwrap_or(self.page.server_time)
    }

    /// Whether the Site API had a result of the command already.
    fn has_result_of(&self, command: &Command) -> bool {
        self.page.head.is_none_or(|head| command.seq < head.seq)
    }
}

impl Runtime {
    /// Polls until there is an answer.
    pub(super) async fn poll(&mut self, cursor: &mut Cursor) -> Result<Page, Break> {
        loop {
            let question = PollRequest {
                writer: self.writer.clone(),
                after: cursor.seq,
                after_digest: Some(cursor.chain_digest),
                cancel_rev: self.cancels.rev(),
                limit: self.polling.limit,
                wait: self.polling.wait,
            };
            let asked_at = Instant::now();
            let answer = tokio::select! {
                biased;
                () = self.stop.asked() => return Err(self.stopped()),
                answer = self.client.poll(&question) => answer,
            };
            let page = match answer {
                Ok(page) => page,
                Err(error) => {
                    match error.refusal() {
                        Some(Refusal::CursorTrimmed { place: Some((seq, chain_digest)) })
                            if seq > cursor.seq =>
                        {
                            *cursor = Cursor { seq, chain_digest };
                            self.go_on_after_trimmed(*cursor, &error).await?;
                        }
                        _ => self.call_failed("poll", &error).await?,
                    }
                    continue;
                }
            };
            if page.superseded {
                tracing::warn!(detail = "another poll of this stream came", "poll.superseded");
                self.back_off(None).await?;
            } else if page.head.is_some_and(|head| head.seq <= cursor.seq) {
                events::results_lost(cursor.seq);
                self.back_off(None).await?;
                return Err(Break::Recover);
            } else if page.commands.is_empty() && page.cancelled.is_empty() {
                if asked_at.elapsed() < HASTY {
                    self.back_off(None).await?;
                } else {
                    self.backoff.reset();
                }
            }
            return Ok(Page::read_now(page));
        }
    }

    /// The commands up to a place were removed by age, so they have their endings. The session stays:
    /// this is answered before a look at it, and another Runtime may have the stream.
    async fn go_on_after_trimmed(&mut self, place: Cursor, error: &CallError) -> Result<(), Break> {
        tell_failure("poll", error);
        self.begin_after(place).await?;
        self.back_off(error.retry_after()).await
    }

    /// Takes the commands of a page to their endings, for as long as it is not stale; gives the page
    /// that follows, where the last result brought one.
    pub(super) async fn go_through(
        &mut self,
        page: Page,
        cursor: &mut Cursor,
    ) -> Result<Option<Page>, Break> {
        self.cancels.learn(&page.page);
        for command in page.page.commands.iter().filter(|command| command.seq > self.told) {
            events::received(command, (self.clock)());
        }
        self.told = self.told.max(page.page.next_after);
        // The back-off starts anew with a receipt and not with a page: commands that can't be
        // answered are not asked for without a pause.
        let mut rest = &page.page.commands[..];
        while let Some(command) = rest.first() {
            if self.stop.is_asked() {
                return Err(self.stopped());
            }
            if page.read_at.elapsed() > STALE {
                break;
            }
            let count = self.count_finished(rest);
            let step = if count > 1 {
                let next = self.next(&page, count == rest.len());
                self.send_batch(&rest[..count], cursor, next).await?
            } else {
                self.carry_out(command, &page, rest.len() == 1, cursor).await?
            };
            match step {
                Step::On(_, Some(following)) => return Ok(Some(following)),
                Step::On(done, None) => rest = &rest[done..],
                Step::PollAgain => break,
            }
        }
        Ok(None)
    }

    /// What the result of a command should bring along: nothing while the page still has fresh
    /// commands.
    fn next(&self, page: &Page, is_last: bool) -> Option<Next> {
        (is_last || page.read_at.elapsed() > FRESH).then(|| Next {
            limit: self.polling.limit,
            wait: Duration::ZERO,
            cancel_rev: self.cancels.rev(),
        })
    }

    /// Takes one command from where the journal has it to its ending.
    async fn carry_out(
        &mut self,
        command: &Command,
        page: &Page,
        is_last: bool,
        cursor: &mut Cursor,
    ) -> Result<Step, Break> {
        let known = self.journal.entry(&command.command_id);
        if known.is_some_and(|entry| entry.digest != command.digest) {
            events::changed(command);
            return Err(Break::End(Exit::Stream));
        }
        if command.voided {
            self.record_ending(command, cursor).await?;
            events::voided(command);
            return Ok(Step::On(1, None));
        }
        let tries = known.map_or(0, |entry| entry.tries);
        let from_journal = known.and_then(|entry| {
            let (result, output) = (entry.result.clone()?, entry.output);
            Some(Finished { result, output, try_number: entry.tries, handler_ms: None })
        });
        let finished = match from_journal {
            Some(finished) => finished,
            None if page.has_result_of(command) => {
                // Running the handler would repeat effects, and its result could only conflict.
                events::skipped(command);
                self.record_ending(command, cursor).await?;
                return Ok(Step::On(1, None));
            }
            None if self.cancels.has(&command.command_id) => {
                let cut_short = tries > self.unused_tries(command);
                let detail =
                    if cut_short { "cancelled" } else { "cancelled before it was started" };
                let (result, output) = self.record_result(command, Answer::failed(detail)).await?;
                Finished { result, output, try_number: tries, handler_ms: None }
            }
            None if command.not_after.is_some_and(|time| time <= page.server_now()) => {
                events::expired(command);
                self.back_off(None).await?;
                return Ok(Step::PollAgain);
            }
            None => match self.produce(command, *cursor).await? {
                Some(finished) => finished,
                None => return Ok(Step::PollAgain),
            },
        };
        let next = self.next(page, is_last);
        match self.send(command, *cursor, &finished, next).await? {
            Sent::Received(outcome, following) => {
                self.record_ending(command, cursor).await?;
                events::answered(command, &finished, outcome);
                Ok(Step::On(1, following))
            }
            Sent::Repeated(outcome) => {
                self.record_ending(command, cursor).await?;
                events::answered(command, &finished, outcome);
                Ok(Step::PollAgain)
            }
            Sent::Voided => {
                self.record_ending(command, cursor).await?;
                events::voided(command);
                Ok(Step::PollAgain)
            }
            Sent::NotNow => Ok(Step::PollAgain),
        }
    }
}
