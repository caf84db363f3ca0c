//! Results and private outputs leave.

use std::time::Duration;

use bytes::Bytes;
use site_client::{Next, Refusal, ResultToStore, Stored};
use site_protocol::{Command, Outcome};

use super::{
    Break, Runtime, after,
    attempt::Finished,
    calls::is_refused,
    events,
    page::{Page, Step},
};
use crate::{
    handler::Answer,
    journal::{Cursor, OutputNote},
};

/// How long a result that is being sent may still take when the agent is asked to stop. It is on
/// disk: what is not sent now is sent at the next start.
const LAST_SEND: Duration = Duration::from_secs(5);

/// The most results in one call. A page has no more commands.
const MAX_BATCH: usize = 64;
/// The most bytes of results in one call, below what the Site API takes as a body.
const MAX_BATCH_BYTES: usize = 1024 * 1024 - 1024;
/// What a result in a batch needs beside its own bytes.
const ENVELOPE_BYTES: usize = 128;

/// Where a result is after it was sent.
pub(super) enum Sent {
    /// The receipt is here, with the stored outcome, and perhaps what follows.
    Received(Outcome, Option<Page>),
    /// The receipt is here, and the same result was stored before.
    Repeated(Outcome),
    /// The command was voided and takes no result any more.
    Voided,
    /// It was not taken, and what is due may have changed before it is tried again.
    NotNow,
}

/// Where a private output is after it was sent.
enum Uploaded {
    Stored,
    Voided,
    /// What is due may have changed before it is tried again.
    NotNow,
    /// It will never be stored.
    Never(&'static str),
}

impl Runtime {
    /// Sends a result until there is a receipt. Its private output goes first where it is new, and
    /// where the Site API turns out not to have it.
    pub(super) async fn send(
        &mut self,
        command: &Command,
        cursor: Cursor,
        finished: &Finished,
        next: Option<Next>,
    ) -> Result<Sent, Break> {
        let mut result = result_of(command, after(cursor, command), &finished.result);
        let mut output = finished.output;
        let mut missing = output.filter(|_| finished.handler_ms.is_some());
        loop {
            if let Some(note) = missing.take() {
                match self.upload(command, note).await? {
                    Uploaded::Stored => {}
                    Uploaded::Voided => return Ok(Sent::Voided),
                    Uploaded::NotNow => return Ok(Sent::NotNow),
                    Uploaded::Never(detail) => {
                        // The result names what will never be there, so it can't have been stored.
                        let (text, _) = self.record_result(command, Answer::failed(detail)).await?;
                        result = result_of(command, after(cursor, command), &text);
                        output = None;
                    }
                }
            }
            let answer = tokio::select! {
                answer = self.client.store_result(&self.writer, &result, next.as_ref()) => answer,
                () = self.stop.asked_and_then(LAST_SEND) => return Err(self.stopped()),
            };
            let error = match answer {
                Ok(stored) => {
                    let outcome = stored.receipt.outcome;
                    let following = stored.next.map(Page::read_now);
                    return Ok(match stored.stored {
                        Stored::New => Sent::Received(outcome, following),
                        Stored::Same => Sent::Repeated(outcome),
                    });
                }
                Err(error) => error,
            };
            match error.refusal() {
                Some(Refusal::AlreadyVoided { .. }) => return Ok(Sent::Voided),
                Some(Refusal::OutputMissing) if output.is_some() => {
                    events::output_missing(command);
                    self.back_off(None).await?;
                    missing = output;
                }
                _ => {
                    self.call_failed("store_result", &error).await?;
                    if is_refused(&error) {
                        return Ok(Sent::NotNow);
                    }
                }
            }
        }
    }

    async fn upload(&mut self, command: &Command, note: OutputNote) -> Result<Uploaded, Break> {
        let bytes = match self.journal.output(note) {
            Ok(bytes) => Bytes::from(bytes),
            Err(error) => {
                // It may be voided meanwhile.
                self.own_trouble("journal.output_not_read", &error).await?;
                return Ok(Uploaded::NotNow);
            }
        };
        let id = &command.command_id;
        let answer = tokio::select! {
            answer = self.client.store_output(&self.writer, id, bytes) => answer,
            () = self.stop.asked_and_then(LAST_SEND) => return Err(self.stopped()),
        };
        let Err(error) = answer else { return Ok(Uploaded::Stored) };
        let refused = match error.refusal() {
            Some(Refusal::AlreadyVoided { .. }) => return Ok(Uploaded::Voided),
            Some(Refusal::TooManyOutputs) => {
                "The Site API has taken as many private outputs of this command as it takes."
            }
            Some(Refusal::BodyTooLarge) => "The private output is larger than the Site API takes.",
            _ => {
                // Also where it passes by itself: on a slow line a large one may never arrive.
                self.call_failed("store_output", &error).await?;
                return Ok(Uploaded::NotNow);
            }
        };
        events::output_refused(command, refused);
        Ok(Uploaded::Never(refused))
    }

    /// How many of the first commands have a result here that can leave together with the others'.
    /// One with a private output goes alone: the output is taken only when its command is due.
    pub(super) fn count_finished(&self, commands: &[Command]) -> usize {
        let mut bytes = 0;
        let fits = |command: &&Command| {
            let entry = self.journal.entry(&command.command_id);
            let entry = entry.filter(|entry| entry.digest == command.digest && !command.voided);
            let entry = entry.filter(|entry| entry.output.is_none());
            let Some(result) = entry.and_then(|entry| entry.result.as_ref()) else { return false };
            bytes += result.len() + ENVELOPE_BYTES;
            bytes <= MAX_BATCH_BYTES
        };
        let most = if self.singly { 1 } else { MAX_BATCH };
        commands.iter().take(most).take_while(fits).count()
    }

    /// Sends results that are all in the journal with one call.
    pub(super) async fn send_batch(
        &mut self,
        commands: &[Command],
        cursor: &mut Cursor,
        next: Option<Next>,
    ) -> Result<Step, Break> {
        let mut place = *cursor;
        let mut results = Vec::new();
        for command in commands {
            place = after(place, command);
            let entry = self.journal.entry(&command.command_id);
            if let Some(result) = entry.and_then(|entry| entry.result.as_ref()) {
                results.push(result_of(command, place, result));
            }
        }
        let stored = loop {
            let answer = tokio::select! {
                answer = self.client.store_results(&self.writer, &results, next.as_ref()) => answer,
                () = self.stop.asked_and_then(LAST_SEND) => return Err(self.stopped()),
            };
            match answer {
                Ok(stored) => break stored,
                Err(error) => {
                    self.call_failed("store_results", &error).await?;
                    if is_refused(&error) {
                        // Together they may be more than it takes; one of them may be wrong.
                        self.singly = true;
                        return Ok(Step::PollAgain);
                    }
                }
            }
        };
        let following = stored.next.map(Page::read_now);
        let mut all_new = true;
        for (command, verdict) in commands.iter().zip(stored.results) {
            match verdict {
                Ok((receipt, stored)) => {
                    all_new = all_new && stored == Stored::New;
                    let tries = self.journal.entry(&command.command_id).map(|entry| entry.tries);
                    self.record_ending(command, cursor).await?;
                    events::answered_from_journal(command, tries.unwrap_or(0), receipt.outcome);
                }
                Err(error) => match error.refusal() {
                    Some(Refusal::AlreadyVoided { .. }) => {
                        all_new = false;
                        self.record_ending(command, cursor).await?;
                        events::voided(command);
                    }
                    _ => {
                        self.call_failed("store_results", &error).await?;
                        return Ok(Step::PollAgain);
                    }
                },
            }
        }
        Ok(if all_new { Step::On(commands.len(), following) } else { Step::PollAgain })
    }
}

fn result_of<'a>(command: &'a Command, place: Cursor, text: &str) -> ResultToStore<'a> {
    ResultToStore {
        command_id: &command.command_id,
        seq: place.seq,
        chain_digest: place.chain_digest,
        result: Bytes::copy_from_slice(text.as_bytes()),
    }
}
