//! Children: their output is seen, and they never outlive the value.

use std::{path::Path, process::Command, time::Duration};

use rustix::process::Signal;
use test_support::{
    Process, eventually,
    process::{Exit, Stream, WaitError},
};

const GENEROUS: Duration = Duration::from_secs(60);

fn shell(script: &str) -> Process {
    let mut command = Command::new("sh");
    command.arg("-c").arg(script);
    Process::start(command).unwrap()
}

fn is_there(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

#[tokio::test]
async fn both_streams_are_kept_line_by_line() {
    let process = shell("echo one; echo two >&2; printf 'no line end'");
    assert_eq!(process.wait_exit(GENEROUS).await.unwrap(), Exit::Code(0));
    let lines = process.lines();
    let of = |stream| {
        let lines = lines.iter().filter(|line| line.stream == stream);
        lines.map(|line| line.text.as_str()).collect::<Vec<_>>()
    };
    assert_eq!(of(Stream::Out), ["one", "no line end"]);
    assert_eq!(of(Stream::Err), ["two"]);
}

#[tokio::test]
async fn a_line_is_found_whether_it_comes_before_or_after_the_question() {
    let process = shell("echo ready; read wait; echo never");
    let ready = process.wait_for_line("readiness", GENEROUS, |line| line == "ready").await;
    assert_eq!(ready.unwrap(), "ready");
    let again = process.wait_for_line("readiness", GENEROUS, |line| line == "ready").await;
    assert_eq!(again.unwrap(), "ready");
}

#[tokio::test]
async fn a_process_that_ends_first_is_told_with_its_last_lines() {
    let process = shell("echo 'it is broken' >&2; exit 3");
    let error = process.wait_for_line("readiness", GENEROUS, |_| false).await.unwrap_err();
    assert!(matches!(error, WaitError::Ended { exit: Exit::Code(3), .. }), "{error}");
    assert!(error.to_string().ends_with("its last lines:\nit is broken"), "{error}");
}

#[tokio::test]
async fn a_wait_that_is_over_is_told_with_the_last_lines() {
    let process = shell("echo waiting; exec sleep 1000");
    process.wait_for_line("its first line", GENEROUS, |line| line == "waiting").await.unwrap();
    let error = process.wait_exit(Duration::from_millis(50)).await.unwrap_err();
    assert!(matches!(error, WaitError::TimedOut { .. }), "{error}");
    assert!(error.to_string().ends_with("waiting"), "{error}");
}

#[tokio::test]
async fn a_signal_reaches_the_process() {
    let process = shell("trap 'exit 7' TERM; echo ready; while :; do sleep 0.05; done");
    process.wait_for_line("readiness", GENEROUS, |line| line == "ready").await.unwrap();
    process.signal(Signal::TERM);
    assert_eq!(process.wait_exit(GENEROUS).await.unwrap(), Exit::Code(7));
}

#[tokio::test]
async fn a_killed_process_ends_by_the_signal() {
    let process = shell("exec sleep 1000");
    process.kill();
    assert_eq!(process.exit(), Some(Exit::Signal(9)));
}

#[tokio::test]
async fn a_dropped_process_takes_its_children_along() {
    let process = shell("sleep 1000 & echo $!; wait");
    let child = process.wait_for_line("the child's id", GENEROUS, |_| true).await.unwrap();
    let (parent, child) = (process.pid(), child.parse().unwrap());
    assert!(is_there(parent) && is_there(child));
    drop(process);
    assert!(!is_there(parent));
    eventually(GENEROUS, "the end of the child", async || (!is_there(child)).then_some(())).await;
}

#[tokio::test]
async fn a_child_dies_with_a_parent_that_is_killed() {
    let mut parent = Command::new(std::env::current_exe().unwrap());
    parent.args(["--exact", "process::program_that_has_a_child", "--nocapture"]);
    parent.env("TEST_SUPPORT_PARENT", "1");
    let parent = Process::start(parent).unwrap();
    let line = parent.wait_for_line("the child", GENEROUS, |line| line.starts_with("child ")).await;
    let child: u32 = line.unwrap().strip_prefix("child ").unwrap().parse().unwrap();
    assert!(is_there(child));
    parent.signal(Signal::KILL);
    eventually(GENEROUS, "the end of the child", async || (!is_there(child)).then_some(())).await;
}

/// No test: the program of the test above, which starts a child and waits to be killed.
#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "it is told apart from an ordinary run")]
async fn program_that_has_a_child() {
    if std::env::var_os("TEST_SUPPORT_PARENT").is_none() {
        return;
    }
    let child = shell("echo running; exec sleep 1000");
    // Until its first line it may not have asked yet to die with us.
    child.wait_for_line("its first line", GENEROUS, |line| line == "running").await.unwrap();
    eprintln!("child {}", child.pid());
    child.wait_exit(Duration::MAX).await.unwrap();
}
