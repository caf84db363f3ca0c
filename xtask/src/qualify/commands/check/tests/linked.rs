//! The linked Runtime of the small lane.

use site_protocol::Digest;

use super::model::{LINKED, Model};
use crate::qualify::commands::history::{
    Answer, Moment, OpenSession, OpenedSession, OutputRow, Page, PagedCommand, Poll, Refused,
    Request, SendResult, SendResults, StoreOutput, StoredOutput, StoredResult, StreamName, Told,
    Writer, sha256,
};

pub(super) fn refused<T>(code: &str) -> Answer<T> {
    Answer::Refused(Refused { status: 409, code: code.to_owned(), ..Refused::default() })
}

impl Model {
    fn request(&mut self, began: Moment, told: Told) {
        let request = Request {
            stream: StreamName::new(LINKED.0, LINKED.1),
            sender: "sender".to_owned(),
            began,
            ended: self.tick(),
            told,
        };
        self.history.requests.push(request);
    }

    pub(super) fn linked_opens(&mut self, session_id: &str) -> Writer {
        let began = self.tick();
        let expected_generation = self.rows(LINKED).generation;
        let generation = self.take_over(LINKED, session_id);
        let rows = self.rows(LINKED);
        let done = usize::try_from(rows.done_seq).unwrap();
        let done_digest = done.checked_sub(1).map(|last| rows.commands[last].chain_digest);
        let opened = OpenedSession {
            new: true,
            generation,
            done_seq: rows.done_seq,
            done_digest: done_digest.unwrap_or(Digest::ZERO),
            last_seq: rows.last_seq,
        };
        let asked = OpenSession { session_id: session_id.to_owned(), expected_generation };
        self.request(began, Told::Session(asked, Answer::Good(opened)));
        Writer { generation, session_id: Some(session_id.to_owned()) }
    }

    /// Polls with the right answer.
    pub(super) fn polls(&mut self, writer: &Writer, after: u64) {
        let began = self.tick();
        let rows = self.rows(LINKED);
        let commands = rows.commands.iter().filter(|row| row.seq > after);
        let commands: Vec<_> = commands
            .map(|row| PagedCommand {
                seq: row.seq,
                command_id: row.command_id.clone(),
                digest: row.digest,
                voided: false,
            })
            .collect();
        let page = Page {
            next_after: commands.last().map_or(after, |last| last.seq),
            commands,
            last_seq: rows.last_seq,
            head_seq: Some(rows.done_seq + 1).filter(|due| *due <= rows.last_seq),
            superseded: false,
        };
        self.poll_is(writer, after, began, Answer::Good(page));
    }

    pub(super) fn poll_is(
        &mut self,
        writer: &Writer,
        after: u64,
        began: Moment,
        answer: Answer<Page>,
    ) {
        let poll = Poll { writer: writer.clone(), after, after_digest: None, limit: 64 };
        self.request(began, Told::Poll(poll, answer));
    }

    /// Sends the results of these places, which are due, with the right answer.
    pub(super) fn sends(&mut self, writer: &Writer, seqs: &[u64]) {
        let began = self.tick();
        let results = seqs
            .iter()
            .map(|seq| {
                let new = *seq > self.rows(LINKED).done_seq;
                let mut result = self.result(*seq);
                if new {
                    self.end(LINKED, &text(*seq, &result.command_id), result.output);
                    // It was stored before.
                    let rows = self.rows(LINKED);
                    rows.outputs.dedup_by_key(|row| (row.seq, row.digest));
                }
                result.answer = Answer::Good(StoredResult {
                    new,
                    seq: *seq,
                    digest: result.digest,
                    outcome: result.outcome,
                });
                result
            })
            .collect();
        self.results_are(writer, began, results, Answer::Good(None));
    }

    pub(super) fn is_refused(&mut self, writer: &Writer, seq: u64, refused: Refused) {
        let began = self.tick();
        let mut result = self.result(seq);
        result.answer = Answer::Refused(refused);
        self.results_are(writer, began, vec![result], Answer::Good(None));
    }

    fn results_are(
        &mut self,
        writer: &Writer,
        began: Moment,
        results: Vec<SendResult>,
        answer: Answer<Option<Page>>,
    ) {
        let sent = SendResults { writer: writer.clone(), batch: true, next: None, results };
        self.request(began, Told::Results(sent, answer));
    }

    pub(super) fn stores_output(&mut self, writer: &Writer, seq: u64) {
        let began = self.tick();
        let digest = output(seq);
        let rows = self.rows(LINKED);
        rows.outputs.push(OutputRow { seq, digest, bytes: digest });
        let command_id = rows.commands[usize::try_from(seq).unwrap() - 1].command_id.clone();
        let asked = StoreOutput { writer: writer.clone(), command_id, digest };
        self.request(began, Told::Output(asked, Answer::Good(StoredOutput { new: true })));
    }

    fn result(&mut self, seq: u64) -> SendResult {
        let row = &self.rows(LINKED).commands[usize::try_from(seq).unwrap() - 1];
        let is_private = row.key.contains("private");
        let command_id = row.command_id.clone();
        SendResult {
            seq,
            digest: sha256(&[text(seq, &command_id).as_bytes()]),
            outcome: site_protocol::Outcome::Succeeded,
            output: is_private.then(|| output(seq)),
            answer: Answer::Unknown(String::new()),
            command_id,
        }
    }
}

/// The result of a command; that of the place 4 has a private output.
fn text(seq: u64, command_id: &str) -> String {
    if seq == 4 {
        let output = output(seq);
        return format!(
            r#"{{"outcome":"succeeded","output":"{command_id}","privateOutput":"{output}"}}"#
        );
    }
    format!(r#"{{"outcome":"succeeded","output":"{command_id}"}}"#)
}

fn output(seq: u64) -> Digest {
    sha256(&[&seq.to_be_bytes()])
}
