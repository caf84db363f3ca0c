//! What is done after a call has failed.

use std::time::Duration;

use service_kit::error_chain;
use site_client::CallError;

use super::{Break, Runtime};
use crate::{
    exit::Exit,
    verdict::{Verdict, verdict},
};

/// An empty answer that comes sooner than this was not waited for: the next poll backs off.
pub(super) const HASTY: Duration = Duration::from_millis(200);

impl Runtime {
    /// Logs a failed call and backs off, or ends the work with this session.
    pub(super) async fn call_failed(
        &mut self,
        call: &'static str,
        error: &CallError,
    ) -> Result<(), Break> {
        tell_failure(call, error);
        match verdict(error) {
            Verdict::Retry | Verdict::Alarm => self.back_off(error.retry_after()).await,
            Verdict::Recover => {
                // A Site API that goes on contradicting itself is not asked without a pause.
                self.back_off(error.retry_after()).await?;
                Err(Break::Recover)
            }
            Verdict::TakenOver => Err(Break::End(Exit::TakenOver)),
            Verdict::Fatal => Err(Break::End(Exit::Stream)),
        }
    }
}

/// Whether the Site API has refused what will not pass by itself. It is then not enough to send the
/// same again: the refusal may come before a look at the session and at the place, so only a poll
/// tells that a database was restored, or that somebody has voided the command.
pub(super) fn is_refused(error: &CallError) -> bool {
    error.refusal().is_some() && verdict(error) == Verdict::Alarm
}

/// Logs a failed call.
pub(crate) fn tell_failure(call: &'static str, error: &CallError) {
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
        Verdict::Recover => {
            tracing::error!(
                alarm.name = "stream_diverged",
                call.name = call,
                problem.code = code,
                error = cause,
                detail = "the work goes on where the Site API is",
                "runtime.recovering"
            );
        }
        Verdict::TakenOver => {
            tracing::error!(
                alarm.name = "taken_over",
                call.name = call,
                problem.code = code,
                error = cause,
                detail = "another Runtime took the stream over",
                "runtime.taken_over"
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
        }
    }
}
