//! One client of a linked Runtime. It notes each request with what became of it, also one that is
//! given up half-way.

use std::time::Duration;

use serde_json::Value;
use site_client::{CallError, Next, Opened, PollRequest, SiteClient, Stored};
use site_protocol::{CommandPage, Digest, Receipt, SessionRequest};

use super::results::{Kept, Prepared};
use crate::qualify::commands::history::{
    self, Answer, Moment, OpenSession, OpenedSession, Page, PagedCommand, Poll, Recorder, Refused,
    Request, SendResult, SendResults, StoreOutput, StoredOutput, StoredResult, StreamName, Told,
    text_of,
};

/// A connection of one's own.
pub(super) struct Sender {
    pub(super) client: SiteClient,
    pub(super) name: String,
    pub(super) stream: StreamName,
    pub(super) recorder: Recorder,
    pub(super) kept: Kept,
}

/// A place in the stream, and the chain digest there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor {
    pub(super) seq: u64,
    pub(super) digest: Digest,
}

impl Sender {
    pub(super) async fn open_session(
        &self,
        session_id: &str,
        generation: u64,
    ) -> Answer<site_protocol::Session> {
        let asked =
            OpenSession { session_id: session_id.to_owned(), expected_generation: generation };
        let note = self.note(Told::Session(asked.clone(), given_up()));
        let request =
            SessionRequest { session_id: session_id.to_owned(), expected_generation: generation };
        let answer = answer(self.client.open_session(&request).await);
        let told = map(&answer, |(session, opened)| OpenedSession {
            new: *opened == Opened::New,
            generation: session.generation,
            done_seq: session.done_seq,
            done_digest: session.done_digest,
            last_seq: session.last_seq,
        });
        note.answered(Told::Session(asked, told));
        map(&answer, |(session, _)| session.clone())
    }

    pub(super) async fn poll(
        &self,
        writer: &site_client::Writer,
        cursor: Cursor,
        limit: u32,
        wait: Duration,
    ) -> Answer<CommandPage> {
        let asked = Poll {
            writer: noted(writer),
            after: cursor.seq,
            after_digest: Some(cursor.digest),
            limit,
        };
        let note = self.note(Told::Poll(asked.clone(), given_up()));
        let request = PollRequest {
            writer: writer.clone(),
            after: cursor.seq,
            after_digest: Some(cursor.digest),
            cancel_rev: 0,
            limit,
            wait,
        };
        let answer = answer(self.client.poll(&request).await);
        note.answered(Told::Poll(asked, map(&answer, page)));
        answer
    }

    /// Sends results, alone where there is one and no batch is wanted; gives what became of each, and
    /// the page that was brought along.
    pub(super) async fn send(
        &self,
        writer: &site_client::Writer,
        results: &[Prepared],
        batch: bool,
        next: Option<u32>,
    ) -> (Vec<Answer<StoredResult>>, Option<CommandPage>) {
        let send = |answers: &[Answer<StoredResult>]| SendResults {
            writer: noted(writer),
            batch,
            next,
            results: results.iter().zip(answers).map(sent).collect(),
        };
        let none = vec![given_up(); results.len()];
        let note = self.note(Told::Results(send(&none), given_up()));
        let next = next.map(|limit| Next { limit, wait: Duration::ZERO, cancel_rev: 0 });
        let to_store: Vec<_> = results.iter().map(Prepared::to_store).collect();
        let whole = match &to_store[..] {
            [one] if !batch => {
                let stored = self.client.store_result(writer, one, next.as_ref()).await;
                stored.map(|stored| {
                    let receipt = receipt(&stored.receipt, stored.stored);
                    (vec![Answer::Good(receipt)], stored.next)
                })
            }
            _ => {
                let stored = self.client.store_results(writer, &to_store, next.as_ref()).await;
                stored.map(|stored| {
                    let each = stored
                        .results
                        .into_iter()
                        .map(|result| answer(result.map(|(told, stored)| receipt(&told, stored))));
                    (each.collect(), stored.next)
                })
            }
        };
        let whole = answer(whole);
        let answers = match &whole {
            Answer::Good((answers, _)) => answers.clone(),
            failed => vec![map(failed, |_| unreachable!()); results.len()],
        };
        let brought = map(&whole, |(_, brought)| brought.as_ref().map(page));
        note.answered(Told::Results(send(&answers), brought));
        for (result, answer) in results.iter().zip(&answers) {
            if matches!(answer, Answer::Good(_)) {
                self.kept.keep(result);
            }
        }
        let brought = if let Answer::Good((_, brought)) = whole { brought } else { None };
        (answers, brought)
    }

    /// Stores the private output that a result names.
    pub(super) async fn store_output(
        &self,
        writer: &site_client::Writer,
        command_id: &str,
        output: bytes::Bytes,
    ) -> Answer<StoredOutput> {
        let asked = StoreOutput {
            writer: noted(writer),
            command_id: command_id.to_owned(),
            digest: site_client::output_digest(&output),
        };
        let note = self.note(Told::Output(asked.clone(), given_up()));
        let stored = self.client.store_output(writer, command_id, output).await;
        let answer = answer(stored.map(|(_, stored)| StoredOutput { new: stored == Stored::New }));
        note.answered(Told::Output(asked, answer.clone()));
        answer
    }

    fn note(&self, told: Told) -> Note<'_> {
        Note { sender: self, began: self.recorder.now(), told: Some(told) }
    }
}

/// A request that is under way. Where it is given up, it is noted as it is.
struct Note<'a> {
    sender: &'a Sender,
    began: Moment,
    told: Option<Told>,
}

impl Note<'_> {
    fn answered(mut self, told: Told) {
        self.told = Some(told);
    }
}

impl Drop for Note<'_> {
    fn drop(&mut self) {
        let Sender { name, stream, recorder, .. } = self.sender;
        let Some(told) = self.told.take() else { return };
        recorder.request(Request {
            stream: stream.clone(),
            sender: name.clone(),
            began: self.began,
            ended: recorder.now(),
            told,
        });
    }
}

fn given_up<T>() -> Answer<T> {
    Answer::Unknown("given up".to_owned())
}

fn noted(writer: &site_client::Writer) -> history::Writer {
    history::Writer {
        generation: writer.generation(),
        session_id: writer.session_id().map(str::to_owned),
    }
}

fn sent((result, answer): (&Prepared, &Answer<StoredResult>)) -> SendResult {
    SendResult {
        command_id: result.command_id.clone(),
        seq: result.seq,
        digest: result.digest(),
        outcome: result.outcome,
        output: result.output_digest(),
        answer: answer.clone(),
    }
}

fn receipt(receipt: &Receipt, stored: Stored) -> StoredResult {
    StoredResult {
        new: stored == Stored::New,
        seq: receipt.seq,
        digest: receipt.digest,
        outcome: receipt.outcome,
    }
}

fn page(page: &CommandPage) -> Page {
    let command = |command: &site_protocol::Command| PagedCommand {
        seq: command.seq,
        command_id: command.command_id.clone(),
        digest: command.digest,
        voided: command.voided,
    };
    Page {
        commands: page.commands.iter().map(command).collect(),
        next_after: page.next_after,
        last_seq: page.last_seq,
        head_seq: page.head.map(|head| head.seq),
        superseded: page.superseded,
    }
}

fn answer<T>(result: Result<T, CallError>) -> Answer<T> {
    let error = match result {
        Ok(good) => return Answer::Good(good),
        Err(error) => error,
    };
    let text = text_of(&error);
    match error {
        CallError::Problem(problem) => {
            let member = |name: &str| problem.extra.get(name);
            let number = |name: &str| member(name).and_then(Value::as_u64);
            let digest = member("storedDigest").and_then(Value::as_str);
            Answer::Refused(Refused {
                status: problem.status,
                code: problem.code.clone(),
                generation: number("generation"),
                done_seq: number("doneSeq"),
                last_seq: number("lastSeq"),
                stored_digest: digest.and_then(|text| text.parse().ok()),
            })
        }
        // The page of the proxy, and of nobody else here.
        CallError::NotOurs { status: 503, .. } | CallError::Transport(_) => Answer::Unknown(text),
        _ => Answer::Broken(text),
    }
}

fn map<T, U>(answer: &Answer<T>, good: impl FnOnce(&T) -> U) -> Answer<U> {
    match answer {
        Answer::Good(told) => Answer::Good(good(told)),
        Answer::Refused(refused) => Answer::Refused(refused.clone()),
        Answer::Unknown(why) => Answer::Unknown(why.clone()),
        Answer::Broken(why) => Answer::Broken(why.clone()),
    }
}
