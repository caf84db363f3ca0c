//! Propagation that goes on: one works, another takes over, and nothing needs a hint.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use ssh_access::{Leadership, Progress, Propagator, PropagatorLimits};
use test_support::eventually;
use tokio::{sync::oneshot, task::JoinHandle, time::Instant};

use crate::support::{Fixture, LONG, applied};

const SHORT: PropagatorLimits = PropagatorLimits {
    lease: Duration::from_secs(2),
    tick: Duration::from_millis(100),
    watch: Duration::from_millis(100),
    compact: Duration::from_millis(100),
    acknowledged_for: Duration::from_secs(86_400),
    any_for: Duration::from_secs(86_400),
    events_for: Duration::from_secs(86_400),
};

/// A propagator that runs, and what it told of its leadership.
struct Running {
    told: Arc<Mutex<Vec<Leadership>>>,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl Running {
    fn start(propagator: Propagator) -> Self {
        let told = Arc::<Mutex<Vec<Leadership>>>::default();
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn({
            let told = Arc::clone(&told);
            async move {
                let tell = |progress: Progress<'_>| {
                    if let Progress::Leadership(leadership) = progress {
                        told.lock().unwrap().push(leadership);
                    }
                };
                let stopped = async {
                    let _ = stopped.await;
                };
                propagator.run(stopped, tell).await;
            }
        });
        Self { told, stop: Some(stop), task }
    }

    /// Ends it in the middle of what it does, and waits until it is gone.
    async fn killed(self) {
        self.task.abort();
        assert!(self.task.await.unwrap_err().is_cancelled());
    }

    fn leads(&self) -> bool {
        matches!(self.told.lock().unwrap().last(), Some(Leadership::Leading { .. }))
    }
}

async fn in_force(fixture: &Fixture, count: usize) {
    eventually(LONG, "the keys to be in force", async || {
        (applied(&fixture.feed()).await.0.len() == count).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_is_propagated_by_a_hint_where_the_tick_would_be_late() {
    let fixture = Fixture::create().await;
    let limits = PropagatorLimits { tick: LONG * 10, ..PropagatorLimits::default() };
    let running = Running::start(fixture.propagator_of("north-1", limits));
    eventually(LONG, "the lease", async || running.leads().then_some(())).await;
    let listens = "SELECT count(*) FROM pg_stat_activity
                    WHERE datname = current_database() AND query = 'LISTEN ssh_access_changed'";
    eventually(LONG, "the listener", async || (fixture.count(listens).await == 1).then_some(()))
        .await;
    fixture.member("m1", 2, "alice").await;
    in_force(&fixture, 2).await;
    running.task.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_without_a_hint_is_found_by_the_tick() {
    let fixture = Fixture::create().await;
    let running = Running::start(fixture.propagator_of("north-1", SHORT));
    eventually(LONG, "the lease", async || running.leads().then_some(())).await;
    fixture.member("m1", 1, "alice").await;
    in_force(&fixture, 1).await;
    let quiet = "INSERT INTO ssh_access.changed_member (member_id) VALUES ('m1');
                 UPDATE ssh_access.member_key SET removed_at = clock_timestamp()";
    fixture.sql().await.batch_execute(quiet).await.unwrap();
    in_force(&fixture, 0).await;
    running.task.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_one_works_and_the_other_takes_over_when_the_first_is_killed() {
    let fixture = Fixture::create().await;
    let first = Running::start(fixture.propagator_of("north-1", SHORT));
    eventually(LONG, "the lease", async || first.leads().then_some(())).await;
    let second = Running::start(fixture.propagator_of("north-1", SHORT));
    eventually(LONG, "the other to stand by", async || {
        (*second.told.lock().unwrap() == [Leadership::Standby]).then_some(())
    })
    .await;
    fixture.member("m1", 1, "alice").await;
    in_force(&fixture, 1).await;
    // Several terms of the lease: it is kept.
    let kept = fixture.count("SELECT fence FROM ssh_access.propagator_lease").await;
    let later = "SELECT count(*) FROM ssh_access.propagator_lease
                  WHERE expires_at > clock_timestamp() + interval '1 s'";
    let begun = Instant::now();
    eventually(LONG, "two terms", async || (begun.elapsed() > SHORT.lease * 2).then_some(())).await;
    assert_eq!(fixture.count("SELECT fence FROM ssh_access.propagator_lease").await, kept);
    assert_eq!(fixture.count(later).await, 1);
    assert!(!second.leads());
    // Killed: it gives nothing back.
    let killed = Instant::now();
    first.killed().await;
    fixture.member("m2", 1, "bob").await;
    in_force(&fixture, 2).await;
    // It tells so after its first round.
    eventually(LONG, "the other to lead", async || second.leads().then_some(())).await;
    assert!(killed.elapsed() < LONG);
    second.task.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_stopped_gives_the_lease_back() {
    let fixture = Fixture::create().await;
    let limits = PropagatorLimits { lease: LONG * 60, ..SHORT };
    let mut first = Running::start(fixture.propagator_of("north-1", limits));
    eventually(LONG, "the lease", async || first.leads().then_some(())).await;
    let second = Running::start(fixture.propagator_of("north-1", limits));
    drop(first.stop.take());
    first.task.await.unwrap();
    eventually(LONG, "the other to lead", async || second.leads().then_some(())).await;
    second.task.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn who_lost_the_lease_takes_it_again_when_it_is_free() {
    let fixture = Fixture::create().await;
    let running = Running::start(fixture.propagator_of("north-1", SHORT));
    eventually(LONG, "the lease", async || running.leads().then_some(())).await;
    let steal = "UPDATE ssh_access.propagator_lease SET holder = 'thief', fence = fence + 1,
                        expires_at = clock_timestamp() + interval '1 s'";
    fixture.sql().await.batch_execute(steal).await.unwrap();
    eventually(LONG, "it to be told", async || {
        running.told.lock().unwrap().contains(&Leadership::Standby).then_some(())
    })
    .await;
    eventually(LONG, "the lease again", async || running.leads().then_some(())).await;
    fixture.member("m1", 1, "alice").await;
    in_force(&fixture, 1).await;
    running.task.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn old_events_are_taken_away_while_it_runs() {
    let fixture = Fixture::create().await;
    let old = "INSERT INTO ssh_access.event_counter (site, last_seq) VALUES ('north-1', 2);
               INSERT INTO ssh_access.event (site, seq, type, data, occurred_at)
               VALUES ('north-1', 1, 'ssh.set.mismatched', '{}', clock_timestamp() - interval '2 d'),
                      ('north-1', 2, 'ssh.set.matched', '{}', clock_timestamp())";
    fixture.sql().await.batch_execute(old).await.unwrap();
    let running = Running::start(fixture.propagator_of("north-1", SHORT));
    eventually(LONG, "the old event to go", async || {
        (fixture.count("SELECT min(seq) FROM ssh_access.event").await == 2).then_some(())
    })
    .await;
    running.task.abort();
}
