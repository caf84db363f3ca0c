//! A signal ends the agent at once, whatever it does.

use std::time::Duration;

use rustix::process::Signal;
use test_support::{Reply, eventually};

use super::{agent, beside, feed::Feed};
use crate::{LONG, agent::exit_code};

/// Far less than a poll waits.
const PROMPT: Duration = Duration::from_secs(5);

#[tokio::test]
async fn sigterm_ends_an_agent_that_polls() {
    let (agent, feed) = agent().await;
    feed.add("alice", 1);
    let process = agent.start();
    feed.wait_for_match().await;
    let asked = tokio::time::Instant::now();
    process.signal(Signal::TERM);
    assert_eq!(exit_code(&process).await, Some(0));
    assert!(asked.elapsed() < PROMPT, "{:?}", asked.elapsed());
    assert_eq!(agent.in_files(), feed.in_force(), "the files stay");
}

#[tokio::test]
async fn sigterm_ends_an_agent_that_waits_for_a_snapshot_or_tries_again() {
    for reply in [
        Reply::Silence,
        Reply::problem(503, "database_unavailable", true),
        Reply::Drip(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{}".to_vec(), PROMPT / 100),
    ] {
        let (asked, asking) = tokio::sync::watch::channel(false);
        let agent = beside(move |_| {
            asked.send_replace(true);
            reply.clone()
        })
        .await;
        let process = agent.start();
        eventually(LONG, "the first call", async || asking.borrow().then_some(())).await;
        process.signal(Signal::TERM);
        assert_eq!(exit_code(&process).await, Some(0));
    }
}

#[tokio::test]
async fn a_refused_bearer_is_an_alarm_and_no_end() {
    let feed = Feed::new();
    feed.add("alice", 1);
    let (served, mut refusals) = (feed.clone(), 3);
    let agent = beside(move |request| {
        if refusals > 0 {
            refusals -= 1;
            return Reply::problem(401, "unauthenticated", false);
        }
        served.answer(request)
    })
    .await;
    let process = agent.start();
    let event = crate::agent::wait_for_event(&process, "problem.code", "unauthenticated").await;
    assert_eq!(event["alarm.name"], "call_refused");
    feed.wait_for_match().await;
    assert_eq!(agent.in_files(), feed.in_force());
}
