//! Running the handler for a command, until there is a result on disk.

use std::time::Duration;

use site_client::{Backoff, PollRequest};
use site_protocol::Command;
use tokio::time::Instant;

use super::{Break, Runtime, watch::Watch};
use crate::{
    exit::Exit,
    handler::{Answer, Ending, invocation},
    journal::{Cursor, OutputNote},
};

/// A result that is on disk.
pub(super) struct Finished {
    /// The exact text that is sent.
    pub(super) result: String,
    /// The private output that it names.
    pub(super) output: Option<OutputNote>,
    /// Which try brought it; 0 where the handler was not run.
    pub(super) try_number: u32,
    /// How long that try took; none where the result is from the journal.
    pub(super) handler_ms: Option<f64>,
}

impl Runtime {
    /// Runs the handler, and records its result. `None` where trouble of the agent's own kept it
    /// from an answer: the stream may have changed since, and is looked at before the next try.
    pub(super) async fn produce(
        &mut self,
        command: &Command,
        cursor: Cursor,
    ) -> Result<Option<Finished>, Break> {
        let Some((try_number, answer, time)) = self.run_handler(command, cursor).await? else {
            return Ok(None);
        };
        let (result, output) = self.record_result(command, answer).await?;
        let handler_ms = Some(time.as_secs_f64() * 1_000.0);
        Ok(Some(Finished { result, output, try_number, handler_ms }))
    }

    /// Runs the handler once. Each time that it had its command counts as a try.
    pub(super) async fn run_handler(
        &mut self,
        command: &Command,
        cursor: Cursor,
    ) -> Result<Option<(u32, Answer, Duration)>, Break> {
        let Some(try_number) = self.record_start(command).await? else { return Ok(None) };
        let started_at = Instant::now();
        let ending = match invocation(command, try_number) {
            Ok(input) => {
                let watch = Watch {
                    client: &self.client,
                    question: PollRequest {
                        writer: self.writer.clone(),
                        after: cursor.seq,
                        after_digest: Some(cursor.chain_digest),
                        cancel_rev: self.cancels.rev(),
                        limit: 0,
                        wait: self.polling.wait,
                    },
                    command_id: &command.command_id,
                    cancels: &mut self.cancels,
                    backoff: Backoff::new(self.random.clone()),
                };
                self.handler.run(input, &mut self.stop, watch.interruption()).await
            }
            Err(error) => Err(error.into()),
        };
        match ending {
            Ok(Ending::Answered(answer)) => Ok(Some((try_number, answer, started_at.elapsed()))),
            Ok(Ending::Interrupted) => Err(self.stopped()),
            // The watch has said why.
            Ok(Ending::Abandoned) => Err(Break::End(Exit::TakenOver)),
            Ok(Ending::Lost(error)) => {
                self.own_trouble("handler.lost", &error).await?;
                self.end_leftover().await?;
                Ok(None)
            }
            Err(error) => {
                self.unused_try = Some((command.command_id.clone(), try_number));
                self.own_trouble("handler.not_started", &error).await?;
                Ok(None)
            }
        }
    }

    /// How many of a command's tries never had it.
    pub(super) fn unused_tries(&self, command: &Command) -> u32 {
        let unused = self.unused_try.as_ref();
        unused.is_some_and(|(command_id, _)| *command_id == command.command_id).into()
    }

    /// `None` where the disk does not take it now.
    async fn record_start(&mut self, command: &Command) -> Result<Option<u32>, Break> {
        match self.unused_try.take() {
            Some((command_id, try_number)) if command_id == command.command_id => {
                return Ok(Some(try_number));
            }
            _ => {}
        }
        match self.journal.start(command) {
            Ok(try_number) => Ok(Some(try_number)),
            Err(error) => {
                self.own_trouble("journal.not_written", &error).await?;
                Ok(None)
            }
        }
    }

    /// Brings an answer and its private output to the disk; gives the text that is sent.
    pub(super) async fn record_result(
        &mut self,
        command: &Command,
        mut answer: Answer,
    ) -> Result<(String, Option<OutputNote>), Break> {
        if command.run_id.is_none() && answer.private_output.is_some() {
            answer = answer.into_failed(
                "The handler wrote a private output, and the command belongs to no Run.",
            );
        }
        let output = loop {
            match answer.private_output.as_deref().map(|bytes| self.journal.keep_output(bytes)) {
                None => break None,
                Some(Ok(note)) => break Some(note),
                Some(Err(error)) => self.own_trouble("journal.not_written", &error).await?,
            }
        };
        let result = answer.text(output.map(|note| note.digest));
        while let Err(error) = self.journal.finish(command, &result, output) {
            self.own_trouble("journal.not_written", &error).await?;
        }
        self.handler.forget();
        self.backoff.reset();
        Ok((result, output))
    }
}
