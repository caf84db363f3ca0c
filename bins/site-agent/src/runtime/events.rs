//! What the log says of a command: when it came, and what became of it.

use chrono::{DateTime, Utc};
use site_protocol::{Command, Outcome};

use super::attempt::Finished;

/// A command is here for the first time in this session; `now` is compared with its enqueue, by
/// the database's clock.
pub(super) fn received(command: &Command, now: DateTime<Utc>) {
    let since = now - command.created_at;
    tracing::info!(
        command.id = command.command_id,
        command.seq = command.seq,
        command.kind = command.kind,
        delivery.wait_ms = since.as_seconds_f64() * 1_000.0,
        "command.received"
    );
}

/// A receipt is here.
pub(super) fn answered(command: &Command, finished: &Finished, outcome: Outcome) {
    answered_after(command, finished.try_number, outcome, finished.handler_ms);
}

/// A receipt of a result that came from the journal is here.
pub(super) fn answered_from_journal(command: &Command, try_number: u32, outcome: Outcome) {
    answered_after(command, try_number, outcome, None);
}

fn answered_after(command: &Command, try_number: u32, outcome: Outcome, handler_ms: Option<f64>) {
    let outcome = match outcome {
        Outcome::Succeeded => "succeeded",
        Outcome::Failed => "failed",
        Outcome::Rejected => "rejected",
    };
    tracing::info!(
        command.id = command.command_id,
        command.seq = command.seq,
        command.try_number = try_number,
        command.outcome = outcome,
        handler.duration_ms = handler_ms,
        "command.answered"
    );
}

/// The Site API has a result, and the journal none.
pub(super) fn skipped(command: &Command) {
    tracing::warn!(
        command.id = command.command_id,
        command.seq = command.seq,
        detail = "the Site API has a result that is not from this journal",
        "command.skipped"
    );
}

/// The command will have no result.
pub(super) fn voided(command: &Command) {
    tracing::warn!(
        command.id = command.command_id,
        command.seq = command.seq,
        detail = "it was voided and takes no result",
        "command.voided"
    );
}

/// The command is not started any more.
pub(super) fn expired(command: &Command) {
    tracing::warn!(
        command.id = command.command_id,
        command.seq = command.seq,
        detail = "its notAfter has passed: it is not started, and waits to be voided",
        "command.expired"
    );
}

/// The journal knows another command of this id.
pub(super) fn changed(command: &Command) {
    tracing::error!(
        alarm.name = "command_changed",
        command.id = command.command_id,
        command.seq = command.seq,
        detail = "the journal knows another command of this id",
        "runtime.refused"
    );
}

/// Results whose receipts are here are not in the stream any more.
pub(super) fn results_lost(seq: u64) {
    tracing::error!(
        alarm.name = "stream_diverged",
        command.seq = seq,
        detail = "results whose receipts are here are due again: the work goes on there",
        "runtime.recovering"
    );
}

/// The Site API has lost a private output, or never had it.
pub(super) fn output_missing(command: &Command) {
    tracing::warn!(
        command.id = command.command_id,
        command.seq = command.seq,
        detail = "its private output is sent again",
        "output.missing"
    );
}

/// The Site API will never take a private output.
pub(super) fn output_refused(command: &Command, detail: &str) {
    tracing::warn!(
        command.id = command.command_id,
        command.seq = command.seq,
        detail = detail,
        "output.refused"
    );
}
