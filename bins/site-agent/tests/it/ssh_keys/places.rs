//! Where the feed is not the one that the agent has seen.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use test_support::Reply;

use super::{agent, beside, feed::Feed, key_id, messages, wait_for_message};

#[tokio::test]
async fn changes_that_were_compacted_are_made_up_for_by_a_snapshot() {
    let (agent, feed) = agent().await;
    feed.add("alice", 1);
    feed.add("bob", 2);
    let process = agent.start();
    feed.wait_for_match().await;
    process.kill();
    feed.remove("alice", 1);
    feed.add("carol", 3);
    feed.add("bob", 4);
    feed.compact();
    let process = agent.start();
    feed.wait_for_match().await;
    assert_eq!((agent.in_files(), feed.snapshots()), (feed.in_force(), 2));
    assert_eq!(agent.names(), ["bob", "carol"]);
    let event = wait_for_message(&process, "ssh_keys.recovering").await;
    assert_eq!(
        (&event["level"], &event["problem.code"]),
        (&"WARN".into(), &"cursor_compacted".into())
    );
}

#[tokio::test]
async fn after_an_older_database_was_restored_the_files_are_what_is_in_force_there() {
    let (agent, feed) = agent().await;
    feed.add("alice", 1);
    let backup = feed.back_up();
    feed.add("bob", 2);
    feed.remove("alice", 1);
    let process = agent.start();
    feed.wait_for_match().await;
    assert_eq!(agent.names(), ["bob"]);
    feed.restore(backup);
    let event = wait_for_message(&process, "ssh_keys.recovering").await;
    assert_eq!(event["alarm.name"], "ssh_feed_diverged");
    feed.wait_for_match().await;
    assert_eq!(agent.names(), ["alice"]);
    // As long as the old one, with another history.
    feed.add("carol", 3);
    feed.wait_for_head().await;
    assert_eq!(agent.in_files(), feed.in_force());
    assert!(process.exit().is_none());
}

#[tokio::test]
async fn a_swapped_change_is_noticed_and_never_reaches_a_file() {
    let feed = Feed::new();
    feed.add("alice", 1);
    let (served, swaps) = (feed.clone(), Arc::new(AtomicBool::new(false)));
    let swapping = Arc::clone(&swaps);
    let agent = beside(move |request| match served.answer(request) {
        Reply::Whole { status, content_type, extra_head, body }
            if swapping.load(Ordering::Relaxed) && request.target.contains("/changes") =>
        {
            let text = String::from_utf8(body).unwrap().replace("\"bob\"", "\"mallory\"");
            Reply::Whole { status, content_type, extra_head, body: text.into_bytes() }
        }
        reply => reply,
    })
    .await;
    let process = agent.start();
    feed.wait_for_match().await;
    swaps.store(true, Ordering::Relaxed);
    feed.add("bob", 2);
    let event = wait_for_message(&process, "ssh_keys.recovering").await;
    assert_eq!(event["alarm.name"], "ssh_feed_diverged");
    feed.wait_for_match().await;
    assert_eq!(agent.names(), ["alice", "bob"]);
}

#[tokio::test]
async fn a_snapshot_that_is_cut_removes_no_file_and_moves_no_place() {
    let feed = Feed::new();
    feed.add("alice", 1);
    feed.add("mia", 2);
    feed.add("zoe", 4);
    feed.add("zz", 5);
    let (served, cuts) = (feed.clone(), Arc::new(AtomicUsize::new(0)));
    let cutting = Arc::clone(&cuts);
    let agent = beside(move |request| match served.answer(request) {
        Reply::Whole { content_type: "application/x-ndjson", body, .. }
            if cutting.load(Ordering::Relaxed) > 0 =>
        {
            cutting.fetch_sub(1, Ordering::Relaxed);
            let text = String::from_utf8(body).unwrap();
            // Once without its last line, else within one.
            let (kept, _) = text.rsplit_once("{\"complete\"").unwrap();
            let kept =
                if cutting.load(Ordering::Relaxed) == 0 { kept } else { &kept[..kept.len() - 9] };
            Reply::new(200, "application/x-ndjson", kept)
        }
        reply => reply,
    })
    .await;
    let process = agent.start();
    feed.wait_for_match().await;
    process.kill();
    let state = std::fs::read(agent.path("state/ssh-keys")).unwrap();
    feed.remove("mia", 2);
    feed.add("bob", 3);
    feed.compact();
    cuts.store(usize::MAX, Ordering::Relaxed);
    let process = agent.start();
    let event = wait_for_message(&process, "call.failed").await;
    assert_eq!(event["call.name"], "ssh_snapshot");
    assert_eq!(agent.ids("mia"), [key_id(2)], "it stays until the snapshot is whole");
    assert_eq!(std::fs::read(agent.path("state/ssh-keys")).unwrap(), state);
    cuts.store(1, Ordering::Relaxed);
    feed.wait_for_match().await;
    assert_eq!(agent.names(), ["alice", "bob", "zoe", "zz"]);
    assert!(messages(&process).iter().all(|message| message != "ssh_keys.own_trouble"));
}

#[tokio::test]
async fn a_snapshot_of_many_users_is_applied_in_one_pass() {
    let (agent, feed) = agent().await;
    for number in 0..700 {
        feed.add(&format!("u{:03}", number / 2), number);
    }
    let process = agent.start();
    feed.wait_for_match().await;
    assert_eq!(agent.in_files(), feed.in_force());
    process.kill();
    for number in 0..600 {
        feed.remove(&format!("u{:03}", number / 2), number);
    }
    feed.compact();
    let _process = agent.start();
    feed.wait_for_match().await;
    assert_eq!(agent.in_files(), feed.in_force());
    assert_eq!(agent.names().len(), 50);
}

#[tokio::test]
async fn a_key_that_an_older_agent_refused_is_tried_again_at_a_start() {
    let (agent, feed) = agent().await;
    feed.add("alice", 1);
    feed.add("bob", 2);
    let process = agent.start();
    feed.wait_for_match().await;
    process.kill();
    // As where its rules did not take the key.
    std::fs::remove_file(agent.file("bob")).unwrap();
    let state = std::fs::read(agent.path("state/ssh-keys")).unwrap();
    let mut state: serde_json::Value = serde_json::from_slice(&state).unwrap();
    state["failures"] =
        serde_json::json!([{"unixUser": "bob", "keyId": key_id(2), "reason": "refused_key: r"}]);
    std::fs::write(agent.path("state/ssh-keys"), state.to_string()).unwrap();
    feed.add("carol", 3);
    let _process = agent.start();
    let told = feed.wait_for_match().await;
    assert_eq!(told.failures, []);
    assert_eq!((agent.in_files(), feed.snapshots()), (feed.in_force(), 2));
}
