//! The README and the demo, as a newcomer runs them: every command for real, and nothing left
//! behind. Runs alone: the demo builds the programs that other tests start.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod readme;
mod traces;

use std::{path::Path, process::Command, time::Duration};

use rustix::process::{Pid, Signal, kill_process_group};
use test_support::{
    Process, Random,
    process::{Exit, LastSignal, forget_cargo},
};
use traces::Traces;

/// A build on a machine with nothing in its cache is the longest part.
const DEMO_WITHIN: Duration = Duration::from_secs(280);

/// Beside that, the packages of RabbitMQ and of a login issuer may have to be fetched.
const ALL_WITHIN: Duration = Duration::from_secs(290);

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

fn demo(traces: &Traces, arguments: &[&str]) -> Process {
    xtask(traces, &[&["demo"], arguments].concat())
}

fn xtask(traces: &Traces, arguments: &[&str]) -> Process {
    let mut command = Command::new("cargo");
    command.current_dir(root()).arg("xtask").args(arguments);
    forget_cargo(&mut command);
    traces.mark(&mut command);
    Process::start_ending_by(command, LastSignal::Interrupt).unwrap()
}

/// What a terminal does on Ctrl-C.
fn interrupt(process: &Process) {
    let group = Pid::from_raw(process.pid().try_into().unwrap()).unwrap();
    kill_process_group(group, Signal::INT).unwrap();
}

#[tokio::test]
async fn the_demo_ends_with_a_table_in_which_everything_held() {
    let traces = Traces::new();
    let demo = demo(&traces, &[]);
    assert_eq!(demo.wait_exit(DEMO_WITHIN).await.unwrap(), Exit::Code(0), "{}", demo.tail());
    let table = demo.tail();
    for row in [
        "commands enqueued                 300",
        "results stored, succeeded         300",
        "sequence without a gap            yes",
        "handler ran them in order         yes",
        "lost                                0",
        "run twice without notice            0",
    ] {
        assert!(table.contains(row), "{row:?} in\n{table}");
    }
    // Half a tick is what a delivery takes on average when no hint arrives.
    let (p50, p99) = (milliseconds(&table, "p50"), milliseconds(&table, "p99"));
    assert!(p50 > 0.0 && p50 < 300.0 && p50 <= p99, "{table}");
    let all = demo.lines();
    assert!(all.iter().any(|line| line.text.contains("site-api killed (SIGKILL)")), "{table}");
    traces.assert_none_left().await;
}

#[tokio::test]
async fn the_whole_demo_shows_a_run_with_authority_and_a_login_with_its_end() {
    let traces = Traces::new();
    let demo = demo(&traces, &["--all", "--commands", "20"]);
    assert_eq!(demo.wait_exit(ALL_WITHIN).await.unwrap(), Exit::Code(0), "{}", demo.tail());
    let told = demo.tail();
    let tells = |what: &str, came_to: &str| {
        let line = told.lines().find(|line| line.contains(what));
        assert!(line.is_some_and(|line| line.contains(came_to)), "{what}: {came_to} in\n{told}");
    };
    tells("its member reads it", "200 OK");
    tells("another member is told that there is none", "not_found");
    tells("`site-admin keys add`, then `ssh`", "let in, ");
    tells("`site-admin keys remove`, then `ssh`", "refused, ");
    traces.assert_none_left().await;
}

/// The figure of a delivery's row.
fn milliseconds(table: &str, quantile: &str) -> f64 {
    let row = table.lines().find(|line| line.contains(quantile)).unwrap();
    let figure = row.split_once(quantile).unwrap().1.split_once(" ms").unwrap().0;
    figure.trim().parse().unwrap()
}

#[tokio::test]
async fn the_test_command_leaves_nothing_behind() {
    let traces = Traces::new();
    let chosen = xtask(&traces, &["test", "--package", "site-protocol"]);
    assert_eq!(chosen.wait_exit(DEMO_WITHIN).await.unwrap(), Exit::Code(0), "{}", chosen.tail());
    assert!(chosen.tail().contains("OK: "), "{}", chosen.tail());
    traces.assert_none_left().await;
}

#[tokio::test]
async fn each_line_that_keep_prints_works_when_pasted() {
    let traces = Traces::new();
    let demo = demo(&traces, &["--commands", "20", "--keep"]);
    demo.wait_for_line("the end of its lines", DEMO_WITHIN, |line| line.contains("Ctrl-C stops"))
        .await
        .unwrap_or_else(|error| panic!("{error}\n{}", demo.tail()));
    let lines = demo.lines();
    let pasted: Vec<_> = lines
        .iter()
        .map(|line| line.text.trim())
        .filter(|line| line.starts_with("curl ") || line.starts_with("SITE_COORDINATION_"))
        .collect();
    assert_eq!(pasted.len(), 5, "{pasted:#?}");
    let mut answers = String::new();
    for line in &pasted {
        // A problem is a failure here, also where curl itself is content.
        let line = line.replace("curl ", "curl --silent --show-error --fail ");
        let output = Command::new("sh").args(["-c", &line]).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{line}\n{error}");
        answers.push_str(&String::from_utf8_lossy(&output.stdout));
    }
    for part in ["\"ok\"", "\"seq\":2", "http_requests_total", "\"alarms\":[]", "succeeded"] {
        assert!(answers.contains(part), "{part} in\n{answers}");
    }
    interrupt(&demo);
    assert_eq!(demo.wait_exit(DEMO_WITHIN).await.unwrap(), Exit::Code(0), "{}", demo.tail());
    traces.assert_none_left().await;
}

#[tokio::test]
async fn ctrl_c_at_any_moment_leaves_nothing_behind() {
    let mut random = Random::of_this_test();
    // The steps of a demo by what it prints; then a random moment within the step.
    for step in [
        "cargo build",
        "cluster",
        "migrated",
        "certificate",
        "started",
        "commands into",
        "answered",
    ] {
        let traces = Traces::new();
        let demo = demo(&traces, &["--commands", "60"]);
        demo.wait_for_line(step, DEMO_WITHIN, |line| line.contains(step))
            .await
            .unwrap_or_else(|error| panic!("{error}\n{}", demo.tail()));
        tokio::time::sleep(random.duration(Duration::from_millis(300))).await;
        interrupt(&demo);
        demo.wait_exit(DEMO_WITHIN).await.unwrap();
        traces.assert_none_left().await;
    }
}
