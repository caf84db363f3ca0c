//! Receipts: what somebody was told is stored, is stored.

use super::{
    clock::is_noted_by,
    findings::{Findings, Rule, span},
    stream::Stream,
};
use crate::qualify::commands::history::{Answer, Told, sha256};

pub(super) fn check(stream: &Stream, findings: &mut Findings) {
    let (rows, results) = (stream.by_id(), stream.results_by_seq());
    for receipt in &stream.receipts {
        findings.count(Rule::ReceiptsKept, 1);
        let keeps = stream.timeline.holds_for_ever(receipt.began, receipt.ended);
        if !keeps {
            findings.taken_back(Rule::ReceiptsKept);
        }
        let tell = |what: &str| {
            format!(
                "{} {} {}: {what}; the receipt was told {}",
                stream.name,
                receipt.seq,
                receipt.command_id,
                span(receipt.began, receipt.ended)
            )
        };
        let Some(command) = rows.get(receipt.command_id.as_str()) else {
            findings.broken(Rule::ReceiptsKept, tell("its command is not there"));
            continue;
        };
        let Some(row) = results.get(&command.seq) else {
            findings.broken(Rule::ReceiptsKept, tell("its result is not there"));
            continue;
        };
        if keeps {
            findings.hold(Rule::ReceiptsKept, command.seq == receipt.seq, || {
                tell(&format!("its command stands at {}", command.seq))
            });
            findings.hold(
                Rule::ReceiptsKept,
                is_noted_by(stream.history, row.received_at_micros, receipt.ended),
                || tell("its result was stored later than that"),
            );
        }
        // A linked Runtime may remember nothing: what was taken back it answers with other bytes.
        if !keeps && stream.is_linked() {
            continue;
        }
        findings.count(Rule::ReceiptsTrue, 1);
        let same = receipt.digest.is_none_or(|digest| digest == row.digest)
            && receipt.outcome.is_none_or(|outcome| outcome == row.outcome);
        findings.hold(Rule::ReceiptsTrue, same, || tell("another result is stored"));
    }
    stored_bytes(stream, findings);
    progress_told(stream, findings);
}

/// The stored bytes are those of the stored digest.
fn stored_bytes(stream: &Stream, findings: &mut Findings) {
    for row in stream.results() {
        let Some(body) = &row.body else { continue };
        findings.hold(Rule::ReceiptsTrue, sha256(&[body.as_bytes()]) == row.digest, || {
            format!(
                "{} {}: the bytes that are stored are not those of their digest",
                stream.name, row.seq
            )
        });
    }
}

/// A linked Runtime that opens a session is told a progress, which no earlier receipt is above.
fn progress_told(stream: &Stream, findings: &mut Findings) {
    for request in &stream.requests {
        let Told::Session(_, Answer::Good(session)) = &request.told else { continue };
        let part = stream.timeline.part(request.began, request.ended);
        let lost = stream.receipts.iter().find(|receipt| {
            receipt.seq > session.done_seq
                && receipt.ended < request.began
                && part.is_some()
                && stream.timeline.part(receipt.began, receipt.ended) == part
        });
        findings.hold(Rule::ReceiptsKept, lost.is_none(), || {
            let (seq, id) = lost.map_or((0, ""), |lost| (lost.seq, lost.command_id.as_str()));
            format!(
                "{} {seq} {id}: there was a receipt, and a session was told that {} is the last ending, {}",
                stream.name,
                session.done_seq,
                span(request.began, request.ended)
            )
        });
    }
}
