//! The side of who answers Runtimes: what is shown, to whom, and its fingerprint.

use std::collections::HashSet;

use execution_core::{Environment, ProjectId, ReadError};

use crate::support::{Fixture, attempt, here, id, other_runs, place, run};

#[tokio::test]
async fn a_run_is_read_with_its_attempts_and_the_time() {
    let fixture = Fixture::create().await;
    let (registry, runs) = (fixture.registry(1), fixture.runs());
    registry.accept(run("r1")).await.unwrap();
    registry.submit(&id("r1"), attempt(1)).await.unwrap();
    registry.finish(&id("r1"), attempt(1)).await.unwrap();
    registry.submit(&id("r1"), attempt(2)).await.unwrap();
    let read = runs.run(&here(), &id("r1")).await.unwrap().unwrap();
    assert_eq!(Some(&read.run), registry.show(&id("r1")).await.unwrap().as_ref());
    assert_eq!(read.run.latest_attempt().unwrap().number, attempt(2));
    // The time is the database's, and that of the reading.
    assert!(read.run.latest_attempt().unwrap().submitted_at < read.now);
    let later = runs.run(&here(), &id("r1")).await.unwrap().unwrap();
    assert!(read.now < later.now);
    let now = "SELECT clock_timestamp() >= $1::text::timestamptz";
    let row = fixture.sql().await.query_one(now, &[&later.now.to_rfc3339()]).await.unwrap();
    assert!(row.get::<_, bool>(0));
}

#[tokio::test]
async fn a_run_of_another_place_is_absent_as_one_that_does_not_exist() {
    let fixture = Fixture::create().await;
    let (registry, runs) = (fixture.registry(1), fixture.runs());
    registry.accept(run("r1")).await.unwrap();
    assert!(runs.run(&here(), &id("r1")).await.unwrap().is_some());
    for other in [
        place("north-1", Environment::K8s),
        place("north-2", Environment::Slurm),
        place("North-1", Environment::Slurm),
    ] {
        assert_eq!(runs.run(&other, &id("r1")).await.unwrap(), None, "{other:?}");
    }
    for other in ["r2", "R1", "r"] {
        assert_eq!(runs.run(&here(), &id(other)).await.unwrap(), None, "{other}");
    }
}

#[tokio::test]
async fn what_a_run_belongs_to_is_told_for_its_site_in_whatever_environment() {
    let fixture = Fixture::create().await;
    let (registry, runs) = (fixture.registry(1), fixture.runs());
    let mut other = run("r2");
    other.place.environment = Environment::K8s;
    other.project = ProjectId::parse("project-2").unwrap();
    registry.accept(run("r1")).await.unwrap();
    registry.accept(other.clone()).await.unwrap();
    let site = here().site;
    for (run, expected) in [("r1", run("r1")), ("r2", other)] {
        let belonging = runs.belonging(&site, &id(run)).await.unwrap().unwrap();
        assert_eq!(belonging.project, expected.project);
        assert_eq!(belonging.environment, expected.place.environment);
    }
    assert_eq!(runs.belonging(&site, &id("r3")).await.unwrap(), None);
    let elsewhere = place("north-2", Environment::Slurm).site;
    assert_eq!(runs.belonging(&elsewhere, &id("r1")).await.unwrap(), None);
    // A cancel takes nothing of it away.
    registry.cancel(&id("r1")).await.unwrap();
    assert!(runs.belonging(&site, &id("r1")).await.unwrap().is_some());
}

#[tokio::test]
async fn the_fingerprint_is_the_same_until_anything_that_is_shown_is_other() {
    let fixture = Fixture::create().await;
    let (registry, runs) = (fixture.registry(1), fixture.runs());
    let fingerprint = async || {
        let read = runs.run(&here(), &id("r1")).await.unwrap().unwrap();
        let again = runs.run(&here(), &id("r1")).await.unwrap().unwrap();
        assert_eq!(read.run.fingerprint(), again.run.fingerprint(), "the time is no part of it");
        read.run.fingerprint()
    };
    registry.accept(run("r1")).await.unwrap();
    let mut seen = vec![fingerprint().await];
    registry.submit(&id("r1"), attempt(1)).await.unwrap();
    seen.push(fingerprint().await);
    registry.submit(&id("r1"), attempt(2)).await.unwrap();
    seen.push(fingerprint().await);
    registry.finish(&id("r1"), attempt(1)).await.unwrap();
    seen.push(fingerprint().await);
    registry.finish(&id("r1"), attempt(2)).await.unwrap();
    seen.push(fingerprint().await);
    registry.cancel(&id("r1")).await.unwrap();
    seen.push(fingerprint().await);
    assert!(
        seen.iter().all(|text| text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit()))
    );
    assert_eq!(seen.iter().collect::<HashSet<_>>().len(), seen.len(), "{seen:?}");
}

#[tokio::test]
async fn each_thing_of_a_run_is_part_of_its_fingerprint() {
    let fixture = Fixture::create().await;
    let shown = fixture.registry(1).accept(run("r1")).await.unwrap().value;
    let mut seen = HashSet::from([shown.fingerprint()]);
    for other in other_runs("r1").into_iter().chain([run("r2")]) {
        let mut other_shown = shown.clone();
        other_shown.accepted = other;
        assert!(seen.insert(other_shown.fingerprint()), "{other_shown:?}");
    }
    let mut later = shown.clone();
    later.accepted_at = "2030-01-01T00:00:00Z".parse().unwrap();
    assert!(seen.insert(later.fingerprint()));
}

#[tokio::test]
async fn what_the_database_should_not_hold_is_told_as_such() {
    let fixture = Fixture::create().await;
    let (registry, runs) = (fixture.registry(1), fixture.runs());
    registry.accept(run("r1")).await.unwrap();
    let sql = fixture.sql().await;
    for (change, back) in [
        ("project_id = 'a b'", "project_id = 'project-1'"),
        ("repository_ref = 'a..b'", "repository_ref = 'main'"),
        ("repository_path = 'a/-b'", "repository_path = 'research/climate'"),
        ("deadline = '1969-01-01'", "deadline = '2999-01-01'"),
    ] {
        sql.batch_execute(&format!("UPDATE execution_core.run SET {change}")).await.unwrap();
        let refusal = runs.run(&here(), &id("r1")).await.unwrap_err();
        assert!(matches!(refusal, ReadError::Corrupt(_)), "{change}: {refusal:?}");
        sql.batch_execute(&format!("UPDATE execution_core.run SET {back}")).await.unwrap();
        runs.run(&here(), &id("r1")).await.unwrap().unwrap();
    }
    // An Attempt that is missing.
    let gap = "INSERT INTO execution_core.attempt (run_id, number) VALUES ('r1', 2)";
    sql.batch_execute(gap).await.unwrap();
    let refusal = runs.run(&here(), &id("r1")).await.unwrap_err();
    assert!(matches!(refusal, ReadError::Corrupt("an Attempt's number")), "{refusal:?}");
}
