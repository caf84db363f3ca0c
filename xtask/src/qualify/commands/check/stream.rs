//! A stream as everybody saw it.

use std::collections::{HashMap, HashSet};

use site_protocol::Digest;

use super::timeline::Timeline;
use crate::qualify::commands::{
    history::{
        AgentLine, Answer, Call, CommandRow, HandlerRun, History, JournalEntry, Moment, Outcome,
        Page, Program, Request, ResultRow, SendResult, StreamName, StreamRows, Told, Writer,
        sha256,
    },
    read::agent_lines,
};

/// Everything of one stream.
pub(super) struct Stream<'a> {
    pub(super) name: &'a StreamName,
    pub(super) timeline: &'a Timeline,
    pub(super) history: &'a History,
    pub(super) rows: Option<&'a StreamRows>,
    pub(super) calls: Vec<&'a Call>,
    pub(super) requests: Vec<&'a Request>,
    pub(super) runs: Vec<&'a HandlerRun>,
    pub(super) journal: HashMap<&'a str, &'a JournalEntry>,
    /// The log of each start of its agent, in order.
    pub(super) agents: Vec<Vec<AgentLine>>,
    pub(super) receipts: Vec<Receipt>,
}

/// A receipt, whoever was told.
#[derive(Clone, Debug)]
pub(super) struct Receipt {
    pub(super) command_id: String,
    pub(super) seq: u64,
    /// SHA-256 of the result that it is for; none where the agent's journal has it no more.
    pub(super) digest: Option<Digest>,
    pub(super) outcome: Option<Outcome>,
    /// Whether the answer was 201, where that is known.
    pub(super) new: Option<bool>,
    pub(super) began: Moment,
    pub(super) ended: Moment,
}

/// A result that left for the Site API.
pub(super) struct Sent<'a> {
    pub(super) request: &'a Request,
    pub(super) result: &'a SendResult,
}

impl<'a> Stream<'a> {
    pub(super) fn of(history: &'a History, timeline: &'a Timeline, name: &'a StreamName) -> Self {
        let mut agents: Vec<_> = history
            .processes
            .iter()
            .filter(|run| matches!(&run.program, Program::Agent(stream) if stream == name))
            .collect();
        agents.sort_by_key(|run| run.started);
        let runs = history.runs.iter().filter(|(stream, _)| stream == name);
        let journals = history.journals.iter().filter(|(stream, _)| stream == name);
        let mut stream = Self {
            name,
            timeline,
            history,
            rows: history.database.streams.iter().find(|rows| rows.stream == *name),
            calls: history.calls.iter().filter(|call| call.stream == *name).collect(),
            requests: history.requests.iter().filter(|r| r.stream == *name).collect(),
            runs: runs.flat_map(|(_, runs)| runs).collect(),
            journal: journals
                .flat_map(|(_, entries)| entries)
                .map(|entry| (entry.command_id.as_str(), entry))
                .collect(),
            agents: agents
                .into_iter()
                .map(|run| agent_lines(run, history.began_at_micros))
                .collect(),
            receipts: Vec::new(),
        };
        stream.receipts = stream.linked_receipts();
        stream.receipts.extend(stream.agents_receipts());
        stream.receipts.sort_by_key(|receipt| receipt.ended);
        stream
    }

    pub(super) fn commands(&self) -> &'a [CommandRow] {
        self.rows.map_or(&[], |rows| &rows.commands)
    }

    pub(super) fn results(&self) -> &'a [ResultRow] {
        self.rows.map_or(&[], |rows| &rows.results)
    }

    /// The commands that are there, by their ids.
    pub(super) fn by_id(&self) -> HashMap<&'a str, &'a CommandRow> {
        self.commands().iter().map(|row| (row.command_id.as_str(), row)).collect()
    }

    pub(super) fn results_by_seq(&self) -> HashMap<u64, &'a ResultRow> {
        self.results().iter().map(|row| (row.seq, row)).collect()
    }

    /// The places that were voided.
    pub(super) fn voided(&self) -> HashSet<u64> {
        self.rows.iter().flat_map(|rows| &rows.voids).map(|row| row.seq).collect()
    }

    /// Whether its Runtime is a linked one, and not an agent.
    pub(super) fn is_linked(&self) -> bool {
        !self.requests.is_empty()
    }

    /// Each result that a linked Runtime sent, in any call.
    pub(super) fn sent(&self) -> impl Iterator<Item = Sent<'a>> + '_ {
        self.requests.iter().flat_map(|request| {
            let results: &[SendResult] = match &request.told {
                Told::Results(sent, _) => &sent.results,
                _ => &[],
            };
            results.iter().map(|result| Sent { request, result })
        })
    }

    /// Each page that a linked Runtime was given, with the place after which it begins.
    pub(super) fn pages(
        &self,
    ) -> impl Iterator<Item = (&'a Request, &'a Writer, u64, &'a Page)> + '_ {
        self.requests.iter().filter_map(|request| match &request.told {
            Told::Poll(poll, Answer::Good(page)) => {
                Some((*request, &poll.writer, poll.after, page))
            }
            Told::Results(sent, Answer::Good(Some(page))) => {
                Some((*request, &sent.writer, last_leading(&sent.results)?, page))
            }
            _ => None,
        })
    }

    fn linked_receipts(&self) -> Vec<Receipt> {
        self.sent()
            .filter_map(|sent| match &sent.result.answer {
                Answer::Good(receipt) => Some(Receipt {
                    command_id: sent.result.command_id.clone(),
                    seq: receipt.seq,
                    digest: Some(receipt.digest),
                    outcome: Some(receipt.outcome),
                    new: Some(receipt.new),
                    began: sent.request.began,
                    ended: sent.request.ended,
                }),
                _ => None,
            })
            .collect()
    }

    fn agents_receipts(&self) -> Vec<Receipt> {
        let answered =
            self.agents.iter().flatten().filter(|line| line.message == "command.answered");
        answered
            .filter_map(|line| {
                let command_id = line.text("command.id")?.to_owned();
                let result = self.journal.get(command_id.as_str());
                let result = result.and_then(|entry| entry.result.as_deref());
                Some(Receipt {
                    seq: line.number("command.seq")?,
                    digest: result.map(|text| sha256(&[text.as_bytes()])),
                    outcome: line.text("command.outcome").and_then(outcome),
                    new: None,
                    began: line.since,
                    ended: line.at,
                    command_id,
                })
            })
            .collect()
    }
}

/// The place after which the page begins that results bring: that of the last leading one with an
/// ending.
fn last_leading(results: &[SendResult]) -> Option<u64> {
    let ended = results.iter().map_while(|result| match &result.answer {
        Answer::Good(receipt) => Some(receipt.seq),
        Answer::Refused(refused) if refused.code == "already_voided" => Some(result.seq),
        _ => None,
    });
    ended.last()
}

fn outcome(word: &str) -> Option<Outcome> {
    serde_json::from_value(word.into()).ok()
}

impl AgentLine {
    pub(super) fn text(&self, field: &str) -> Option<&str> {
        self.fields.get(field)?.as_str()
    }

    pub(super) fn number(&self, field: &str) -> Option<u64> {
        self.fields.get(field)?.as_u64()
    }
}
