//! The private output of a Run, found by its newest result and read in parts.

use site_coordination::{
    CommandId, Environment, NewResult, ReadPartError, RunId, RuntimeSide, SiteId, Views, Writer,
};
use test_support::eventually;

use crate::support::{Fixture, LONG, SITE, SLURM, command, count, result, sha256, slurm, store};

fn views(fixture: &Fixture, site: &str) -> Views {
    Views::new(fixture.api_pool(1), SiteId::parse(site).unwrap())
}

fn run(id: &str) -> RunId {
    RunId::parse(id).unwrap()
}

/// Stores an output of the command that is due, and the result that names it.
async fn finish_with(runtime: &RuntimeSide, id: &CommandId, bytes: &[u8]) {
    let digest = sha256(bytes);
    runtime.store_output(SLURM, &Writer::FIRST, id, digest, bytes.to_vec()).await.unwrap();
    let named = NewResult { output: Some(digest), ..result(id, r#"{"outcome": "succeeded"}"#) };
    runtime.store_result(SLURM, &Writer::FIRST, named).await.unwrap();
}

#[tokio::test]
async fn the_newest_result_that_names_an_output_says_which_is_the_runs() {
    let fixture = Fixture::create().await;
    let mut ids = fixture.filled(4).await;
    let mut other = command("other");
    other.run_id = Some(run("run-2"));
    ids.push(fixture.producer(1).enqueue(&slurm(), other).await.unwrap().id);
    let (runtime, views) = (fixture.runtime(), views(&fixture, SITE));
    let newest = async || views.output_of(SLURM, &run("run-1")).await.unwrap();

    assert_eq!(newest().await, None);
    // Stored and not named is not the Run's.
    let unnamed = b"of a try that was cut short";
    runtime
        .store_output(SLURM, &Writer::FIRST, &ids[0], sha256(unnamed), unnamed.to_vec())
        .await
        .unwrap();
    assert_eq!(newest().await, None);
    finish_with(&runtime, &ids[0], b"first").await;
    let first = newest().await.unwrap();
    assert_eq!((&first.command, first.digest, first.bytes), (&ids[0], sha256(b"first"), 5));
    finish_with(&runtime, &ids[1], b"the second").await;
    let second = newest().await.unwrap();
    assert_eq!((&second.command, second.bytes), (&ids[1], 10));
    assert!(second.stored_at > first.stored_at);
    // A result without one changes nothing.
    store(&runtime, &ids[2], r#"{"outcome": "failed"}"#).await.unwrap();
    assert_eq!(newest().await, Some(second));
    finish_with(&runtime, &ids[3], b"").await;
    assert_eq!(newest().await.unwrap().bytes, 0);
    finish_with(&runtime, &ids[4], b"another Run's").await;
    assert_eq!(newest().await.unwrap().command, ids[3]);
    let of_other = views.output_of(SLURM, &run("run-2")).await.unwrap().unwrap();
    assert_eq!(of_other.command, ids[4]);
}

#[tokio::test]
async fn another_site_environment_or_run_has_it_not() {
    let fixture = Fixture::create().await;
    let ids = fixture.filled(1).await;
    finish_with(&fixture.runtime(), &ids[0], b"private").await;
    let (here, elsewhere) = (views(&fixture, SITE), views(&fixture, "south-1"));
    for (views, environment, id) in [
        (&elsewhere, SLURM, "run-1"),
        (&here, Environment::K8s, "run-1"),
        (&here, SLURM, "run-10"),
        (&here, SLURM, "RUN-1"),
    ] {
        assert_eq!(views.output_of(environment, &run(id)).await.unwrap(), None, "{id}");
    }
    assert!(here.output_of(SLURM, &run("run-1")).await.unwrap().is_some());
}

#[tokio::test]
async fn parts_make_the_whole_wherever_they_are_cut() {
    let fixture = Fixture::create().await;
    let ids = fixture.filled(1).await;
    let bytes: Vec<u8> =
        (0..300_000_u32).map(|n| n.to_be_bytes()[3] ^ n.to_be_bytes()[2]).collect();
    finish_with(&fixture.runtime(), &ids[0], &bytes).await;
    let views = views(&fixture, SITE);
    let output = views.output_of(SLURM, &run("run-1")).await.unwrap().unwrap();
    assert_eq!((output.bytes, output.digest), (300_000, sha256(&bytes)));
    for most in [1999_u32, 65_536, 299_999, 300_000, 300_001] {
        let mut whole = Vec::new();
        while whole.len() < bytes.len() {
            let part = views.part(&output, whole.len() as u64, most).await.unwrap();
            assert!(!part.is_empty() && part.len() <= most as usize);
            whole.extend(part);
        }
        assert_eq!(whole, bytes, "{most}");
    }
    assert_eq!(views.part(&output, 300_000, 10).await.unwrap(), b"");
    let beyond = views.part(&output, u64::MAX, 10).await;
    assert!(matches!(beyond, Err(ReadPartError::Beyond)), "{beyond:?}");
}

#[tokio::test]
async fn what_is_deleted_by_age_is_gone_also_in_the_middle_of_reading() {
    let fixture = Fixture::create().await;
    let ids = fixture.filled(2).await;
    let runtime = fixture.runtime();
    finish_with(&runtime, &ids[0], b"older").await;
    finish_with(&runtime, &ids[1], b"newer").await;
    let views = views(&fixture, SITE);
    let output = views.output_of(SLURM, &run("run-1")).await.unwrap().unwrap();
    assert_eq!(views.part(&output, 0, 2).await.unwrap(), b"ne");
    let sql = fixture.sql().await;
    sql.batch_execute("DELETE FROM site_coordination.private_output").await.unwrap();
    let gone = views.part(&output, 2, 2).await;
    assert!(matches!(gone, Err(ReadPartError::Gone)), "{gone:?}");
    assert_eq!(views.output_of(SLURM, &run("run-1")).await.unwrap(), None);
}

/// By the plan for all parameters, made while the tables were empty; see
/// docs/decisions/0025-one-plan-from-the-first-run-on.md.
#[tokio::test]
async fn the_commands_of_a_run_are_found_by_their_index() {
    let fixture = Fixture::create().await;
    let views = views(&fixture, SITE);
    let sql = fixture.sql().await;
    let used = "SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelname = 'command_of_run'";
    let before = count(&sql, used).await;
    for _ in 0..3 {
        assert_eq!(views.output_of(SLURM, &run("run-1")).await.unwrap(), None);
    }
    eventually(LONG, "that the index was used", async || {
        (count(&sql, used).await >= before + 3).then_some(())
    })
    .await;
}
