//! The calls of the loop, repeated until they succeed or must not be repeated.

use std::time::Duration;

use bytes::Bytes;
use service_kit::error_chain;
use site_client::{CallError, PollRequest, ResultToStore, Writer};
use site_protocol::{Code, Command, CommandPage, Outcome};

use super::{Cursor, Halt, Runtime};
use crate::{
    exit::Exit,
    verdict::{Verdict, verdict},
};

/// How long a result that is being sent may still take when the agent is asked to stop. It is on
/// disk: what is not sent now is sent at the next start.
const LAST_SEND: Duration = Duration::from_secs(5);

/// Where a result is after it was sent.
pub(super) enum Sent {
    /// The receipt is here, with the stored outcome.
    Received(Outcome),
    /// The Site API waits for the result of an earlier command.
    PredecessorMissing,
}

impl Runtime {
    /// Polls until there is an answer.
    pub(super) async fn poll(&mut self, question: &PollRequest) -> Result<CommandPage, Halt> {
        loop {
            let answer = tokio::select! {
                biased;
                () = self.stop.asked() => return Err(self.stopped()),
                answer = self.client.poll(question) => answer,
            };
            match answer {
                Ok(page) => return Ok(page),
                Err(error) => self.call_failed("poll", &error).await?,
            }
        }
    }

    /// Sends a result until there is a receipt.
    pub(super) async fn send(
        &mut self,
        command: &Command,
        place: Cursor,
        result: &str,
    ) -> Result<Sent, Halt> {
        let result = ResultToStore {
            command_id: &command.command_id,
            seq: place.seq,
            chain_digest: place.chain_digest,
            result: Bytes::copy_from_slice(result.as_bytes()),
        };
        loop {
            let answer = tokio::select! {
                answer = self.client.store_result(&Writer::FIRST, &result, None) => answer,
                () = self.stop.asked_and_then(LAST_SEND) => return Err(self.stopped()),
            };
            match answer {
                Ok(stored) => return Ok(Sent::Received(stored.receipt.outcome)),
                Err(error) => {
                    self.call_failed("store_result", &error).await?;
                    if error.code() == Some(Code::PredecessorMissing.as_str()) {
                        return Ok(Sent::PredecessorMissing);
                    }
                }
            }
        }
    }

    /// Logs a failed call and backs off, or ends the loop.
    async fn call_failed(&mut self, call: &'static str, error: &CallError) -> Result<(), Halt> {
        let code = error.code();
        let cause = error_chain(error);
        match verdict(error) {
            Verdict::Retry => {
                tracing::warn!(call.name = call, problem.code = code, error = cause, "call.failed");
            }
            Verdict::Alarm => {
                tracing::error!(
                    alarm.name = "call_refused",
                    call.name = call,
                    problem.code = code,
                    error = cause,
                    "call.failed"
                );
            }
            Verdict::Fatal => {
                tracing::error!(
                    alarm.name = "stream_refused",
                    call.name = call,
                    problem.code = code,
                    error = cause,
                    detail = "going on could do harm",
                    "runtime.refused"
                );
                return Err(Halt(Exit::Stream));
            }
        }
        self.back_off(error.retry_after()).await
    }
}
