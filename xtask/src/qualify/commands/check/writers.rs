//! Nobody writes, or reads, after being taken over.

use std::collections::HashMap;

use super::{
    clock::since_start,
    findings::{Findings, Rule, span},
    stream::Stream,
};
use crate::qualify::commands::history::{Answer, Moment, Request, Told, Writer};

pub(super) fn check(stream: &Stream, findings: &mut Findings) {
    rows(stream, findings);
    let takeovers = takeovers(stream);
    let first_sent = first_sent(stream);
    for request in &stream.requests {
        let tell = |newer: u64, writer: &Writer, what: &str| {
            format!(
                "{}: {what}, {}, by generation {} after {newer} was open",
                stream.name,
                span(request.began, request.ended),
                writer.generation
            )
        };
        match &request.told {
            Told::Session(..) => {}
            Told::Poll(poll, answer) => {
                findings.count(Rule::Superseded, 1);
                if let (Answer::Good(_), Some(newer)) =
                    (answer, taken_over(stream, &takeovers, request, &poll.writer))
                {
                    findings.broken(Rule::Superseded, tell(newer, &poll.writer, "a page was read"));
                }
            }
            Told::Output(output, answer) => {
                findings.count(Rule::Superseded, 1);
                if let (Answer::Good(stored), Some(newer)) =
                    (answer, taken_over(stream, &takeovers, request, &output.writer))
                    && stored.new
                {
                    let what = format!("an output of {} was stored", output.command_id);
                    findings.broken(Rule::Superseded, tell(newer, &output.writer, &what));
                }
            }
            Told::Results(sent, answer) => {
                findings.count(Rule::Superseded, sent.results.len());
                let Some(newer) = taken_over(stream, &takeovers, request, &sent.writer) else {
                    continue;
                };
                if let Answer::Good(Some(_)) = answer {
                    findings
                        .broken(Rule::Superseded, tell(newer, &sent.writer, "a page was brought"));
                }
                for result in &sent.results {
                    let Answer::Good(receipt) = &result.answer else { continue };
                    // A repetition is acknowledged to anybody; then somebody has sent it before.
                    let first = first_sent.get(result.command_id.as_str());
                    let is_repeated = first.is_some_and(|first| *first < request.began);
                    findings.hold(Rule::Superseded, !receipt.new && is_repeated, || {
                        let what = format!(
                            "the result of {} {} was stored",
                            result.seq, result.command_id
                        );
                        tell(newer, &sent.writer, &what)
                    });
                }
            }
        }
    }
}

/// Who opened which generation, and when.
type Takeovers<'a> = Vec<(u64, &'a str, Moment, Moment)>;

fn takeovers<'a>(stream: &Stream<'a>) -> Takeovers<'a> {
    let sessions = stream.requests.iter().filter_map(|request| match &request.told {
        Told::Session(asked, Answer::Good(session)) => {
            Some((session.generation, asked.session_id.as_str(), request.began, request.ended))
        }
        _ => None,
    });
    sessions.collect()
}

/// The generation that was open, in this history, before a request of an older one began.
fn taken_over(
    stream: &Stream,
    takeovers: &Takeovers,
    request: &Request,
    writer: &Writer,
) -> Option<u64> {
    let newer = takeovers.iter().filter(|(generation, session, began, ended)| {
        *generation > writer.generation
            && Some(*session) != writer.session_id.as_deref()
            && *ended < request.began
            && stream.timeline.holds(*began, *ended, request.ended)
    });
    newer.map(|(generation, ..)| *generation).max()
}

/// When a command's result was sent first.
fn first_sent<'a>(stream: &'a Stream) -> HashMap<&'a str, Moment> {
    let mut first = HashMap::new();
    for sent in stream.sent() {
        let at = first.entry(sent.result.command_id.as_str()).or_insert(sent.request.began);
        *at = sent.request.began.min(*at);
    }
    first
}

/// The progress and the generation move in one row: along the places the generations of the results
/// can only grow, also over a restored database.
fn rows(stream: &Stream, findings: &mut Findings) {
    let Some(rows) = stream.rows else { return };
    let sessions: HashMap<u64, _> = rows.sessions.iter().map(|row| (row.generation, row)).collect();
    let mut highest = 0;
    for row in &rows.results {
        findings.count(Rule::Superseded, 1);
        // By the right clock: PostgreSQL's own may have been put back between the two.
        let at = |micros| since_start(stream.history, micros);
        let in_time = sessions.get(&row.generation).is_none_or(|session| {
            let (opened, received) = (at(session.opened_at_micros), at(row.received_at_micros));
            let later = session.superseded_at_micros.map(at);
            opened.is_some() && opened <= received && later.is_none_or(|later| received <= later)
        });
        let in_order = row.generation >= highest && row.generation <= rows.generation;
        findings.hold(Rule::Superseded, in_order && in_time, || {
            format!(
                "{} {}: its result is of generation {}, which was not the current one then",
                stream.name, row.seq, row.generation
            )
        });
        highest = highest.max(row.generation);
    }
}
