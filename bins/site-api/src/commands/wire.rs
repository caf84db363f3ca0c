//! From what the context answers to what stands on the wire.

use serde_json::value::RawValue;
use service_kit::ProblemReply;
use site_coordination::{
    CommandId, Digest, Environment, OpenedSession, Outcome, Page, Receipt, StoredCommand,
    StoredOutput,
};

/// A page, whose commands are counted as sent.
pub(super) fn page(
    page: Page,
    environment: Environment,
) -> Result<site_protocol::CommandPage, ProblemReply> {
    metrics::counter!("commands_sent_total", "environment" => environment.as_str())
        .increment(page.commands.len() as u64);
    Ok(site_protocol::CommandPage {
        commands: page.commands.into_iter().map(command).collect::<Result<_, _>>()?,
        next_after: page.next_after.to_u64(),
        next_digest: digest(page.next_digest),
        last_seq: page.last_seq.to_u64(),
        head: page
            .due
            .map(|due| site_protocol::Head { seq: due.seq.to_u64(), age_seconds: due.age_seconds }),
        cancel_rev: page.cancel_rev,
        cancelled: page
            .cancelled
            .into_iter()
            .map(|mark| site_protocol::Cancelled {
                command_id: mark.id.as_str().to_owned(),
                seq: mark.seq.to_u64(),
            })
            .collect(),
        server_time: page.time,
        superseded: page.superseded,
    })
}

fn command(command: StoredCommand) -> Result<site_protocol::Command, ProblemReply> {
    Ok(site_protocol::Command {
        command_id: command.id.as_str().to_owned(),
        seq: command.seq.to_u64(),
        kind: command.kind,
        run_id: command.run_id,
        not_after: command.not_after,
        voided: command.voided,
        digest: digest(command.digest),
        created_at: command.created_at,
        body: RawValue::from_string(command.body.into_string()).map_err(ProblemReply::internal)?,
    })
}

pub(super) fn receipt(receipt: &Receipt) -> site_protocol::Receipt {
    site_protocol::Receipt {
        command_id: receipt.command_id.as_str().to_owned(),
        seq: receipt.seq.to_u64(),
        digest: digest(receipt.digest),
        outcome: match receipt.outcome {
            Outcome::Succeeded => site_protocol::Outcome::Succeeded,
            Outcome::Failed => site_protocol::Outcome::Failed,
            Outcome::Rejected => site_protocol::Outcome::Rejected,
        },
        received_at: receipt.received_at,
    }
}

pub(super) fn session(session: &OpenedSession) -> site_protocol::Session {
    site_protocol::Session {
        session_id: session.session_id.as_str().to_owned(),
        generation: session.generation.get().unsigned_abs(),
        done_seq: session.done_seq.to_u64(),
        done_digest: digest(session.done_digest),
        last_seq: session.last_seq.to_u64(),
        server_time: session.time,
    }
}

pub(super) fn output(command: &CommandId, output: &StoredOutput) -> site_protocol::OutputReceipt {
    site_protocol::OutputReceipt {
        command_id: command.as_str().to_owned(),
        digest: digest(output.digest),
        bytes: output.bytes,
        stored_at: output.stored_at,
    }
}

fn digest(digest: Digest) -> site_protocol::Digest {
    site_protocol::Digest::from_bytes(*digest.as_bytes())
}
