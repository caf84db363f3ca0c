//! Runs of handlers, as the handlers noted them: announced, one at a time, in order, and none too many.

use std::collections::HashMap;

use super::{
    findings::{Findings, Rule, moment},
    stream::Stream,
};
use crate::qualify::commands::history::{HandlerRun, Moment};

pub(super) fn check(stream: &Stream, findings: &mut Findings) {
    let mut receipts: HashMap<&str, Moment> = HashMap::new();
    for receipt in &stream.receipts {
        receipts.entry(&receipt.command_id).or_insert(receipt.ended);
    }
    let mut tries: HashMap<&str, u32> = HashMap::new();
    let mut under_way: Option<&HandlerRun> = None;
    let mut last: Option<&HandlerRun> = None;
    for run in stream.runs.iter().copied() {
        let id = run.command_id.as_str();
        let at = run.at.map_or_else(|| "an unknown time".to_owned(), moment);
        let tell = |what: &str| {
            format!("{} {} {id}: try {}, {at}: {what}", stream.name, run.seq, run.try_number)
        };
        if run.answer.is_some() {
            let began = under_way.take();
            let same = began.is_some_and(|began| {
                (&began.command_id, began.try_number) == (&run.command_id, run.try_number)
            });
            findings.hold(Rule::OneAtATime, same, || {
                tell(&format!("it ended while another one ran ({:?})", began.map(|run| run.seq)))
            });
            continue;
        }
        for rule in [Rule::Repeats, Rule::AfterReceipt, Rule::OneAtATime] {
            findings.count(rule, 1);
        }
        let before = tries.insert(id, run.try_number).unwrap_or(0);
        findings.hold(Rule::Repeats, run.try_number > before, || {
            tell(&format!("it had run as try {before} before"))
        });
        let receipt = receipts.get(id).filter(|told| run.at.is_some_and(|at| at > **told));
        findings.hold(Rule::AfterReceipt, receipt.is_none(), || {
            tell(&format!(
                "the receipt was there at {}",
                receipt.map_or_else(String::new, |at| moment(*at))
            ))
        });
        if let Some(last) = last {
            let goes_on =
                run.seq > last.seq || (run.seq == last.seq && run.command_id == last.command_id);
            findings.hold(Rule::OneAtATime, goes_on || may_go_back(stream, last, run), || {
                tell(&format!("{} {} had run before", last.seq, last.command_id))
            });
        }
        under_way = Some(run);
        last = Some(run);
    }
}

/// Whether a restored database can have brought the stream back between two runs. The first of them may
/// come after the restore, from a page before: so the agent's last receipt before it counts.
fn may_go_back(stream: &Stream, first: &HandlerRun, second: &HandlerRun) -> bool {
    let first_at = first.at.unwrap_or(Moment::ZERO);
    let told = stream.receipts.iter().rev().find(|receipt| receipt.ended < first_at);
    let since = told.map_or(Moment::ZERO, |receipt| receipt.began.min(first_at));
    stream.timeline.between(since, second.at.unwrap_or(Moment::MAX))
}
