//! A full disk: the files are whole, the place is not acknowledged, and it goes on when there is room.

use std::{fs, os::unix::fs::PermissionsExt, path::Path, process::Command};

use super::{agent, wait_for_message};

/// A small file system on a folder, for as long as the value lives.
struct SmallDisk<'a>(&'a Path);

impl<'a> SmallDisk<'a> {
    fn mount(folder: &'a Path, bytes: u32) -> Self {
        let options = format!("size={bytes},mode=0755");
        let arguments = ["-t", "tmpfs", "-o", &options, "tmpfs"];
        let mounted = Command::new("mount").args(arguments).arg(folder).status().unwrap();
        assert!(mounted.success(), "only root can make a small disk: run the tests as root");
        Self(folder)
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        // Lazily: the agent may still hold it open.
        let unmounted = Command::new("umount").arg("--lazy").arg(self.0).status();
        assert!(unmounted.is_ok_and(|status| status.success()), "{} stays", self.0.display());
    }
}

/// Leaves room for no file more.
fn fill(filler: &Path) {
    let mut size = 512 * 1024;
    while size > 0 {
        let mut file = fs::OpenOptions::new().create(true).append(true).open(filler).unwrap();
        if std::io::Write::write_all(&mut file, &vec![0; size]).is_err() {
            size /= 2;
        }
    }
}

#[tokio::test]
async fn a_full_disk_leaves_the_old_files_whole_and_the_place_unacknowledged() {
    let (agent, feed) = agent().await;
    let keys = agent.path("keys");
    let _disk = SmallDisk::mount(&keys, 256 * 1024);
    feed.add("alice", 1);
    feed.add("bob", 2);
    let process = agent.start();
    feed.wait_for_match().await;
    let before = agent.in_files();
    let acknowledged = feed.acknowledged().len();
    let filler = keys.join(".filler");
    fill(&filler);
    feed.add("alice", 3);
    feed.add("carol", 4);
    feed.remove("bob", 2);
    let event = wait_for_message(&process, "ssh_keys.own_trouble").await;
    assert_eq!(event["alarm.name"], "ssh_files_not_written");
    assert!(event["error"].as_str().unwrap().contains("No space left"), "{event}");
    assert_eq!(agent.names(), [".filler", "alice", "bob"], "nothing half written is left");
    assert_eq!(agent.ids("alice").len() + agent.ids("bob").len(), before.len());
    assert_eq!(feed.acknowledged().len(), acknowledged);
    fs::remove_file(&filler).unwrap();
    feed.wait_for_head().await;
    assert_eq!(agent.in_files(), feed.in_force());
    process.kill();
}

#[tokio::test]
async fn an_agent_that_ends_before_there_is_room_goes_on_at_the_place_that_its_files_have() {
    let (agent, feed) = agent().await;
    let keys = agent.path("keys");
    let _disk = SmallDisk::mount(&keys, 256 * 1024);
    feed.add("alice", 1);
    let process = agent.start();
    feed.wait_for_match().await;
    let filler = keys.join(".filler");
    fill(&filler);
    feed.add("alice", 2);
    wait_for_message(&process, "ssh_keys.own_trouble").await;
    process.kill();
    fs::remove_file(&filler).unwrap();
    let process = agent.start();
    feed.wait_for_match().await;
    assert_eq!((agent.in_files(), feed.snapshots()), (feed.in_force(), 1));
    process.kill();
}

#[tokio::test]
async fn a_full_disk_below_the_state_acknowledges_nothing() {
    let (agent, feed) = agent().await;
    let state = agent.path("state");
    fs::create_dir(&state).unwrap();
    let _disk = SmallDisk::mount(&state, 64 * 1024);
    feed.add("alice", 1);
    let process = agent.start();
    feed.wait_for_match().await;
    let acknowledged = feed.acknowledged().len();
    let filler = state.join("filler");
    let mut file = fs::File::create(&filler).unwrap();
    while std::io::Write::write_all(&mut file, &[0; 256]).is_ok() {}
    feed.add("alice", 2);
    wait_for_message(&process, "ssh_keys.own_trouble").await;
    assert_eq!(feed.acknowledged().len(), acknowledged);
    process.kill();
    // What was not acknowledged is applied again, and comes to the same.
    drop(file);
    fs::remove_file(&filler).unwrap();
    let process = agent.start();
    feed.wait_for_match().await;
    assert_eq!((agent.in_files(), feed.snapshots()), (feed.in_force(), 1));
    process.kill();
    let mode = fs::metadata(agent.file("alice")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o644);
}
