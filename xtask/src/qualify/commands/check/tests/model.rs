//! A lane in small, in which nothing goes wrong that may not: one stream with an agent and one with a
//! linked Runtime, on a database that can be copied and put back.

use std::time::Duration;

use serde_json::{Value, json};
use site_protocol::Digest;
use test_support::process::Exit;

use super::super::chain;
use crate::qualify::commands::history::{
    Call, CallAnswer, CommandRow, Database, EventRow, ExitNote, HandlerRun, History, Item,
    JournalEntry, LogLine, Moment, Outcome, OutputRow, Place, ProcessRun, Program, Restore,
    ResultRow, SessionRow, StreamName, StreamRows, Way, sha256,
};

const BEGAN_AT_MICROS: i64 = 1_700_000_000_000_000;

pub(super) const AGENT: (&str, &str) = ("lab-a", "slurm");
pub(super) const LINKED: (&str, &str) = ("lab-d", "k8s");

pub(super) struct Model {
    pub(super) history: History,
    /// Milliseconds since the start; each thing that happens takes some.
    pub(super) now: u64,
    backup: Option<(Moment, Database)>,
    /// The last place that the agent's log has told in this session.
    told: u64,
}

impl Model {
    pub(super) fn new() -> Self {
        let stream = |(site, environment): (&str, &str)| StreamRows {
            stream: StreamName::new(site, environment),
            last_seq: 0,
            last_digest: Digest::ZERO,
            done_seq: 0,
            generation: 1,
            session_id: None,
            commands: Vec::new(),
            results: Vec::new(),
            voids: Vec::new(),
            cancels: Vec::new(),
            outputs: Vec::new(),
            sessions: Vec::new(),
        };
        let streams = vec![stream(AGENT), stream(LINKED)];
        let database = Database { streams, events: Vec::new() };
        let agent = StreamName::new(AGENT.0, AGENT.1);
        let history = History {
            began_at_micros: BEGAN_AT_MICROS,
            runs: vec![(agent.clone(), Vec::new())],
            journals: vec![(agent, Vec::new())],
            database,
            ..History::default()
        };
        Self { history, now: 0, backup: None, told: 0 }
    }

    /// The moment now, after a while.
    pub(super) fn tick(&mut self) -> Moment {
        self.now += 10;
        Duration::from_millis(self.now)
    }

    pub(super) fn micros(&self) -> i64 {
        BEGAN_AT_MICROS + i64::try_from(self.now * 1_000).unwrap()
    }

    pub(super) fn rows(&mut self, name: (&str, &str)) -> &mut StreamRows {
        let name = StreamName::new(name.0, name.1);
        self.history.database.streams.iter_mut().find(|rows| rows.stream == name).unwrap()
    }

    /// Brings commands into a stream; those of a key that is there stay where they are.
    pub(super) fn enqueue(&mut self, name: (&str, &str), way: Way, keys: &[&str]) {
        let began = self.tick();
        self.now += 5;
        let places = keys.iter().map(|key| self.store(name, key)).collect();
        self.call(name, way, keys, began, CallAnswer::Acknowledged(places));
    }

    pub(super) fn call(
        &mut self,
        name: (&str, &str),
        way: Way,
        keys: &[&str],
        began: Moment,
        answer: CallAnswer,
    ) {
        let item = |key: &&str| Item {
            key: (*key).to_owned(),
            kind: "job.run".to_owned(),
            run_id: run_id(key),
            body: sha256(&[body(key).as_bytes()]),
        };
        let call = Call {
            stream: StreamName::new(name.0, name.1),
            producer: "producer".to_owned(),
            way,
            items: keys.iter().map(item).collect(),
            began,
            ended: self.tick(),
            answer,
        };
        self.history.calls.push(call);
    }

    pub(super) fn store(&mut self, name: (&str, &str), key: &str) -> Place {
        let rows = self.rows(name);
        let command_id = chain::id(&rows.stream, key);
        if let Some(row) = rows.commands.iter().find(|row| row.command_id == command_id) {
            return Place { command_id, seq: row.seq, new: false };
        }
        rows.last_seq += 1;
        let mut row = CommandRow {
            seq: rows.last_seq,
            command_id: command_id.clone(),
            key: key.to_owned(),
            kind: "job.run".to_owned(),
            run_id: run_id(key),
            not_after: None,
            digest: Digest::ZERO,
            chain_digest: Digest::ZERO,
            body: Some(body(key)),
        };
        row.digest = chain::digest(&row).unwrap();
        row.chain_digest = sha256(&[rows.last_digest.as_bytes(), row.digest.as_bytes()]);
        rows.last_digest = row.chain_digest;
        rows.commands.push(row);
        Place { command_id, seq: rows.last_seq, new: true }
    }

    /// Opens a session in the database; gives its generation.
    pub(super) fn take_over(&mut self, name: (&str, &str), session_id: &str) -> u64 {
        let at = self.micros();
        let events = &self.history.database.events;
        let seq = events.iter().filter(|event| event.site == name.0).count() as u64 + 1;
        self.history.database.events.push(EventRow {
            site: name.0.to_owned(),
            seq,
            kind: "commands.session.opened".to_owned(),
            environment: name.1.to_owned(),
            subject: session_id.to_owned(),
        });
        let rows = self.rows(name);
        if let Some(last) = rows.sessions.last_mut() {
            last.superseded_at_micros = Some(at);
        }
        rows.generation += 1;
        rows.session_id = Some(session_id.to_owned());
        rows.sessions.push(SessionRow {
            generation: rows.generation,
            session_id: session_id.to_owned(),
            opened_at_micros: at,
            superseded_at_micros: None,
        });
        rows.generation
    }

    /// Ends the command that is due with a result's text.
    pub(super) fn end(&mut self, name: (&str, &str), text: &str, output: Option<Digest>) {
        let at = self.micros();
        let rows = self.rows(name);
        rows.done_seq += 1;
        let seq = rows.done_seq;
        rows.results.push(ResultRow {
            seq,
            digest: sha256(&[text.as_bytes()]),
            outcome: outcome_of(text),
            generation: rows.generation,
            received_at_micros: at,
            output,
            body: Some(text.to_owned()),
        });
        rows.outputs.extend(output.map(|digest| OutputRow { seq, digest, bytes: digest }));
    }

    pub(super) fn start_agent(&mut self) {
        let started = self.tick();
        self.history.processes.push(ProcessRun {
            program: Program::Agent(StreamName::new(AGENT.0, AGENT.1)),
            started,
            clock_ahead_seconds: 0,
            lines: Vec::new(),
            exit: None,
        });
        self.log("agent.starting", json!({}));
    }

    pub(super) fn kill_agent(&mut self) {
        let at = self.tick();
        let exit = ExitNote { at, exit: Exit::Signal(9), by_the_lane: true };
        self.history.processes.last_mut().unwrap().exit = Some(exit);
    }

    /// Adds a line to the agent's log.
    pub(super) fn log(&mut self, message: &str, fields: Value) {
        let at = self.tick();
        let time = chrono::DateTime::from_timestamp_micros(self.micros()).unwrap();
        let mut line = json!({"timestamp": time.to_rfc3339(), "message": message});
        line.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let line = LogLine { at, text: line.to_string() };
        self.history.processes.last_mut().unwrap().lines.push(line);
    }

    pub(super) fn agent_opens(&mut self, session_id: &str) {
        let generation = self.take_over(AGENT, session_id);
        let done_seq = self.rows(AGENT).done_seq;
        let fields = json!({"session.id": session_id, "session.generation": generation,
            "command.seq": done_seq});
        self.log("session.opened", fields);
        self.log("runtime.started", json!({"command.seq": done_seq}));
        self.told = done_seq;
    }

    /// The handler begins; gives the command's place, id and key.
    pub(super) fn handler_begins(&mut self, try_number: u32) -> (u64, String, String) {
        let rows = self.rows(AGENT);
        let row = &rows.commands[usize::try_from(rows.done_seq).unwrap()];
        let (seq, id, key) = (row.seq, row.command_id.clone(), row.key.clone());
        self.receive(seq, &id);
        self.note(seq, try_number, &id, None);
        (seq, id, key)
    }

    fn receive(&mut self, seq: u64, id: &str) {
        if seq > self.told {
            self.told = seq;
            self.log("command.received", json!({"command.seq": seq, "command.id": id}));
        }
    }

    pub(super) fn note(&mut self, seq: u64, try_number: u32, id: &str, answer: Option<&str>) {
        let at = Some(self.tick());
        let answer = answer.map(str::to_owned);
        let run = HandlerRun { seq, try_number, command_id: id.to_owned(), answer, at };
        self.history.runs[0].1.push(run);
    }

    /// Runs the command that is due, as the given try, to its receipt.
    pub(super) fn agent_works(&mut self, try_number: u32) {
        let (seq, id, key) = self.handler_begins(try_number);
        let sha = sha256(&[id.as_bytes(), &try_number.to_be_bytes()]).to_string();
        self.note(seq, try_number, &id, Some(&sha));
        let outcome = if key.contains("fail") { "failed" } else { "succeeded" };
        let output = run_id(&key).map(|_| sha256(&[b"private ", sha.as_bytes()]));
        let mut result = json!({"outcome": outcome, "output": {"sha256": sha}});
        if let Some(output) = output {
            result["privateOutput"] = output.to_string().into();
        }
        let result = result.to_string();
        let digest = self.rows(AGENT).commands[usize::try_from(seq).unwrap() - 1].digest;
        self.history.journals[0].1.push(JournalEntry {
            command_id: id,
            seq,
            digest,
            tries: try_number,
            result: Some(result),
            received: true,
        });
        self.agent_answers(output);
    }

    /// Sends what the journal has for the command that is due.
    pub(super) fn agent_answers(&mut self, output: Option<Digest>) {
        let rows = self.rows(AGENT);
        let row = &rows.commands[usize::try_from(rows.done_seq).unwrap()];
        let (seq, id) = (row.seq, row.command_id.clone());
        self.receive(seq, &id);
        let entry = self.history.journals[0].1.iter_mut().find(|entry| entry.command_id == id);
        let entry = entry.unwrap();
        entry.seq = seq;
        let (text, tries) = (entry.result.clone().unwrap(), entry.tries);
        self.end(AGENT, &text, output);
        let fields = json!({"command.seq": seq, "command.id": id, "command.try_number": tries,
            "command.outcome": serde_json::to_value(outcome_of(&text)).unwrap()});
        self.log("command.answered", fields);
    }

    pub(super) fn back_up(&mut self) {
        let at = self.tick();
        self.backup = Some((at, self.history.database.clone()));
    }

    pub(super) fn restore(&mut self) {
        let (backup_began, database) = self.backup.take().unwrap();
        let restore_began = self.tick();
        self.history.database = database;
        let restore_ended = self.tick();
        self.history.restores.push(Restore { backup_began, restore_began, restore_ended });
    }
}

fn outcome_of(text: &str) -> Outcome {
    let value: Value = serde_json::from_str(text).unwrap();
    serde_json::from_value(value["outcome"].clone()).unwrap()
}

fn body(key: &str) -> String {
    let what = ["fail", "private"].into_iter().find(|what| key.contains(what)).unwrap_or("quick");
    format!(r#"{{"do":"{what}","ms":0,"text":"{key}"}}"#)
}

fn run_id(key: &str) -> Option<String> {
    key.contains("private").then(|| format!("run-{key}"))
}
