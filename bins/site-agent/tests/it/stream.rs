//! A stream of commands and the results that were stored for it, by the documented rules. Faults
//! are added by each test around it.

mod page;
mod store;

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
};

use chrono::{DateTime, Utc};
use serde_json::{Value, json, value::RawValue};
use site_client::{command_digest, next_chain_digest};
use site_protocol::{
    Command, Digest, PROBLEM_CONTENT_TYPE, PROBLEM_SOURCE, ResultBody, Session, SessionRequest,
};
use test_support::{Received, Reply, eventually};

use crate::LONG;

/// Shared by the test and the peer that answers from it.
#[derive(Clone)]
pub(crate) struct Stream(Arc<Mutex<State>>);

/// A stream as it was at one moment, as a backup holds it.
pub(crate) struct Backup(State);

#[derive(Clone)]
struct State {
    commands: Vec<Command>,
    /// The chain digest at each sequence, from 0.
    chain: Vec<Digest>,
    /// Of the first commands: their result, or none where they are voided.
    endings: Vec<Option<Vec<u8>>>,
    generation: u64,
    session_id: Option<String>,
    superseded: BTreeSet<String>,
    cancel_rev: u64,
    /// The number of each cancel and the command's sequence.
    marks: Vec<(u64, u64)>,
    /// The command's id and the digest.
    outputs: BTreeSet<(String, Digest)>,
    trimmed_seq: u64,
    now: DateTime<Utc>,
}

impl Stream {
    /// A stream of that many commands without a result.
    pub(crate) fn of(count: u64) -> Self {
        Self::made(count, |_| ())
    }

    /// A stream of that many commands, each changed before its digest is made.
    pub(crate) fn made(count: u64, change: impl Fn(&mut Command)) -> Self {
        let stream = Self(Arc::new(Mutex::new(State {
            commands: Vec::new(),
            chain: vec![Digest::ZERO],
            endings: Vec::new(),
            generation: 1,
            session_id: None,
            superseded: BTreeSet::new(),
            cancel_rev: 0,
            marks: Vec::new(),
            outputs: BTreeSet::new(),
            trimmed_seq: 0,
            now: DateTime::UNIX_EPOCH,
        })));
        for seq in 1..=count {
            stream.push(&format!("cmd_{seq}"), &change);
        }
        stream
    }

    /// Adds a command, changed before its digest is made.
    pub(crate) fn push(&self, command_id: &str, change: impl Fn(&mut Command)) {
        let mut state = self.0.lock().unwrap();
        let mut command = Command {
            command_id: command_id.to_owned(),
            seq: state.commands.len() as u64 + 1,
            kind: "test".to_owned(),
            run_id: None,
            not_after: None,
            voided: false,
            digest: Digest::ZERO,
            created_at: DateTime::<Utc>::UNIX_EPOCH,
            body: RawValue::from_string("{\"a\": 1}".to_owned()).unwrap(),
        };
        change(&mut command);
        command.digest = command_digest(&command);
        let before = state.chain[state.chain.len() - 1];
        state.chain.push(next_chain_digest(&before, &command.digest));
        state.commands.push(command);
    }

    /// Adds plain commands.
    pub(crate) fn push_all(&self, command_ids: &[&str]) {
        command_ids.iter().for_each(|id| self.push(id, |_| ()));
    }

    /// Stores results of another Runtime for the next commands.
    pub(crate) fn answered_by_another(self, count: usize) -> Self {
        let result = b"{\"outcome\":\"succeeded\",\"output\":\"another\"}".to_vec();
        self.0.lock().unwrap().endings.extend(std::iter::repeat_n(Some(result), count));
        self
    }

    /// Stores this result of another Runtime for the command that is due.
    pub(crate) fn answer_due(&self, result: &[u8]) {
        self.0.lock().unwrap().endings.push(Some(result.to_vec()));
    }

    /// Opens a session of another Runtime, as if from the inside.
    pub(crate) fn taken_over(&self) {
        let mut state = self.0.lock().unwrap();
        let request = SessionRequest {
            session_id: format!("another-runtime-{}", state.generation),
            expected_generation: state.generation,
        };
        state.open(&request);
    }

    /// Marks a command as cancelled.
    pub(crate) fn cancel(&self, seq: u64) {
        let mut state = self.0.lock().unwrap();
        state.cancel_rev += 1;
        let rev = state.cancel_rev;
        state.marks.push((rev, seq));
    }

    /// Voids the command that is due.
    pub(crate) fn void_due(&self) {
        self.0.lock().unwrap().endings.push(None);
    }

    /// Removes the commands up to a place that have their ending.
    pub(crate) fn trim(&self, seq: u64) {
        self.0.lock().unwrap().trimmed_seq = seq;
    }

    /// Removes the private outputs.
    pub(crate) fn lose_outputs(&self) {
        self.0.lock().unwrap().outputs.clear();
    }

    pub(crate) fn backup(&self) -> Backup {
        Backup(self.0.lock().unwrap().clone())
    }

    pub(crate) fn restore(&self, backup: Backup) {
        *self.0.lock().unwrap() = backup.0;
    }

    /// What was stored, in order.
    pub(crate) fn results(&self) -> Vec<ResultBody> {
        let state = self.0.lock().unwrap();
        let stored = state.endings.iter().flatten();
        stored.map(|result| serde_json::from_slice(result).unwrap()).collect()
    }

    /// The outputs of what was stored, in order.
    pub(crate) fn outputs(&self) -> Vec<String> {
        let output = |result: ResultBody| result.output.map_or_else(String::new, |o| o.to_string());
        self.results().into_iter().map(output).collect()
    }

    /// The digests of the private outputs.
    pub(crate) fn private_outputs(&self) -> Vec<Digest> {
        self.0.lock().unwrap().outputs.iter().map(|(_, digest)| *digest).collect()
    }

    /// Waits until that many results are stored.
    pub(crate) async fn wait_for_results(&self, count: usize) {
        let stored = async || (self.results().len() >= count).then_some(());
        eventually(LONG, &format!("{count} results to be stored"), stored).await;
    }

    pub(crate) fn answer(&self, request: &Received) -> Reply {
        let mut state = self.0.lock().unwrap();
        let path = request.target.split('?').next().unwrap_or_default();
        let words: Vec<_> = path.trim_start_matches("/v1/site/commands/").split('/').collect();
        match (request.method.as_str(), &words[..]) {
            ("POST", ["sessions"]) => state.open(&serde_json::from_slice(&request.body).unwrap()),
            ("GET", [""]) => state.poll(request),
            ("PUT", ["results"]) => state.store_batch(request),
            ("PUT", [id, "result"]) => state.store_single(id, request),
            ("PUT", [id, "outputs", digest]) => state.store_output(id, digest, request),
            _ => panic!("no route takes {request:?}"),
        }
    }
}

impl State {
    fn open(&mut self, request: &SessionRequest) -> Reply {
        let generation = json!({"generation": self.generation});
        if self.superseded.contains(&request.session_id) {
            return problem(409, "session_superseded", generation);
        }
        let mut status = 200;
        if self.session_id.as_ref() != Some(&request.session_id) {
            if request.expected_generation != self.generation {
                return problem(409, "stale_generation", generation);
            }
            self.superseded.extend(self.session_id.replace(request.session_id.clone()));
            self.generation += 1;
            status = 201;
        }
        let session = Session {
            session_id: request.session_id.clone(),
            generation: self.generation,
            done_seq: self.endings.len() as u64,
            done_digest: self.chain[self.endings.len()],
            last_seq: self.commands.len() as u64,
            server_time: self.now,
        };
        Reply::json(status, json!(session).to_string())
    }

    /// The refusal of a caller that is not the current writer.
    fn refused_writer(&self, request: &Received) -> Option<(&'static str, Value)> {
        let generation: u64 = request.headers["runtime-generation"].parse().unwrap();
        let session_id = request.headers.get("runtime-session");
        assert_eq!(generation == 1, session_id.is_none(), "it is 422: {request:?}");
        let current = json!({"generation": self.generation});
        if generation > self.generation {
            Some(("history_diverged", current))
        } else if generation < self.generation || session_id != self.session_id.as_ref() {
            Some(("stale_generation", current))
        } else {
            None
        }
    }
}

/// The answer with a problem that is not retryable, with its own members.
fn problem(status: u16, code: &str, members: Value) -> Reply {
    let problem = problem_body(status, code, members);
    Reply::new(status, PROBLEM_CONTENT_TYPE, problem.to_string())
}

fn problem_body(status: u16, code: &str, members: Value) -> Value {
    let mut problem = json!({
        "type": format!("urn:site-control:problem:{code}"), "title": "T", "status": status,
        "detail": "D", "code": code, "retryable": false, "source": PROBLEM_SOURCE,
    });
    problem.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    problem
}
