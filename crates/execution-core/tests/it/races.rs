//! Many callers at the same moment: one does it, all get the true answer.

use execution_core::{AcceptError, SubmitError};
use test_support::at_once;

use crate::support::{Fixture, attempt, id, other_runs, run};

const CALLERS: usize = 32;
const ROUNDS: usize = 20;

#[tokio::test(flavor = "multi_thread")]
async fn of_the_same_run_from_everybody_one_is_new_and_all_are_the_same() {
    let fixture = Fixture::create().await;
    let registry = fixture.registry(CALLERS);
    for round in 0..ROUNDS {
        let name = format!("r{round}");
        let answers = at_once(CALLERS, |_| {
            let (registry, run) = (registry.clone(), run(&name));
            async move { registry.accept(run).await.unwrap() }
        })
        .await;
        assert_eq!(answers.iter().filter(|answer| answer.new).count(), 1);
        assert!(answers.iter().all(|answer| answer.value == answers[0].value), "{answers:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_different_runs_of_one_id_one_wins_and_the_others_are_refused() {
    let fixture = Fixture::create().await;
    let registry = fixture.registry(CALLERS);
    for round in 0..ROUNDS {
        let others = other_runs(&format!("r{round}"));
        let answers = at_once(CALLERS, |caller| {
            let (registry, run) = (registry.clone(), others[caller % others.len()].clone());
            async move { registry.accept(run).await }
        })
        .await;
        let won = registry.show(&others[0].id).await.unwrap().unwrap();
        for (caller, answer) in answers.iter().enumerate() {
            match answer {
                Ok(accepted) => assert_eq!(accepted.value, won),
                Err(AcceptError::Conflict { .. }) => {
                    assert_ne!(others[caller % others.len()], won.accepted, "a false conflict");
                }
                Err(error) => panic!("{error:?}"),
            }
        }
        let new = answers.iter().flatten().filter(|accepted| accepted.new).count();
        assert_eq!(new, 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_one_attempt_from_everybody_one_is_new() {
    let fixture = Fixture::create().await;
    let registry = fixture.registry(CALLERS);
    registry.accept(run("r1")).await.unwrap();
    for number in 1..=i32::try_from(ROUNDS).unwrap() {
        let answers = at_once(CALLERS, |_| {
            let registry = registry.clone();
            async move { registry.submit(&id("r1"), attempt(number)).await.unwrap() }
        })
        .await;
        assert_eq!(answers.iter().filter(|answer| answer.new).count(), 1);
        assert!(answers.iter().all(|answer| answer.value == answers[0].value), "{answers:?}");
    }
    let shown = registry.show(&id("r1")).await.unwrap().unwrap();
    assert_eq!(shown.attempts.len(), ROUNDS);
}

#[tokio::test(flavor = "multi_thread")]
async fn attempts_that_are_submitted_all_at_once_leave_no_gap() {
    let fixture = Fixture::create().await;
    let registry = fixture.registry(CALLERS);
    for round in 0..ROUNDS {
        let name = format!("r{round}");
        registry.accept(run(&name)).await.unwrap();
        let answers = at_once(CALLERS, |caller| {
            let (registry, run) = (registry.clone(), id(&name));
            let number = attempt(i32::try_from(caller % 8).unwrap() + 1);
            async move { (number, registry.submit(&run, number).await) }
        })
        .await;
        let shown = registry.show(&id(&name)).await.unwrap().unwrap();
        let mut new = Vec::new();
        for (number, answer) in answers {
            match answer {
                Ok(submitted) => {
                    assert_eq!(shown.attempt(number), Some(&submitted.value));
                    new.extend(submitted.new.then_some(number));
                }
                // True only where something before it was not there yet.
                Err(SubmitError::NotNext { latest }) => {
                    let next = latest.map_or(1, |latest| latest.get() + 1);
                    assert!(number.get() > next, "{number:?} is refused after {latest:?}");
                }
                Err(error) => panic!("{error:?}"),
            }
        }
        new.sort();
        let there: Vec<_> = shown.attempts.iter().map(|attempt| attempt.number).collect();
        assert_eq!(new, there, "each Attempt is new to one caller");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_cancels_one_is_new_and_no_attempt_comes_after_it() {
    let fixture = Fixture::create().await;
    let registry = fixture.registry(CALLERS);
    for round in 0..ROUNDS {
        let name = format!("r{round}");
        registry.accept(run(&name)).await.unwrap();
        let answers = at_once(CALLERS, |caller| {
            let (registry, run) = (registry.clone(), id(&name));
            async move {
                // Half of them submit as far as they get.
                if caller % 2 == 0 {
                    return Some(registry.cancel(&run).await.unwrap());
                }
                for number in 1..=1000 {
                    match registry.submit(&run, attempt(number)).await {
                        Ok(_) => {}
                        Err(SubmitError::Cancelled) => return None,
                        Err(error) => panic!("{error:?}"),
                    }
                }
                panic!("it was never cancelled");
            }
        })
        .await;
        let cancels: Vec<_> = answers.into_iter().flatten().collect();
        assert_eq!(cancels.iter().filter(|cancel| cancel.new).count(), 1);
        assert!(cancels.iter().all(|cancel| cancel.value == cancels[0].value), "{cancels:?}");
        let shown = registry.show(&id(&name)).await.unwrap().unwrap();
        for attempt in &shown.attempts {
            assert!(attempt.submitted_at < cancels[0].value, "{shown:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_is_not_submitted_by_one_who_waited_while_the_run_was_cancelled() {
    let fixture = Fixture::create().await;
    let registry = fixture.registry(2);
    registry.accept(run("r1")).await.unwrap();
    let mut slow = fixture.sql().await;
    let transaction = slow.transaction().await.unwrap();
    transaction
        .batch_execute("UPDATE execution_core.run SET cancelled_at = clock_timestamp()")
        .await
        .unwrap();
    let waiting = tokio::spawn({
        let registry = registry.clone();
        async move { registry.submit(&id("r1"), attempt(1)).await }
    });
    let sql = fixture.sql().await;
    let waits = "SELECT count(*) FROM pg_stat_activity
                  WHERE datname = current_database() AND wait_event_type = 'Lock'";
    let minute = std::time::Duration::from_secs(60);
    test_support::eventually(minute, "the submit to wait for the row", async || {
        (sql.query_one(waits, &[]).await.unwrap().get::<_, i64>(0) == 1).then_some(())
    })
    .await;
    transaction.commit().await.unwrap();
    let refusal = waiting.await.unwrap().unwrap_err();
    assert!(matches!(refusal, SubmitError::Cancelled), "{refusal:?}");
    assert!(registry.show(&id("r1")).await.unwrap().unwrap().attempts.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_who_end_an_attempt_one_is_new() {
    let fixture = Fixture::create().await;
    let registry = fixture.registry(CALLERS);
    registry.accept(run("r1")).await.unwrap();
    for number in 1..=i32::try_from(ROUNDS).unwrap() {
        registry.submit(&id("r1"), attempt(number)).await.unwrap();
        let answers = at_once(CALLERS, |_| {
            let registry = registry.clone();
            async move { registry.finish(&id("r1"), attempt(number)).await.unwrap() }
        })
        .await;
        assert_eq!(answers.iter().filter(|answer| answer.new).count(), 1);
        assert!(answers.iter().all(|answer| answer.value == answers[0].value), "{answers:?}");
    }
}
