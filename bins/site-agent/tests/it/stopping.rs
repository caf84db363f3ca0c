//! Signals.

use std::{process::Command, time::Instant};

use rustix::process::Signal;
use test_support::{Peer, Reply, TestCa, eventually};
use tokio::net::unix::pipe;

use crate::{
    agent::{Agent, exit_code, wait_for_event},
    stream::Stream,
};

async fn agent(stream: &Stream, script: &str) -> Agent {
    let ca = TestCa::new();
    let served = stream.clone();
    let peer = Peer::start(&ca, move |request| served.answer(request)).await;
    Agent::new(&ca, peer.origin(), script)
}

#[tokio::test]
async fn a_parked_poll_does_not_keep_it_from_stopping() {
    for signal in [Signal::TERM, Signal::INT] {
        let agent = agent(&Stream::of(0), "").await;
        let process = agent.start();
        wait_for_event(&process, "message", "runtime.started").await;
        process.signal(signal);
        assert_eq!(exit_code(&process).await, Some(0));
    }
}

#[tokio::test]
async fn a_running_handler_is_ended_and_its_command_has_no_result_until_the_next_start() {
    let stream = Stream::of(2);
    let script = "if [ $SEQ = 1 ] && [ $TRY = 1 ]; then
            trap 'echo tidy > $DIR/tidy; exit 0' TERM
            echo up > $DIR/up; sleep 1000 & wait
        fi
        echo $TRY";
    let agent = agent(&stream, script).await;
    let process = agent.start();
    agent.wait_for_file("up").await;
    process.signal(Signal::TERM);
    assert_eq!(exit_code(&process).await, Some(0));
    assert_eq!(agent.lines("tidy"), ["tidy"]);
    assert!(stream.results().is_empty());
    let _next = agent.start();
    stream.wait_for_results(2).await;
    assert_eq!(stream.outputs(), ["2", "1"]);
}

#[tokio::test]
async fn a_second_signal_ends_it_at_once() {
    let stream = Stream::of(1);
    let agent =
        agent(&stream, "trap '' TERM; echo up > $DIR/up; while :; do sleep 1000; done").await;
    let process = agent.start();
    agent.wait_for_file("up").await;
    process.signal(Signal::TERM);
    wait_for_event(&process, "message", "agent.stopping").await;
    process.signal(Signal::TERM);
    assert_eq!(exit_code(&process).await, Some(143));
    assert!(stream.results().is_empty());
}

#[tokio::test]
async fn a_second_signal_ends_it_also_where_it_hangs() {
    let agent = agent(&Stream::of(1), "").await;
    // A try was cut short, and the note of its handler is a pipe into which nobody writes: it can't
    // be read.
    std::fs::create_dir(agent.path("state")).unwrap();
    let zero = "0".repeat(64);
    let journal = format!(
        "{{\"journal\":1,\"origin\":\"{}\"}}\n{{\"record\":\"started\",\"seq\":1,\
         \"commandId\":\"cmd_1\",\"digest\":\"{zero}\",\"try\":1}}\n",
        agent.origin(),
    );
    std::fs::write(agent.path("state/journal"), journal).unwrap();
    let made = Command::new("mkfifo").arg(agent.path("state/handler")).status().unwrap();
    assert!(made.success());
    let process = agent.start();
    // Opens as soon as the agent reads from the other end, which it then does for ever.
    let reads = async || pipe::OpenOptions::new().open_sender(agent.path("state/handler")).ok();
    let _writer = eventually(crate::LONG, "the agent to read the note", reads).await;
    process.signal(Signal::TERM);
    wait_for_event(&process, "message", "agent.stopping").await;
    process.signal(Signal::TERM);
    assert_eq!(exit_code(&process).await, Some(143));
}

#[tokio::test]
async fn a_leftover_that_does_not_end_does_not_keep_it_from_stopping() {
    let stream = Stream::of(1);
    let agent =
        agent(&stream, "trap '' TERM; echo up > $DIR/up; while :; do sleep 1000; done").await;
    let process = agent.start();
    agent.wait_for_file("up").await;
    process.kill();
    // The handler has five seconds to end, and does not: the next agent is asked to stop in them.
    let process = agent.start();
    wait_for_event(&process, "message", "handler.leftover").await;
    process.signal(Signal::TERM);
    assert_eq!(exit_code(&process).await, Some(0));
    assert!(agent.path("state/handler").exists(), "the next agent needs the note");
    // That one ends it.
    let process = agent.start();
    wait_for_event(&process, "message", "command.received").await;
    let noted = |line: &str| line.contains("handler.leftover");
    assert!(process.lines().iter().any(|line| noted(&line.text)));
    process.signal(Signal::TERM);
    process.signal(Signal::TERM);
    process.wait_exit(crate::LONG).await.unwrap();
}

#[tokio::test]
async fn a_result_that_can_not_be_sent_waits_for_the_next_start_without_a_second_run() {
    let ca = TestCa::new();
    let stream = Stream::of(1);
    let served = stream.clone();
    let mut refuse = true;
    let peer = Peer::start(&ca, move |request| match request.method.as_str() {
        "PUT" if std::mem::take(&mut refuse) => Reply::Silence,
        _ => served.answer(request),
    })
    .await;
    let agent = Agent::new(&ca, peer.origin(), "echo run >> $DIR/runs; echo $TRY");
    let process = agent.start();
    let sending = async || peer.received().iter().any(|r| r.method == "PUT").then_some(());
    eventually(crate::LONG, "the result to be sent", sending).await;
    let asked = Instant::now();
    process.signal(Signal::TERM);
    assert_eq!(exit_code(&process).await, Some(0));
    assert!(asked.elapsed().as_secs() < 12, "the call's own limit is 15 s: {:?}", asked.elapsed());
    assert!(stream.results().is_empty());
    let _next = agent.start();
    stream.wait_for_results(1).await;
    assert_eq!((agent.lines("runs").len(), stream.outputs()), (1, vec!["1".to_owned()]));
}

/// The peer blocks a thread until the agent is stopping.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_is_stopping_begins_no_other_command() {
    let ca = TestCa::new();
    let stream = Stream::of(2);
    let served = stream.clone();
    let (sending, mut is_sending) = tokio::sync::mpsc::unbounded_channel();
    let (go_on, may_go_on) = std::sync::mpsc::channel();
    let peer = Peer::start(&ca, move |request| {
        if request.method == "PUT" {
            sending.send(()).unwrap();
            may_go_on.recv().unwrap();
        }
        served.answer(request)
    })
    .await;
    let agent = Agent::new(&ca, peer.origin(), "echo $SEQ");
    let process = agent.start();
    is_sending.recv().await.unwrap();
    process.signal(Signal::TERM);
    wait_for_event(&process, "message", "agent.stopping").await;
    go_on.send(()).unwrap();
    assert_eq!(exit_code(&process).await, Some(0));
    assert_eq!(stream.outputs(), ["1"], "what was being sent is stored");
    let journal = std::fs::read_to_string(agent.path("state/journal")).unwrap();
    assert!(journal.contains("\"received\""), "{journal}");
    assert!(!journal.contains("cmd_2"), "its handler would be ended at once: {journal}");
}
