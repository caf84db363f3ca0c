//! Answers that the real Site API would not give, or not on demand.

use std::{process::Command, time::Instant};

use serde_json::{Value, json};
use test_support::{Peer, Process, Received, Reply, TestCa};

use crate::{
    agent::{Agent, exit_code, wait_for_event},
    stream::Stream,
};

/// An agent whose handler notes each run and answers with the try, and its peer.
async fn agent(answer: impl FnMut(&Received) -> Reply + Send + 'static) -> (Agent, Peer) {
    let ca = TestCa::new();
    let peer = Peer::start(&ca, answer).await;
    (Agent::new(&ca, peer.origin(), "echo $SEQ >> $DIR/runs; echo $TRY"), peer)
}

fn is_put(request: &Received) -> bool {
    request.method == "PUT"
}

#[tokio::test]
async fn every_passing_trouble_is_sat_out_and_each_handler_runs_once() {
    let stream = Stream::of(8);
    let served = stream.clone();
    let mut number = 0;
    let (agent, _peer) = agent(move |request| {
        number += 1;
        match number {
            1 => Reply::html(503),
            3 => Reply::problem(503, "database_unavailable", true),
            5 => Reply::Cut(Vec::new()),
            7 => Reply::html(404),
            9 => Reply::problem(401, "unauthenticated", false),
            11 => Reply::json(200, "<html>"),
            // The result is stored and the receipt is lost.
            13 if is_put(request) => match served.answer(request) {
                Reply::Whole { body, .. } => Reply::Cut(body),
                reply => reply,
            },
            15 => Reply::problem(403, "site_mismatch", false),
            17 => Reply::problem(500, "internal", true),
            _ => served.answer(request),
        }
    })
    .await;
    let process = agent.start();
    stream.wait_for_results(8).await;
    let runs: Vec<_> = (1..=8).map(|seq| seq.to_string()).collect();
    assert_eq!(agent.lines("runs"), runs);
    assert_eq!(stream.outputs(), vec!["1"; 8]);
    assert!(process.exit().is_none());
    assert!(process.lines().iter().all(|line| !line.text.contains("the-secret")));
}

#[tokio::test]
async fn the_log_says_what_was_received_and_answered() {
    let stream = Stream::of(1);
    let served = stream.clone();
    let (agent, _peer) = agent(move |request| served.answer(request)).await;
    let process = agent.start();
    let received = wait_for_event(&process, "message", "command.received").await;
    assert_eq!((&received["command.id"], &received["command.seq"]), (&json!("cmd_1"), &json!(1)));
    assert!(received["delivery.wait_ms"].as_f64().unwrap() > 1e12, "since 1970: {received}");
    let answered = wait_for_event(&process, "message", "command.answered").await;
    assert_eq!((&answered["command.id"], &answered["command.seq"]), (&json!("cmd_1"), &json!(1)));
    assert_eq!(
        (&answered["command.try_number"], &answered["command.outcome"]),
        (&json!(1), &json!("succeeded"))
    );
    assert!(answered["handler.duration_ms"].as_f64().unwrap() > 0.0, "{answered}");
}

#[tokio::test]
async fn what_the_stream_refuses_for_good_ends_the_agent_with_65_and_an_alarm() {
    for code in ["result_conflict"] {
        let stream = Stream::of(2);
        let (agent, _peer) = agent(move |request| match request.method.as_str() {
            "PUT" => Reply::problem(409, code, false),
            _ => stream.answer(request),
        })
        .await;
        let process = agent.start();
        assert_eq!(exit_code(&process).await, Some(65), "{code}");
        let alarm = wait_for_event(&process, "alarm.name", "stream_refused").await;
        assert_eq!(alarm["problem.code"], code);
        assert_eq!(agent.lines("runs"), ["1"]);
    }
}

#[tokio::test]
async fn a_forged_command_is_never_run() {
    let stream = Stream::of(2);
    let (agent, _peer) = agent(move |request| match stream.answer(request) {
        Reply::Whole { status, body, .. } => {
            let text = String::from_utf8(body).unwrap();
            Reply::json(status, text.replace("{\"a\": 1}", "{\"a\": 2}"))
        }
        reply => reply,
    })
    .await;
    let process = agent.start();
    assert_eq!(exit_code(&process).await, Some(65));
    assert!(agent.lines("runs").is_empty());
}

#[tokio::test]
async fn a_known_command_with_another_digest_ends_the_agent() {
    let (first, second) = (Stream::of(1), Stream::of(1));
    let (agent, _peer) = agent({
        let first = first.clone();
        move |request| if is_put(request) { Reply::Silence } else { first.answer(request) }
    })
    .await;
    let process = agent.start();
    wait_for_event(&process, "message", "command.received").await;
    agent.wait_for_file("runs").await;
    process.kill();
    // The same folder, and a stream in which the same id is another command.
    let journal = std::fs::read_to_string(agent.path("state/journal")).unwrap();
    let line = journal.lines().last().unwrap();
    let record: Value = serde_json::from_str(line).unwrap();
    let digest = record["digest"].as_str().unwrap();
    let other = journal.replace(digest, &"0".repeat(64));
    std::fs::write(agent.path("state/journal"), other).unwrap();
    let process = agent.start();
    assert_eq!(exit_code(&process).await, Some(65));
    wait_for_event(&process, "alarm.name", "command_changed").await;
    assert!(second.results().is_empty());
}

#[tokio::test]
async fn a_rotated_token_is_picked_up_by_an_agent_that_is_refused() {
    let stream = Stream::of(1);
    let served = stream.clone();
    let (agent, _peer) = agent(move |request| {
        if request.headers["authorization"] == "Bearer good" {
            served.answer(request)
        } else {
            Reply::problem(401, "unauthenticated", false)
        }
    })
    .await;
    let process = agent.start();
    wait_for_event(&process, "problem.code", "unauthenticated").await;
    std::fs::write(agent.path("token"), "good\n").unwrap();
    stream.wait_for_results(1).await;
}

#[tokio::test]
async fn a_new_agent_begins_where_the_stream_is_due() {
    for (answered, expected) in [(0, vec!["1", "2", "3"]), (1, vec!["2", "3"]), (2, vec!["3"])] {
        let stream = Stream::of(3).answered_by_another(answered);
        let served = stream.clone();
        let (agent, _peer) = agent(move |request| served.answer(request)).await;
        let _process = agent.start();
        stream.wait_for_results(3).await;
        assert_eq!(agent.lines("runs"), expected);
    }
    let stream = Stream::of(3).answered_by_another(3);
    let (agent, peer) = agent(move |request| stream.answer(request)).await;
    let process = agent.start();
    let started = wait_for_event(&process, "message", "runtime.started").await;
    assert_eq!(started["command.seq"], 3);
    let parked =
        async || peer.received().iter().any(|r| r.target.contains("wait=25")).then_some(());
    test_support::eventually(crate::LONG, "a poll to be parked", parked).await;
    assert!(agent.lines("runs").is_empty());
}

#[tokio::test]
async fn a_command_that_another_runtime_has_answered_is_not_run() {
    let stream = Stream::of(3);
    let served = stream.clone();
    let (agent, _peer) = agent(move |request| served.answer(request)).await;
    std::fs::create_dir(agent.path("state")).unwrap();
    let header = format!("{{\"journal\":1,\"origin\":\"{}\"}}", _peer.origin());
    let zero = "0".repeat(64);
    let cursor = format!("{{\"record\":\"cursor\",\"seq\":0,\"chainDigest\":\"{zero}\"}}");
    std::fs::write(agent.path("state/journal"), format!("{header}\n{cursor}\n")).unwrap();
    let stream = stream.answered_by_another(2);
    let process = agent.start();
    stream.wait_for_results(3).await;
    assert_eq!(agent.lines("runs"), ["3"]);
    assert!(process.exit().is_none());
}

/// Eight polls without a pause take a few milliseconds.
async fn is_not_asked_again_without_a_pause(answer: impl Fn() -> Reply + Send + 'static) {
    let stream = Stream::of(1).answered_by_another(1);
    let (agent, peer) =
        agent(
            move |request| {
                if request.method == "POST" { stream.answer(request) } else { answer() }
            },
        )
        .await;
    let process: Process = agent.start();
    wait_for_event(&process, "message", "runtime.started").await;
    let since = Instant::now();
    let eight = async || (peer.received().len() > 8).then_some(());
    test_support::eventually(crate::LONG, "eight polls", eight).await;
    assert!(since.elapsed().as_millis() > 200, "{:?}", since.elapsed());
}

fn empty_page(superseded: bool) -> Reply {
    let stream = Stream::of(1).answered_by_another(1);
    let request = Received {
        method: "GET".to_owned(),
        target: "/v1/site/commands/?after=1&limit=1&wait=0".to_owned(),
        headers: [("runtime-generation".to_owned(), "1".to_owned())].into(),
        body: Vec::new(),
    };
    let Reply::Whole { body, .. } = stream.answer(&request) else { panic!("it is a page") };
    let mut page: Value = serde_json::from_slice(&body).unwrap();
    if superseded {
        page["superseded"] = json!(true);
    }
    Reply::json(200, page.to_string())
}

#[tokio::test]
async fn a_superseded_poll_backs_off() {
    is_not_asked_again_without_a_pause(|| empty_page(true)).await;
}

#[tokio::test]
async fn an_empty_page_that_comes_at_once_backs_off() {
    is_not_asked_again_without_a_pause(|| empty_page(false)).await;
}

#[tokio::test]
async fn a_missing_predecessor_is_an_alarm_that_backs_off_and_passes() {
    let stream = Stream::of(1);
    let served = stream.clone();
    let mut missing = 7;
    let (agent, peer) = agent(move |request| {
        if is_put(request) && missing > 0 {
            missing -= 1;
            return Reply::problem(409, "predecessor_missing", true);
        }
        served.answer(request)
    })
    .await;
    let since = Instant::now();
    let process = agent.start();
    stream.wait_for_results(1).await;
    assert!(since.elapsed().as_millis() > 200, "{:?}", since.elapsed());
    wait_for_event(&process, "problem.code", "predecessor_missing").await;
    // Each time the stream is looked at again: what is due may have changed.
    let asked: String = peer.received().iter().map(|r| if is_put(r) { 'P' } else { 'g' }).collect();
    assert!(asked.contains(&"gP".repeat(8)) && !asked.contains("PP"), "{asked}");
    assert_eq!(agent.lines("runs"), ["1"]);
}

#[tokio::test]
async fn an_agent_that_was_started_with_sigchld_ignored_still_sees_its_handlers_end() {
    let stream = Stream::of(2);
    let served = stream.clone();
    let (agent, _peer) = agent(move |request| served.answer(request)).await;
    let command = agent.command();
    let mut ignoring = Command::new("env");
    ignoring.arg("--ignore-signal=CHLD").arg(command.get_program()).args(command.get_args());
    ignoring.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let _process = Process::start(ignoring).unwrap();
    stream.wait_for_results(2).await;
    assert_eq!(stream.outputs(), ["1", "1"]);
    assert_eq!(agent.lines("runs"), ["1", "2"]);
}
