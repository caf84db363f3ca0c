//! After an older database was restored: the journal answers what it has finished, and no handler
//! runs a second time for it.

use rustix::process::Signal;
use serde_json::json;
use test_support::{Peer, Process, Reply};

use crate::{
    agent::{agent, exit_code, wait_for_event, wait_for_receipt},
    stream::Stream,
};

const SCRIPT: &str = "echo $SEQ $TRY >> $DIR/runs; echo $$";

async fn stop(process: &Process) {
    process.signal(Signal::TERM);
    assert_eq!(exit_code(process).await, Some(0));
}

#[tokio::test]
async fn results_that_a_restored_database_lost_come_from_the_journal_in_one_batch() {
    let stream = Stream::of(4);
    let served = stream.clone();
    let (agent, peer) = agent(SCRIPT, move |request| served.answer(request)).await;
    let backup = stream.backup();
    let process = agent.start();
    wait_for_receipt(&process, 4).await;
    let (runs, outputs) = (agent.lines("runs"), stream.outputs());
    stop(&process).await;

    stream.restore(backup);
    let process = agent.start();
    let recovering = wait_for_event(&process, "message", "runtime.recovering").await;
    assert_eq!(recovering["alarm.name"], "stream_diverged");
    wait_for_receipt(&process, 4).await;
    assert_eq!((agent.lines("runs"), stream.outputs()), (runs, outputs));
    let batches = peer.received().into_iter().filter(|r| r.target.contains("commands/results"));
    assert_eq!(batches.count(), 1);
    // It goes on with what is new.
    stop(&process).await;
    stream.push("cmd_5", |_| ());
    let _process = agent.start();
    stream.wait_for_results(5).await;
    assert_eq!(agent.lines("runs").last().unwrap(), "5 1");
}

#[tokio::test]
async fn commands_that_are_enqueued_again_at_other_places_are_known_by_their_id() {
    let stream = Stream::of(1);
    let served = stream.clone();
    let (agent, _peer) = agent(SCRIPT, move |request| served.answer(request)).await;
    let backup = stream.backup();
    stream.push_all(&["cmd_2", "cmd_3"]);
    let process = agent.start();
    wait_for_receipt(&process, 3).await;
    let first = stream.outputs();
    stop(&process).await;

    stream.restore(backup);
    stream.push_all(&["cmd_3", "cmd_2", "cmd_4"]);
    let process = agent.start();
    wait_for_receipt(&process, 4).await;
    assert_eq!(agent.lines("runs"), ["1 1", "2 1", "3 1", "4 1"]);
    assert_eq!(stream.outputs()[..3], [&*first[0], &first[2], &first[1]]);
}

#[tokio::test]
async fn a_try_that_was_cut_short_goes_on_counting_after_a_restored_database() {
    let stream = Stream::of(2);
    let served = stream.clone();
    let script = "echo $SEQ $TRY >> $DIR/runs
        [ $SEQ = 2 ] && [ $TRY = 1 ] && sleep 1000; echo $TRY";
    let (agent, _peer) = agent(script, move |request| served.answer(request)).await;
    let backup = stream.backup();
    let process = agent.start();
    let two = async || (agent.lines("runs").len() == 2).then_some(());
    test_support::eventually(crate::LONG, "the second handler", two).await;
    process.kill();
    stream.restore(backup);
    let _process = agent.start();
    stream.wait_for_results(2).await;
    assert_eq!(agent.lines("runs"), ["1 1", "2 1", "2 2"]);
    assert_eq!(stream.outputs(), ["1", "2"]);
}

#[tokio::test]
async fn a_known_id_with_another_content_is_never_answered_from_the_journal_nor_run() {
    let stream = Stream::of(0);
    let served = stream.clone();
    let (agent, _peer) = agent(SCRIPT, move |request| served.answer(request)).await;
    let backup = stream.backup();
    stream.push("cmd_1", |_| ());
    let process = agent.start();
    wait_for_receipt(&process, 1).await;
    stop(&process).await;
    stream.restore(backup);
    stream.push("cmd_1", |command| command.kind = "another".to_owned());
    let process = agent.start();
    assert_eq!(exit_code(&process).await, Some(65));
    wait_for_event(&process, "alarm.name", "command_changed").await;
    assert_eq!(agent.lines("runs"), ["1 1"]);
    assert!(stream.results().is_empty());
}

#[tokio::test]
async fn an_agent_whose_place_was_removed_by_age_goes_on_where_the_site_api_is() {
    let stream = Stream::of(1);
    let served = stream.clone();
    let (agent, peer) = agent(SCRIPT, move |request| served.answer(request)).await;
    let process = agent.start();
    wait_for_receipt(&process, 1).await;
    stop(&process).await;
    stream.push_all(&["cmd_2", "cmd_3", "cmd_4"]);
    let stream = stream.answered_by_another(2);
    stream.trim(2);
    let process = agent.start();
    let recovering = wait_for_event(&process, "message", "runtime.recovering").await;
    assert_eq!(recovering["problem.code"], "cursor_trimmed");
    wait_for_receipt(&process, 4).await;
    assert_eq!(agent.lines("runs"), ["1 1", "4 1"]);
    assert_eq!(sessions(&peer), 2, "one a start");
}

fn sessions(peer: &Peer) -> usize {
    peer.received().iter().filter(|request| request.method == "POST").count()
}

#[tokio::test]
async fn results_that_are_refused_together_leave_one_by_one() {
    let stream = Stream::of(3);
    let served = stream.clone();
    let (agent, _peer) = agent(SCRIPT, move |request| {
        if request.target.contains("commands/results") {
            return Reply::problem(413, "body_too_large", false);
        }
        served.answer(request)
    })
    .await;
    let backup = stream.backup();
    let process = agent.start();
    wait_for_receipt(&process, 3).await;
    let outputs = stream.outputs();
    stop(&process).await;
    stream.restore(backup);
    let process = agent.start();
    wait_for_event(&process, "problem.code", "body_too_large").await;
    wait_for_receipt(&process, 3).await;
    assert_eq!(stream.outputs(), outputs);
    assert_eq!(agent.lines("runs").len(), 3);
}

#[tokio::test]
async fn what_is_not_kept_any_more_runs_again_as_a_first_try() {
    let stream = Stream::of(2);
    let served = stream.clone();
    let (agent, _peer) = agent(SCRIPT, move |request| served.answer(request)).await;
    let backup = stream.backup();
    let process = agent.start_with(&["--keep-results", "1"]);
    wait_for_receipt(&process, 2).await;
    stop(&process).await;
    stream.restore(backup);
    let process = agent.start_with(&["--keep-results", "1"]);
    wait_for_receipt(&process, 2).await;
    assert_eq!(agent.lines("runs"), ["1 1", "2 1", "1 1"]);
}

#[tokio::test]
async fn a_batch_of_which_some_are_refused_goes_on_with_each_by_its_own_reason() {
    let stream = Stream::of(4);
    let served = stream.clone();
    let mut void = true;
    let (agent, _peer) = agent(SCRIPT, move |request| {
        if request.target.contains("commands/results") && std::mem::take(&mut void) {
            served.void_due();
        }
        served.answer(request)
    })
    .await;
    let backup = stream.backup();
    let process = agent.start();
    wait_for_receipt(&process, 4).await;
    let outputs = stream.outputs();
    stop(&process).await;
    stream.restore(backup);
    let process = agent.start();
    let voided = wait_for_event(&process, "message", "command.voided").await;
    assert_eq!(voided["command.seq"], json!(1));
    wait_for_receipt(&process, 4).await;
    assert_eq!(stream.outputs(), outputs[1..]);
    assert_eq!(agent.lines("runs").len(), 4);
}
