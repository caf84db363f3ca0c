//! Commands and their places: no gap, no reorder, no loss, and nothing that nobody asked for.

use std::collections::{HashMap, HashSet};

use super::{
    findings::{Findings, Rule, span},
    order::{Told, disorder},
    stream::Stream,
};
use crate::qualify::commands::history::{
    Call, CallAnswer, CommandRow, Item, Moment, Place, Way, sha256,
};

pub(super) fn check(stream: &Stream, findings: &mut Findings) {
    no_gap(stream, findings);
    let acknowledged: Vec<(&Call, &[Place])> = stream
        .calls
        .iter()
        .filter_map(|call| match &call.answer {
            CallAnswer::Acknowledged(places) => Some((*call, &places[..])),
            _ => None,
        })
        .collect();
    for (call, places) in &acknowledged {
        if call.items.len() != places.len() || places.is_empty() {
            findings.broken(
                Rule::NoLoss,
                format!(
                    "{}: {} commands of {} were acknowledged with {} places ({})",
                    stream.name,
                    call.items.len(),
                    call.producer,
                    places.len(),
                    span(call.began, call.ended)
                ),
            );
        }
    }
    order(stream, &acknowledged, findings);
    lists(stream, &acknowledged, findings);
    no_loss(stream, &acknowledged, findings);
    nothing_else(stream, findings);
}

fn no_gap(stream: &Stream, findings: &mut Findings) {
    let Some(rows) = stream.rows else { return };
    findings.count(Rule::NoGap, rows.commands.len());
    let name = stream.name;
    let mut expected = 1;
    for row in &rows.commands {
        findings.hold(Rule::NoGap, row.seq == expected, || {
            format!("{name}: place {expected} is empty, the next command stands at {}", row.seq)
        });
        findings.hold(Rule::NoGap, row.body.is_some(), || {
            format!("{name} {} {}: it has no body", row.seq, row.command_id)
        });
        expected = row.seq + 1;
    }
    findings.hold(Rule::NoGap, rows.last_seq + 1 == expected, || {
        format!(
            "{name}: the head says {}, the last command stands at {}",
            rows.last_seq,
            expected - 1
        )
    });
}

fn order(stream: &Stream, acknowledged: &[(&Call, &[Place])], findings: &mut Findings) {
    let mut first_tries: HashMap<&str, Moment> = HashMap::new();
    for call in &stream.calls {
        for item in &call.items {
            let first = first_tries.entry(&item.key).or_insert(call.began);
            *first = call.began.min(*first);
        }
    }
    let mut told = Vec::new();
    for (call, places) in acknowledged {
        let seqs = places.iter().map(|place| place.seq);
        let (Some(lowest), Some(highest)) = (seqs.clone().min(), seqs.max()) else { continue };
        // What an earlier try has stored, that try has ordered.
        let all_new = places.iter().all(|place| place.new);
        let firsts = call.items.iter().filter_map(|item| first_tries.get(item.key.as_str()));
        let began = if all_new { call.began } else { firsts.min().copied().unwrap_or(call.began) };
        let key = call.items.first().map_or("", |item| item.key.as_str());
        told.push(Told { key, lowest, highest, began, ended: call.ended });
    }
    let (judged, pairs) = disorder(&told, stream.timeline);
    findings.count(Rule::Order, judged);
    for (before, after) in pairs {
        findings.broken(
            Rule::Order,
            format!(
                "{}: key {} was acknowledged at {} ({}), and key {}, asked for after that, at {} ({})",
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

fn lists(stream: &Stream, acknowledged: &[(&Call, &[Place])], findings: &mut Findings) {
    for (call, places) in acknowledged {
        if call.way == Way::Enqueue || places.len() < 2 {
            continue;
        }
        findings.count(Rule::Lists, 1);
        // Of a list that was there in part, what is new stands together.
        let all_old = places.iter().all(|place| !place.new);
        let together: Vec<u64> =
            places.iter().filter(|place| place.new || all_old).map(|place| place.seq).collect();
        let follows = together.windows(2).all(|pair| pair[1] == pair[0] + 1);
        findings.hold(Rule::Lists, follows, || {
            format!(
                "{}: the list of {} was acknowledged at {together:?} ({})",
                stream.name,
                call.producer,
                span(call.began, call.ended)
            )
        });
    }
}

fn no_loss(stream: &Stream, acknowledged: &[(&Call, &[Place])], findings: &mut Findings) {
    let rows = stream.by_id();
    let mut earlier: HashMap<&str, (&Call, &Place)> = HashMap::new();
    let mut by_end: Vec<_> = acknowledged.to_vec();
    by_end.sort_by_key(|(call, _)| call.ended);
    for (call, places) in by_end {
        for (item, place) in call.items.iter().zip(places) {
            findings.count(Rule::NoLoss, 1);
            if let Some(what) = lost(stream, call, item, place, rows.get(place.command_id.as_str()))
            {
                findings.broken(Rule::NoLoss, what);
            }
            if !stream.timeline.holds_for_ever(call.began, call.ended) {
                findings.taken_back(Rule::NoLoss);
            }
            if let Some((first, at)) = earlier.insert(&item.key, (call, place)) {
                let bound = stream.timeline.holds(first.began, first.ended, call.ended);
                let again = place.new && first.ended < call.began;
                findings.hold(Rule::NoLoss, !bound || (at.seq == place.seq && !again), || {
                    format!(
                        "{} {} {}: key {} was acknowledged {}, and again, as a new one at {}, {}",
                        stream.name,
                        at.seq,
                        at.command_id,
                        item.key,
                        span(first.began, first.ended),
                        place.seq,
                        span(call.began, call.ended)
                    )
                });
            }
        }
    }
}

/// What is wrong with a command that was acknowledged.
fn lost(
    stream: &Stream,
    call: &Call,
    item: &Item,
    place: &Place,
    row: Option<&&CommandRow>,
) -> Option<String> {
    // Only of what is wrong: it looks at every call.
    let told = || {
        format!(
            "{} {} {}: key {} ({}) was acknowledged {}",
            stream.name,
            place.seq,
            place.command_id,
            item.key,
            tries(stream, &item.key),
            span(call.began, call.ended)
        )
    };
    let Some(row) = row else { return Some(format!("{}, and is not there", told())) };
    if row.key != item.key {
        return Some(format!("{}, and its id is that of key {}", told(), row.key));
    }
    if !stream.timeline.holds_for_ever(call.began, call.ended) || row.seq == place.seq {
        return None;
    }
    Some(format!("{}, and stands at {}", told(), row.seq))
}

/// Whether a row holds what was asked for. A body that is gone is not known to be another.
fn is_as_asked(row: &CommandRow, item: &Item) -> bool {
    let body = row.body.as_ref().map(|body| sha256(&[body.as_bytes()]));
    row.kind == item.kind && row.run_id == item.run_id && body.is_none_or(|body| body == item.body)
}

fn nothing_else(stream: &Stream, findings: &mut Findings) {
    let mut asked: HashMap<&str, (&Item, bool)> = HashMap::new();
    for call in &stream.calls {
        let refused = matches!(call.answer, CallAnswer::Refused(_));
        for item in &call.items {
            let known = asked.entry(&item.key).or_insert((item, false));
            known.1 |= !refused;
        }
    }
    findings.count(Rule::NothingElse, stream.commands().len());
    let mut keys = HashSet::new();
    for row in stream.commands() {
        let wrong = match asked.get(row.key.as_str()) {
            None => "nobody asked for it",
            Some((_, false)) => "each call for it was refused or rolled back",
            Some((item, true)) if !is_as_asked(row, item) => "it is not what was asked for",
            Some(_) if !keys.insert(&row.key) => "its key stands there twice",
            Some(_) => continue,
        };
        findings.broken(
            Rule::NothingElse,
            format!(
                "{} {} {}: key {}: {wrong}; {}",
                stream.name,
                row.seq,
                row.command_id,
                row.key,
                tries(stream, &row.key)
            ),
        );
    }
}

/// What became of each call for a key.
fn tries(stream: &Stream, key: &str) -> String {
    let of_key = |call: &&&Call| call.items.iter().any(|item| item.key == key);
    let tries = stream.calls.iter().filter(of_key).map(|call| {
        let answer = match &call.answer {
            CallAnswer::Acknowledged(_) => "acknowledged".to_owned(),
            CallAnswer::Refused(why) => format!("refused, {why}"),
            CallAnswer::Unknown(why) => format!("no answer, {why}"),
        };
        format!("{}: {answer}", span(call.began, call.ended))
    });
    format!("tries: [{}]", tries.collect::<Vec<_>>().join("; "))
}
