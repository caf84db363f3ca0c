//! Pages: nothing is left out, and a place has one command.

use std::collections::HashMap;

use super::{
    findings::{Findings, Rule, moment, span},
    known::{Known, last_before},
};
use crate::qualify::commands::history::{Answer, Page, Request, Told};

pub(super) fn check(known: &Known, findings: &mut Findings) {
    let stream = known.stream;
    let mut places: HashMap<(usize, u64), &str> = HashMap::new();
    for (request, _, after, page) in stream.pages() {
        findings.count(Rule::Pages, 1);
        let at = span(request.began, request.ended);
        let mut broken = |what: String| {
            findings.broken(Rule::Pages, format!("{}: after {after}, {at}: {what}", stream.name));
        };
        if let Some(what) = within(after, page) {
            broken(what);
        }
        let Some(part) = stream.timeline.part(request.began, request.ended) else { continue };
        let head = last_before(known.heads.get(&part), request.began).unwrap_or(0);
        if page.last_seq < head {
            broken(format!(
                "{} is told as the last place, and {head} was told before",
                page.last_seq
            ));
        } else if is_empty_handed(request, page) && head > after {
            broken(format!("no command, and {head} was told before"));
        }
        let ended = last_before(known.endings.get(&part), request.began).unwrap_or(0);
        if let Some(due) = page.head_seq.filter(|due| *due <= ended) {
            broken(format!("{due} is told to be due, and there was a receipt for {ended}"));
        }
        for command in &page.commands {
            let id = command.command_id.as_str();
            let told = known.places.get(&(part, id)).and_then(|told| told.first());
            if let Some((_, seq)) = told.filter(|(_, seq)| *seq != command.seq) {
                broken(format!("{id} stands at {}, and was told to stand at {seq}", command.seq));
            }
            let there = *places.entry((part, command.seq)).or_insert(id);
            if there != id {
                broken(format!("{id} stands at {}, and {there} did", command.seq));
            }
        }
    }
    for request in &stream.requests {
        if let Told::Poll(_, Answer::Broken(why)) = &request.told {
            let at = span(request.began, request.ended);
            findings.broken(Rule::Pages, format!("{}: a page is broken, {at}: {why}", stream.name));
        }
    }
    received(known, findings);
}

/// What is wrong within a page.
fn within(after: u64, page: &Page) -> Option<String> {
    let mut last = after;
    for command in &page.commands {
        if command.seq != last + 1 {
            return Some(format!("{} follows {last}", command.seq));
        }
        last = command.seq;
    }
    (page.next_after != last).then(|| format!("it goes on after {}, not {last}", page.next_after))
}

/// Whether it brings nothing although it was asked for commands.
fn is_empty_handed(request: &Request, page: &Page) -> bool {
    let asked = match &request.told {
        Told::Poll(poll, _) => poll.limit > 0,
        _ => true,
    };
    asked && page.commands.is_empty() && !page.superseded
}

/// An agent is brought each place after the one where it started, and the command that stands there.
fn received(known: &Known, findings: &mut Findings) {
    let stream = known.stream;
    let ids: HashMap<u64, &str> =
        stream.commands().iter().map(|row| (row.seq, row.command_id.as_str())).collect();
    for lines in &stream.agents {
        let mut expected = None;
        for line in lines {
            let Some(seq) = line.number("command.seq") else { continue };
            match line.message.as_str() {
                "runtime.started" => expected = Some(seq + 1),
                "command.received" => {
                    findings.count(Rule::Pages, 1);
                    let id = line.text("command.id").unwrap_or("");
                    let tell = |what: &str| {
                        format!("{} {seq} {id}: {what} at {}", stream.name, moment(line.at))
                    };
                    let follows = expected.is_none_or(|expected| seq == expected);
                    findings.hold(Rule::Pages, follows, || {
                        tell(&format!("it was brought when {expected:?} was next"))
                    });
                    expected = Some(seq + 1);
                    let stays = stream.timeline.holds_for_ever(line.since, line.at);
                    let same = ids.get(&seq) == Some(&id);
                    findings.hold(Rule::Pages, same || !stays, || tell("another one stands there"));
                }
                _ => {}
            }
        }
    }
}
