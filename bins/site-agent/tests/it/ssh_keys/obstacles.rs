//! What stands in the way of one user's file: it is told, stays as it is, and holds nobody else up.

use std::{fs, os::unix::fs::symlink, path::PathBuf, process::Command};

use super::{agent, key_id, messages, public_key, wait_for_message};

/// A file of somebody else, which has to stay as it is.
const THEIRS: &str = "ssh-ed25519 AAAA somebody's own\n";

#[tokio::test]
async fn each_obstacle_is_told_until_it_is_gone_and_leads_no_write_elsewhere() {
    let (agent, feed) = agent().await;
    let target = agent.path("target");
    fs::write(&target, THEIRS).unwrap();
    symlink(&target, agent.file("link")).unwrap();
    fs::hard_link(&target, agent.file("hard")).unwrap();
    fs::create_dir(agent.file("folder")).unwrap();
    fs::write(agent.file("own"), THEIRS).unwrap();
    let made = Command::new("mkfifo").arg(agent.file("pipe")).status().unwrap();
    assert!(made.success());
    let users = ["folder", "hard", "link", "own", "pipe"];
    for (user, number) in users.into_iter().zip(1..) {
        feed.add(user, number);
    }
    feed.add("alice", 9);
    let process = agent.start();
    let told = feed.wait_for_match().await;
    let reasons: Vec<_> =
        told.failures.iter().map(|f| (f.unix_user.as_str(), f.reason.as_str())).collect();
    assert_eq!(
        reasons,
        [
            ("folder", "a folder stands in the place of the user's file"),
            ("hard", "the file in the user's place has another name as well (a hard link)"),
            ("link", "a symbolic link stands in the place of the user's file"),
            ("own", "unmanaged_file: the file in the user's place is not managed by this agent"),
            ("pipe", "a pipe, a socket or a device stands in the place of the user's file"),
        ]
    );
    assert_eq!(agent.ids("alice"), [key_id(9)]);
    // Changes of the same users, and removals of what never came into a file.
    feed.add("own", 10);
    feed.remove("link", 3);
    let told = feed.wait_for_head().await;
    assert_eq!(told.failures.len(), 5);
    let event = wait_for_message(&process, "ssh_keys.not_applied").await;
    assert_eq!(event["alarm.name"], "ssh_key_not_applied");
    assert_eq!(fs::read_to_string(&target).unwrap(), THEIRS);
    assert_eq!(fs::read_to_string(agent.file("own")).unwrap(), THEIRS);
    assert!(fs::symlink_metadata(agent.file("link")).unwrap().is_symlink());
    assert_eq!(agent.names(), ["alice", "folder", "hard", "link", "own", "pipe"]);
    // Also over a restart; then the places become free.
    process.kill();
    fs::remove_file(agent.file("own")).unwrap();
    fs::remove_file(agent.file("link")).unwrap();
    fs::remove_dir(agent.file("folder")).unwrap();
    fs::remove_file(agent.file("hard")).unwrap();
    fs::remove_file(agent.file("pipe")).unwrap();
    let _process = agent.start();
    feed.add("alice", 11);
    let over = feed.wait_for_match().await;
    assert_eq!(over.failures, []);
    assert_eq!((agent.in_files(), feed.snapshots()), (feed.in_force(), 1));
    assert_eq!(fs::read_to_string(&target).unwrap(), THEIRS);
}

#[tokio::test]
async fn an_obstacle_that_goes_while_the_agent_runs_is_noticed() {
    let (agent, feed) = agent().await;
    fs::write(agent.file("alice"), THEIRS).unwrap();
    feed.add("alice", 1);
    let _process = agent.start();
    feed.wait_for_match().await;
    fs::remove_file(agent.file("alice")).unwrap();
    feed.wait_for("no failure", |told, _| told.failures.is_empty()).await;
    assert_eq!(agent.ids("alice"), [key_id(1)]);
}

#[tokio::test]
async fn a_removal_that_can_not_be_applied_is_told_and_the_key_gets_no_new_lease() {
    // A lease of 5.4 seconds, renewed when half of it is over.
    let feed = super::feed::Feed::with_window(std::time::Duration::from_secs(6));
    let served = feed.clone();
    let agent = super::beside(move |request| served.answer(request)).await;
    feed.add("alice", 1);
    feed.add("bob", 2);
    let _process = agent.start_with(&["--wait", "1"]);
    feed.wait_for_match().await;
    // It now has another name as well, so it is not replaced.
    fs::hard_link(agent.file("alice"), agent.path("kept")).unwrap();
    feed.remove("alice", 1);
    let told = feed.wait_for("the failure", |told, _| !told.failures.is_empty()).await;
    assert_eq!(
        (told.failures[0].unix_user.as_str(), &told.failures[0].key_id),
        ("alice", &key_id(1))
    );
    let (removed_at, until) = (feed.now(), agent.until("alice"));
    let renewed =
        async || (agent.until("bob")[0] > removed_at + chrono::TimeDelta::seconds(7)).then_some(());
    test_support::eventually(crate::LONG, "the others to get new leases", renewed).await;
    assert_eq!(agent.until("alice"), until);
    assert!(until[0] <= removed_at + chrono::TimeDelta::seconds(6), "it ends within the window");
    // Also where the file is the agent's again, before the removal is tried once more.
    fs::remove_file(agent.path("kept")).unwrap();
    let gone = async || {
        let now = agent.until("alice");
        assert!(now.is_empty() || now == until, "{now:?} after {until:?}");
        now.is_empty().then_some(())
    };
    test_support::eventually(crate::LONG, "the removed key to go", gone).await;
    feed.wait_for("no failure", |told, _| told.failures.is_empty()).await;
    assert_eq!(agent.names(), ["bob"]);
}

#[tokio::test]
async fn keys_that_can_not_be_added_keep_no_other_key_of_their_user_from_a_new_lease() {
    let (agent, feed) = agent().await;
    feed.add("alice", 1);
    for number in 0..256 {
        feed.add("bob", number);
    }
    let _process = agent.start_with(&["--wait", "1"]);
    feed.wait_for_match().await;
    // One is refused, and one is too many.
    feed.add_key("alice", &key_id(2), "ssh-rsa AAAA", None);
    feed.add("bob", 300);
    let told = feed.wait_for_head().await;
    let users: Vec<_> = told.failures.iter().map(|failure| failure.unix_user.as_str()).collect();
    assert_eq!(users, ["alice", "bob"]);
    let before = agent.until("alice").into_iter().chain(agent.until("bob")).max().unwrap();
    feed.advance(400);
    let renewed = async || {
        let mut until = agent.until("alice").into_iter().chain(agent.until("bob"));
        until.all(|until| until > before).then_some(())
    };
    test_support::eventually(crate::LONG, "both users to get new leases", renewed).await;
    assert_eq!((agent.ids("alice").len(), agent.ids("bob").len()), (1, 256));
}

/// Mounts a file on itself, for as long as the value lives: it can't be replaced or removed.
struct Pinned(PathBuf);

impl Pinned {
    fn new(file: PathBuf) -> Self {
        let mounted = Command::new("mount").arg("--bind").args([&file, &file]).status().unwrap();
        assert!(mounted.success(), "only root can mount: run the tests as root");
        Self(file)
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg(&self.0).status();
        assert!(unmounted.is_ok_and(|status| status.success()), "{} stays", self.0.display());
    }
}

#[tokio::test]
async fn a_file_that_may_not_be_removed_is_told_and_the_rest_of_the_set_still_matches() {
    let (agent, feed) = agent().await;
    feed.add("alice", 1);
    feed.add("bob", 2);
    let process = agent.start_with(&["--attest-every", "1"]);
    feed.wait_for_match().await;
    let pinned = Pinned::new(agent.file("alice"));
    feed.remove("alice", 1);
    feed.add("bob", 3);
    let told = feed.wait_for_match().await;
    let [failure] = &told.failures[..] else { panic!("{:?}", told.failures) };
    assert_eq!((failure.unix_user.as_str(), &failure.key_id), ("alice", &key_id(1)));
    assert_eq!(failure.reason, "the user's file may not be replaced or removed");
    assert_eq!(agent.ids("bob"), [2, 3].map(key_id), "the others are not held up");
    drop(pinned);
    feed.wait_for("no failure", |told, _| told.failures.is_empty()).await;
    assert_eq!((agent.names(), feed.snapshots()), (vec!["bob".to_owned()], 1));
    assert!(messages(&process).iter().all(|message| message != "ssh_keys.own_trouble"));
}

#[tokio::test]
async fn a_user_has_a_bounded_number_of_keys() {
    let (agent, feed) = agent().await;
    for number in 0..260 {
        feed.add("alice", number);
    }
    let _process = agent.start();
    let told = feed.wait_for_match().await;
    assert_eq!((agent.ids("alice").len(), told.failures.len()), (256, 4));
    feed.add("alice", 300);
    let told = feed.wait_for_head().await;
    assert_eq!(told.failures.len(), 5);
    assert!(told.failures[4].reason.starts_with("too_many_keys"), "{:?}", told.failures[4]);
    for number in 0..5 {
        feed.remove("alice", number);
    }
    feed.wait_for("no failure", |told, _| told.failures.is_empty()).await;
    assert_eq!(agent.in_files(), feed.in_force());
}

#[tokio::test]
async fn more_failures_than_can_be_told_are_tried_again_by_a_snapshot() {
    let (agent, feed) = agent().await;
    for number in 0..1_002 {
        let user = format!("u{number}");
        fs::write(agent.file(&user), THEIRS).unwrap();
        feed.add_key(&user, &key_id(number), &public_key(number), None);
    }
    let process = agent.start_with(&["--attest-every", "1"]);
    let told = feed.wait_for_head().await;
    assert_eq!((told.failures.len(), told.set_digest), (1_000, None));
    wait_for_message(&process, "ssh_keys.mending").await;
    for number in 0..1_002 {
        fs::remove_file(agent.file(&format!("u{number}"))).unwrap();
    }
    feed.wait_for_match().await;
    assert_eq!(agent.in_files().len(), 1_002);
}
