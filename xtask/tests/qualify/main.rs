//! The lanes of `cargo xtask qualify`, for half a minute each. Each runs alone: it builds the programs
//! that other tests start, and breaks everything of its own for half a minute.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{path::Path, process::Command, time::Duration};

use serde_json::Value;
use test_support::{
    Process,
    process::{Exit, LastSignal, Stream, forget_cargo},
};

/// A build, half a minute of faults, and what the slowest recovery may take.
const ENDS_WITHIN: Duration = Duration::from_secs(550);

fn lane(arguments: &[&str]) -> Process {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut command = Command::new("cargo");
    command.current_dir(root).args(["xtask", "qualify"]).args(arguments);
    forget_cargo(&mut command);
    Process::start_ending_by(command, LastSignal::Interrupt).unwrap()
}

/// The faults that half a minute has to survive, as the report names them.
const FAULTS: [&str; 20] = [
    "agent SIGKILL",
    "agent SIGSTOP",
    "listener SIGKILL",
    "listener SIGSTOP",
    "backend SIGKILL",
    "backend terminated",
    "backend SIGSTOP",
    "PostgreSQL SIGKILL",
    "PostgreSQL SIGSTOP",
    "network delay",
    "connections cut",
    "answer cut",
    "black hole",
    "connections refused",
    "HTML 503",
    "clock an hour ahead",
    "clock an hour behind",
    "PostgreSQL's clock an hour off",
    "backup, server stopped",
    "older database restored",
];

/// Runs a lane for half a minute, and returns its claims, each of which held, and all that it printed.
async fn claims(name: &str) -> (Vec<Value>, String) {
    let lane = lane(&[name, "--seconds", "30", "--json"]);
    let exit = lane.wait_exit(ENDS_WITHIN).await.unwrap_or_else(|error| panic!("{error}"));
    let lines = lane.lines();
    let whole = lines.iter().map(|line| line.text.as_str()).collect::<Vec<_>>().join("\n");
    assert_eq!(exit, Exit::Code(0), "{whole}");
    let claims: Vec<Value> = lines
        .iter()
        .filter(|line| line.stream == Stream::Out)
        .map(|line| serde_json::from_str(&line.text).unwrap())
        .collect();
    for claim in &claims {
        assert_eq!(claim["ok"], true, "{claim}");
    }
    (claims, whole)
}

#[tokio::test]
async fn half_a_minute_of_every_fault_breaks_no_promise_of_the_commands() {
    let (claims, whole) = claims("commands").await;
    for fault in FAULTS {
        let name = format!("fault: {fault}");
        let claim = claims.iter().find(|claim| claim["claim"] == name.as_str());
        let met = claim.is_some_and(|claim| !claim["figure"].as_str().unwrap().starts_with("0 "));
        assert!(met, "{name} met nobody:\n{whole}");
    }
}

/// What half a minute has to take away at least once.
const AWAY: [&str; 7] = [
    "the permission is taken away",
    "the permission to see is taken away",
    "the binding is released",
    "another Attempt is the latest",
    "the responder is dead",
    "the responder is silent",
    "the broker is dead",
];

#[tokio::test]
async fn half_a_minute_of_what_is_taken_away_is_never_a_yes() {
    let (claims, whole) = claims("authority").await;
    for what in AWAY {
        let told = claims.iter().any(|claim| claim["claim"].as_str().unwrap().ends_with(what));
        assert!(told, "{what} never was:\n{whole}");
    }
}

/// What half a minute has to break at least once.
const BROKEN: [&str; 7] = [
    "agent SIGKILL",
    "agent SIGKILL after an acknowledgement",
    "ssh-access SIGKILL",
    "site-api SIGKILL",
    "PostgreSQL SIGKILL",
    "black hole",
    "HTML 503, connections cut",
];

#[tokio::test]
async fn half_a_minute_of_changing_keys_lets_nobody_in_who_should_not_be() {
    let (claims, whole) = claims("ssh").await;
    let told = |what: &str| claims.iter().any(|claim| claim["claim"] == what);
    for fault in BROKEN {
        assert!(told(&format!("fault: {fault}")), "{fault} never was:\n{whole}");
    }
    for ends in [
        "a removed key is refused within the window",
        "cut off: a removed key is refused within the window, by sshd itself",
        "an older database: what it does not know is refused",
    ] {
        assert!(told(ends), "{ends}: nobody looked:\n{whole}");
    }
}
