//! What the agents were told, as their logs have it.
//!
//! An agent has its stream alone and keeps its journal, so most refusals can only come from a restored
//! database: one that came after it had last heard of its stream.

use super::{
    findings::{Findings, Rule, moment},
    stream::Stream,
    verdicts::PASSING,
};
use crate::qualify::commands::history::{AgentLine, Moment};

pub(super) fn check(stream: &Stream, findings: &mut Findings) {
    let mut heard = Heard::default();
    for line in stream.agents.iter().flat_map(|lines| {
        // Another process begins with the journal of the one before.
        lines.iter()
    }) {
        judge(stream, &heard, line, findings);
        heard.hear(line);
    }
}

/// When an agent last heard of its stream from the history that it works on.
#[derive(Default)]
struct Heard {
    at: Moment,
    /// The session that is being opened.
    opening: Moment,
    generation: u64,
}

impl Heard {
    fn hear(&mut self, line: &AgentLine) {
        match line.message.as_str() {
            "session.opened" => {
                self.opening = line.since;
                self.generation = line.number("session.generation").unwrap_or(0);
            }
            // Only now is in the journal what the session means for its place.
            "runtime.started" => self.at = self.opening,
            "command.answered" => self.at = self.at.max(line.since),
            _ => {}
        }
    }
}

fn judge(stream: &Stream, heard: &Heard, line: &AgentLine, findings: &mut Findings) {
    let code = line.text("problem.code");
    let restored = stream.timeline.between(heard.at, line.at);
    let place = line.number("command.seq").unwrap_or(0);
    let tell = |what: &str| {
        format!(
            "{}: {what} at {} ({} {}), last heard of the stream at {}",
            stream.name,
            moment(line.at),
            line.text("call.name").unwrap_or(&line.message),
            code.unwrap_or("without a code"),
            moment(heard.at)
        )
    };
    let mut verdict = |holds: bool, what: &str| {
        findings.count(Rule::Verdicts, 1);
        findings.hold(Rule::Verdicts, holds, || tell(what));
    };
    match (line.message.as_str(), code) {
        ("call.failed", Some("internal")) => {}
        ("call.failed", Some(code)) if PASSING.contains(&code) => verdict(true, ""),
        (
            "call.failed",
            Some("predecessor_missing" | "not_found" | "history_diverged" | "cursor_ahead"),
        ) => {
            verdict(restored, "a result or place that was told is gone, and nothing was restored");
        }
        ("call.failed", Some(_)) => verdict(false, "no agent is refused like this"),
        // An answer that can't be read or is for something else; a gateway's page is no alarm.
        ("call.failed", None) if line.text("alarm.name") == Some("call_refused") => {
            verdict(false, "an answer was not what was asked for");
        }
        ("runtime.recovering", Some(_)) => {
            verdict(restored, "the stream is another one, and nothing was restored");
        }
        ("runtime.recovering", None) => findings.hold(Rule::ReceiptsKept, restored, || {
            tell(&format!("{place}: a result whose receipt the agent had is due again"))
        }),
        ("session.expectation_corrected", _) => {
            let expected = line.number("session.expected_generation");
            let current = line.number("session.generation");
            verdict(
                current > expected || (restored && current < expected),
                "the expectation was right",
            );
        }
        ("runtime.taken_over", _) => {
            let newest = stream.rows.map_or(0, |rows| rows.generation);
            verdict(newest > heard.generation, "it was taken over, and there is no later session");
        }
        ("runtime.refused", _) => verdict(false, "what can't be was told"),
        ("command.skipped", _) => {
            verdict(false, &format!("{place}: an ending was told that this agent has not given"));
        }
        _ => {}
    }
}
