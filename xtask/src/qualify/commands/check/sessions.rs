//! Sessions: the generation grows with each, and each is kept with its event.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::{
    findings::{Findings, Rule, span},
    order::{Told as Number, disorder},
    stream::Stream,
};
use crate::qualify::commands::history::{Answer, History, Moment, Told};

/// A session that somebody was told is open.
struct Opened<'a> {
    session_id: &'a str,
    generation: u64,
    began: Moment,
    ended: Moment,
}

pub(super) fn check(stream: &Stream, history: &History, findings: &mut Findings) {
    let opened = opened(stream);
    generations(stream, &opened, findings);
    rows(stream, &opened, findings);
    events(stream, history, findings);
}

fn opened<'a>(stream: &'a Stream) -> Vec<Opened<'a>> {
    let linked = stream.requests.iter().filter_map(|request| match &request.told {
        Told::Session(asked, Answer::Good(session)) => Some(Opened {
            session_id: &asked.session_id,
            generation: session.generation,
            began: request.began,
            ended: request.ended,
        }),
        _ => None,
    });
    let agents = stream.agents.iter().flatten().filter(|line| line.message == "session.opened");
    let agents = agents.filter_map(|line| {
        Some(Opened {
            session_id: line.text("session.id")?,
            generation: line.number("session.generation")?,
            began: line.since,
            ended: line.at,
        })
    });
    linked.chain(agents).collect()
}

fn generations(stream: &Stream, opened: &[Opened], findings: &mut Findings) {
    let told: Vec<_> = opened
        .iter()
        .map(|one| Number {
            key: one.session_id,
            lowest: one.generation,
            highest: one.generation,
            began: one.began,
            ended: one.ended,
        })
        .collect();
    let (judged, pairs) = disorder(&told, stream.timeline);
    findings.count(Rule::Generations, judged);
    for (before, after) in pairs {
        findings.broken(
            Rule::Generations,
            format!(
                "{}: session {} had generation {} ({}), and session {} after it {} ({})",
                stream.name,
                before.key,
                before.highest,
                span(before.began, before.ended),
                after.key,
                after.lowest,
                span(after.began, after.ended)
            ),
        );
    }
}

fn rows(stream: &Stream, opened: &[Opened], findings: &mut Findings) {
    let Some(rows) = stream.rows else { return };
    findings.count(Rule::Sessions, rows.sessions.len());
    let name = stream.name;
    let mut expected = 2;
    for row in &rows.sessions {
        findings.hold(Rule::Sessions, row.generation == expected, || {
            format!("{name}: no session has generation {expected}, the next is {}", row.generation)
        });
        expected = row.generation + 1;
        let is_last = row.generation == rows.generation;
        findings.hold(Rule::Sessions, is_last == row.superseded_at_micros.is_none(), || {
            format!(
                "{name}: session {} of generation {}: superseded or not?",
                row.session_id, row.generation
            )
        });
    }
    let last = rows.sessions.last();
    let current = last.map_or((1, None), |row| (row.generation, Some(&row.session_id)));
    findings.hold(Rule::Sessions, current == (rows.generation, rows.session_id.as_ref()), || {
        format!(
            "{name}: the progress has generation {} and the last session {current:?}",
            rows.generation
        )
    });
    let kept: HashMap<&str, u64> =
        rows.sessions.iter().map(|row| (row.session_id.as_str(), row.generation)).collect();
    for one in opened {
        if !stream.timeline.holds_for_ever(one.began, one.ended) {
            findings.taken_back(Rule::Sessions);
            continue;
        }
        findings.hold(Rule::Sessions, kept.get(one.session_id) == Some(&one.generation), || {
            format!(
                "{name}: session {} of generation {} is not there, told {}",
                one.session_id,
                one.generation,
                span(one.began, one.ended)
            )
        });
    }
}

/// Each session, cancel and void has one event.
fn events(stream: &Stream, history: &History, findings: &mut Findings) {
    let Some(rows) = stream.rows else { return };
    let ids: HashMap<u64, &str> =
        rows.commands.iter().map(|row| (row.seq, row.command_id.as_str())).collect();
    let id = |seq: u64| ids.get(&seq).copied().unwrap_or("?");
    let mut expected: Vec<(&str, &str)> = rows
        .sessions
        .iter()
        .map(|row| ("commands.session.opened", row.session_id.as_str()))
        .chain(rows.cancels.iter().map(|row| ("commands.command.cancelled", id(row.seq))))
        .chain(rows.voids.iter().map(|row| ("commands.command.voided", id(row.seq))))
        .collect();
    let mut there: Vec<(&str, &str)> = history
        .database
        .events
        .iter()
        .filter(|event| {
            event.site == stream.name.site && event.environment == stream.name.environment
        })
        .map(|event| (event.kind.as_str(), event.subject.as_str()))
        .collect();
    expected.sort_unstable();
    there.sort_unstable();
    if expected == there {
        return;
    }
    let of = |list: &[(&str, &str)]| -> HashSet<String> {
        list.iter().map(|(kind, subject)| format!("{kind} {subject}")).collect()
    };
    let (expected, there) = (of(&expected), of(&there));
    let odd: Vec<_> = expected.symmetric_difference(&there).take(5).collect();
    findings.broken(
        Rule::Sessions,
        format!("{}: its events are not those of what is there: {odd:?}", stream.name),
    );
}

/// The events of a Site are numbered without a gap.
pub(super) fn check_events(history: &History, findings: &mut Findings) {
    let mut by_site: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for event in &history.database.events {
        by_site.entry(&event.site).or_default().push(event.seq);
    }
    for (site, mut seqs) in by_site {
        seqs.sort_unstable();
        let gapless = seqs.iter().zip(1..).all(|(seq, place)| *seq == place);
        findings.hold(Rule::Sessions, gapless, || {
            format!("{site}: {} events, and the last has the number {:?}", seqs.len(), seqs.last())
        });
    }
}
