//! Refusals that a linked Runtime was told, held against what it knew by then.
//!
//! A refusal is judged against what was told before the request began, in the same part of the time,
//! and against what anybody can have done before it ended. A call without an answer may still be done
//! later, so it counts as done at any time after its beginning.

use site_protocol::Digest;

use super::{
    findings::{Findings, Rule, span},
    known::{Known, last_before},
};
use crate::qualify::commands::history::{
    Answer, OpenSession, Poll, Refused, Request, SendResult, StoreOutput, StreamName, Told, Writer,
};

/// Refusals that say nothing of the stream: whoever gets one comes again.
pub(super) const PASSING: [&str; 4] =
    ["overloaded", "database_unavailable", "draining", "request_timeout"];

pub(super) fn check(known: &Known, findings: &mut Findings) {
    let stream = known.stream;
    for request in &stream.requests {
        let mut judge = |refused: &Refused, false_because: Option<String>| {
            findings.count(Rule::Verdicts, 1);
            if PASSING.contains(&refused.code.as_str()) || refused.status == 500 {
                return;
            }
            if let Some(because) = false_because {
                let what = format!(
                    "{}: {} was told {} {}: {because}",
                    stream.name,
                    request.sender,
                    refused.code,
                    span(request.began, request.ended)
                );
                findings.broken(Rule::Verdicts, what);
            }
        };
        let at = Asked { known, request, part: stream.timeline.part(request.began, request.ended) };
        match &request.told {
            Told::Session(asked, Answer::Refused(refused)) => {
                judge(refused, at.session(asked, refused))
            }
            Told::Poll(asked, Answer::Refused(refused)) => judge(refused, at.poll(asked, refused)),
            Told::Output(asked, Answer::Refused(refused)) => {
                judge(refused, at.output(asked, refused))
            }
            Told::Results(sent, _) => {
                for (index, result) in sent.results.iter().enumerate() {
                    if let Answer::Refused(refused) = &result.answer {
                        let because =
                            at.result(&sent.writer, result, &sent.results[..index], refused);
                        judge(refused, because);
                    }
                }
            }
            _ => {}
        }
        broken(stream.name, request, findings);
    }
}

/// Answers that contradict themselves, but for pages, which have a rule of their own.
fn broken(stream: &StreamName, request: &Request, findings: &mut Findings) {
    let why = match &request.told {
        Told::Session(_, Answer::Broken(why))
        | Told::Output(_, Answer::Broken(why))
        | Told::Results(_, Answer::Broken(why)) => why,
        _ => return,
    };
    let at = span(request.began, request.ended);
    findings.broken(Rule::Verdicts, format!("{stream}: an answer is broken, {at}: {why}"));
}

/// A request that was refused.
struct Asked<'a> {
    known: &'a Known<'a>,
    request: &'a Request,
    part: Option<usize>,
}

/// Each gives why the refusal is false, where it is.
impl Asked<'_> {
    fn session(&self, asked: &OpenSession, refused: &Refused) -> Option<String> {
        let expected = asked.expected_generation;
        match refused.code.as_str() {
            "stale_generation" if refused.generation == Some(expected) => {
                Some(format!("{expected} was expected and is the current one"))
            }
            "stale_generation" => None,
            "session_superseded" => self.without_rival(&asked.session_id),
            code => Some(format!("{code} is no answer to a session")),
        }
    }

    fn poll(&self, asked: &Poll, refused: &Refused) -> Option<String> {
        match refused.code.as_str() {
            "stale_generation" => self.stale(&asked.writer, refused),
            "cursor_ahead" => self.cursor_ahead(asked.after, refused),
            "history_diverged" if asked.after_digest.is_none() || asked.after == 0 => {
                self.diverged(&asked.writer)
            }
            "history_diverged" if self.known.stream.timeline.parts() == 1 => {
                Some("no database was restored".to_owned())
            }
            "history_diverged" => None,
            code => Some(format!("{code} is no answer to a poll")),
        }
    }

    fn output(&self, asked: &StoreOutput, refused: &Refused) -> Option<String> {
        match refused.code.as_str() {
            "too_many_outputs" | "already_voided" => None,
            "result_conflict" if self.was_sent(&asked.command_id).is_empty() => {
                Some("nobody has sent a result of it".to_owned())
            }
            "result_conflict" => None,
            _ => self.place(&asked.writer, &asked.command_id, &[], refused),
        }
    }

    fn result(
        &self,
        writer: &Writer,
        result: &SendResult,
        before: &[SendResult],
        refused: &Refused,
    ) -> Option<String> {
        let id = &result.command_id;
        match refused.code.as_str() {
            "result_conflict" => {
                let others = self.was_sent(id);
                let other = |digest: &Digest| *digest != result.digest;
                match refused.stored_digest {
                    Some(stored) if stored == result.digest => {
                        Some(format!("the result of {} {id} is the stored one", result.seq))
                    }
                    _ if !others.iter().any(other) => {
                        Some(format!("nobody has sent another result of {} {id}", result.seq))
                    }
                    _ => None,
                }
            }
            "already_voided" if !self.known.voided && self.known.stream.timeline.parts() == 1 => {
                Some(format!("{} {id} was not voided", result.seq))
            }
            "already_voided" => None,
            "output_missing" => {
                let stored = self.known.outputs.get(id.as_str()).into_iter().flatten();
                let stored = stored.filter(|(part, ended, _)| {
                    Some(*part) == self.part && *ended < self.request.began
                });
                let is_there = stored.map(|(.., digest)| Some(*digest)).any(|d| d == result.output);
                (is_there || result.output.is_none())
                    .then(|| format!("the output of {} {id} was stored", result.seq))
            }
            _ => self.place(writer, id, before, refused),
        }
    }

    /// Refusals that results and outputs share.
    fn place(
        &self,
        writer: &Writer,
        id: &str,
        before: &[SendResult],
        refused: &Refused,
    ) -> Option<String> {
        match refused.code.as_str() {
            "stale_generation" => self.stale(writer, refused),
            "history_diverged" => self.diverged(writer),
            "not_found" => {
                let seq = self.place_of(id)?;
                Some(format!("{id} stands at {seq}"))
            }
            "predecessor_missing" => {
                let seq = self.place_of(id)?;
                if refused.done_seq.is_some_and(|done| done + 1 >= seq) {
                    return Some(format!("{seq} {id}: it says {:?} itself", refused.done_seq));
                }
                let in_call = before.iter().filter(|one| matches!(one.answer, Answer::Good(_)));
                let in_call = in_call.filter_map(|one| self.place_of(&one.command_id)).max();
                let told = last_before(self.known.endings.get(&self.part?), self.request.began);
                let last = in_call.max(told).filter(|last| last + 1 >= seq)?;
                Some(format!("{seq} {id}: there was a receipt for {last}"))
            }
            code => Some(format!("{code} is no answer about {id}")),
        }
    }

    fn stale(&self, writer: &Writer, refused: &Refused) -> Option<String> {
        if refused.generation.is_some_and(|current| current < writer.generation) {
            return Some(format!(
                "{:?} is below its own {}",
                refused.generation, writer.generation
            ));
        }
        match &writer.session_id {
            Some(session_id) => self.without_rival(session_id),
            None => self
                .known
                .sessions
                .iter()
                .all(|(_, _, began, _)| *began > self.request.ended)
                .then(|| "nobody has opened a session".to_owned()),
        }
    }

    /// Whether nobody else can have taken the stream since this session took it.
    fn without_rival(&self, session_id: &str) -> Option<String> {
        let own = self.known.sessions.iter().filter(|(id, ..)| *id == session_id);
        let opened = own.map(|(_, _, began, _)| *began).min()?;
        // One that was opened in an earlier part may be gone.
        self.part.filter(|_| !self.known.stream.timeline.between(opened, self.request.ended))?;
        let rival = self.known.sessions.iter().any(|(id, _, began, ended)| {
            *id != session_id && *began <= self.request.ended && *ended >= opened
        });
        (!rival).then(|| format!("nobody took the stream from session {session_id}"))
    }

    fn diverged(&self, writer: &Writer) -> Option<String> {
        let Some(session_id) = &writer.session_id else {
            return Some("generation 1 is in every history".to_owned());
        };
        let opened = self.known.sessions.iter().filter(|(id, ..)| id == session_id);
        let opened = opened.map(|(_, _, began, _)| *began).min()?;
        (!self.known.stream.timeline.between(opened, self.request.ended)).then(|| {
            format!(
                "its session was opened at {:.3} s, and nothing was restored since",
                opened.as_secs_f64()
            )
        })
    }

    fn cursor_ahead(&self, after: u64, refused: &Refused) -> Option<String> {
        if refused.last_seq.is_some_and(|last| last >= after) {
            return Some(format!("{:?} is not below {after}", refused.last_seq));
        }
        let head = last_before(self.known.heads.get(&self.part?), self.request.began)?;
        (head >= after).then(|| format!("{head} was there, and {after} was asked for"))
    }

    /// Where a command stands, as somebody was told in this part of the time before the request.
    fn place_of(&self, id: &str) -> Option<u64> {
        let told = self.known.places.get(&(self.part?, id))?;
        told.iter().find(|(ended, _)| *ended < self.request.began).map(|(_, seq)| *seq)
    }

    /// The results of a command that anybody has sent by the end of the request.
    fn was_sent(&self, id: &str) -> Vec<Digest> {
        let sent = self.known.sent.get(id).into_iter().flatten();
        sent.filter(|(began, _)| *began <= self.request.ended).map(|(_, digest)| *digest).collect()
    }
}
