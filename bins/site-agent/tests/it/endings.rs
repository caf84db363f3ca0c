//! Endings that no handler chose: cancelled, voided, too late.

use chrono::{DateTime, Utc};
use rustix::process::Signal;
use site_protocol::Outcome;
use test_support::{Process, eventually};

use crate::{
    LONG,
    agent::{agent, exit_code, wait_for_event},
    stream::Stream,
};

fn is_gone(process: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with('Z'))
}

#[tokio::test]
async fn a_running_handler_whose_command_is_cancelled_is_ended_with_its_group() {
    let stream = Stream::of(2);
    let served = stream.clone();
    let script = "[ $SEQ = 2 ] && { echo 2; exit 0; }
        sleep 1000 & echo $! > $DIR/child; wait";
    let (agent, _peer) = agent(script, move |request| served.answer(request)).await;
    let _process = agent.start();
    agent.wait_for_file("child").await;
    stream.cancel(1);
    stream.wait_for_results(2).await;
    let results = stream.results();
    assert_eq!(results[0].outcome, Outcome::Failed);
    assert_eq!(results[0].detail.as_deref(), Some("cancelled"));
    assert_eq!(results[1].outcome, Outcome::Succeeded, "the next is not meant");
    assert!(is_gone(&agent.lines("child")[0]));
}

#[tokio::test]
async fn what_a_cancelled_handler_answers_in_time_is_the_result() {
    for (end, outcome, detail) in [
        ("echo 7; exit 0", Outcome::Succeeded, None),
        ("echo 7; exit 3", Outcome::Failed, Some("The handler exited with 3.")),
        // As a shell reports the signal that ended it.
        ("echo 7; exit 143", Outcome::Failed, Some("cancelled")),
    ] {
        let stream = Stream::of(1);
        let served = stream.clone();
        let script = format!("trap '{end}' TERM; echo up > $DIR/up; sleep 1000 & wait");
        let (agent, _peer) = agent(&script, move |request| served.answer(request)).await;
        let _process = agent.start();
        agent.wait_for_file("up").await;
        stream.cancel(1);
        stream.wait_for_results(1).await;
        let result = stream.results().remove(0);
        assert_eq!((result.outcome, result.detail.as_deref()), (outcome, detail), "{end}");
    }
}

#[tokio::test]
async fn a_command_that_is_cancelled_before_its_start_is_not_run() {
    let stream = Stream::of(3);
    stream.cancel(2);
    let served = stream.clone();
    let (agent, _peer) =
        agent("echo $SEQ >> $DIR/runs", move |request| served.answer(request)).await;
    let _process = agent.start();
    stream.wait_for_results(3).await;
    let result = stream.results().remove(1);
    assert_eq!(result.outcome, Outcome::Failed);
    assert_eq!(result.detail.as_deref(), Some("cancelled before it was started"));
    assert_eq!(agent.lines("runs"), ["1", "3"]);
}

/// What happens to a command while its handler can't be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meanwhile {
    Cancelled,
    Voided,
    TakenOver,
}

#[tokio::test]
async fn a_handler_that_could_not_be_started_is_not_run_for_a_command_that_changed_meanwhile() {
    for meanwhile in [Meanwhile::Cancelled, Meanwhile::Voided, Meanwhile::TakenOver] {
        let stream = Stream::of(3);
        let served = stream.clone();
        let script = "echo $SEQ $TRY >> $DIR/runs; [ $SEQ = 1 ] && rm $DIR/program; exit 0";
        let (agent, _peer) = agent(script, move |request| served.answer(request)).await;
        let program = agent.path("program");
        std::os::unix::fs::symlink("/bin/sh", &program).unwrap();
        let process = Process::start(agent.command_for(&program)).unwrap();
        wait_for_event(&process, "alarm.name", "handler.not_started").await;
        match meanwhile {
            Meanwhile::Cancelled => stream.cancel(2),
            Meanwhile::Voided => stream.void_due(),
            Meanwhile::TakenOver => stream.taken_over(),
        }
        match meanwhile {
            Meanwhile::Cancelled => {
                stream.wait_for_results(2).await;
                let result = stream.results().remove(1);
                let detail = result.detail.unwrap();
                assert_eq!(detail, "cancelled before it was started", "it never had a command");
            }
            Meanwhile::Voided => {
                wait_for_event(&process, "message", "command.voided").await;
            }
            Meanwhile::TakenOver => {
                assert_eq!(exit_code(&process).await, Some(76));
            }
        }
        std::os::unix::fs::symlink("/bin/sh", &program).unwrap();
        let expected: &[&str] = match meanwhile {
            Meanwhile::TakenOver => &["1 1"],
            _ => {
                let third = async || (agent.lines("runs").len() > 1).then_some(());
                eventually(LONG, "the third command", third).await;
                &["1 1", "3 1"]
            }
        };
        assert_eq!(agent.lines("runs"), expected, "{meanwhile:?}");
    }
}

#[tokio::test]
async fn a_command_that_is_cancelled_after_a_try_was_cut_short_is_not_run_again() {
    let stream = Stream::of(1);
    let served = stream.clone();
    let (agent, _peer) =
        agent("echo $SEQ >> $DIR/runs; sleep 1000", move |request| served.answer(request)).await;
    let process = agent.start();
    agent.wait_for_file("runs").await;
    process.kill();
    stream.cancel(1);
    let _next = agent.start();
    stream.wait_for_results(1).await;
    assert_eq!(stream.results()[0].detail.as_deref(), Some("cancelled"));
    assert_eq!(agent.lines("runs"), ["1"]);
}

#[tokio::test]
async fn a_voided_command_is_not_run_and_does_not_hold_back_the_next() {
    let stream = Stream::of(3);
    stream.void_due();
    let served = stream.clone();
    let (agent, _peer) =
        agent("echo $SEQ >> $DIR/runs", move |request| served.answer(request)).await;
    // With a place before it.
    std::fs::create_dir(agent.path("state")).unwrap();
    let journal = format!(
        "{{\"journal\":1,\"origin\":\"{}\"}}\n\
         {{\"record\":\"cursor\",\"seq\":0,\"chainDigest\":\"{}\"}}\n",
        agent.origin(),
        "0".repeat(64)
    );
    std::fs::write(agent.path("state/journal"), journal).unwrap();
    let process = agent.start();
    let voided = wait_for_event(&process, "message", "command.voided").await;
    assert_eq!(voided["command.seq"], 1);
    stream.wait_for_results(2).await;
    assert_eq!(agent.lines("runs"), ["2", "3"]);
}

#[tokio::test]
async fn a_command_that_is_voided_while_it_runs_ends_like_one_with_a_receipt() {
    let stream = Stream::of(2);
    let served = stream.clone();
    let mut void = true;
    let (agent, _peer) = agent("echo $SEQ >> $DIR/runs", move |request| {
        if request.method == "PUT" && std::mem::take(&mut void) {
            served.void_due();
        }
        served.answer(request)
    })
    .await;
    let process = agent.start();
    wait_for_event(&process, "message", "command.voided").await;
    stream.wait_for_results(1).await;
    wait_for_event(&process, "message", "command.answered").await;
    process.signal(Signal::TERM);
    assert_eq!(exit_code(&process).await, Some(0));
    stream.push("cmd_3", |_| ());
    let _next = agent.start();
    stream.wait_for_results(2).await;
    assert_eq!(agent.lines("runs"), ["1", "2", "3"]);
}

#[tokio::test]
async fn a_command_that_is_too_late_is_not_started_and_waited_for_until_it_is_voided() {
    // The stream's time is 1970's first second; the agent's own clock is decades ahead.
    let late = DateTime::<Utc>::UNIX_EPOCH;
    let in_time = late + chrono::Duration::hours(1);
    let stream = Stream::made(2, |command| {
        command.not_after = Some(if command.seq == 1 { late } else { in_time });
    });
    let served = stream.clone();
    let (agent, peer) =
        agent("echo $SEQ >> $DIR/runs", move |request| served.answer(request)).await;
    let process = agent.start();
    let expired = wait_for_event(&process, "message", "command.expired").await;
    assert_eq!(expired["command.seq"], 1);
    let again = async || (peer.received().len() >= 5).then_some(());
    eventually(LONG, "more polls", again).await;
    assert!(agent.lines("runs").is_empty());
    stream.void_due();
    stream.wait_for_results(1).await;
    assert_eq!(agent.lines("runs"), ["2"]);
}
