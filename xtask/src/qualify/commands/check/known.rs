//! What was told of a stream, to hold later answers against: by the parts that restores cut the time
//! into.

use std::collections::HashMap;

use site_protocol::Digest;

use super::stream::Stream;
use crate::qualify::commands::history::{Answer, CallAnswer, Moment, Told};

/// What there is to hold a refusal against.
pub(super) struct Known<'a> {
    pub(super) stream: &'a Stream<'a>,
    /// Every try to open a session that may have been done: id, generation, beginning, end.
    pub(super) sessions: Vec<(&'a str, Option<u64>, Moment, Moment)>,
    /// The last ending of which a receipt was told, by part: place and end, rising in both.
    pub(super) endings: HashMap<usize, Vec<(Moment, u64)>>,
    /// Places that were told, by part and id.
    pub(super) places: HashMap<(usize, &'a str), Vec<(Moment, u64)>>,
    /// The highest place that was told, by part, rising.
    pub(super) heads: HashMap<usize, Vec<(Moment, u64)>>,
    pub(super) sent: HashMap<&'a str, Vec<(Moment, Digest)>>,
    pub(super) outputs: HashMap<&'a str, Vec<(usize, Moment, Digest)>>,
    pub(super) voided: bool,
}

impl<'a> Known<'a> {
    pub(super) fn of(stream: &'a Stream<'a>) -> Self {
        let part = |began, ended| stream.timeline.part(began, ended);
        let mut known = Self {
            stream,
            sessions: Vec::new(),
            endings: HashMap::new(),
            places: HashMap::new(),
            heads: HashMap::new(),
            sent: HashMap::new(),
            outputs: HashMap::new(),
            voided: !stream.voided().is_empty(),
        };
        for request in &stream.requests {
            match &request.told {
                Told::Session(asked, Answer::Good(session)) => known.sessions.push((
                    &asked.session_id,
                    Some(session.generation),
                    request.began,
                    request.ended,
                )),
                Told::Session(asked, Answer::Unknown(_) | Answer::Broken(_)) => {
                    known.sessions.push((&asked.session_id, None, request.began, Moment::MAX));
                }
                Told::Output(asked, Answer::Good(_)) => {
                    if let Some(part) = part(request.began, request.ended) {
                        let stored = known.outputs.entry(&asked.command_id).or_default();
                        stored.push((part, request.ended, asked.digest));
                    }
                }
                _ => {}
            }
        }
        for sent in stream.sent() {
            let all = known.sent.entry(&sent.result.command_id).or_default();
            all.push((sent.request.began, sent.result.digest));
        }
        for receipt in &stream.receipts {
            if let Some(part) = part(receipt.began, receipt.ended) {
                known.endings.entry(part).or_default().push((receipt.ended, receipt.seq));
            }
        }
        let calls = stream.calls.iter().filter_map(|call| match &call.answer {
            CallAnswer::Acknowledged(places) => {
                let places = places.iter().map(|place| (place.command_id.as_str(), place.seq));
                Some((call.began, call.ended, places.collect::<Vec<_>>()))
            }
            _ => None,
        });
        let pages = stream.pages().map(|(request, _, _, page)| {
            let places = page.commands.iter().map(|one| (one.command_id.as_str(), one.seq));
            (request.began, request.ended, places.collect::<Vec<_>>())
        });
        for (began, ended, places) in calls.chain(pages) {
            let Some(part) = part(began, ended) else { continue };
            for (id, seq) in places {
                known.places.entry((part, id)).or_default().push((ended, seq));
                known.heads.entry(part).or_default().push((ended, seq));
            }
        }
        for told in known.endings.values_mut().chain(known.heads.values_mut()) {
            rise(told);
        }
        known
    }
}

/// Sorts by time and keeps what rises.
fn rise(told: &mut Vec<(Moment, u64)>) {
    told.sort_unstable();
    let mut highest = 0;
    told.retain(|(_, seq)| {
        *seq > highest && {
            highest = *seq;
            true
        }
    });
}

/// The last of what rises, before a moment.
pub(super) fn last_before(told: Option<&Vec<(Moment, u64)>>, moment: Moment) -> Option<u64> {
    let told = told?;
    let count = told.partition_point(|(ended, _)| *ended < moment);
    told[..count].last().map(|(_, seq)| *seq)
}
