//! What it does while it runs, when it is killed, and when it is stopped.

use std::time::Duration;

use rustix::process::Signal;
use ssh_access::Cursor;
use test_support::{TestDatabase, eventually, process::Exit};
use tokio::time::Instant;

use crate::support::{
    LONG, Running, acknowledge_all, command, feed, let_time_pass, member, registry, wait_for_keys,
};

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_in_force_soon_after_they_were_added_and_no_longer_after_they_were_removed() {
    let database = TestDatabase::create().await;
    let running = Running::start(command(&database)).await;
    running.says("ssh_access.leading").await;
    let key = member(&database, "alice").await;
    wait_for_keys(&database, 1).await;
    registry(&database).remove_key(&key, None).await.unwrap();
    wait_for_keys(&database, 0).await;
    assert_eq!(running.metric("ssh_changes_propagated_total").await, Some(2.0));
    assert_eq!(running.metric("ssh_propagator_leading").await, Some(1.0));
    assert!(running.get("/healthz").await.starts_with("HTTP/1.1 200 "));
    assert!(running.get("/alarms").await.ends_with("{\"alarms\":[]}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_one_works_and_the_other_takes_over_when_the_first_is_killed() {
    let database = TestDatabase::create().await;
    let first = Running::start(command(&database)).await;
    first.says("ssh_access.leading").await;
    let second = Running::start(command(&database)).await;
    second.says("ssh_access.standby").await;
    assert_eq!(second.metric("ssh_propagator_leading").await, Some(0.0));
    member(&database, "alice").await;
    wait_for_keys(&database, 1).await;
    first.process.kill();
    let killed = Instant::now();
    member(&database, "bob").await;
    second.says("ssh_access.leading").await;
    wait_for_keys(&database, 2).await;
    // The lease is three seconds here; a slow machine is no defect.
    assert!(killed.elapsed() < Duration::from_secs(30), "{:?}", killed.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_at_any_moment_it_leaves_a_feed_that_is_whole() {
    let database = TestDatabase::create().await;
    let mut dice = test_support::Random::of_this_test();
    let mut members = 0;
    for _ in 0..12 {
        let running = Running::start(command(&database)).await;
        let begun = Instant::now();
        let until = dice.duration(Duration::from_millis(400));
        while begun.elapsed() < until {
            members += 1;
            member(&database, &format!("m{members}")).await;
        }
        running.process.kill();
    }
    let running = Running::start(command(&database)).await;
    wait_for_keys(&database, members).await;
    // What the changes lead to is what is in force.
    let feed = feed(&database);
    let mut cursor = Cursor::START;
    let mut changes = 0;
    loop {
        let wait = Duration::ZERO;
        let page = feed.changes(cursor, 1000, wait, std::future::pending()).await.unwrap();
        if page.changes.is_empty() {
            break;
        }
        for change in &page.changes {
            assert_eq!(change.seq, cursor.seq() + 1);
            cursor = cursor.after(change.fields().digest()).unwrap();
            changes += 1;
        }
        assert_eq!(page.next, cursor);
    }
    assert_eq!(changes, members, "each key was added once");
    drop(running);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removal_that_nobody_enforces_is_an_alarm_until_it_is_acknowledged() {
    let database = TestDatabase::create().await;
    let running = Running::start(command(&database)).await;
    let key = member(&database, "alice").await;
    wait_for_keys(&database, 1).await;
    registry(&database).remove_key(&key, None).await.unwrap();
    wait_for_keys(&database, 0).await;
    let_time_pass(&database).await;
    eventually(LONG, "the alarm", async || {
        running.get("/alarms").await.contains("\"removals_overdue\"").then_some(())
    })
    .await;
    assert_eq!(running.metric("removals_overdue").await, Some(1.0));
    assert_eq!(running.metric("ssh_agent_changes_behind").await, Some(2.0));
    acknowledge_all(&database).await;
    eventually(LONG, "the end of the alarm", async || {
        running.get("/alarms").await.ends_with("{\"alarms\":[]}").then_some(())
    })
    .await;
    assert_eq!(running.metric("removals_overdue").await, Some(0.0));
    assert_eq!(running.metric("ssh_agent_changes_behind").await, Some(0.0));
    assert!(running.metric("ssh_agent_silent_seconds").await.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_stops_it_at_once_and_gives_the_lease_back() {
    let database = TestDatabase::create().await;
    let mut long = command(&database);
    long.env("SSH_ACCESS_LEASE_SECONDS", "300");
    let running = Running::start(long).await;
    running.says("ssh_access.leading").await;
    running.process.signal(Signal::TERM);
    let exit = running.process.wait_exit(LONG).await.unwrap();
    assert_eq!(exit, Exit::Code(0), "{}", running.process.tail());
    let next = Running::start(command(&database)).await;
    next.says("ssh_access.leading").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_refuses_is_an_alarm_and_no_end() {
    let database = TestDatabase::create().await;
    let running = Running::start(command(&database)).await;
    running.says("ssh_access.leading").await;
    let sql = database.superuser().await;
    sql.batch_execute("REVOKE SELECT ON ssh_access.site_key FROM ssh_access_process")
        .await
        .unwrap();
    eventually(LONG, "the alarm", async || {
        running.get("/alarms").await.contains("\"database\"").then_some(())
    })
    .await;
    assert!(running.get("/healthz").await.starts_with("HTTP/1.1 200 "));
    sql.batch_execute("GRANT SELECT ON ssh_access.site_key TO ssh_access_process").await.unwrap();
    eventually(LONG, "the end of the alarm", async || {
        running.get("/alarms").await.ends_with("{\"alarms\":[]}").then_some(())
    })
    .await;
    member(&database, "alice").await;
    wait_for_keys(&database, 1).await;
}
