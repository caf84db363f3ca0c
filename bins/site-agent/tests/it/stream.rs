//! A stream of commands and the results that were stored for it, by the documented rules. Faults
//! are added by each test around it.

use std::sync::{Arc, Mutex};

use chrono::{DateTime, Utc};
use serde_json::{json, value::RawValue};
use site_client::{command_digest, next_chain_digest, result_digest};
use site_protocol::{Command, CommandPage, Digest, Head, Receipt, ResultBody};
use test_support::{Received, Reply, eventually};

use crate::LONG;

/// Shared by the test and the peer that answers from it.
#[derive(Clone)]
pub(crate) struct Stream(Arc<Mutex<State>>);

struct State {
    commands: Vec<Command>,
    /// The chain digest at each sequence, from 0.
    chain: Vec<Digest>,
    results: Vec<Vec<u8>>,
}

impl Stream {
    /// A stream of that many commands without a result.
    pub(crate) fn of(count: u64) -> Self {
        let mut state =
            State { commands: Vec::new(), chain: vec![Digest::ZERO], results: Vec::new() };
        for seq in 1..=count {
            let mut command = Command {
                command_id: format!("cmd_{seq}"),
                seq,
                kind: "test".to_owned(),
                run_id: None,
                not_after: None,
                voided: false,
                digest: Digest::ZERO,
                created_at: DateTime::<Utc>::UNIX_EPOCH,
                body: RawValue::from_string("{\"a\": 1}".to_owned()).unwrap(),
            };
            command.digest = command_digest(&command);
            let before = state.chain[state.chain.len() - 1];
            state.chain.push(next_chain_digest(&before, &command.digest));
            state.commands.push(command);
        }
        Self(Arc::new(Mutex::new(state)))
    }

    /// Stores results of another Runtime for the next commands.
    pub(crate) fn answered_by_another(self, count: usize) -> Self {
        let result = b"{\"outcome\":\"succeeded\",\"output\":\"another\"}".to_vec();
        self.0.lock().unwrap().results.extend(std::iter::repeat_n(result, count));
        self
    }

    /// What was stored, in order.
    pub(crate) fn results(&self) -> Vec<ResultBody> {
        let state = self.0.lock().unwrap();
        state.results.iter().map(|result| serde_json::from_slice(result).unwrap()).collect()
    }

    /// The outputs of what was stored, in order.
    pub(crate) fn outputs(&self) -> Vec<String> {
        let output = |result: ResultBody| result.output.map_or_else(String::new, |o| o.to_string());
        self.results().into_iter().map(output).collect()
    }

    /// Waits until that many results are stored.
    pub(crate) async fn wait_for_results(&self, count: usize) {
        let stored = async || (self.0.lock().unwrap().results.len() >= count).then_some(());
        eventually(LONG, &format!("{count} results to be stored"), stored).await;
    }

    pub(crate) fn answer(&self, request: &Received) -> Reply {
        let mut state = self.0.lock().unwrap();
        assert_eq!(request.headers["runtime-generation"], "1");
        match request.method.as_str() {
            "GET" => state.page(&request.target),
            _ => state.store(request),
        }
    }
}

impl State {
    fn page(&self, target: &str) -> Reply {
        let query = |name: &str| {
            target.split(['?', '&']).find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
        };
        let number = |name| query(name).unwrap().parse::<usize>().unwrap();
        let (after, limit) = (number("after"), number("limit"));
        let Some(digest) = self.chain.get(after) else {
            return Reply::problem(409, "cursor_ahead", false);
        };
        if query("afterDigest").is_some_and(|presented| presented != digest.to_string()) {
            return Reply::problem(409, "history_diverged", false);
        }
        let to = self.commands.len().min(after + limit);
        let commands = self.commands[after..to].to_vec();
        if commands.is_empty() && number("wait") > 0 {
            return Reply::Silence;
        }
        let due = self.results.len() as u64 + 1;
        let last_seq = self.commands.len() as u64;
        Reply::json(
            200,
            serde_json::to_vec(&CommandPage {
                commands,
                next_after: to as u64,
                next_digest: self.chain[to],
                last_seq,
                head: (due <= last_seq).then_some(Head { seq: due, age_seconds: 0 }),
                cancel_rev: 0,
                cancelled: Vec::new(),
                server_time: DateTime::<Utc>::UNIX_EPOCH,
                superseded: false,
            })
            .unwrap(),
        )
    }

    fn store(&mut self, request: &Received) -> Reply {
        let id =
            request.target.trim_start_matches("/v1/site/commands/").trim_end_matches("/result");
        let command = self.commands.iter().find(|command| command.command_id == id).unwrap();
        let index = usize::try_from(command.seq).unwrap() - 1;
        let status = match self.results.get(index) {
            Some(stored) if *stored == request.body => 200,
            Some(_) => return Reply::problem(409, "result_conflict", false),
            None if index > self.results.len() => {
                return Reply::problem(409, "predecessor_missing", true);
            }
            None => 201,
        };
        let result: ResultBody = serde_json::from_slice(&request.body).unwrap();
        let receipt = Receipt {
            command_id: command.command_id.clone(),
            seq: command.seq,
            digest: result_digest(&request.body),
            outcome: result.outcome,
            received_at: DateTime::<Utc>::UNIX_EPOCH,
        };
        if status == 201 {
            self.results.push(request.body.clone());
        }
        Reply::json(status, json!(receipt).to_string())
    }
}
