//! Hints after commits: many of them as one, and not more often than they rest in between.

use std::time::Duration;

use site_coordination::{API_ROLE, Environment, PRODUCER_ROLE};
use tokio::time::Instant;

use crate::support::{Fixture, SITE, SLURM, command, slurm, store, stream, taken_over};

/// Between two rounds of a producer's hints, and of a Runtime's.
const PRODUCER_RESTS: Duration = Duration::from_millis(2);
const RUNTIME_RESTS: Duration = Duration::from_millis(50);

#[tokio::test]
async fn what_gathers_behind_a_hint_goes_in_one_transaction_and_each_once() {
    let fixture = Fixture::create().await;
    let hints = fixture.database.hint_log(PRODUCER_ROLE.name).await;
    let producer = fixture.producer(2);
    hints.hold().await;
    producer.enqueue(&slurm(), command("first")).await.unwrap();
    hints.held().await;
    for number in 0..3 {
        for stream in [slurm(), stream(SITE, Environment::K8s), stream("north-2", SLURM)] {
            producer.enqueue(&stream, command(&format!("k{number}"))).await.unwrap();
        }
    }
    hints.release().await;
    producer.flush_hints().await;
    let transactions = hints.transactions().await;
    assert_eq!(transactions, [vec!["slurm"], vec!["k8s", "slurm", "slurm"]]);
}

#[tokio::test]
async fn a_runtime_tells_of_its_results_and_sessions_in_one_transaction_as_well() {
    let fixture = Fixture::create().await;
    let ids = fixture.filled(4).await;
    let hints = fixture.database.hint_log(API_ROLE.name).await;
    let runtime = fixture.runtime_of(SITE, 2);
    hints.hold().await;
    store(&runtime, &ids[0], "1").await.unwrap();
    hints.held().await;
    for id in &ids[1..] {
        store(&runtime, id, "1").await.unwrap();
    }
    taken_over(&runtime, 2).await;
    hints.release().await;
    runtime.flush_hints().await;
    assert_eq!(hints.transactions().await, [vec!["slurm done"], vec!["slurm", "slurm done"]]);
}

/// So many rounds fit into a time, where each but the first comes after a rest.
fn most(elapsed: Duration, rest: Duration) -> u128 {
    elapsed.as_micros() / rest.as_micros() + 2
}

#[tokio::test]
async fn a_runtimes_hints_rest_between_two_rounds() {
    let fixture = Fixture::create().await;
    let ids = fixture.filled(200).await;
    let hints = fixture.database.hint_log(API_ROLE.name).await;
    let runtime = fixture.runtime_of(SITE, 2);
    let begun = Instant::now();
    for id in &ids {
        store(&runtime, id, "1").await.unwrap();
    }
    runtime.flush_hints().await;
    let (rounds, most) = (hints.transactions().await.len(), most(begun.elapsed(), RUNTIME_RESTS));
    assert!(rounds as u128 <= most, "{rounds} rounds, at most {most}");
}

#[tokio::test]
async fn a_producers_hints_rest_between_two_rounds() {
    let fixture = Fixture::create().await;
    let hints = fixture.database.hint_log(PRODUCER_ROLE.name).await;
    let producer = fixture.producer(2);
    let begun = Instant::now();
    for number in 0..400 {
        producer.enqueue(&slurm(), command(&format!("k{number}"))).await.unwrap();
    }
    producer.flush_hints().await;
    let (rounds, most) = (hints.transactions().await.len(), most(begun.elapsed(), PRODUCER_RESTS));
    assert!(rounds as u128 <= most, "{rounds} rounds, at most {most}");
}
