//! Changes and snapshots become files, and what is durable is told.

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::PathBuf,
    sync::{Arc, Mutex},
};

use site_protocol::SshAttested;
use test_support::{Reply, eventually};

use super::{agent, beside, feed::Feed, key_id, public_key, wait_for_message};
use crate::agent::exit_code;

#[tokio::test]
async fn a_key_is_in_its_users_file_until_it_is_removed() {
    let (agent, feed) = agent().await;
    feed.add("alice", 1);
    let process = agent.start();
    feed.wait_for_match().await;
    assert_eq!(agent.in_files(), feed.in_force());
    feed.add("alice", 2);
    feed.add("bob", 2);
    feed.wait_for_head().await;
    assert_eq!(agent.in_files(), feed.in_force());
    feed.remove("alice", 1);
    feed.remove("bob", 2);
    feed.wait_for_head().await;
    assert_eq!(agent.in_files(), [("alice".to_owned(), key_id(2))]);
    assert_eq!(agent.names(), ["alice"], "a user without keys has no file");
    assert_eq!(feed.snapshots(), 1, "changes need no snapshot");
    let line = agent.lines("alice").remove(0);
    assert_eq!(line.key().to_string(), public_key(2));
    let meta = fs::metadata(agent.file("alice")).unwrap();
    assert_eq!((meta.mode() & 0o7777, meta.nlink()), (0o644, 1));
    assert!(process.exit().is_none());
}

#[tokio::test]
async fn what_the_files_hold_is_attested_and_only_at_times() {
    let (agent, feed) = agent().await;
    feed.add("alice", 1);
    let _process = agent.start();
    feed.wait_for_match().await;
    for number in 2..6 {
        feed.add("alice", number);
        let told = feed.wait_for_head().await;
        assert_eq!(told.set_digest, None, "a change costs the same with any number of keys");
    }
    assert_eq!(feed.acknowledged().iter().filter(|(_, attested)| attested.is_some()).count(), 1);
}

#[tokio::test]
async fn an_end_of_a_keys_own_is_in_its_line_and_outlives_a_restart() {
    let (agent, feed) = agent().await;
    let soon = "2030-01-01T00:01:00.9Z".parse().unwrap();
    feed.add_key("alice", &key_id(1), &public_key(1), Some(soon));
    feed.add("alice", 2);
    let process = agent.start();
    feed.wait_for_match().await;
    let second: chrono::DateTime<chrono::Utc> = "2030-01-01T00:01:00Z".parse().unwrap();
    let [first, other] = agent.until("alice")[..] else { panic!("two lines") };
    assert_eq!(first, second);
    assert!(other > second);
    process.kill();
    feed.add("alice", 3);
    let _process = agent.start();
    feed.wait_for_match().await;
    assert_eq!(agent.until("alice")[0], second);
    assert_eq!(agent.ids("alice"), [1, 2, 3].map(key_id));
}

#[tokio::test]
async fn an_agent_that_starts_again_goes_on_where_it_was() {
    let (agent, feed) = agent().await;
    feed.add("alice", 1);
    let process = agent.start();
    feed.wait_for_match().await;
    process.kill();
    feed.remove("alice", 1);
    feed.add("bob", 1);
    let _process = agent.start();
    feed.wait_for_match().await;
    assert_eq!((agent.names(), feed.snapshots()), (vec!["bob".to_owned()], 1));
}

#[tokio::test]
async fn an_agent_that_starts_again_asks_for_what_follows_what_it_acknowledged() {
    let feed = Feed::new();
    let (served, asked) = (feed.clone(), Arc::new(Mutex::new(Vec::new())));
    let asking = Arc::clone(&asked);
    let agent = beside(move |request| {
        asking.lock().unwrap().push(request.target.clone());
        served.answer(request)
    })
    .await;
    feed.add("alice", 1);
    let process = agent.start();
    feed.wait_for_match().await;
    feed.add("alice", 2);
    let acknowledged = feed.wait_for_head().await.cursor;
    process.kill();
    asked.lock().unwrap().clear();
    let _process = agent.start();
    let first = eventually(crate::LONG, "the first question", async || {
        asked.lock().unwrap().iter().find(|target| target.contains("/changes")).cloned()
    });
    assert!(first.await.ends_with(&format!("&after={acknowledged}")));
}

#[tokio::test]
async fn a_restart_with_another_state_folder_leaves_nothing_of_the_old_set() {
    let (agent, feed) = agent().await;
    feed.add("alice", 1);
    feed.add("bob", 2);
    let process = agent.start();
    feed.wait_for_match().await;
    process.kill();
    fs::remove_dir_all(agent.path("state")).unwrap();
    feed.remove("alice", 1);
    let _process = agent.start();
    feed.wait_for_match().await;
    assert_eq!((agent.in_files(), feed.snapshots()), (feed.in_force(), 2));
}

#[tokio::test]
async fn whatever_comes_by_the_wire_no_other_file_is_written() {
    let (agent, feed) = agent().await;
    let good = public_key(1);
    let users = [
        "root",
        "../state/x",
        "..",
        "",
        "a/b",
        ".alice.0123456789abcdef",
        "-x",
        "Alice",
        "systemd-network",
    ];
    for user in users {
        feed.add_key(user, &key_id(1), &good, None);
    }
    let keys = [
        format!("command=\"sh\" {good}"),
        format!("{good}\nssh-ed25519 AAAA"),
        format!("{good} comment"),
        format!(" {good}"),
        "ssh-rsa AAAA".to_owned(),
        "cert-authority ssh-ed25519 AAAA".to_owned(),
        String::new(),
    ];
    for (key, number) in keys.iter().zip(1..) {
        feed.add_key("mallory", &key_id(number), key, None);
    }
    feed.add_key("mallory", "key_\n", &good, None);
    feed.add("bob", 9);
    let process = agent.start();
    let told = feed.wait_for_match().await;
    let every = users.len() + keys.len() + 1;
    assert_eq!(told.failures.len(), every, "{:?}", told.failures);
    assert!(told.failures.iter().all(|failure| failure.reason.starts_with("refused_")));
    assert_eq!(agent.names(), ["bob"]);
    // The same as changes.
    feed.add_key("root", &key_id(2), &good, None);
    feed.add_key("bob", &key_id(3), &keys[0], None);
    feed.add("bob", 10);
    let told = feed.wait_for_head().await;
    assert_eq!(told.failures.len(), every + 2);
    assert_eq!(
        (agent.names(), agent.ids("bob")),
        (vec!["bob".to_owned()], [9, 10].map(key_id).to_vec())
    );
    // And what is taken back is told no longer.
    feed.remove("root", 2);
    feed.remove("bob", 3);
    let told = feed.wait_for_head().await;
    assert_eq!(told.failures.len(), every);
    assert!(process.exit().is_none());
}

#[tokio::test]
async fn a_file_that_somebody_has_changed_is_mended() {
    let (agent, feed) = agent().await;
    for (user, number) in [("alice", 1), ("bob", 2), ("carol", 3), ("dave", 4)] {
        feed.add(user, number);
    }
    let process = agent.start_with(&["--attest-every", "2"]);
    feed.wait_for_match().await;
    let line = fs::read_to_string(agent.file("alice")).unwrap();
    fs::write(agent.file("alice"), line.replace("restrict,", "")).unwrap();
    fs::remove_file(agent.file("bob")).unwrap();
    fs::set_permissions(agent.file("carol"), fs::Permissions::from_mode(0o666)).unwrap();
    fs::write(agent.file("erin"), fs::read(agent.file("dave")).unwrap()).unwrap();
    fs::set_permissions(agent.file("erin"), fs::Permissions::from_mode(0o644)).unwrap();
    wait_for_message(&process, "ssh_keys.mending").await;
    feed.add("dave", 5);
    feed.wait_for_match().await;
    assert_eq!(agent.in_files(), feed.in_force());
    assert_eq!(fs::metadata(agent.file("carol")).unwrap().mode() & 0o777, 0o644);
    assert_eq!(agent.names(), ["alice", "bob", "carol", "dave"]);
}

#[tokio::test]
async fn a_set_that_never_matches_is_not_written_anew_without_a_pause() {
    let feed = Feed::new();
    feed.add("alice", 1);
    let (served, files) = (feed.clone(), Arc::new(Mutex::new(Vec::new())));
    let place = Arc::new(Mutex::new(PathBuf::new()));
    let (seen, placed) = (Arc::clone(&files), Arc::clone(&place));
    let agent = beside(move |request| match served.answer(request) {
        Reply::Whole { status, content_type, extra_head, body } => {
            if request.target.ends_with("/acknowledgement") {
                let file = fs::metadata(&*placed.lock().unwrap()).unwrap();
                seen.lock().unwrap().push(file.ino());
            }
            let text = String::from_utf8(body).unwrap().replace("\"match\"", "\"mismatch\"");
            Reply::Whole { status, content_type, extra_head, body: text.into_bytes() }
        }
        reply => reply,
    })
    .await;
    *place.lock().unwrap() = agent.file("alice");
    let process = agent.start();
    let event = wait_for_message(&process, "ssh_keys.not_mended").await;
    assert_eq!(event["alarm.name"], "ssh_set_mismatch");
    let files = files.lock().unwrap().clone();
    assert!(files[0] != files[1], "once it is written anew, right as it was: {files:?}");
    feed.add("alice", 2);
    feed.wait_for_head().await;
    assert_eq!(feed.snapshots(), 2);
    let attested = feed.acknowledged().into_iter().filter_map(|(_, attested)| attested);
    assert_eq!(attested.collect::<Vec<_>>(), [SshAttested::Match; 2]);
    assert_eq!(agent.in_files(), feed.in_force());
}

#[tokio::test]
async fn where_only_the_attestation_fails_what_is_durable_is_told_without_it() {
    let feed = Feed::new();
    feed.add("alice", 1);
    let served = feed.clone();
    let agent = beside(move |request| {
        let attests = request.target.ends_with("/acknowledgement")
            && String::from_utf8_lossy(&request.body).contains("\"setDigest\":\"");
        if attests {
            return Reply::problem(500, "internal", true);
        }
        served.answer(request)
    })
    .await;
    let process = agent.start();
    let told = feed.wait_for_head().await;
    assert_eq!(told.set_digest, None);
    let failed = wait_for_message(&process, "call.failed").await;
    assert_eq!(
        (&failed["call.name"], &failed["problem.code"]),
        (&"ssh_acknowledge".into(), &"internal".into())
    );
    feed.add("alice", 2);
    feed.wait_for_head().await;
    assert_eq!(agent.in_files(), feed.in_force());
    let failures = super::messages(&process);
    let failures = failures.iter().filter(|message| *message == "call.failed");
    assert_eq!(failures.count(), 1, "the set is attested at its pace");
}

#[tokio::test]
async fn an_agent_whose_folder_was_replaced_ends_and_a_start_writes_the_new_one() {
    let (agent, feed) = agent().await;
    feed.add("alice", 1);
    let process = agent.start_with(&["--attest-every", "1"]);
    feed.wait_for_match().await;
    let (keys, old) = (agent.path("keys"), agent.path("old"));
    // Where nothing stands for a moment it is waited for.
    fs::rename(&keys, &old).unwrap();
    wait_for_message(&process, "ssh_keys.own_trouble").await;
    fs::create_dir(&keys).unwrap();
    fs::set_permissions(&keys, fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(exit_code(&process).await, Some(70));
    wait_for_message(&process, "ssh_keys.folder_replaced").await;
    assert_eq!(agent.names(), [""; 0]);
    let _process = agent.start();
    let written = async || (agent.in_files() == feed.in_force()).then_some(());
    eventually(crate::LONG, "the new folder to be written", written).await;
}

#[tokio::test]
async fn trouble_in_a_folder_that_was_replaced_ends_the_agent_at_once() {
    let (agent, feed) = agent().await;
    feed.add("alice", 1);
    let process = agent.start();
    feed.wait_for_match().await;
    let keys = agent.path("keys");
    fs::remove_dir_all(&keys).unwrap();
    fs::create_dir(&keys).unwrap();
    feed.add("alice", 2);
    assert_eq!(exit_code(&process).await, Some(70));
}
