//! The control plane's side: each call, repeated and refused.

use execution_core::{
    AcceptError, AttemptNumber, AttemptState, CancelError, Deadline, FinishError, Material,
    RunState, SubmitError,
};

use crate::support::{Fixture, attempt, id, other_runs, run};

#[tokio::test]
async fn a_run_is_accepted_once_and_kept_to_the_byte() {
    let fixture = Fixture::create().await;
    let registry = fixture.registry(1);
    let first = registry.accept(run("r1")).await.unwrap();
    assert!(first.new);
    assert_eq!(first.value.accepted, run("r1"));
    assert_eq!((first.value.state(), first.value.attempts.len()), (RunState::Accepted, 0));
    let again = registry.accept(run("r1")).await.unwrap();
    assert!(!again.new);
    assert_eq!(again.value, first.value);
    assert_eq!(registry.show(&id("r1")).await.unwrap().unwrap(), first.value);
    let sql = fixture.sql().await;
    let kept = "SELECT material, state FROM execution_core.run";
    let row = sql.query_one(kept, &[]).await.unwrap();
    assert_eq!(row.get::<_, String>(0), run("r1").material.as_str());
    assert_eq!(row.get::<_, String>(1), "accepted");
}

#[tokio::test]
async fn another_run_of_a_known_id_is_refused_whatever_is_other() {
    let fixture = Fixture::create().await;
    let registry = fixture.registry(1);
    let first = registry.accept(run("r1")).await.unwrap().value;
    let others = other_runs("r1");
    assert_eq!(others.len(), 11);
    for other in others {
        let refusal = registry.accept(other.clone()).await.unwrap_err();
        assert!(matches!(&refusal, AcceptError::Conflict { run } if *run == id("r1")), "{other:?}");
        assert_eq!(refusal.to_string(), "the id r1 stands for another Run");
    }
    assert_eq!(registry.show(&id("r1")).await.unwrap().unwrap(), first);
}

#[tokio::test]
async fn a_repeated_accept_tells_what_has_become_of_the_run() {
    let fixture = Fixture::create().await;
    let registry = fixture.registry(1);
    registry.accept(run("r1")).await.unwrap();
    registry.submit(&id("r1"), attempt(1)).await.unwrap();
    registry.cancel(&id("r1")).await.unwrap();
    let again = registry.accept(run("r1")).await.unwrap();
    assert!(!again.new);
    assert_eq!((again.value.state(), again.value.attempts.len()), (RunState::Cancelled, 1));
}

#[tokio::test]
async fn a_deadline_is_kept_to_the_microsecond_and_may_have_passed() {
    let fixture = Fixture::create().await;
    let registry = fixture.registry(1);
    for (number, (text, kept)) in [
        ("1970-01-01T00:00:00Z", "1970-01-01T00:00:00+00:00"),
        ("2030-06-30T23:59:60.9999999Z", "2030-07-01T00:00:00.999999+00:00"),
        ("9999-12-31T23:59:59.9999999Z", "9999-12-31T23:59:59.999999+00:00"),
        ("2030-01-01T02:00:00.0000019+02:00", "2030-01-01T00:00:00.000001+00:00"),
    ]
    .into_iter()
    .enumerate()
    {
        let mut run = run(&format!("r{number}"));
        run.deadline = Deadline::parse(text).unwrap();
        assert_eq!(run.deadline.time().to_rfc3339(), kept);
        assert!(registry.accept(run.clone()).await.unwrap().new);
        assert_eq!(registry.show(&run.id).await.unwrap().unwrap().accepted, run);
        assert!(!registry.accept(run).await.unwrap().new);
    }
}

#[tokio::test]
async fn material_of_one_mib_is_accepted() {
    let fixture = Fixture::create().await;
    let mut run = run("r1");
    run.material = Material::parse(&format!("\"{}\"", "x".repeat(1_048_574))).unwrap();
    let registry = fixture.registry(1);
    registry.accept(run.clone()).await.unwrap();
    assert_eq!(registry.show(&run.id).await.unwrap().unwrap().accepted, run);
}

#[tokio::test]
async fn attempts_are_submitted_one_after_the_other_and_each_once() {
    let fixture = Fixture::create().await;
    let registry = fixture.registry(1);
    registry.accept(run("r1")).await.unwrap();
    let run = id("r1");
    let refusal = registry.submit(&run, attempt(2)).await.unwrap_err();
    assert!(matches!(refusal, SubmitError::NotNext { latest: None }), "{refusal:?}");
    let mut times = Vec::new();
    for number in 1..=3 {
        let submitted = registry.submit(&run, attempt(number)).await.unwrap();
        assert!(submitted.new);
        assert_eq!(submitted.value.state(), AttemptState::Submitted);
        times.push(submitted.value);
    }
    for known in &times {
        let again = registry.submit(&run, known.number).await.unwrap();
        assert!(!again.new);
        assert_eq!(again.value, *known);
    }
    for number in [5, 1000] {
        let refusal = registry.submit(&run, attempt(number)).await.unwrap_err();
        assert_eq!(
            refusal.to_string(),
            "the Run's newest Attempt is 3, so the next one is 4",
            "{number}"
        );
    }
    let shown = registry.show(&run).await.unwrap().unwrap();
    assert_eq!(shown.attempts, times);
    let refusal = registry.submit(&id("none"), attempt(1)).await.unwrap_err();
    assert!(matches!(refusal, SubmitError::UnknownRun), "{refusal:?}");
}

#[tokio::test]
async fn a_run_has_a_thousand_attempts_and_no_more() {
    let fixture = Fixture::create().await;
    let registry = fixture.registry(1);
    registry.accept(run("r1")).await.unwrap();
    let sql = fixture.sql().await;
    sql.batch_execute(
        "INSERT INTO execution_core.attempt (run_id, number)
         SELECT 'r1', n FROM generate_series(1, 999) n;
         UPDATE execution_core.run SET last_attempt = 999",
    )
    .await
    .unwrap();
    assert!(registry.submit(&id("r1"), AttemptNumber::LAST).await.unwrap().new);
    let shown = registry.show(&id("r1")).await.unwrap().unwrap();
    assert_eq!(shown.attempts.len(), 1000);
    // There is no number for another one; the database would refuse it as well.
    let more = "UPDATE execution_core.run SET last_attempt = 1001";
    assert!(sql.batch_execute(more).await.is_err());
}

#[tokio::test]
async fn a_cancel_is_for_ever_and_lets_no_attempt_begin() {
    let fixture = Fixture::create().await;
    let registry = fixture.registry(1);
    let run_id = id("r1");
    let refusal = registry.cancel(&run_id).await.unwrap_err();
    assert!(matches!(refusal, CancelError::UnknownRun), "{refusal:?}");
    registry.accept(run("r1")).await.unwrap();
    let first = registry.submit(&run_id, attempt(1)).await.unwrap().value;
    let cancelled = registry.cancel(&run_id).await.unwrap();
    assert!(cancelled.new);
    let again = registry.cancel(&run_id).await.unwrap();
    assert!(!again.new);
    assert_eq!(again.value, cancelled.value);
    let refusal = registry.submit(&run_id, attempt(2)).await.unwrap_err();
    assert!(matches!(refusal, SubmitError::Cancelled), "{refusal:?}");
    // Also where the number would be wrong.
    let refusal = registry.submit(&run_id, attempt(9)).await.unwrap_err();
    assert!(matches!(refusal, SubmitError::Cancelled), "{refusal:?}");
    let known = registry.submit(&run_id, attempt(1)).await.unwrap();
    assert!(!known.new);
    assert_eq!(known.value, first);
    let shown = registry.show(&run_id).await.unwrap().unwrap();
    assert_eq!(shown.cancelled_at, Some(cancelled.value));
}

#[tokio::test]
async fn an_attempt_is_over_for_ever_also_an_earlier_one_and_after_a_cancel() {
    let fixture = Fixture::create().await;
    let registry = fixture.registry(1);
    let run_id = id("r1");
    let refusal = registry.finish(&run_id, attempt(1)).await.unwrap_err();
    assert!(matches!(refusal, FinishError::UnknownRun), "{refusal:?}");
    registry.accept(run("r1")).await.unwrap();
    let refusal = registry.finish(&run_id, attempt(1)).await.unwrap_err();
    assert!(matches!(refusal, FinishError::UnknownAttempt), "{refusal:?}");
    for number in 1..=2 {
        registry.submit(&run_id, attempt(number)).await.unwrap();
    }
    let over = registry.finish(&run_id, attempt(1)).await.unwrap();
    assert!(over.new);
    assert_eq!(over.value.state(), AttemptState::Final);
    assert!(over.value.submitted_at <= over.value.final_at.unwrap());
    let again = registry.finish(&run_id, attempt(1)).await.unwrap();
    assert!(!again.new);
    assert_eq!(again.value, over.value);
    registry.cancel(&run_id).await.unwrap();
    assert!(registry.finish(&run_id, attempt(2)).await.unwrap().new);
    let shown = registry.show(&run_id).await.unwrap().unwrap();
    assert!(shown.attempts.iter().all(|attempt| attempt.final_at.is_some()), "{shown:?}");
}
