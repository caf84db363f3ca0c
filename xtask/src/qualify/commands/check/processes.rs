//! Programs: none ends or panics by itself, no request meets a fault of ours, everything recovers.

use std::time::Duration;

use test_support::process::Exit;

use super::findings::{Findings, Rule, moment, span};
use crate::qualify::commands::history::{
    Answer, History, LogLine, ProcessRun, Program, Refused, Request, Told,
};

/// A listener's exit where the database, or its address, can't be had: its supervisor starts it again.
const NOT_TO_BE_HAD: Exit = Exit::Code(69);
/// Longer than a listener waits for it, with all that comes before.
const GIVES_UP_WITHIN: Duration = Duration::from_secs(60);

const KILLED: Exit = Exit::Signal(9);
const TERMINATED: Exit = Exit::Signal(15);

pub(super) fn check(history: &History, findings: &mut Findings) {
    for run in &history.processes {
        findings.count(Rule::Programs, 1);
        exit(history, run, findings);
        lines(run, findings);
    }
    for request in &history.requests {
        findings.count(Rule::NoFault, 1);
        let fault = refusals(request).into_iter().find(|refused| refused.status == 500);
        findings.hold(Rule::NoFault, fault.is_none(), || {
            let at = span(request.began, request.ended);
            format!("{}: {} was told {fault:?} {at}", request.stream, request.sender)
        });
    }
    recovered(history, findings);
}

fn exit(history: &History, run: &ProcessRun, findings: &mut Findings) {
    let Some(note) = run.exit else { return };
    // One that is asked to end does so in good order, or is ended by the next signal.
    let asked = matches!(note.exit, KILLED | TERMINATED | Exit::Code(0 | 75 | 130 | 143));
    if note.by_the_lane && asked {
        return;
    }
    let since = note.at.saturating_sub(GIVES_UP_WITHIN);
    let in_trouble = history.faults.iter().any(|fault| {
        fault.kind_is_of_the_database() && fault.began <= note.at && fault.ended >= since
    });
    let is_listener = matches!(run.program, Program::Listener { .. });
    let again = note.exit == NOT_TO_BE_HAD && is_listener && in_trouble;
    findings.hold(Rule::Programs, again, || {
        let tail: Vec<_> = run.lines.iter().rev().take(3).rev().map(|line| &line.text).collect();
        format!(
            "{}, started at {}, ended at {}: {}; {tail:?}",
            name(&run.program),
            moment(run.started),
            moment(note.at),
            note.exit
        )
    });
}

fn lines(run: &ProcessRun, findings: &mut Findings) {
    let tell = |what: &str, line: &LogLine| {
        format!("{}: {what} at {}: {}", name(&run.program), moment(line.at), line.text)
    };
    for line in &run.lines {
        let has = |text: &str| line.text.contains(text);
        if has("panicked") && !has("\"task.panicked\":false") {
            findings.broken(Rule::Programs, tell("a panic", line));
        }
        if has("\"runtime.own_trouble\"") {
            findings.broken(Rule::Programs, tell("trouble of its own", line));
        }
        if has("\"request.answered\"") {
            findings.count(Rule::NoFault, 1);
            findings.hold(Rule::NoFault, !has("\"http.status\":500"), || tell("a fault", line));
        }
        if has("\"problem.code\":\"internal\"") && has("\"call.failed\"") {
            findings.broken(Rule::NoFault, tell("it was told of a fault", line));
        }
    }
}

fn refusals(request: &Request) -> Vec<&Refused> {
    fn of<T>(answer: &Answer<T>) -> Option<&Refused> {
        match answer {
            Answer::Refused(refused) => Some(refused),
            _ => None,
        }
    }
    match &request.told {
        Told::Session(_, answer) => of(answer).into_iter().collect(),
        Told::Poll(_, answer) => of(answer).into_iter().collect(),
        Told::Output(_, answer) => of(answer).into_iter().collect(),
        Told::Results(sent, answer) => {
            let each = sent.results.iter().filter_map(|result| of(&result.answer));
            of(answer).into_iter().chain(each).collect()
        }
    }
}

fn recovered(history: &History, findings: &mut Findings) {
    let end = &history.end;
    let within = end.recovered.is_some_and(|at| at <= end.faults_stopped + end.bound);
    findings.hold(Rule::Recovered, within, || {
        format!(
            "the faults were over at {}, and {:?} later not everything was well ({:?}): {:?}",
            moment(end.faults_stopped),
            end.bound,
            end.recovered,
            end.missing
        )
    });
    for rows in &history.database.streams {
        findings.count(Rule::Recovered, rows.commands.len());
        let last = rows.commands.last().map_or(0, |row| row.seq);
        findings.hold(Rule::Recovered, rows.done_seq >= last, || {
            format!("{}: {} of {} commands have their ending", rows.stream, rows.done_seq, last)
        });
    }
}

fn name(program: &Program) -> String {
    match program {
        Program::Agent(stream) => format!("the agent of {stream}"),
        Program::Listener { site, number } => format!("listener {number} of {site}"),
    }
}
