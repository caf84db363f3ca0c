//! What a poll is answered with.

use serde_json::json;
use site_protocol::{Cancelled, CommandPage, Head};
use test_support::{Received, Reply};

use super::{State, problem};

impl State {
    pub(super) fn poll(&self, request: &Received) -> Reply {
        let number = |name| number(&request.target, name).unwrap_or(0);
        let after = number("after");
        let last_seq = self.commands.len() as u64;
        let Some(digest) = self.chain.get(usize::try_from(after).unwrap()) else {
            return problem(409, "cursor_ahead", json!({"lastSeq": last_seq}));
        };
        if after < self.trimmed_seq {
            let digest = self.chain[usize::try_from(self.trimmed_seq).unwrap()];
            let place = json!({"after": self.trimmed_seq, "afterDigest": digest});
            return problem(410, "cursor_trimmed", place);
        }
        let presented = query(&request.target, "afterDigest");
        if presented.is_some_and(|presented| presented != digest.to_string()) {
            return problem(409, "history_diverged", json!({}));
        }
        if let Some((code, members)) = self.refused_writer(request) {
            return problem(409, code, members);
        }
        let page = self.page(after, number("limit"), number("cancelRev"));
        let nothing = page.commands.is_empty() && page.cancelled.is_empty();
        // A watch is not parked: nothing here could wake it.
        if nothing && number("limit") > 0 && number("wait") > 0 {
            return Reply::Silence;
        }
        Reply::json(200, serde_json::to_vec(&page).unwrap())
    }

    pub(super) fn page(&self, after: u64, limit: u64, cancel_rev: u64) -> CommandPage {
        let last_seq = self.commands.len() as u64;
        let to = usize::try_from(last_seq.min(after + limit)).unwrap();
        let mut commands = self.commands[usize::try_from(after).unwrap()..to].to_vec();
        for command in &mut commands {
            let ending = self.endings.get(usize::try_from(command.seq).unwrap() - 1);
            command.voided = matches!(ending, Some(None));
        }
        let due = self.endings.len() as u64 + 1;
        let marks = self.marks.iter().filter(|(rev, seq)| *rev > cancel_rev && *seq >= due);
        let cancelled = marks.map(|(_, seq)| Cancelled {
            command_id: self.commands[usize::try_from(*seq).unwrap() - 1].command_id.clone(),
            seq: *seq,
        });
        CommandPage {
            commands,
            next_after: to as u64,
            next_digest: self.chain[to],
            last_seq,
            head: (due <= last_seq).then_some(Head { seq: due, age_seconds: 0 }),
            cancel_rev: self.cancel_rev,
            cancelled: cancelled.collect(),
            server_time: self.now,
            superseded: false,
        }
    }
}

/// The value of a query parameter.
pub(super) fn query<'a>(target: &'a str, name: &str) -> Option<&'a str> {
    target.split(['?', '&']).find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
}

pub(super) fn number(target: &str, name: &str) -> Option<u64> {
    query(target, name).map(|text| text.parse().unwrap())
}
