//! What the log says of a command: when it came, and when it was answered.

use chrono::{DateTime, Utc};
use site_protocol::{Command, Outcome};

/// A command is here for the first time in this process; `now` is compared with its enqueue, by
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

/// A receipt is here. There is no `handler_ms` where the result came from the journal.
pub(super) fn answered(
    command: &Command,
    try_number: u32,
    outcome: Outcome,
    handler_ms: Option<f64>,
) {
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
