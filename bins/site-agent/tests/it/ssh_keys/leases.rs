//! A line ends by itself, within the window of a removal, whatever happens to the agent.

use std::{
    fs,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use chrono::{DateTime, TimeDelta, Utc};
use test_support::{Reply, eventually};

use super::{SshAgent, agent, beside, feed::Feed, key_id, messages, wait_for_message};
use crate::LONG;

#[tokio::test]
async fn a_line_ends_with_the_lease() {
    let (agent, feed) = agent().await;
    feed.add("alice", 1);
    let before = feed.now();
    let _process = agent.start();
    feed.wait_for_match().await;
    // The window of ten minutes, less a minute of skew.
    let (least, most) = (before + TimeDelta::seconds(539), feed.now() + TimeDelta::seconds(540));
    let until = agent.until("alice")[0];
    assert!(least <= until && until <= most, "{least} {until} {most}");
}

#[tokio::test]
async fn no_poll_waits_for_longer_than_a_quarter_of_the_lease() {
    // A lease of 54 seconds.
    let feed = Feed::with_window(Duration::from_secs(60));
    let (served, asked) = (feed.clone(), Arc::new(Mutex::new(Vec::new())));
    let asking = Arc::clone(&asked);
    let agent = beside(move |request| {
        asking.lock().unwrap().push(request.target.clone());
        served.answer(request)
    })
    .await;
    feed.add("alice", 1);
    let _process = agent.start();
    let waits = |target: &String| target.contains("/changes") && !target.contains("wait=0");
    let first = eventually(LONG, "a poll that waits", async || {
        asked.lock().unwrap().iter().find(|target| waits(target)).cloned()
    });
    let first = first.await;
    assert!(first.contains("&wait=13&"), "{first}");
}

#[tokio::test]
async fn leases_are_renewed_for_as_long_as_the_agent_polls_and_changes_go_on_meanwhile() {
    // A lease of 5.4 seconds.
    let feed = Feed::with_window(Duration::from_secs(6));
    let served = feed.clone();
    let agent = beside(move |request| served.answer(request)).await;
    for number in 0..600 {
        feed.add(&format!("u{number}"), number);
    }
    let _process = agent.start_with(&["--wait", "1"]);
    feed.wait_for_match().await;
    for round in 1..4 {
        let passed = feed.now() + TimeDelta::seconds(5);
        let renewed = async || {
            let until = agent.users().iter().flat_map(|user| agent.until(user)).collect::<Vec<_>>();
            until.iter().all(|until| *until > passed).then_some(until.len())
        };
        let count = eventually(LONG, "every lease to be renewed", renewed).await;
        assert_eq!(count, 600 + round - 1);
        feed.add(&format!("new{round}"), 1_000);
        feed.wait_for_head().await;
    }
    assert_eq!(agent.in_files(), feed.in_force());
}

#[tokio::test]
async fn what_is_written_on_the_way_to_the_head_lives_no_longer_than_what_was_known_there() {
    let feed = Feed::new();
    feed.add("alice", 1);
    let (served, cut) = (feed.clone(), Arc::new(AtomicBool::new(false)));
    let cutting = Arc::clone(&cut);
    let agent = beside(move |request| {
        let reply = served.answer(request);
        // One page on the way, and then nothing any more.
        match reply {
            reply @ Reply::Whole { .. } if !cutting.load(Ordering::Relaxed) => {
                let page =
                    request.target.contains("/changes") && request.target.contains("limit=1&");
                cutting.store(page && served.head().seq() > 2, Ordering::Relaxed);
                reply
            }
            Reply::Whole { .. } => Reply::problem(503, "database_unavailable", true),
            reply => reply,
        }
    })
    .await;
    let process = agent.start();
    feed.wait_for_match().await;
    let known = agent.until("alice")[0];
    process.kill();
    // A second later, so that a new lease would be another one.
    let next = known + TimeDelta::seconds(2);
    let later = async || (feed.now() + TimeDelta::seconds(540) > next).then_some(());
    eventually(LONG, "another second", later).await;
    feed.add("alice", 2);
    feed.remove("alice", 2);
    feed.add("bob", 3);
    let process = agent.start_with(&["--limit", "1"]);
    wait_for_message(&process, "ssh_keys.changes_applied").await;
    wait_for_message(&process, "call.failed").await;
    assert!(cut.load(Ordering::Relaxed), "it was cut off, or this shows nothing");
    assert_eq!(agent.ids("alice"), [1, 2].map(key_id), "it is on its way");
    assert_eq!(agent.until("alice"), [known; 2]);
}

#[tokio::test]
async fn a_file_that_a_snapshot_leaves_as_it_is_counts_with_its_own_lease() {
    let (agent, feed) = agent().await;
    feed.add("alice", 1);
    let process = agent.start();
    feed.wait_for_match().await;
    let known = agent.until("alice");
    process.kill();
    // So that a new lease would be another one.
    let next = known[0] + TimeDelta::seconds(2);
    let later = async || (feed.now() + TimeDelta::seconds(540) > next).then_some(());
    eventually(LONG, "another second", later).await;
    fs::remove_dir_all(agent.path("state")).unwrap();
    feed.add("bob", 2);
    let process = agent.start();
    feed.wait_for_match().await;
    process.kill();
    assert_eq!(agent.until("alice"), known, "it is right, and good for long enough");
    assert!(agent.until("bob")[0] > known[0]);
    let state = fs::read(agent.path("state").join("ssh-keys")).unwrap();
    let state: serde_json::Value = serde_json::from_slice(&state).unwrap();
    let files_until: DateTime<Utc> = state["filesUntil"].as_str().unwrap().parse().unwrap();
    assert!(files_until <= known[0], "a pass would come too late for it: {state}");
}

/// Waits until no file says an end that is later than a lease of so many seconds.
async fn wait_for_short_leases(agent: &SshAgent, feed: &Feed, seconds: i64) {
    let short = async || {
        let latest = feed.now() + TimeDelta::seconds(seconds);
        let until: Vec<_> = agent.users().iter().flat_map(|user| agent.until(user)).collect();
        until.iter().all(|until| *until <= latest).then_some(until.len())
    };
    assert_eq!(eventually(LONG, "short leases", short).await, agent.in_files().len());
}

#[tokio::test]
async fn a_shorter_window_is_noticed_and_every_file_is_good_again_before_it_is_over() {
    let (agent, feed) = agent().await;
    for number in 0..600 {
        feed.add(&format!("u{number}"), number);
    }
    let process = agent.start_with(&["--wait", "1"]);
    feed.wait_for_match().await;
    feed.set_window(60);
    // Before that a file has it already, and the others have not.
    feed.add("u0", 700);
    wait_for_short_leases(&agent, &feed, 54).await;
    wait_for_message(&process, "ssh_keys.lease_went_back").await;
    let passed = feed.now() + TimeDelta::seconds(60);
    feed.advance(40);
    let renewed = async || {
        let mut until = agent.users().into_iter().flat_map(|user| agent.until(&user));
        until.all(|until| until > passed).then_some(())
    };
    eventually(LONG, "the short leases to be renewed in time", renewed).await;
    assert!(feed.now() < passed, "or this shows nothing");
    assert_eq!((feed.snapshots(), agent.in_files()), (1, feed.in_force()));
    let noticed = messages(&process);
    assert_eq!(noticed.iter().filter(|message| *message == "ssh_keys.lease_went_back").count(), 1);
}

#[tokio::test]
async fn files_with_a_later_end_than_the_state_knows_of_are_noticed_at_a_start() {
    let (agent, feed) = agent().await;
    feed.add("alice", 1);
    let process = agent.start_with(&["--wait", "1"]);
    feed.wait_for_match().await;
    let state = fs::read(agent.path("state/ssh-keys")).unwrap();
    let before = agent.until("alice")[0];
    feed.advance(275);
    let renewed = async || (agent.until("alice")[0] > before).then_some(());
    eventually(LONG, "another lease", renewed).await;
    process.kill();
    // As where it is killed after the files were written and before the state was.
    fs::write(agent.path("state/ssh-keys"), state).unwrap();
    feed.advance(10);
    feed.set_window(300);
    assert!(feed.now() + TimeDelta::seconds(270) > before, "the state alone does not tell");
    let _process = agent.start_with(&["--wait", "1"]);
    wait_for_short_leases(&agent, &feed, 270).await;
    assert_eq!(feed.snapshots(), 1);
}

#[tokio::test]
async fn a_snapshot_leaves_no_file_that_says_a_later_end_than_its_lease() {
    let (agent, feed) = agent().await;
    feed.add("alice", 1);
    let process = agent.start();
    feed.wait_for_match().await;
    process.kill();
    fs::remove_dir_all(agent.path("state")).unwrap();
    feed.set_window(60);
    feed.add("bob", 2);
    let process = agent.start();
    let taken = wait_for_message(&process, "ssh_keys.snapshot_applied").await;
    assert_eq!(taken["ssh.keys"], 2);
    let latest = feed.now() + TimeDelta::seconds(54);
    assert!(agent.until("alice")[0] <= latest, "{:?}", agent.until("alice"));
    assert!(messages(&process).iter().all(|message| message != "ssh_keys.lease_went_back"));
}

#[tokio::test]
async fn under_a_lease_that_is_over_removals_are_applied_and_nothing_is_good_for_longer() {
    let (agent, feed) = agent().await;
    for (user, number) in [("alice", 1), ("alice", 2), ("bob", 3)] {
        feed.add(user, number);
    }
    let process = agent.start();
    feed.wait_for_match().await;
    process.kill();
    let known = agent.until("bob")[0];
    feed.advance(300);
    feed.let_wait(true);
    let over = feed.now() + TimeDelta::seconds(540);
    feed.advance(1_000);
    let process = agent.start_with(&["--wait", "1"]);
    let event = wait_for_message(&process, "ssh_keys.lease_over").await;
    assert_eq!(event["alarm.name"], "ssh_lease_over");
    assert!(event["detail"].as_str().unwrap().contains("`ssh-access` does not propagate"));
    // They were propagated before.
    feed.remove("alice", 1);
    feed.add("carol", 4);
    feed.wait_for_head().await;
    assert_eq!(agent.in_files(), feed.in_force());
    let until = || agent.users().into_iter().flat_map(|user| agent.until(&user));
    // A pass would come to an end that is over, too.
    assert!(until().all(|until| until <= known), "{:?}", until().collect::<Vec<_>>());
    // Likewise after a start without a state.
    process.kill();
    fs::remove_dir_all(agent.path("state")).unwrap();
    feed.remove("bob", 3);
    feed.add("dave", 5);
    let process = agent.start_with(&["--wait", "1"]);
    feed.wait_for_match().await;
    assert_eq!((agent.in_files(), feed.snapshots()), (feed.in_force(), 2));
    assert!(until().all(|until| until <= over), "{:?}", until().collect::<Vec<_>>());
    feed.let_wait(false);
    wait_for_message(&process, "ssh_keys.lease_good_again").await;
    let good = async || until().all(|until| until > over).then_some(());
    eventually(LONG, "good leases", good).await;
    let told = messages(&process);
    assert_eq!(told.iter().filter(|message| *message == "ssh_keys.lease_over").count(), 1);
    assert!(told.iter().all(|message| message != "ssh_keys.lease_went_back"), "{told:?}");
}

#[tokio::test]
async fn files_that_are_past_their_lease_before_they_are_renewed_are_told_once() {
    let feed = Feed::new();
    let (served, jumps) = (feed.clone(), Arc::new(AtomicUsize::new(0)));
    let jumping = Arc::clone(&jumps);
    let agent = beside(move |request| {
        // Half of the window is over, and while the pass is under way all of it.
        let polls = request.target.contains("/changes");
        if polls && jumping.load(Ordering::Relaxed) > 0 {
            jumping.fetch_sub(1, Ordering::Relaxed);
            served.advance(300);
        }
        served.answer(request)
    })
    .await;
    for number in 0..600 {
        feed.add(&format!("u{number}"), number);
    }
    let process = agent.start_with(&["--wait", "1"]);
    feed.wait_for_match().await;
    jumps.store(2, Ordering::Relaxed);
    let event = wait_for_message(&process, "ssh_keys.leases_late").await;
    assert_eq!(event["alarm.name"], "ssh_leases_late");
    assert!(event["detail"].as_str().unwrap().contains("the window is too short"));
    wait_for_message(&process, "ssh_keys.leases_in_time").await;
    assert_eq!(messages(&process).iter().filter(|told| *told == "ssh_keys.leases_late").count(), 1);
    // Who was away finds files past their lease, and that is no alarm.
    process.kill();
    feed.advance(1_000);
    let process = agent.start_with(&["--wait", "1"]);
    let now = feed.now();
    let good = async || agent.until("u0").into_iter().all(|until| until > now).then_some(());
    eventually(LONG, "good leases", good).await;
    feed.advance(300);
    let later = now + TimeDelta::seconds(700);
    let good = async || agent.until("u0").into_iter().all(|until| until > later).then_some(());
    eventually(LONG, "the next pass", good).await;
    assert!(messages(&process).iter().all(|told| *told != "ssh_keys.leases_late"));
}
