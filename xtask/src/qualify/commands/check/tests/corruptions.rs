//! What can go wrong, one at a time, and the rule that has to see it.

use std::time::Duration;

use serde_json::json;
use site_protocol::Digest;
use test_support::process::Exit;

use super::{
    super::{chain, findings::Rule},
    model::{AGENT, LINKED},
};
use crate::qualify::commands::history::{
    Answer, Call, CallAnswer, EventRow, HandlerRun, History, LogLine, Moment, OpenedSession, Page,
    Place, ProcessRun, Program, Refused, Request, SendResult, SendResults, StoredResult,
    StreamName, StreamRows, Told, VoidRow, sha256,
};

type Corruption = (&'static str, Rule, fn(&mut History));

fn other() -> Digest {
    Digest::from_bytes([9; 32])
}

#[rustfmt::skip]
pub(super) const ALL: &[Corruption] = &[
    ("the head is beyond the last command", Rule::NoGap, |h| rows(h, AGENT).last_seq += 1),
    ("a command has no body", Rule::NoGap, |h| rows(h, AGENT).commands[0].body = None),
    ("two calls are swapped", Rule::Order, |h| {
        let (first, second) = (times(call(h, "a1")), times(call(h, "a5")));
        set_times(call(h, "a1"), second);
        set_times(call(h, "a5"), first);
    }),
    ("two of a list are swapped", Rule::Lists, |h| {
        let call = call(h, "a2");
        call.items.swap(0, 1);
        places(call).swap(0, 1);
    }),
    ("an acknowledged command is not there", Rule::NoLoss, |h| {
        let mut ghost = call(h, "l6").clone();
        ghost.items[0].key = "ghost".to_owned();
        let command_id = chain::id(&ghost.stream, "ghost");
        places(&mut ghost)[0] = Place { command_id, seq: 7, new: true };
        later(h, &mut ghost);
    }),
    ("a command stands elsewhere than was acknowledged", Rule::NoLoss, |h| {
        places(last_call(h, "a8"))[0].seq = 12;
    }),
    ("a command was stored again", Rule::NoLoss, |h| {
        let mut again = last_call(h, "l6").clone();
        later(h, &mut again);
    }),
    ("what was rolled back is there", Rule::NothingElse, |h| {
        call(h, "a5").answer = CallAnswer::Refused("rolled back".to_owned());
    }),
    ("what nobody asked for is there", Rule::NothingElse, |h| {
        h.calls.retain(|call| call.items[0].key != "a5");
    }),
    ("another body is there", Rule::NothingElse, |h| call(h, "a5").items[0].body = other()),
    ("a link of the chain is broken", Rule::Chain, |h| rows(h, AGENT).commands[2].chain_digest = other()),
    ("the chain is computed from an old end", Rule::Chain, |h| {
        let rows = rows(h, AGENT);
        let digest = rows.commands[9].digest;
        let chain = sha256(&[rows.commands[7].chain_digest.as_bytes(), digest.as_bytes()]);
        (rows.commands[9].chain_digest, rows.last_digest) = (chain, chain);
    }),
    ("a digest is another's", Rule::Chain, |h| h.journals[0].1[0].digest = other()),
    ("a session begins elsewhere in the chain", Rule::Chain, |h| session(h, 1).done_digest = other()),
    ("a stream stands still for two minutes", Rule::Progress, |h| {
        h.end.faults_stopped += Duration::from_secs(120);
        h.end.recovered = h.end.recovered.map(|at| at + Duration::from_secs(120));
    }),
    ("a command has two results", Rule::OneEnding, |h| {
        let rows = rows(h, AGENT);
        let again = rows.results[0].clone();
        rows.results.insert(1, again);
    }),
    ("a command has two endings", Rule::OneEnding, |h| {
        rows(h, AGENT).voids.push(VoidRow { seq: 1, reason: "operator".to_owned() });
        let subject = rows(h, AGENT).commands[0].command_id.clone();
        h.database.events.push(EventRow {
            site: AGENT.0.to_owned(),
            seq: 4,
            kind: "commands.command.voided".to_owned(),
            environment: AGENT.1.to_owned(),
            subject,
        });
    }),
    ("a result was stored twice", Rule::OneEnding, |h| receipt(h, 1).new = true),
    ("a result is that of no run", Rule::NotedRuns, |h| {
        h.runs[0].1[1].answer = Some("another".to_owned());
    }),
    ("nobody sent the result that is there", Rule::NotedRuns, |h| {
        for request in &mut h.requests {
            let Told::Results(sent, _) = &mut request.told else { continue };
            for result in sent.results.iter_mut().filter(|result| result.seq == 6) {
                result.digest = other();
            }
        }
    }),
    ("a failure became a success", Rule::NotedRuns, |h| {
        let row = &mut rows(h, AGENT).results[1];
        let text = row.body.as_ref().unwrap().replace("succeeded", "failed");
        (row.digest, row.outcome) = (sha256(&[text.as_bytes()]), site_protocol::Outcome::Failed);
        row.body = Some(text.clone());
        h.journals[0].1[1].result = Some(text);
        replace_in_log(h, 0, "command.answered", 1, "succeeded", "failed");
    }),
    ("a receipt from before the backup is lost", Rule::ReceiptsKept, |h| ghost_receipt(h, 0)),
    ("a receipt that the restore took back did not come again", Rule::ReceiptsKept, |h| ghost_receipt(h, 1)),
    ("a result was stored after its receipt", Rule::ReceiptsKept, |h| {
        rows(h, LINKED).results[5].received_at_micros += 5_000_000;
    }),
    ("a session is told less than was acknowledged", Rule::ReceiptsKept, |h| {
        let digest = rows(h, LINKED).commands[0].chain_digest;
        (session(h, 1).done_seq, session(h, 1).done_digest) = (1, digest);
    }),
    ("a result is due again", Rule::ReceiptsKept, |h| {
        add_line(h, 0, &json!({"message": "runtime.recovering", "command.seq": 3}));
    }),
    ("other bytes are stored", Rule::ReceiptsTrue, |h| rows(h, AGENT).results[0].digest = other()),
    ("a receipt is for another result", Rule::ReceiptsTrue, |h| receipt(h, 1).digest = other()),
    ("an output is gone", Rule::Outputs, |h| rows(h, AGENT).outputs.clear()),
    ("an output has other bytes", Rule::Outputs, |h| rows(h, AGENT).outputs[0].bytes = other()),
    ("predecessor_missing contradicts itself", Rule::Verdicts, |h| refusal(h, 4).done_seq = Some(3)),
    ("predecessor_missing although the receipt was there", Rule::Verdicts, |h| {
        refuse_late(h);
    }),
    ("stale_generation without a newer session", Rule::Verdicts, |h| {
        let writer = &mut results(sent(h, 3, false)).writer;
        (writer.generation, writer.session_id) = (3, Some("session-of-linked-2".to_owned()));
    }),
    ("stale_generation by an older one", Rule::Verdicts, |h| refusal(h, 3).generation = Some(1)),
    ("result_conflict for the same bytes", Rule::Verdicts, |h| {
        let digest = results(sent(h, 4, false)).results[0].digest;
        refuse(h, "result_conflict", Some(digest));
    }),
    ("result_conflict with a result that nobody sent", Rule::Verdicts, |h| {
        refuse(h, "result_conflict", Some(other()));
    }),
    ("not_found for a command that is there", Rule::Verdicts, |h| {
        refuse(h, "not_found", None);
    }),
    ("history_diverged without a restore", Rule::Verdicts, |h| {
        refuse(h, "history_diverged", None);
    }),
    ("output_missing although it was stored", Rule::Verdicts, |h| {
        refuse(h, "output_missing", None);
        refuse_late(h);
    }),
    ("a Runtime is not let in", Rule::Verdicts, |h| {
        refuse(h, "unauthenticated", None);
    }),
    ("an agent's predecessor is missing", Rule::Verdicts, |h| {
        add_line(h, 0, &json!({"message": "call.failed", "call.name": "store_result",
            "problem.code": "predecessor_missing"}));
    }),
    ("an agent's stream is another without a restore", Rule::Verdicts, |h| {
        add_line(h, 0, &json!({"message": "runtime.recovering", "problem.code": "history_diverged"}));
    }),
    ("a writer that was taken over stores a result", Rule::Superseded, |h| {
        let writer = &mut results(sent(h, 3, true)).writer;
        (writer.generation, writer.session_id) = (2, Some("session-of-linked-1".to_owned()));
    }),
    ("a writer that was taken over reads a page", Rule::Superseded, |h| {
        let poll = |request: &&mut Request| matches!(&request.told, Told::Poll(_, Answer::Refused(_)));
        let request = h.requests.iter_mut().find(poll).unwrap();
        let Told::Poll(_, answer) = &mut request.told else { unreachable!() };
        *answer = Answer::Good(Page { next_after: 2, last_seq: 5, superseded: true, head_seq: Some(3), ..Page::default() });
    }),
    ("a result is of a generation before that of an earlier one", Rule::Superseded, |h| {
        rows(h, LINKED).results[3].generation = 1;
    }),
    ("a generation goes down", Rule::Generations, |h| session(h, 2).generation = 3),
    ("a session has no event", Rule::Sessions, |h| { h.database.events.pop(); }),
    ("a session is gone", Rule::Sessions, |h| { rows(h, AGENT).sessions[0].session_id = "another".into(); h.database.events[0].subject = "another".into(); }),
    ("a page leaves a command out", Rule::Pages, |h| { page(h, 0).commands.remove(1); }),
    ("a page is empty although commands are there", Rule::Pages, |h| {
        *page(h, 0) = Page { last_seq: 5, head_seq: Some(1), ..Page::default() };
    }),
    ("a page ends before what is there", Rule::Pages, |h| page(h, 0).last_seq = 4),
    ("a page has another command in a place", Rule::Pages, |h| {
        let page = page(h, 0);
        let id = page.commands[0].command_id.clone();
        page.commands[1].command_id = id;
        page.commands[1].digest = page.commands[0].digest;
    }),
    ("a page contradicts itself", Rule::Pages, |h| {
        let poll = |request: &&mut Request| matches!(&request.told, Told::Poll(..));
        let request = h.requests.iter_mut().find(poll).unwrap();
        let Told::Poll(_, answer) = &mut request.told else { unreachable!() };
        *answer = Answer::Broken("a gap".to_owned());
    }),
    ("an agent is not brought a command", Rule::Pages, |h| {
        let received = |line: &LogLine| line.text.contains("command.received");
        let at = h.processes[0].lines.iter().position(received).unwrap();
        h.processes[0].lines.remove(at);
    }),
    ("a run is not announced as a repeat", Rule::Repeats, |h| {
        for run in h.runs[0].1.iter_mut().filter(|run| run.try_number == 2) {
            run.try_number = 1;
        }
    }),
    ("a handler runs after its receipt", Rule::AfterReceipt, |h| {
        let id = rows(h, AGENT).commands[9].command_id.clone();
        let at = Some(h.end.recovered.unwrap());
        h.runs[0].1.push(HandlerRun { seq: 10, try_number: 2, command_id: id, answer: None, at });
    }),
    ("two handlers run at once", Rule::OneAtATime, |h| h.runs[0].1.swap(1, 2)),
    ("handlers run out of order", Rule::OneAtATime, |h| {
        h.runs[0].1.swap(0, 2);
        h.runs[0].1.swap(1, 3);
    }),
    ("an agent ends by itself", Rule::Programs, |h| h.processes[0].exit.as_mut().unwrap().by_the_lane = false),
    ("an agent that is asked to end says that it was taken over", Rule::Programs, |h| {
        h.processes[0].exit.as_mut().unwrap().exit = Exit::Code(76);
    }),
    ("a program panics", Rule::Programs, |h| add_line(h, 0, &json!({"message": "process.panicked"}))),
    ("a request meets a fault", Rule::NoFault, |h| {
        let text = json!({"message": "request.answered", "http.status": 500}).to_string();
        h.processes.push(ProcessRun {
            program: Program::Listener { site: "lab-a".to_owned(), number: 1 },
            started: Moment::ZERO,
            clock_ahead_seconds: 0,
            lines: vec![LogLine { at: Moment::ZERO, text }],
            exit: None,
        });
    }),
    ("it takes too long to recover", Rule::Recovered, |h| h.end.bound = Duration::ZERO),
    ("a command has no ending", Rule::Recovered, |h| h.end.recovered = None),
];

fn rows<'a>(history: &'a mut History, name: (&str, &str)) -> &'a mut StreamRows {
    let name = StreamName::new(name.0, name.1);
    history.database.streams.iter_mut().find(|rows| rows.stream == name).unwrap()
}

/// The first call for a key.
fn call<'a>(history: &'a mut History, key: &str) -> &'a mut Call {
    history.calls.iter_mut().find(|call| call.items[0].key == key).unwrap()
}

fn last_call<'a>(history: &'a mut History, key: &str) -> &'a mut Call {
    history.calls.iter_mut().rfind(|call| call.items[0].key == key).unwrap()
}

fn places(call: &mut Call) -> &mut Vec<Place> {
    let CallAnswer::Acknowledged(places) = &mut call.answer else { panic!("not acknowledged") };
    places
}

fn times(call: &Call) -> (Moment, Moment) {
    (call.began, call.ended)
}

fn set_times(call: &mut Call, (began, ended): (Moment, Moment)) {
    (call.began, call.ended) = (began, ended);
}

/// Adds a call at the end.
fn later(history: &mut History, call: &mut Call) {
    let at = history.end.recovered.unwrap();
    set_times(call, (at, at + Duration::from_millis(1)));
    history.calls.push(call.clone());
}

fn session(history: &mut History, index: usize) -> &mut OpenedSession {
    let sessions = history.requests.iter_mut().filter_map(|request| match &mut request.told {
        Told::Session(_, Answer::Good(session)) => Some(session),
        _ => None,
    });
    sessions.into_iter().nth(index).unwrap()
}

fn page(history: &mut History, index: usize) -> &mut Page {
    let pages = history.requests.iter_mut().filter_map(|request| match &mut request.told {
        Told::Poll(_, Answer::Good(page)) => Some(page),
        _ => None,
    });
    pages.into_iter().nth(index).unwrap()
}

/// A call of results whose first stands at a place and has such an answer.
fn sent(history: &mut History, seq: u64, good: bool) -> &mut Request {
    let is_it =
        |result: &SendResult| result.seq == seq && matches!(result.answer, Answer::Good(_)) == good;
    let found = |request: &&mut Request| match &request.told {
        Told::Results(sent, _) => is_it(&sent.results[0]),
        _ => false,
    };
    history.requests.iter_mut().find(found).unwrap()
}

fn results(request: &mut Request) -> &mut SendResults {
    let Told::Results(sent, _) = &mut request.told else { panic!("no results") };
    sent
}

fn refusal(history: &mut History, seq: u64) -> &mut Refused {
    match &mut results(sent(history, seq, false)).results[0].answer {
        Answer::Refused(refused) => refused,
        answer => panic!("{answer:?}"),
    }
}

/// Refuses the result of the place 4 with a code.
fn refuse(history: &mut History, code: &str, stored_digest: Option<Digest>) {
    *refusal(history, 4) =
        Refused { status: 409, code: code.to_owned(), stored_digest, ..Refused::default() };
}

/// Moves the refusal of the result of the place 4 to just before it was stored.
fn refuse_late(history: &mut History) {
    let at = sent(history, 4, true).began - Duration::from_millis(5);
    let request = sent(history, 4, false);
    (request.began, request.ended) = (at, at + Duration::from_millis(1));
}

/// The receipt of a repetition.
fn receipt(history: &mut History, seq: u64) -> &mut StoredResult {
    let repeated = history.requests.iter_mut().filter_map(|request| match &mut request.told {
        Told::Results(sent, _) if sent.results[0].seq == seq => match &mut sent.results[0].answer {
            Answer::Good(receipt) if !receipt.new => Some(receipt),
            _ => None,
        },
        _ => None,
    });
    repeated.into_iter().next().unwrap()
}

/// Adds a line at the end of an agent's log.
fn add_line(history: &mut History, process: usize, line: &serde_json::Value) {
    let lines = &mut history.processes[process].lines;
    let at = lines.last().unwrap().at;
    lines.push(LogLine { at, text: line.to_string() });
}

/// A receipt, noted beside the last one, of a command that is not there any more.
fn ghost_receipt(history: &mut History, process: usize) {
    let lines = &mut history.processes[process].lines;
    let answered = |line: &&LogLine| line.text.contains("command.answered");
    let last = if process == 0 {
        lines.iter().rfind(answered)
    } else {
        lines.iter().filter(answered).nth(3)
    };
    let mut line = last.unwrap().clone();
    let at = line.text.find("cmd_").unwrap();
    line.text.replace_range(at..at + 36, "cmd_00000000000000000000000000000000");
    let place = lines.iter().position(|other| other.at > line.at).unwrap_or(lines.len());
    lines.insert(place, line);
}

fn replace_in_log(
    history: &mut History,
    process: usize,
    message: &str,
    nth: usize,
    from: &str,
    to: &str,
) {
    let lines = history.processes[process].lines.iter_mut();
    let line = lines.filter(|line| line.text.contains(message)).nth(nth).unwrap();
    line.text = line.text.replace(from, to);
}
