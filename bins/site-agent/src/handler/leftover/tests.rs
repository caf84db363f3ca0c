use super::*;
use crate::handler::stat::Stat;
use rustix::process::Signal;
use test_support::eventually;

const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(100);

/// A process that leads a group of its own, which an agent might have left behind; killed with its
/// group when dropped.
struct Orphan {
    leader: std::process::Child,
    group: Group,
}

impl Orphan {
    fn spawn(script: &str, folder: &Path) -> Self {
        use std::os::unix::process::CommandExt;
        let mut command = std::process::Command::new("/bin/sh");
        let command = command.args(["-c", script]).env("DIR", folder).process_group(0);
        let leader = command.spawn().unwrap();
        let group = Group::led_by(i32::try_from(leader.id()).unwrap()).unwrap();
        Self { leader, group }
    }

    /// One whose leader is gone, and whose child works on; gives the child's process id too.
    async fn without_leader(script: &str, folder: &Path) -> (Self, i32) {
        let script = format!("({script}) & echo $! > $DIR/child");
        let mut orphan = Self::spawn(&script, folder);
        assert!(orphan.leader.wait().unwrap().success());
        let child = std::fs::read_to_string(folder.join("child")).unwrap().trim().parse().unwrap();
        (orphan, child)
    }

    fn has_ended(&mut self) -> bool {
        self.leader.try_wait().unwrap().is_some()
    }
}

impl Drop for Orphan {
    fn drop(&mut self) {
        self.group.send(Signal::KILL);
        self.leader.wait().unwrap();
    }
}

fn works(process: i32) -> bool {
    Stat::of(process).unwrap().is_some_and(|stat| stat.works)
}

#[tokio::test]
async fn a_handler_that_outlived_a_killed_agent_is_ended() {
    let folder = tempfile::tempdir().unwrap();
    let note = Leftover::in_folder(folder.path());
    for script in ["exec sleep 1000", "trap '' TERM; while :; do sleep 1000; done"] {
        let mut orphan = Orphan::spawn(script, folder.path());
        note.note(&orphan.group).unwrap();
        note.end(SHORT).await.unwrap();
        assert!(orphan.has_ended(), "{script}");
        assert!(!folder.path().join("handler").exists());
    }
}

#[tokio::test]
async fn what_a_handler_that_is_gone_left_behind_is_ended() {
    let folder = tempfile::tempdir().unwrap();
    let note = Leftover::in_folder(folder.path());
    for script in ["exec sleep 1000", "trap '' TERM; while :; do sleep 1000; done"] {
        let (orphan, child) = Orphan::without_leader(script, folder.path()).await;
        note.note(&orphan.group).unwrap();
        assert!(works(child));
        note.end(SHORT).await.unwrap();
        assert!(!works(child), "{script}");
        assert!(!folder.path().join("handler").exists());
    }
}

#[tokio::test]
async fn what_a_handler_left_behind_may_tidy_up() {
    let folder = tempfile::tempdir().unwrap();
    let script = "trap 'sleep 0.2; echo tidy > $DIR/tidy; exit' TERM; echo up > $DIR/up
        while :; do sleep 0.01; done";
    let (orphan, child) = Orphan::without_leader(script, folder.path()).await;
    let up = async || folder.path().join("up").exists().then_some(());
    eventually(LONG, "the child to be up", up).await;
    let note = Leftover::in_folder(folder.path());
    note.note(&orphan.group).unwrap();
    note.end(LONG).await.unwrap();
    assert!(folder.path().join("tidy").exists());
    assert!(!works(child));
}

#[tokio::test]
async fn a_note_that_does_not_name_the_group_exactly_ends_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("handler");
    let note = Leftover::in_folder(folder.path());
    let mut leader = Orphan::spawn("exec sleep 1000", folder.path());
    let (orphan, child) = Orphan::without_leader("exec sleep 1000", folder.path()).await;
    for group in [&leader.group, &orphan.group] {
        note.note(group).unwrap();
        let good = std::fs::read_to_string(&path).unwrap();
        let words: Vec<_> = good.trim().splitn(4, ' ').collect();
        let [id, session, start, machine] = words[..] else { panic!("{good}") };
        let mut notes = vec![
            format!("{id} {session} {start} another-{machine}\n"),
            format!("{id} {session} {start} {machine}x\n"),
            format!("{id} {session} {start} {machine}"),
            format!("0 {session} {start} {machine}\n"),
            format!("1 {session} {start} {machine}\n"),
            format!("-1 {session} {start} {machine}\n"),
            String::new(),
        ];
        // A later process, or group, with the same number.
        notes.push(if *group == leader.group {
            format!("{id} {session} 1{start} {machine}\n")
        } else {
            format!("{id} 1{session} {start} {machine}\n")
        });
        for text in notes {
            std::fs::write(&path, &text).unwrap();
            note.end(SHORT).await.unwrap();
            assert!(!path.exists(), "{text:?}");
            assert!(works(child), "{text:?}");
        }
    }
    assert!(!leader.has_ended());
}
