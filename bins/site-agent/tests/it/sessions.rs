//! Whose stream it is: a session a start, and the end of one that was taken over.

use std::time::Instant;

use rustix::process::Signal;
use serde_json::{Value, json};
use test_support::{Peer, Reply, TestCa, eventually};

use crate::{
    LONG,
    agent::{Agent, agent, exit_code, wait_for_event},
    stream::Stream,
};

fn session_requests(peer: &Peer) -> Vec<Value> {
    let received = peer.received();
    let sessions = received.iter().filter(|request| request.method == "POST");
    sessions.map(|request| serde_json::from_slice(&request.body).unwrap()).collect()
}

#[tokio::test]
async fn each_start_opens_a_session_of_its_own_and_every_call_carries_it() {
    let stream = Stream::of(1);
    let served = stream.clone();
    let (agent, peer) = agent("echo 1", move |request| served.answer(request)).await;
    for start in 1..=2 {
        let process = agent.start();
        let opened = wait_for_event(&process, "message", "session.opened").await;
        assert_eq!(opened["session.generation"], start + 1);
        wait_for_event(&process, "message", "runtime.started").await;
        stream.wait_for_results(start).await;
        process.signal(Signal::TERM);
        assert_eq!(exit_code(&process).await, Some(0));
        stream.push("cmd_2", |_| ());
    }
    let sessions = session_requests(&peer);
    assert_eq!(sessions.len(), 2);
    assert_eq!(sessions[0]["expectedGeneration"], 1);
    assert_eq!(sessions[1]["expectedGeneration"], 2, "the journal knows it");
    assert_ne!(sessions[0]["sessionId"], sessions[1]["sessionId"]);
    let mut current = json!(null);
    for request in peer.received() {
        if request.method == "POST" {
            let session: Value = serde_json::from_slice(&request.body).unwrap();
            current = session["sessionId"].clone();
        } else {
            assert_eq!(json!(request.headers["runtime-session"]), current);
        }
    }
}

#[tokio::test]
async fn an_agent_that_expects_another_generation_takes_the_one_that_it_is_told() {
    let stream = Stream::of(1);
    (0..3).for_each(|_| stream.taken_over());
    let served = stream.clone();
    let (agent, peer) = agent("echo 1", move |request| served.answer(request)).await;
    let process = agent.start();
    stream.wait_for_results(1).await;
    let expected: Vec<_> =
        session_requests(&peer).iter().map(|s| s["expectedGeneration"].clone()).collect();
    assert_eq!(expected, [json!(1), json!(4)]);
    let told = wait_for_event(&process, "message", "session.expectation_corrected").await;
    assert_eq!(told["session.generation"], 4);
}

#[tokio::test]
async fn a_session_whose_answer_was_lost_is_asked_for_again_and_is_one() {
    let stream = Stream::of(1);
    let served = stream.clone();
    let mut lose = true;
    let (agent, peer) = agent("echo 1", move |request| match served.answer(request) {
        Reply::Whole { .. } if std::mem::take(&mut lose) => Reply::Cut(Vec::new()),
        reply => reply,
    })
    .await;
    let process = agent.start();
    let opened = wait_for_event(&process, "message", "session.opened").await;
    assert_eq!(opened["session.generation"], 2);
    let sessions = session_requests(&peer);
    assert_eq!(sessions.len(), 2);
    assert_eq!(sessions[0], sessions[1]);
    stream.wait_for_results(1).await;
}

#[tokio::test]
async fn a_session_that_was_taken_over_before_its_answer_came_is_not_taken_back() {
    let stream = Stream::of(1);
    let served = stream.clone();
    let mut lose = true;
    let (agent, _peer) = agent("echo 1", move |request| match served.answer(request) {
        Reply::Whole { .. } if std::mem::take(&mut lose) => {
            served.taken_over();
            Reply::Cut(Vec::new())
        }
        reply => reply,
    })
    .await;
    let process = agent.start();
    assert_eq!(exit_code(&process).await, Some(76));
    let alarm = wait_for_event(&process, "alarm.name", "taken_over").await;
    assert_eq!(alarm["problem.code"], "session_superseded");
}

#[tokio::test]
async fn a_runtime_that_was_taken_over_ends_with_76_at_its_next_call() {
    for at in ["poll", "store_result", "store_output"] {
        let stream = Stream::made(1, |command| command.run_id = Some("run-1".to_owned()));
        let served = stream.clone();
        let (agent, peer) = agent("echo 1 > $SITE_AGENT_OUTPUT_FILE", move |request| {
            let call = match request.method.as_str() {
                "GET" => "poll",
                "PUT" if request.target.contains("/outputs/") => "store_output",
                "PUT" => "store_result",
                _ => "open_session",
            };
            if call == at {
                served.taken_over();
            }
            served.answer(request)
        })
        .await;
        let process = agent.start();
        assert_eq!(exit_code(&process).await, Some(76), "{at}");
        let alarm = wait_for_event(&process, "message", "runtime.taken_over").await;
        assert_eq!(
            (&alarm["alarm.name"], &alarm["call.name"], &alarm["problem.code"]),
            (&json!("taken_over"), &json!(at), &json!("stale_generation"))
        );
        assert_eq!(session_requests(&peer).len(), 1, "it is not taken back");
        assert!(stream.results().is_empty());
    }
}

#[tokio::test]
async fn a_runtime_whose_successor_answers_the_same_does_not_run_beside_it() {
    let stream = Stream::of(3);
    let served = stream.clone();
    let mut taken_over = false;
    let (agent, _peer) = agent("echo $SEQ >> $DIR/runs; echo 1", move |request| {
        if request.method == "PUT" && !std::mem::replace(&mut taken_over, true) {
            served.taken_over();
            served.answer_due(&request.body);
        }
        served.answer(request)
    })
    .await;
    let process = agent.start();
    assert_eq!(exit_code(&process).await, Some(76));
    assert_eq!(
        agent.lines("runs"),
        ["1"],
        "a repetition is answered without a look at the session"
    );
}

#[tokio::test]
async fn a_runtime_whose_command_was_voided_does_not_run_the_next_beside_its_successor() {
    let stream = Stream::of(3);
    let served = stream.clone();
    let mut taken_over = false;
    let (agent, _peer) = agent("echo $SEQ >> $DIR/runs; echo 1", move |request| {
        if request.method == "PUT" && !std::mem::replace(&mut taken_over, true) {
            served.taken_over();
            served.void_due();
        }
        served.answer(request)
    })
    .await;
    let process = agent.start();
    assert_eq!(exit_code(&process).await, Some(76));
    assert_eq!(agent.lines("runs"), ["1"], "a void is told without a look at the session");
}

#[tokio::test]
async fn of_runtimes_that_start_at_the_same_time_the_last_to_open_a_session_stays() {
    let stream = Stream::of(1);
    let served = stream.clone();
    let ca = TestCa::new();
    let peer = Peer::start(&ca, move |request| served.answer(request)).await;
    let agents: Vec<_> = (0..4).map(|_| Agent::new(&ca, peer.origin(), "sleep 1000")).collect();
    let processes: Vec<_> = agents.iter().map(Agent::start).collect();
    let ended = || processes.iter().filter(|process| process.exit().is_some()).count();
    let three = async || (ended() == 3).then_some(());
    eventually(LONG, "three of the four to end", three).await;
    let polls = peer.received().len();
    let watched = async || (peer.received().len() > polls + 3).then_some(());
    eventually(LONG, "the fourth to watch on", watched).await;
    let mut generations = Vec::new();
    for process in &processes {
        let opened = wait_for_event(process, "message", "session.opened").await;
        generations.push(opened["session.generation"].as_u64().unwrap());
        if process.exit().is_some() {
            assert_eq!(exit_code(process).await, Some(76));
        } else {
            assert_eq!(generations.last(), Some(&5));
        }
    }
    generations.sort_unstable();
    assert_eq!(generations, [2, 3, 4, 5], "each took the stream once");
}

#[tokio::test]
async fn a_running_handler_is_ended_when_the_stream_is_taken_over() {
    let stream = Stream::of(1);
    let served = stream.clone();
    let script = "trap 'echo tidy > $DIR/tidy; exit 0' TERM
        echo up > $DIR/up; sleep 1000 & wait";
    let (agent, _peer) = agent(script, move |request| served.answer(request)).await;
    let process = agent.start();
    agent.wait_for_file("up").await;
    stream.taken_over();
    assert_eq!(exit_code(&process).await, Some(76));
    let alarm = wait_for_event(&process, "alarm.name", "taken_over").await;
    assert_eq!(alarm["call.name"], "watch");
    assert_eq!(agent.lines("tidy"), ["tidy"]);
    assert!(!agent.path("state/handler").exists());
    assert!(stream.results().is_empty());
}

#[tokio::test]
async fn a_running_handler_is_ended_also_where_a_database_was_restored_before_the_take_over() {
    let stream = Stream::of(0);
    let served = stream.clone();
    let mut backup = None;
    let (agent, _peer) = agent("[ $SEQ = 2 ] && { echo up > $DIR/up; sleep 1000; }", {
        move |request| {
            if request.method == "GET" && backup.is_none() {
                backup = Some(served.backup());
                served.push_all(&["cmd_1", "cmd_2"]);
            }
            if request.target.contains("limit=0")
                && served.results().len() == 1
                && let Some(backup) = backup.take()
            {
                // The agent's place is above the end, and what is told of that comes first.
                served.restore(backup);
            }
            served.answer(request)
        }
    })
    .await;
    let process = agent.start();
    let refused = wait_for_event(&process, "call.name", "watch").await;
    assert_eq!(refused["problem.code"], "cursor_ahead");
    stream.taken_over();
    assert_eq!(exit_code(&process).await, Some(76));
}

#[tokio::test]
async fn a_busy_stream_costs_one_call_a_command() {
    let stream = Stream::of(7);
    let served = stream.clone();
    let (agent, peer) = agent("echo 1", move |request| served.answer(request)).await;
    let _process = agent.start_with(&["--limit", "2"]);
    stream.wait_for_results(7).await;
    let parked = async || (peer.received().len() >= 10).then_some(());
    eventually(LONG, "the last poll", parked).await;
    let calls: Vec<_> = peer
        .received()
        .iter()
        .map(|request| match request.method.as_str() {
            "POST" => "session",
            "GET" => "poll",
            _ if request.target.contains("?next=2&wait=0") => "result and next",
            _ => "result",
        })
        .collect();
    let pair = ["result", "result and next"];
    let expected =
        [&["session", "poll"][..], &pair, &pair, &pair, &["result and next", "poll"]].concat();
    assert_eq!(calls, expected);
}

#[tokio::test]
async fn a_page_that_grew_old_is_replaced_by_the_next_result() {
    let stream = Stream::of(3);
    let served = stream.clone();
    // A cancel that came after the page: a handler this quick is hardly watched.
    let mut cancelled = false;
    let (agent, peer) = agent("[ $SEQ = 1 ] && sleep 1.1; echo 1", move |request| {
        if request.method == "PUT" && !std::mem::replace(&mut cancelled, true) {
            served.cancel(3);
        }
        served.answer(request)
    })
    .await;
    let _process = agent.start();
    stream.wait_for_results(3).await;
    let first = peer.received().into_iter().find(|request| request.method == "PUT").unwrap();
    assert!(first.target.contains("?next="), "{}", first.target);
    assert_eq!(stream.outputs(), ["1", "1", ""]);
}

#[tokio::test]
async fn a_page_that_grew_old_while_a_result_could_not_be_sent_is_not_gone_on_with() {
    let stream = Stream::of(2);
    let served = stream.clone();
    let mut first = None;
    let (agent, _peer) = agent("echo $SEQ >> $DIR/runs; echo 1", move |request| {
        if request.method == "PUT" {
            let first = *first.get_or_insert_with(|| {
                served.cancel(2);
                Instant::now()
            });
            // Longer than a page is gone on with.
            if first.elapsed().as_secs() < 6 {
                return Reply::html(503);
            }
        }
        served.answer(request)
    })
    .await;
    let _process = agent.start();
    stream.wait_for_results(2).await;
    assert_eq!(agent.lines("runs"), ["1"]);
    assert_eq!(stream.results()[1].detail.as_deref(), Some("cancelled before it was started"));
}

#[tokio::test]
async fn a_certificate_that_nobody_vouches_for_is_an_alarm() {
    let peer = Peer::start(&TestCa::new(), |_| Reply::Silence).await;
    let agent = Agent::new(&TestCa::new(), peer.origin(), "");
    let process = agent.start();
    let alarm = wait_for_event(&process, "alarm.name", "call_refused").await;
    assert_eq!((&alarm["call.name"], &alarm["level"]), (&json!("open_session"), &json!("ERROR")));
    let error = alarm["error"].as_str().unwrap();
    assert!(error.contains("certificate"), "{error}");
    assert!(process.exit().is_none(), "it goes on when the certificate is right again");
}
