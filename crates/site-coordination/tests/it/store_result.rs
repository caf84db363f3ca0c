//! Results: the next one only, each once, and the order of the verdicts.

use site_coordination::{
    CommandId, Environment, NewResult, Outcome, ReadError, StoreResultError, Stored, Writer,
};

use crate::support::{
    Fixture, SITE, SLURM, after, command, count, json, poll, result, slurm, store, store_as,
    stream, taken_over, writer,
};

#[tokio::test]
async fn the_same_bytes_again_get_the_same_receipt() {
    let fixture = Fixture::create().await;
    let ids = fixture.filled(1).await;
    let runtime = fixture.runtime();
    let (receipt, now) = store(&runtime, &ids[0], r#"{"n": 1}"#).await.unwrap();
    assert_eq!(now, Stored::New);
    assert_eq!(receipt.digest, json(r#"{"n": 1}"#).digest());
    assert_eq!(receipt.outcome, Outcome::Succeeded);
    let again = store(&runtime, &ids[0], " {\"n\": 1}\n").await.unwrap();
    assert_eq!(again, (receipt.clone(), Stored::Same));

    // Only the bytes are the identity of a result; the first outcome stays.
    let other_outcome = runtime
        .store_result(
            SLURM,
            &Writer::FIRST,
            NewResult { outcome: Outcome::Failed, ..result(&ids[0], r#"{"n": 1}"#) },
        )
        .await
        .unwrap();
    assert_eq!(other_outcome, (receipt, Stored::Same));
}

#[tokio::test]
async fn other_bytes_are_refused_with_the_stored_digest() {
    let fixture = Fixture::create().await;
    let ids = fixture.filled(1).await;
    let runtime = fixture.runtime();
    let (receipt, _) = store(&runtime, &ids[0], "1").await.unwrap();
    let refusal = store(&runtime, &ids[0], "1.0").await.unwrap_err();
    assert!(
        matches!(refusal, StoreResultError::Conflict { stored } if stored == receipt.digest),
        "{refusal:?}"
    );
    let sql = fixture.sql().await;
    let kept = "SELECT count(*) FROM site_coordination.result_body WHERE body = '1'";
    assert_eq!(count(&sql, kept).await, 1);
}

#[tokio::test]
async fn a_result_waits_for_its_predecessor() {
    let fixture = Fixture::create().await;
    let ids = fixture.filled(3).await;
    let runtime = fixture.runtime();
    for (early, done) in [(2, 0), (1, 0)] {
        let refusal = store(&runtime, &ids[early], "1").await.unwrap_err();
        assert!(
            matches!(refusal, StoreResultError::PredecessorMissing { done_seq } if done_seq.get() == done),
            "{refusal:?}"
        );
    }
    store(&runtime, &ids[0], "1").await.unwrap();
    let refusal = store(&runtime, &ids[2], "1").await.unwrap_err();
    assert!(
        matches!(refusal, StoreResultError::PredecessorMissing { done_seq } if done_seq.get() == 1)
    );
    let sql = fixture.sql().await;
    assert_eq!(count(&sql, "SELECT count(*) FROM site_coordination.command_result").await, 1);
    store(&runtime, &ids[1], "1").await.unwrap();
    store(&runtime, &ids[2], "1").await.unwrap();
    assert!(poll(&runtime, after(0)).await.unwrap().due.is_none());
}

#[tokio::test]
async fn a_stored_result_is_recognised_before_the_generation() {
    let fixture = Fixture::create().await;
    let ids = fixture.filled(2).await;
    let runtime = fixture.runtime();
    let (receipt, _) = store(&runtime, &ids[0], "1").await.unwrap();
    taken_over(&runtime, 2).await;

    let same = store(&runtime, &ids[0], "1").await.unwrap();
    assert_eq!(same, (receipt.clone(), Stored::Same));
    let other = store(&runtime, &ids[0], "2").await.unwrap_err();
    assert!(matches!(other, StoreResultError::Conflict { stored } if stored == receipt.digest));
    // The same bytes of a generation that never was are a repetition as well.
    let above = store_as(&runtime, &writer(9), &ids[0], "1").await.unwrap();
    assert_eq!(above, (receipt, Stored::Same));
}

#[tokio::test]
async fn the_generation_is_checked_before_the_predecessor() {
    let fixture = Fixture::create().await;
    let ids = fixture.filled(2).await;
    let runtime = fixture.runtime();
    taken_over(&runtime, 2).await;
    for id in &ids {
        let stale = store(&runtime, id, "1").await.unwrap_err();
        assert!(
            matches!(stale, StoreResultError::StaleGeneration { current } if current.get() == 2),
            "{stale:?}"
        );
        let above = store_as(&runtime, &writer(3), id, "1").await.unwrap_err();
        assert!(
            matches!(above, StoreResultError::HistoryDiverged { current } if current.get() == 2),
            "{above:?}"
        );
    }
    let (_, now) = store_as(&runtime, &writer(2), &ids[0], "1").await.unwrap();
    assert_eq!(now, Stored::New);
}

#[tokio::test]
async fn a_command_of_nobody_another_stream_or_another_site_is_unknown() {
    let fixture = Fixture::create().await;
    fixture.filled(1).await;
    let producer = fixture.producer(1);
    let here_k8s = stream(SITE, Environment::K8s);
    let other_site = stream("south-1", SLURM);
    let mut strangers = vec![CommandId::derive(&slurm(), &command("never").key)];
    for stream in [&here_k8s, &other_site] {
        strangers.push(producer.enqueue(stream, command("k1")).await.unwrap().id);
    }
    let runtime = fixture.runtime();
    for id in &strangers {
        let refusal = store(&runtime, id, "1").await.unwrap_err();
        assert!(matches!(refusal, StoreResultError::UnknownCommand), "{refusal:?}");
    }
    let sql = fixture.sql().await;
    assert_eq!(count(&sql, "SELECT count(*) FROM site_coordination.command_result").await, 0);
    // Each is at home somewhere.
    let south = fixture.runtime_of("south-1", 1);
    store(&south, &strangers[2], "1").await.unwrap();
    let k8s = Environment::K8s;
    runtime.store_result(k8s, &Writer::FIRST, result(&strangers[1], "1")).await.unwrap();
}

#[tokio::test]
async fn a_stored_word_that_is_no_outcome_is_our_fault_not_the_callers() {
    let fixture = Fixture::create().await;
    let ids = fixture.filled(1).await;
    let runtime = fixture.runtime();
    store(&runtime, &ids[0], "1").await.unwrap();
    fixture
        .sql()
        .await
        .batch_execute(
            "ALTER TABLE site_coordination.command_result DROP CONSTRAINT command_result_outcome_check;
             UPDATE site_coordination.command_result SET outcome = 'perhaps'",
        )
        .await
        .unwrap();
    let fault = store(&runtime, &ids[0], "1").await.unwrap_err();
    assert!(matches!(fault, StoreResultError::Read(ReadError::Corrupt(_))), "{fault:?}");
}
