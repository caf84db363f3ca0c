//! The checker: judges a whole history, and counts what it looked at.
//!
//! It is a function of the [`History`] alone. What was told binds from the moment at which it was told;
//! a restored database takes back what was told between its backup and the restore, and nothing else
//! (see [`timeline`]). Where two things overlapped, so that either order is right, nothing is demanded.

mod agents;
mod chain;
mod clock;
mod endings;
mod findings;
mod known;
mod order;
mod pages;
mod places;
mod processes;
mod progress;
mod receipts;
mod runs;
mod sessions;
mod stream;
mod timeline;
mod verdicts;
mod writers;

pub(crate) use findings::Finding;

use std::collections::BTreeSet;

use super::history::{History, Program, StreamName};
use findings::Findings;
use known::Known;
use stream::Stream;
use timeline::Timeline;

/// Judges a history: one finding a rule, each with what was counted.
pub(crate) fn check(history: &History) -> Vec<Finding> {
    let timeline = Timeline::of(&history.restores);
    let mut findings = Findings::default();
    for name in streams(history) {
        let stream = Stream::of(history, &timeline, &name);
        places::check(&stream, &mut findings);
        chain::check(&stream, &mut findings);
        endings::check(&stream, &mut findings);
        receipts::check(&stream, &mut findings);
        sessions::check(&stream, history, &mut findings);
        writers::check(&stream, &mut findings);
        let known = Known::of(&stream);
        verdicts::check(&known, &mut findings);
        agents::check(&stream, &mut findings);
        pages::check(&known, &mut findings);
        runs::check(&stream, &mut findings);
        progress::check(&stream, &mut findings);
    }
    sessions::check_events(history, &mut findings);
    processes::check(history, &mut findings);
    findings.finish()
}

/// Every stream that anybody knows of.
fn streams(history: &History) -> BTreeSet<StreamName> {
    let agents = history.processes.iter().filter_map(|run| match &run.program {
        Program::Agent(stream) => Some(stream),
        Program::Listener { .. } => None,
    });
    history
        .calls
        .iter()
        .map(|call| &call.stream)
        .chain(history.requests.iter().map(|request| &request.stream))
        .chain(history.database.streams.iter().map(|rows| &rows.stream))
        .chain(agents)
        .cloned()
        .collect()
}

#[cfg(test)]
mod tests;
