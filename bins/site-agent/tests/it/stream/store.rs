//! What results and private outputs are answered with.

use serde_json::{Value, json};
use site_client::{output_digest, result_digest};
use site_protocol::{
    BatchAnswer, BatchedAnswer, CommandPage, OutputReceipt, Receipt, ReceiptAndNext, ResultBatch,
    ResultBody,
};
use test_support::{Received, Reply};

use super::{State, page::number, problem, problem_body};

/// A status with its receipt, or a code with its members.
type Verdict = Result<(u16, Receipt), (&'static str, Value)>;

impl State {
    pub(super) fn store_single(&mut self, id: &str, request: &Received) -> Reply {
        match self.store(id, &request.body, request) {
            Ok((status, receipt)) => match self.next(receipt.seq, request) {
                None => Reply::json(status, json!(receipt).to_string()),
                Some(next) => {
                    let answer = ReceiptAndNext { receipt, next: Some(next) };
                    Reply::json(status, serde_json::to_vec(&answer).unwrap())
                }
            },
            Err((code, members)) => problem(status(code), code, members),
        }
    }

    pub(super) fn store_batch(&mut self, request: &Received) -> Reply {
        let batch: ResultBatch = serde_json::from_slice(&request.body).unwrap();
        assert!((1..=64).contains(&batch.results.len()) && request.body.len() <= 1024 * 1024);
        let mut results = Vec::new();
        let (mut leading, mut last) = (true, None);
        for item in batch.results {
            let command_id = item.command_id;
            let answer = match self.store(&command_id, item.result.get().as_bytes(), request) {
                Ok((status, receipt)) => {
                    last = if leading { Some(receipt.seq) } else { last };
                    BatchedAnswer { command_id, status, receipt: Some(receipt), problem: None }
                }
                Err((code, members)) => {
                    leading = leading && code == "already_voided";
                    if leading {
                        last = self.seq_of(&command_id);
                    }
                    let status = status(code);
                    let problem = problem_body(status, code, members);
                    let problem = Some(serde_json::from_value(problem).unwrap());
                    BatchedAnswer { command_id, status, receipt: None, problem }
                }
            };
            results.push(answer);
        }
        let next = last.and_then(|seq| self.next(seq, request));
        Reply::json(200, serde_json::to_vec(&BatchAnswer { results, next }).unwrap())
    }

    pub(super) fn store_output(&mut self, id: &str, digest: &str, request: &Received) -> Reply {
        let Some(seq) = self.seq_of(id) else { return problem(404, "not_found", json!({})) };
        let ended = self.endings.len() as u64;
        assert_eq!(request.headers["content-type"], "application/octet-stream");
        assert_eq!(output_digest(&request.body).to_string(), digest);
        assert!(self.commands[usize::try_from(seq).unwrap() - 1].run_id.is_some(), "it is refused");
        let key = (id.to_owned(), output_digest(&request.body));
        let status = if self.outputs.contains(&key) {
            200
        } else if seq <= ended && self.endings[usize::try_from(seq).unwrap() - 1].is_none() {
            return problem(409, "already_voided", json!({}));
        } else if seq <= ended {
            return problem(409, "result_conflict", json!({}));
        } else if let Some((code, members)) = self.refused_writer(request) {
            return problem(409, code, members);
        } else if seq > ended + 1 {
            return problem(409, "predecessor_missing", json!({"doneSeq": ended}));
        } else if self.outputs.iter().filter(|(command, _)| command == id).count() == 8 {
            return problem(409, "too_many_outputs", json!({"limit": 8}));
        } else {
            201
        };
        self.outputs.insert(key.clone());
        let bytes = request.body.len() as u64;
        let (command_id, digest) = key;
        let receipt = OutputReceipt { command_id, digest, bytes, stored_at: self.now };
        Reply::json(status, json!(receipt).to_string())
    }

    fn store(&mut self, id: &str, bytes: &[u8], request: &Received) -> Verdict {
        let Some(seq) = self.seq_of(id) else { return Err(("not_found", json!({}))) };
        let result: ResultBody = serde_json::from_slice(bytes).unwrap();
        let receipt = Receipt {
            command_id: id.to_owned(),
            seq,
            digest: result_digest(bytes),
            outcome: result.outcome,
            received_at: self.now,
        };
        match self.endings.get(usize::try_from(seq).unwrap() - 1) {
            Some(Some(stored)) if stored == bytes => return Ok((200, receipt)),
            Some(Some(stored)) => {
                return Err(("result_conflict", json!({"storedDigest": result_digest(stored)})));
            }
            Some(None) => return Err(("already_voided", json!({"voidedAt": self.now}))),
            None => {}
        }
        if let Some(refused) = self.refused_writer(request) {
            return Err(refused);
        }
        let done_seq = self.endings.len() as u64;
        if seq > done_seq + 1 {
            return Err(("predecessor_missing", json!({"doneSeq": done_seq})));
        }
        let named = result.private_output.map(|digest| (id.to_owned(), digest));
        if named.is_some_and(|named| !self.outputs.contains(&named)) {
            return Err(("output_missing", json!({})));
        }
        self.endings.push(Some(bytes.to_vec()));
        Ok((201, receipt))
    }

    /// The page that the query asks for.
    fn next(&self, after: u64, request: &Received) -> Option<CommandPage> {
        let limit = number(&request.target, "next")?;
        assert!((1..=64).contains(&limit));
        Some(self.page(after, limit, number(&request.target, "cancelRev").unwrap_or(0)))
    }

    fn seq_of(&self, id: &str) -> Option<u64> {
        self.commands.iter().find(|command| command.command_id == id).map(|command| command.seq)
    }
}

fn status(code: &str) -> u16 {
    if code == "not_found" { 404 } else { 409 }
}
