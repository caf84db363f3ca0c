use super::{program::ProgramError, stat::Stat, *};
use crate::stop::Stopper;
use serde_json::{Value, json};
use std::{future::pending, path::Path};
use test_support::eventually;

const LONG: Duration = Duration::from_secs(60);

struct Bench {
    folder: tempfile::TempDir,
    handler: Handler,
    stopper: Stopper,
    stop: Stop,
}

/// A handler that is a shell script; in it, `$DIR` is a folder of the test's own.
fn bench(script: &str) -> Bench {
    let folder = tempfile::tempdir().unwrap();
    let (stopper, stop) = Stop::new();
    let environment =
        vec![("PATH".into(), "/usr/bin:/bin".into()), ("DIR".into(), folder.path().into())];
    let handler = Handler {
        program: PathBuf::from("/bin/sh"),
        arguments: vec!["-c".into(), script.into()],
        environment,
        timeout: LONG,
        grace: LONG,
        state_folder: folder.path().to_owned(),
        max_private_output: 1000,
    };
    Bench { folder, handler, stopper, stop }
}

impl Bench {
    async fn run(&mut self, input: &[u8]) -> Ending {
        let run = self.handler.run(input.to_vec(), &mut self.stop, pending());
        tokio::time::timeout(LONG, run).await.expect("the handler should end long before").unwrap()
    }

    async fn answer(&mut self, input: &[u8]) -> Answer {
        let Ending::Answered(answer) = self.run(input).await else { panic!("there is no answer") };
        answer
    }

    async fn result(&mut self, input: &[u8]) -> Value {
        let text = self.answer(input).await.text(None);
        assert!(self.folder.path().join("handler").exists(), "the answer is not on disk yet");
        serde_json::from_str(&text).unwrap()
    }

    /// The process id that the script writes into `$DIR/<name>`.
    async fn process(&self, name: &str) -> i32 {
        written(&self.folder.path().join(name)).await
    }
}

/// The process id in a file, once it is there as a whole.
async fn written(path: &Path) -> i32 {
    eventually(LONG, "the script to write a process id", async || {
        let text = std::fs::read_to_string(path).ok()?;
        text.strip_suffix('\n')?.parse().ok()
    })
    .await
}

async fn is_gone(process: i32) {
    eventually(LONG, "the process to be gone", async || (!works(process)).then_some(())).await;
}

fn works(process: i32) -> bool {
    Stat::of(process).unwrap().is_some_and(|stat| stat.works)
}

async fn result(script: &str) -> Value {
    bench(script).result(b"{}\n").await
}

#[tokio::test]
async fn the_input_arrives_whole_and_the_output_is_the_answer() {
    let input = format!("{{\"text\":\"{}\"}}\n", "x".repeat(900_000));
    let result = bench("cat").result(input.as_bytes()).await;
    assert_eq!(result["outcome"], "succeeded");
    assert_eq!(result["output"]["text"].as_str().unwrap().len(), 900_000);
}

#[tokio::test]
async fn the_outputs_exact_text_is_kept() {
    let mut bench = bench(r#"printf ' {"b": 1.50,\n "a":[ ]} \n'"#);
    let text = bench.answer(b"").await.text(None);
    assert_eq!(text, "{\"outcome\":\"succeeded\",\"output\":{\"b\": 1.50,\n \"a\":[ ]}}");
}

#[tokio::test]
async fn no_output_is_success_without_an_output() {
    assert_eq!(result("exit 0").await, json!({"outcome": "succeeded"}));
    assert_eq!(result("echo").await, json!({"outcome": "succeeded"}));
}

#[tokio::test]
async fn exit_65_rejects_the_command() {
    let rejected = result("echo '{\"why\":\"never\"}'; exit 65").await;
    assert_eq!(rejected["outcome"], "rejected");
    assert_eq!(rejected["output"], json!({"why": "never"}));
}

#[tokio::test]
async fn another_exit_and_a_signal_fail() {
    let exit = result("echo 7; exit 3").await;
    assert_eq!((&exit["outcome"], &exit["output"]), (&json!("failed"), &json!(7)));
    assert_eq!(exit["detail"], "The handler exited with 3.");
    let signal = result("kill -9 $$").await;
    assert_eq!(signal["detail"], "The handler was ended by signal 9.");
}

#[tokio::test]
async fn an_output_that_is_too_deep_for_a_result_fails() {
    for (levels, outcome) in [(127, "succeeded"), (128, "failed")] {
        let deep = ["[".repeat(levels), "]".repeat(levels)].concat();
        // Its text: what reads a whole value has a bound of its own.
        let text = bench(&format!("echo '{deep}'")).answer(b"{}").await.text(None);
        assert!(text.starts_with(&format!("{{\"outcome\":\"{outcome}\"")), "{levels}: {text}");
    }
}

#[tokio::test]
async fn an_output_that_is_not_one_json_value_fails() {
    for script in ["echo hello", "echo '{} {}'", "echo '{'", "printf '\"\\377\"'", "printf '\\0'"] {
        let result = result(script).await;
        assert_eq!(result["outcome"], "failed", "{script}");
        assert_eq!(result.get("output"), None, "{script}");
    }
    // What goes with a failure is left out when it is not JSON.
    assert_eq!(result("echo hello; exit 1").await["detail"], "The handler exited with 1.");
}

#[tokio::test]
async fn the_largest_output_fits_and_one_byte_more_fails() {
    let most = answer::MAX_OUTPUT_BYTES;
    let script =
        |bytes| format!("printf '\"'; head -c {} /dev/zero | tr '\\0' x; printf '\"'", bytes - 2);
    let mut bench = bench(&script(most));
    let text = bench.answer(b"").await.text(None);
    assert!(text.len() > most && text.len() <= 1024 * 1024, "{}", text.len());
    assert!(text.starts_with("{\"outcome\":\"succeeded\""));
    assert_eq!(result(&script(most + 1)).await["outcome"], "failed");
}

#[tokio::test]
async fn a_handler_that_never_stops_writing_is_ended() {
    let mut bench = bench("echo $$ > $DIR/pid; exec cat /dev/zero");
    assert_eq!(bench.result(b"").await["outcome"], "failed");
    is_gone(bench.process("pid").await).await;
}

#[tokio::test]
async fn input_that_is_not_read_is_no_trouble() {
    let input = vec![b' '; 1_000_000];
    assert_eq!(bench("exec 0<&-; sleep 0.1; echo 1").result(&input).await["output"], 1);
    assert_eq!(bench("echo 2").result(&input).await["output"], 2);
    assert_eq!(bench("head -c 1 > /dev/null; echo 3").result(&input).await["output"], 3);
}

#[tokio::test]
async fn a_grandchild_that_holds_the_pipes_does_not_hold_us() {
    let mut bench = bench("sleep 1000 & echo $! > $DIR/pid; echo '\"done\"'");
    assert_eq!(bench.result(b"").await["output"], "done");
    let grandchild = bench.process("pid").await;
    assert!(works(grandchild), "it is not ours to end");
    let pid = rustix::process::Pid::from_raw(grandchild).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

#[tokio::test]
async fn a_handler_that_takes_too_long_is_ended_with_its_children() {
    let mut bench = bench("echo $$ > $DIR/pid; sleep 1000 & echo $! > $DIR/child; wait");
    bench.handler.timeout = Duration::from_millis(300);
    let result = bench.result(b"").await;
    assert_eq!(result["outcome"], "failed");
    assert_eq!(result["detail"], "The handler took longer than 0.3 s.");
    is_gone(bench.process("pid").await).await;
    is_gone(bench.process("child").await).await;
}

#[tokio::test]
async fn the_children_of_a_handler_that_is_gone_have_the_grace_too() {
    let tidy = "trap 'sleep 0.2; echo tidy > $DIR/tidy; exit' TERM; echo up > $DIR/up; sleep 1000";
    let mut bench = bench(&format!("({tidy} & wait) & while [ ! -e $DIR/up ]; do :; done; wait"));
    bench.handler.timeout = Duration::from_secs(1);
    assert_eq!(bench.result(b"").await["outcome"], "failed");
    assert!(bench.folder.path().join("tidy").exists());
}

#[tokio::test]
async fn one_that_ignores_sigterm_is_killed_after_the_grace_with_its_children() {
    let mut bench = bench(
        "trap '' TERM; echo $$ > $DIR/pid; sleep 1000 & echo $! > $DIR/child; while :; do wait; done",
    );
    bench.handler.timeout = Duration::from_millis(300);
    bench.handler.grace = Duration::from_millis(100);
    assert_eq!(bench.result(b"").await["outcome"], "failed");
    is_gone(bench.process("pid").await).await;
    is_gone(bench.process("child").await).await;
}

#[tokio::test]
async fn stopping_lets_the_handler_tidy_up_and_gives_no_result() {
    // Its child says that it is there, so that it is past the moment in which a signal is lost.
    let mut bench = bench(
        "trap 'echo tidy > $DIR/tidy; exit 0' TERM
        sh -c 'echo up > $DIR/up; exec sleep 1000' & wait",
    );
    let started = bench.folder.path().join("up");
    let run = bench.handler.run(Vec::new(), &mut bench.stop, pending());
    let stopping = async {
        eventually(LONG, "the handler to start", async || started.exists().then_some(())).await;
        bench.stopper.stop();
    };
    let (ending, ()) = tokio::join!(run, stopping);
    assert!(matches!(ending.unwrap(), Ending::Interrupted));
    assert!(bench.folder.path().join("tidy").exists());
    assert!(!bench.folder.path().join("handler").exists());
}

/// As systemd does by default: the signal goes to every process of the service.
#[tokio::test]
async fn a_handler_that_the_supervisor_ends_before_the_agent_gives_no_result() {
    for end in ["kill -TERM $$", "kill -INT $$; sleep 1000", "exit 143"] {
        let mut bench = bench(&format!("echo $$ > $DIR/pid; {end}"));
        let folder = bench.folder.path().to_owned();
        let run = bench.handler.run(Vec::new(), &mut bench.stop, pending());
        let stopping = async {
            is_gone(written(&folder.join("pid")).await).await;
            bench.stopper.stop();
        };
        let (ending, ()) = tokio::join!(run, stopping);
        assert!(matches!(ending.unwrap(), Ending::Interrupted), "{end}");
    }
}

#[tokio::test]
async fn stopping_at_once_waits_for_no_grace() {
    let mut bench = bench("trap '' TERM; echo $$ > $DIR/pid; while :; do sleep 1000; done");
    let started = bench.folder.path().join("pid");
    let run = bench.handler.run(Vec::new(), &mut bench.stop, pending());
    let stopping = async {
        let pid = written(&started).await;
        bench.stopper.stop_now();
        pid
    };
    // The grace is a minute too; it must not be waited for.
    let both = async { tokio::join!(run, stopping) };
    let (ending, pid) = tokio::time::timeout(LONG / 2, both).await.unwrap();
    assert!(matches!(ending.unwrap(), Ending::Interrupted));
    is_gone(pid).await;
}

#[tokio::test]
async fn the_handler_sees_the_environment_without_our_secrets() {
    let mut bench = bench("env > $DIR/env");
    let hidden = [
        "SITE_API_TOKEN_FILE",
        "SITE_COORDINATION_OWNER_DATABASE_URL",
        "SITE_COORDINATION_X",
        "SITE_CONTROL_ADMIN_DATABASE_URL",
        "SITE_CONTROL_X",
        "SSH_ACCESS_X",
        "SOURCE_CONTROL_GITLAB_TOKEN",
        "MEMBER_CREDENTIALS_KEY",
        "SOME_DATABASE_URL",
        "SOME_DATABASE_URL_FILE",
    ];
    let seen = ["FLAVOUR", "SITE_NAME", "SITE_AGENT_LOG", "DATABASE_URLS", "MY_SITE_API_"];
    for name in hidden.iter().chain(&seen) {
        bench.handler.environment.push((name.into(), "the-value".into()));
    }
    bench.result(b"").await;
    let text = std::fs::read_to_string(bench.folder.path().join("env")).unwrap();
    let mut names: Vec<_> =
        text.lines().filter_map(|line| line.strip_suffix("=the-value")).collect();
    names.sort_unstable();
    let mut seen = seen;
    seen.sort_unstable();
    assert_eq!(names, seen);
}

#[tokio::test]
async fn a_program_that_is_gone_is_the_agents_trouble() {
    let mut bench = bench("");
    bench.handler.program = bench.folder.path().join("gone");
    let error = bench.handler.run(Vec::new(), &mut bench.stop, pending()).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
}

#[test]
fn the_handler_reads_the_command_on_one_line_with_the_bodys_text() {
    let text = r#"{"commandId":"cmd_1","seq":7,"kind":"k","runId":"r","digest":"0000000000000000000000000000000000000000000000000000000000000000","createdAt":"2024-05-06T07:08:09Z","body":{"b": 1.50,
  "a\n":[]}}"#;
    let command: site_protocol::Command = serde_json::from_str(text).unwrap();
    let input = String::from_utf8(invocation(&command, 2).unwrap()).unwrap();
    let expected = text.replace("\"body\"", "\"try\":2,\"body\"").replace('\n', " ");
    assert_eq!(input, expected + "\n");
}

#[test]
fn a_program_is_found_by_its_path_or_on_the_path_variable() {
    use std::ffi::OsStr;
    let folder = tempfile::tempdir().unwrap();
    let plain = folder.path().join("plain");
    std::fs::write(&plain, "").unwrap();
    let find = |name: &OsStr| program::find_program(name, Some(OsStr::new("/nowhere:/bin")));
    assert_eq!(find("sh".as_ref()), Ok(PathBuf::from("/bin/sh")));
    assert_eq!(find("/bin/sh".as_ref()), Ok(PathBuf::from("/bin/sh")));
    for name in ["no-such-program", "/bin/no-such-program", "./no-such-program", ""] {
        let missing = ProgramError::Missing(PathBuf::from(name));
        assert_eq!(find(name.as_ref()), Err(missing));
    }
    assert_eq!(find(plain.as_ref()), Err(ProgramError::NotExecutable(plain.clone())));
    let here = folder.path().to_owned();
    assert_eq!(find(here.as_ref()), Err(ProgramError::NotExecutable(here)));
}
