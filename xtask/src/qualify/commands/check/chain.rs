//! Ids, digests and the chain, computed again as `docs/PROTOCOL.md` defines them.

use std::collections::HashMap;

use site_protocol::Digest;

use super::{
    findings::{Findings, Rule, span},
    stream::Stream,
};
use crate::qualify::commands::history::{Answer, CommandRow, StreamName, Told, sha256};

pub(super) fn check(stream: &Stream, findings: &mut Findings) {
    let chain = rows(stream, findings);
    sessions(stream, &chain, findings);
    told(stream, findings);
}

/// Judges every row; gives the chain digest at each place from 0 on.
fn rows(stream: &Stream, findings: &mut Findings) -> HashMap<u64, Digest> {
    let mut chain = Digest::ZERO;
    let mut at = HashMap::from([(0, chain)]);
    for row in stream.commands() {
        findings.count(Rule::Chain, 3);
        let tell = |what: &str| format!("{} {} {}: {what}", stream.name, row.seq, row.command_id);
        findings.hold(Rule::Chain, row.command_id == id(stream.name, &row.key), || {
            tell("its id is not that of its key")
        });
        findings.hold(Rule::Chain, digest(row).is_none_or(|digest| digest == row.digest), || {
            tell("its digest is not that of its fields")
        });
        chain = sha256(&[chain.as_bytes(), row.digest.as_bytes()]);
        findings.hold(Rule::Chain, chain == row.chain_digest, || {
            tell("the chain digest does not follow from the one before")
        });
        // So that one break is told once.
        chain = row.chain_digest;
        at.insert(row.seq, chain);
    }
    if let Some(rows) = stream.rows {
        findings.hold(Rule::Chain, rows.last_digest == chain, || {
            format!("{}: the head has another chain digest than the last command", stream.name)
        });
    }
    at
}

/// Where a session was told to go on.
fn sessions(stream: &Stream, chain: &HashMap<u64, Digest>, findings: &mut Findings) {
    for request in &stream.requests {
        let Told::Session(_, Answer::Good(session)) = &request.told else { continue };
        if !stream.timeline.holds_for_ever(request.began, request.ended) {
            continue;
        }
        findings.count(Rule::Chain, 1);
        findings.hold(
            Rule::Chain,
            chain.get(&session.done_seq) == Some(&session.done_digest),
            || {
                format!(
                    "{} {}: a session was told another chain digest there, {}",
                    stream.name,
                    session.done_seq,
                    span(request.began, request.ended)
                )
            },
        );
    }
}

/// The digest that whoever ran a command knew it by.
fn told(stream: &Stream, findings: &mut Findings) {
    let rows = stream.by_id();
    let pages = stream.pages().flat_map(|(_, _, _, page)| &page.commands);
    let pages = pages.map(|command| (command.command_id.as_str(), command.digest));
    let journal = stream.journal.values();
    let journal = journal.filter(|entry| entry.digest != Digest::ZERO);
    let journal = journal.map(|entry| (entry.command_id.as_str(), entry.digest));
    for (command_id, digest) in pages.chain(journal) {
        findings.count(Rule::Chain, 1);
        let same = rows.get(command_id).is_none_or(|row| row.digest == digest);
        findings.hold(Rule::Chain, same, || {
            format!("{} {command_id}: its Runtime was told another digest of it", stream.name)
        });
    }
}

/// `cmd_` and the Crockford base32 of the first 20 bytes of a digest over Site, environment and key.
pub(super) fn id(stream: &StreamName, key: &str) -> String {
    let digest = fields(&[
        ("site-control/command-id", "1"),
        ("site", &stream.site),
        ("environment", &stream.environment),
        ("producerKey", key),
    ]);
    let text = base32::encode(base32::Alphabet::Crockford, &digest.as_bytes()[..20]);
    format!("cmd_{}", text.to_ascii_lowercase())
}

/// The digest of a command; none where its body is gone.
pub(super) fn digest(row: &CommandRow) -> Option<Digest> {
    let mut named = vec![
        ("site-control/command", "1"),
        ("commandId", row.command_id.as_str()),
        ("kind", row.kind.as_str()),
    ];
    named.extend(row.run_id.as_deref().map(|run_id| ("runId", run_id)));
    named.extend(row.not_after.as_deref().map(|time| ("notAfter", time)));
    named.push(("body", row.body.as_deref()?));
    Some(fields(&named))
}

/// Each field as the length of its name (4 bytes), its name, the length of its value (8), its value.
fn fields(fields: &[(&str, &str)]) -> Digest {
    let mut bytes = Vec::new();
    for (name, value) in fields {
        bytes.extend(u32::try_from(name.len()).unwrap_or(u32::MAX).to_be_bytes());
        bytes.extend(name.as_bytes());
        bytes.extend((value.len() as u64).to_be_bytes());
        bytes.extend(value.as_bytes());
    }
    sha256(&[&bytes])
}
