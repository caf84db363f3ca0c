//! One ending a command, and each that of a run that was noted.

use std::collections::{HashMap, HashSet};

use serde::Deserialize;
use site_protocol::Digest;

use super::{
    findings::{Findings, Rule, span},
    stream::{Receipt, Stream},
};
use crate::qualify::commands::{
    history::{Outcome, ResultRow, Told, sha256},
    producers::{What, Work},
};

/// A result's text, as far as it matters here.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Body {
    outcome: Outcome,
    detail: Option<String>,
    output: Option<serde_json::Value>,
    private_output: Option<Digest>,
}

impl Body {
    /// What the lane's handler answered.
    fn answer(&self) -> Option<&str> {
        self.output.as_ref()?.get("sha256")?.as_str()
    }
}

pub(super) fn check(stream: &Stream, findings: &mut Findings) {
    rows(stream, findings);
    told(stream, findings);
    if stream.is_linked() {
        results_of_senders(stream, findings);
    } else {
        results_of_handlers(stream, findings);
    }
    outputs(stream, findings);
}

/// Up to the progress each place has one ending, above it none.
fn rows(stream: &Stream, findings: &mut Findings) {
    let Some(rows) = stream.rows else { return };
    let name = stream.name;
    let results: HashSet<u64> = rows.results.iter().map(|row| row.seq).collect();
    let voids = stream.voided();
    findings.count(Rule::OneEnding, results.len() + voids.len());
    findings.hold(Rule::OneEnding, results.len() == rows.results.len(), || {
        format!("{name}: {} results stand at {} places", rows.results.len(), results.len())
    });
    for void in rows.voids.iter().filter(|void| results.contains(&void.seq)) {
        let what = format!("{name} {}: it has a result and was voided ({})", void.seq, void.reason);
        findings.broken(Rule::OneEnding, what);
    }
    for seq in 1..=rows.done_seq {
        let ended = results.contains(&seq) || voids.contains(&seq);
        findings.hold(Rule::OneEnding, ended, || {
            format!("{name} {seq}: the progress is {}, and it has no ending", rows.done_seq)
        });
    }
    for seq in results.iter().chain(&voids).filter(|seq| **seq > rows.done_seq) {
        let what = format!("{name} {seq}: it has an ending, above the progress {}", rows.done_seq);
        findings.broken(Rule::OneEnding, what);
    }
}

/// Nobody was told twice that a command's result was stored just now.
fn told(stream: &Stream, findings: &mut Findings) {
    let mut stored: HashMap<&str, &Receipt> = HashMap::new();
    for receipt in stream.receipts.iter().filter(|receipt| receipt.new == Some(true)) {
        let id = receipt.command_id.as_str();
        let Some(other) = stored.insert(id, receipt) else { continue };
        let bound = stream.timeline.holds(other.began, other.ended, receipt.ended);
        findings.hold(Rule::OneEnding, !bound, || {
            format!(
                "{} {} {id}: its result was stored twice, {} and {}",
                stream.name,
                receipt.seq,
                span(other.began, other.ended),
                span(receipt.began, receipt.ended)
            )
        });
    }
}

fn results_of_senders(stream: &Stream, findings: &mut Findings) {
    let sent: HashSet<(&str, Digest)> = stream
        .requests
        .iter()
        .filter_map(|request| match &request.told {
            Told::Results(sent, _) => Some(&sent.results),
            _ => None,
        })
        .flatten()
        .map(|result| (result.command_id.as_str(), result.digest))
        .collect();
    for (row, id) in results_with_ids(stream) {
        findings.count(Rule::NotedRuns, 1);
        findings.hold(Rule::NotedRuns, sent.contains(&(id, row.digest)), || {
            format!("{} {} {id}: nobody has sent the result that is stored", stream.name, row.seq)
        });
    }
}

fn results_of_handlers(stream: &Stream, findings: &mut Findings) {
    let answers = stream
        .runs
        .iter()
        .filter_map(|run| Some((run.command_id.as_str(), run.answer.as_deref()?)));
    let answers: HashSet<(&str, &str)> = answers.collect();
    let cancelled: HashSet<u64> =
        stream.rows.iter().flat_map(|rows| &rows.cancels).map(|row| row.seq).collect();
    let asked = asked(stream);
    for (row, id) in results_with_ids(stream) {
        findings.count(Rule::NotedRuns, 1);
        let tell = |what: &str| format!("{} {} {id}: {what}", stream.name, row.seq);
        let Some(body) = body(row) else {
            findings.broken(Rule::NotedRuns, tell("its result can't be read"));
            continue;
        };
        let answer = body.answer();
        let by_cancel = cancelled.contains(&row.seq)
            && body.detail.as_deref().is_some_and(|detail| detail.starts_with("cancelled"));
        if by_cancel {
            continue;
        }
        findings.hold(
            Rule::NotedRuns,
            answer.is_some_and(|sha| answers.contains(&(id, sha))),
            || tell(&format!("no run of it answered {answer:?} ({:?})", body.detail)),
        );
        let expected = match asked.get(&row.seq) {
            Some(What::Fail) => Outcome::Failed,
            Some(What::Reject) => Outcome::Rejected,
            _ => Outcome::Succeeded,
        };
        findings.hold(Rule::NotedRuns, body.outcome == expected, || {
            tell(&format!(
                "its outcome is {:?} and not {expected:?} ({:?})",
                body.outcome, body.detail
            ))
        });
    }
}

fn outputs(stream: &Stream, findings: &mut Findings) {
    let Some(rows) = stream.rows else { return };
    let stored: HashSet<(u64, Digest)> =
        rows.outputs.iter().map(|row| (row.seq, row.digest)).collect();
    findings.count(Rule::Outputs, stored.len());
    for row in &rows.outputs {
        findings.hold(Rule::Outputs, row.digest == row.bytes, || {
            format!("{} {}: an output's bytes are not those of its digest", stream.name, row.seq)
        });
    }
    let asked = asked(stream);
    for (row, id) in results_with_ids(stream) {
        let tell = |what: &str| format!("{} {} {id}: {what}", stream.name, row.seq);
        let body = body(row);
        let named = body.as_ref().and_then(|body| body.private_output);
        findings.hold(Rule::Outputs, row.body.is_none() || named == row.output, || {
            tell("the output that counts is not the one that its result names")
        });
        let is_there = row.output.is_none_or(|output| stored.contains(&(row.seq, output)));
        findings.hold(Rule::Outputs, is_there, || tell("the output that counts is not there"));
        if asked.get(&row.seq) == Some(&What::Private) && !stream.is_linked() {
            // That is what the lane's handler writes there.
            let answer = body.as_ref().and_then(Body::answer);
            let expected = answer.map(|text| sha256(&[b"private ", text.as_bytes()]));
            findings.hold(Rule::Outputs, expected == row.output, || {
                tell("its output is not that of the run that it is the result of")
            });
        }
    }
}

/// What each command asks its handler for.
fn asked(stream: &Stream) -> HashMap<u64, What> {
    let bodies = stream.commands().iter().filter_map(|row| Some((row.seq, row.body.as_deref()?)));
    bodies
        .filter_map(|(seq, body)| Some((seq, serde_json::from_str::<Work>(body).ok()?.what)))
        .collect()
}

fn body(row: &ResultRow) -> Option<Body> {
    serde_json::from_str(row.body.as_deref()?).ok()
}

/// The results with their commands' ids.
fn results_with_ids<'a>(stream: &Stream<'a>) -> Vec<(&'a ResultRow, &'a str)> {
    let ids: HashMap<u64, &str> =
        stream.commands().iter().map(|row| (row.seq, row.command_id.as_str())).collect();
    let with_id = |row: &'a ResultRow| (row, ids.get(&row.seq).copied().unwrap_or("?"));
    stream.results().iter().map(with_id).collect()
}
