use super::*;
use crate::{handler::Answer, journal::Keep};
use rustix::process::{Pid, WaitOptions, waitpid};
use serde_json::value::RawValue;
use site_client::{Origin, Timeouts, TokenFile};
use site_protocol::Digest;
use std::{ffi::OsString, path::Path, sync::Arc};
use test_support::eventually;

const LONG: Duration = Duration::from_secs(60);

const KEEP: Keep = Keep { results: 0, result_bytes: 0, output_bytes: 0 };
const START: Cursor = Cursor { seq: 0, chain_digest: Digest::ZERO };

/// A Runtime whose handler is a shell script; in it, `$DIR` is the folder.
async fn runtime(folder: &Path, script: &str) -> Runtime {
    let origin = Origin::parse("https://site.example").unwrap();
    std::fs::write(folder.join("token"), "the-token\n").unwrap();
    let token = TokenFile::open(folder.join("token")).await.unwrap();
    let state_folder = folder.join("state");
    let journal = Journal::open(&state_folder, &origin, KEEP).unwrap();
    let client =
        SiteClient::new(origin, rustls::RootCertStore::empty(), token, Timeouts::default());
    let environment = [("PATH", "/usr/bin:/bin".into()), ("DIR", folder.into())];
    let handler = Handler {
        program: "/bin/sh".into(),
        arguments: vec!["-c".into(), script.into()],
        environment: environment.map(|(name, value)| (OsString::from(name), value)).into(),
        timeout: LONG,
        grace: LONG,
        state_folder,
        max_private_output: 1000,
    };
    let polling = Polling { limit: 1, wait: LONG };
    let (_, stop) = Stop::new();
    Runtime::new(client, journal, handler, polling, || DateTime::UNIX_EPOCH, Arc::new(|| 0), stop)
}

fn command() -> Command {
    Command {
        command_id: "cmd_1".to_owned(),
        seq: 1,
        kind: "test".to_owned(),
        run_id: None,
        not_after: None,
        voided: false,
        digest: Digest::ZERO,
        created_at: DateTime::UNIX_EPOCH,
        body: RawValue::from_string("{}".to_owned()).unwrap(),
    }
}

/// As the loop does it: again, until there is an answer.
async fn until_answered(runtime: &mut Runtime, command: &Command) -> (u32, Answer) {
    loop {
        let run = runtime.run_handler(command, START).await.unwrap();
        if let Some((try_number, answer, _)) = run {
            return (try_number, answer);
        }
    }
}

#[tokio::test]
async fn a_handler_that_was_lost_after_it_had_its_command_is_run_again_as_another_try() {
    let folder = tempfile::tempdir().unwrap();
    // The first try leaves a child behind that holds the lock; the second would see it.
    let script = "IFS= read -r INPUT; TRY=${INPUT##*\\\"try\\\":}; TRY=${TRY%%,*}
        exec 9> $DIR/lock; flock -n 9 || { echo '\"both\"'; exit; }
        [ $TRY = 1 ] || { echo $TRY; exit; }
        sleep 1000 & echo $$ > $DIR/first
        while [ ! -e $DIR/go ]; do sleep 0.01; done";
    let mut runtime = runtime(folder.path(), script).await;
    let command = command();
    // Somebody else waits for the agent's child, and is faster: both run in one thread.
    let thief = async {
        let first = eventually(LONG, "the handler to run", async || {
            let text = std::fs::read_to_string(folder.path().join("first")).ok()?;
            Pid::from_raw(text.strip_suffix('\n')?.parse().ok()?)
        });
        let first = first.await;
        std::fs::write(folder.path().join("go"), "").unwrap();
        waitpid(Some(first), WaitOptions::empty()).unwrap();
    };
    let ((tries, answer), ()) = tokio::join!(until_answered(&mut runtime, &command), thief);
    let result = answer.text(None);
    assert_eq!((tries, result.as_str()), (2, "{\"outcome\":\"succeeded\",\"output\":2}"));
    assert_eq!(runtime.journal.entry("cmd_1").unwrap().tries, 2);
}

#[tokio::test]
async fn a_handler_that_could_not_be_started_had_no_try() {
    let folder = tempfile::tempdir().unwrap();
    let script = "IFS= read -r INPUT; echo \"$INPUT\"";
    let mut runtime = runtime(folder.path(), script).await;
    let program = std::mem::replace(&mut runtime.handler.program, folder.path().join("sh"));
    let command = command();
    // Begins when the first start of it has failed.
    let repaired = async {
        std::os::unix::fs::symlink(program, folder.path().join("sh")).unwrap();
    };
    let ((tries, answer), ()) = tokio::join!(until_answered(&mut runtime, &command), repaired);
    let result = answer.text(None);
    assert_eq!(tries, 1);
    assert!(result.contains("\"try\":1"), "{result}");
}

#[tokio::test]
async fn what_a_finished_handler_left_in_the_background_is_not_ended() {
    let folder = tempfile::tempdir().unwrap();
    let script = "sleep 1000 & echo $! > $DIR/child; exit 0";
    let mut runtime = runtime(folder.path(), script).await;
    let command = command();
    let note = folder.path().join("state/handler");
    let (_, answer) = until_answered(&mut runtime, &command).await;
    assert!(note.exists(), "an agent that is killed here runs the command again");
    let noted = std::fs::read(&note).unwrap();
    runtime.record_result(&command, answer).await.unwrap();
    assert!(!note.exists());
    // As if the agent had been killed between the two.
    std::fs::write(&note, noted).unwrap();
    runtime.end_leftover().await.unwrap();
    assert!(!note.exists());
    let child = std::fs::read_to_string(folder.path().join("child")).unwrap();
    let child = Pid::from_raw(child.trim().parse().unwrap()).unwrap();
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.as_raw_nonzero())).unwrap();
    assert!(!stat.contains(") Z "), "{stat}");
    rustix::process::kill_process(child, rustix::process::Signal::KILL).unwrap();
}
