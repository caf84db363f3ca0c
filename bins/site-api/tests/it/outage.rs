//! A database that is not there: at the start it is waited for, later callers are told, and it all
//! heals by itself.

use std::process::Command;

use rustix::process::Signal;
use serde_json::json;
use test_support::{Process, eventually, process::Exit};

use crate::support::{Api, Case, Gate, LONG, Place, Request, plain};

const DATABASE: &str = "SITE_COORDINATION_DATABASE_URL";

/// A running Site API that reaches its database through a gate, which is open.
async fn behind_a_gate(place: Place) -> (Api, Gate) {
    let gate = Gate::open_before(&url_of(&place));
    let command = gated(&place, &gate);
    (place.start_by(command).await, gate)
}

fn gated(place: &Place, gate: &Gate) -> Command {
    let mut command = place.command();
    command.env(DATABASE, gate.url(&url_of(place)));
    command
}

fn url_of(place: &Place) -> String {
    place.database.url("site_coordination_api")
}

#[tokio::test]
async fn a_database_that_goes_away_is_told_alarmed_and_forgotten_when_it_is_back() {
    let place = Place::prepare().await;
    let ids = place.enqueue(&["{}"]);
    let (api, mut gate) = behind_a_gate(place).await;
    let bearer = api.bearer();
    let all = || Case::of_commands().map(|case| case.idle_request(&ids[0]).bearer(&bearer));
    assert_eq!(api.send(&api.poll("after=0")).await.status, 200);
    assert_eq!(api.alarms().await, [""; 0]);

    gate.shut().await;
    for request in all() {
        let problem = api.send(&request).await.problem();
        assert_eq!((problem.code.as_str(), problem.retryable), ("database_unavailable", true));
    }
    assert_eq!(api.alarms().await, ["database"]);
    assert!(metrics(&api).await.contains("alarm{name=\"database\"} 1"));
    let probe = api.send(&Request::new("GET", "/healthz")).await;
    assert_eq!((probe.status, probe.json()), (200, json!({"status": "ok"})));

    gate.open();
    eventually(LONG, "the first answer", async || {
        (api.send(&api.poll("after=0")).await.status == 200).then_some(())
    })
    .await;
    no_alarm(&api).await;
    assert!(metrics(&api).await.contains("alarm{name=\"database\"} 0"));
    for request in all() {
        assert!(api.send(&request).await.status < 500);
    }
    let lines = api.process.lines();
    let changes: Vec<_> = lines.iter().filter(|line| line.text.contains("\"alarm.")).collect();
    assert_eq!(changes.len(), 2, "raised once and cleared once: {changes:#?}");
}

/// The verdict about a bearer needs no storage: its Site is compared before anything is read.
#[tokio::test]
async fn a_bearer_of_another_site_is_told_so_while_the_database_is_away() {
    let place = Place::prepare().await;
    let other =
        place.issue(&["--scope", "commands", "--site", "south-1", "--environment", "slurm"]);
    let agent = place.issue(&["--scope", "ssh-access", "--site", "north-1"]);
    let (api, mut gate) = behind_a_gate(place).await;
    gate.shut().await;
    for case in Case::granted() {
        let id = format!("cmd_{}", "0".repeat(32));
        for (bearer, code) in [(&other, "site_mismatch"), (&agent, "forbidden")] {
            let answer = api.send(&case.request(&id).bearer(bearer)).await;
            assert_eq!(answer.code(), code, "{case:?}");
        }
    }
    assert_eq!(api.alarms().await, [""; 0], "nobody met the database");
    assert_eq!(api.send(&api.poll("after=0")).await.code(), "database_unavailable");
}

async fn no_alarm(api: &Api) {
    eventually(LONG, "the end of the alarm", async || api.alarms().await.is_empty().then_some(()))
        .await;
}

/// Nobody calls any more, or only polls that wait: the alarm goes all the same.
#[tokio::test]
async fn the_alarm_goes_without_a_request_that_succeeds() {
    let (api, mut gate) = behind_a_gate(Place::prepare().await).await;
    gate.shut().await;
    assert_eq!(api.send(&api.poll("after=0")).await.code(), "database_unavailable");
    assert_eq!(api.alarms().await, ["database"]);
    gate.open();
    no_alarm(&api).await;
}

async fn metrics(api: &Api) -> String {
    plain(api.admin, &Request::new("GET", "/metrics")).await.text().to_owned()
}

/// Statements run into their time limit, while connections and other statements are fine.
#[tokio::test]
async fn a_database_that_answers_only_some_statements_keeps_its_alarm() {
    let place = Place::prepare().await;
    let mut sql = place.database.superuser().await;
    let command = place.command();
    let api = place.start_by(command).await;
    let lock = sql.transaction().await.unwrap();
    lock.batch_execute("LOCK TABLE site_coordination.command IN ACCESS EXCLUSIVE MODE")
        .await
        .unwrap();
    for _ in 0..2 {
        assert_eq!(api.send(&api.poll("after=0")).await.code(), "database_unavailable");
    }
    let told =
        |event: &str| api.process.lines().iter().filter(|line| line.text.contains(event)).count();
    assert_eq!((told("\"alarm.raised\""), told("\"alarm.cleared\"")), (1, 0));
    lock.rollback().await.unwrap();
    no_alarm(&api).await;
}

#[tokio::test]
async fn a_wait_that_began_before_the_outage_does_not_clear_its_alarm() {
    let (api, mut gate) = behind_a_gate(Place::prepare().await).await;
    api.listening_for_hints().await;
    let poll = api.parked(api.poll("after=0&wait=3")).await;
    gate.shut().await;
    // No command, so that it is no poll, which would release the one that waits.
    let missing = api.result(&format!("cmd_{}", "0".repeat(32)), b"{\"outcome\":\"failed\"}");
    assert_eq!(api.send(&missing).await.code(), "database_unavailable");
    assert_eq!(poll.await.unwrap().status, 200);
    assert_eq!(api.alarms().await, ["database"]);
}

#[tokio::test]
async fn a_poll_that_waits_through_an_outage_gets_what_came_after_it() {
    let (api, mut gate) = behind_a_gate(Place::prepare().await).await;
    api.listening_for_hints().await;
    let poll = api.parked(api.poll("after=0&wait=25")).await;
    gate.shut().await;
    // The producer has a way of its own.
    let ids = api.place.enqueue(&["{}"]);
    gate.open();
    let answer = poll.await.unwrap();
    assert_eq!(answer.status, 200, "{}", api.process.tail());
    assert_eq!(answer.json()["commands"][0]["commandId"], ids[0].as_str());
}

#[tokio::test]
async fn a_database_that_is_not_there_yet_is_waited_for() {
    let place = Place::prepare().await;
    let mut gate = Gate::shut_before(&url_of(&place));
    let process = Process::start(gated(&place, &gate)).unwrap();
    waits(&process).await;
    gate.open();
    process
        .wait_for_line("that it listens", LONG, |line| line.contains("\"site_api.listening\""))
        .await
        .unwrap();
}

#[tokio::test]
async fn a_signal_ends_the_wait_for_the_database() {
    let place = Place::prepare().await;
    let gate = Gate::shut_before(&url_of(&place));
    let process = Process::start(gated(&place, &gate)).unwrap();
    waits(&process).await;
    process.signal(Signal::TERM);
    assert_eq!(process.wait_exit(LONG).await.unwrap(), Exit::Code(0));
    assert!(!process.lines().iter().any(|line| line.text.contains("\"site_api.listening\"")));
}

async fn waits(process: &Process) {
    process
        .wait_for_line("that it waits", LONG, |line| line.contains("\"db.waited_for\""))
        .await
        .unwrap();
}

/// The checks of the start say what is wrong with a database; one that dies under them says nothing.
#[tokio::test]
async fn a_database_that_dies_in_the_middle_of_the_checks_is_waited_for() {
    let place = Place::prepare().await;
    let admin = place.database.superuser().await;
    let lock = "BEGIN; LOCK TABLE site_coordination.__diesel_schema_migrations";
    admin.batch_execute(lock).await.unwrap();
    // Within its transaction a session sees the activity of others as it was.
    let other = place.database.superuser().await;
    let api = Process::start(place.command()).unwrap();
    let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                WHERE datname = current_database() AND wait_event_type = 'Lock'";
    eventually(LONG, "a check that waits for the lock", async || {
        other.query_opt(end, &[]).await.unwrap()
    })
    .await;
    admin.batch_execute("ROLLBACK").await.unwrap();
    api.wait_for_line("that it listens", LONG, |line| line.contains("\"site_api.listening\""))
        .await
        .unwrap();
}
