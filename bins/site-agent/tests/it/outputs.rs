//! Private outputs: stored before the result that names them, and again where they were lost.

use rustix::process::Signal;
use site_client::output_digest;
use site_protocol::Outcome;
use test_support::Reply;

use crate::{
    agent::{agent, exit_code, wait_for_event},
    stream::Stream,
};

const SCRIPT: &str = "echo run >> $DIR/runs
    printf private > $SITE_AGENT_OUTPUT_FILE; echo '\"public\"'";

fn of_a_run(count: u64) -> Stream {
    Stream::made(count, |command| command.run_id = Some("run-1".to_owned()))
}

#[tokio::test]
async fn what_a_handler_writes_into_the_file_is_stored_and_named_by_its_result() {
    let stream = of_a_run(2);
    let served = stream.clone();
    let script = format!("[ $SEQ = 2 ] && {{ : > $SITE_AGENT_OUTPUT_FILE; exit 0; }}; {SCRIPT}");
    let (agent, _peer) = agent(&script, move |request| served.answer(request)).await;
    let process = agent.start();
    stream.wait_for_results(2).await;
    let digest = output_digest(b"private");
    assert_eq!(stream.private_outputs(), [digest]);
    let results = stream.results();
    assert_eq!(results[0].private_output, Some(digest));
    assert_eq!(results[0].output.as_ref().unwrap().get(), "\"public\"");
    assert_eq!(results[1].private_output, None, "an empty file is none");
    let kept = agent.path("state/outputs").join(digest.to_string());
    assert_eq!(std::fs::read(kept).unwrap(), b"private");
    assert!(!agent.path("state/output").exists());
    assert!(process.lines().iter().all(|line| !line.text.contains("private")));
}

#[tokio::test]
async fn an_output_that_can_not_be_taken_makes_the_result_a_failure_that_says_so() {
    let stream = Stream::made(4, |command| {
        command.run_id = (command.seq > 1).then(|| "run-1".to_owned());
    });
    let served = stream.clone();
    let script = "case $SEQ in
        1) echo 1 > $SITE_AGENT_OUTPUT_FILE ;;
        2) head -c 1048577 /dev/zero > $SITE_AGENT_OUTPUT_FILE ;;
        3) mkdir $SITE_AGENT_OUTPUT_FILE; mkfifo $SITE_AGENT_OUTPUT_FILE/x ;;
        4) echo 4 > $SITE_AGENT_OUTPUT_FILE ;;
        esac; echo $SEQ";
    let (agent, _peer) = agent(script, move |request| served.answer(request)).await;
    let process = agent.start_with(&["--max-output-mib", "1"]);
    stream.wait_for_results(4).await;
    for (result, detail) in stream.results().iter().zip([
        "The handler wrote a private output, and the command belongs to no Run.",
        "The handler's private output is larger than 1048576 bytes.",
        "The handler's private output can't be read.",
    ]) {
        assert_eq!(result.outcome, Outcome::Failed);
        assert_eq!(result.detail.as_deref(), Some(detail));
        assert!(result.output.is_some(), "{detail}");
    }
    assert_eq!(stream.private_outputs(), [output_digest(b"4\n")], "nothing of them stays");
    assert!(process.exit().is_none());
}

#[tokio::test]
async fn an_output_that_the_site_api_lost_is_sent_again_without_a_second_run() {
    let stream = of_a_run(1);
    let served = stream.clone();
    let mut lose = true;
    let (agent, peer) = agent(SCRIPT, move |request| {
        if request.target.contains("/result") && std::mem::take(&mut lose) {
            served.lose_outputs();
        }
        served.answer(request)
    })
    .await;
    let process = agent.start();
    stream.wait_for_results(1).await;
    wait_for_event(&process, "message", "output.missing").await;
    let uploads = peer.received().iter().filter(|r| r.target.contains("/outputs/")).count();
    assert_eq!((uploads, agent.lines("runs").len()), (2, 1));
}

#[tokio::test]
async fn a_result_with_an_output_outlives_a_kill_and_a_restored_database() {
    let stream = of_a_run(3);
    let served = stream.clone();
    let (agent, peer) = agent(SCRIPT, move |request| served.answer(request)).await;
    let backup = stream.backup();
    let process = agent.start();
    stream.wait_for_results(3).await;
    process.kill();
    stream.restore(backup);
    let before = peer.received().len();
    let process = agent.start();
    stream.wait_for_results(3).await;
    assert_eq!(agent.lines("runs").len(), 3);
    assert_eq!(stream.private_outputs().len(), 3);
    let uploads =
        peer.received()[before..].iter().filter(|r| r.target.contains("/outputs/")).count();
    assert_eq!(uploads, 3);
    process.signal(Signal::TERM);
    assert_eq!(exit_code(&process).await, Some(0));
}

#[tokio::test]
async fn a_result_whose_output_the_disk_has_lost_too_waits_until_it_is_voided() {
    let stream = of_a_run(2);
    let served = stream.clone();
    let mut silent = true;
    let (agent, peer) = agent(SCRIPT, move |request| {
        if request.target.contains("/result") && std::mem::take(&mut silent) {
            return Reply::Silence;
        }
        served.answer(request)
    })
    .await;
    let process = agent.start();
    let sent = async || peer.received().iter().any(|r| r.target.contains("/result")).then_some(());
    test_support::eventually(crate::LONG, "the result to be sent", sent).await;
    process.kill();
    stream.lose_outputs();
    std::fs::remove_dir_all(agent.path("state/outputs")).unwrap();
    let process = agent.start();
    wait_for_event(&process, "alarm.name", "journal.output_not_read").await;
    assert!(stream.results().is_empty());
    stream.void_due();
    stream.wait_for_results(1).await;
    assert_eq!(agent.lines("runs").len(), 2);
}

#[tokio::test]
async fn a_command_whose_output_never_arrives_can_be_voided() {
    let stream = of_a_run(2);
    let served = stream.clone();
    let (agent, _peer) = agent(SCRIPT, move |request| {
        // As where the line is too slow for it.
        if request.target.contains("cmd_1/outputs") {
            return Reply::problem(408, "request_timeout", true);
        }
        served.answer(request)
    })
    .await;
    let process = agent.start();
    wait_for_event(&process, "problem.code", "request_timeout").await;
    stream.void_due();
    stream.wait_for_results(1).await;
    assert_eq!(agent.lines("runs").len(), 2);
}

#[tokio::test]
async fn what_a_handler_wrote_before_it_was_ended_does_not_stay() {
    let stream = of_a_run(1);
    let served = stream.clone();
    let script = "echo private > $SITE_AGENT_OUTPUT_FILE; sleep 1000";
    let (agent, _peer) = agent(script, move |request| served.answer(request)).await;
    let process = agent.start_with(&["--handler-timeout", "1"]);
    stream.wait_for_results(1).await;
    assert!(!agent.path("state/output").exists());
    assert!(stream.private_outputs().is_empty());
    assert!(process.exit().is_none());
}

#[tokio::test]
async fn a_command_with_too_many_outputs_fails_instead_of_hanging() {
    let stream = of_a_run(1);
    let served = stream.clone();
    let (agent, _peer) = agent(SCRIPT, move |request| {
        if request.target.contains("/outputs/") {
            return Reply::problem(409, "too_many_outputs", false);
        }
        served.answer(request)
    })
    .await;
    let process = agent.start();
    stream.wait_for_results(1).await;
    let result = stream.results().remove(0);
    assert_eq!((result.outcome, result.private_output), (Outcome::Failed, None));
    assert!(result.detail.unwrap().contains("private outputs"));
    wait_for_event(&process, "message", "output.refused").await;
}
