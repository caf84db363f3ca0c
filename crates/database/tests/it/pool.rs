//! A pool that works: statements, bounds, and callers that go away.

use std::time::Duration;

use database::{Binds, DatabaseError, PoolLimits, Statement};
use diesel::{
    QueryResult,
    sql_types::{BigInt, Text},
};
use test_support::eventually;
use tokio::time::Instant;

use crate::support::{Faulty, Fixture, Insert, LONG, Mixed, ROLE, Session, WhoAmI, who_am_i};

const SHORT: Duration = Duration::from_millis(300);

#[tokio::test]
async fn a_statement_takes_its_parameters_by_number() {
    let fixture = Fixture::create().await;
    let pool = fixture.pool(1);
    let list = vec![Some("a".to_owned()), None, Some("*/ $1".to_owned())];
    for none in [None, Some("some".to_owned())] {
        let text = format!("{}2", none.as_deref().unwrap_or("none"));
        let rows = pool.load(Mixed { one: 2, none, list: list.clone() }).await.unwrap();
        assert_eq!(rows, vec![(list.clone(), text, 2); 2]);
    }
}

#[tokio::test]
async fn a_statement_has_one_plan_for_all_parameters_from_the_first_run_on() {
    let fixture = Fixture::create().await;
    let pool = fixture.pool(1);
    for one in 1..=3 {
        pool.load(Mixed { one, none: None, list: Vec::new() }).await.unwrap();
    }
    assert_eq!(pool.load(Plans).await.unwrap(), [(3, 0)]);
}

/// How often statements with parameters ran by a plan for all and by one of their own.
struct Plans;

impl Statement for Plans {
    const SQL: &'static str = "SELECT sum(generic_plans)::bigint, sum(custom_plans)::bigint
                                 FROM pg_prepared_statements WHERE parameter_types <> '{}'";
    type Columns = (BigInt, BigInt);
    type Row = (i64, i64);

    fn bind<'b>(&'b self, _: &mut Binds<'_, 'b>) -> QueryResult<()> {
        Ok(())
    }
}

#[tokio::test]
async fn a_session_is_named_and_bounded() {
    let fixture = Fixture::create().await;
    let statement = Duration::from_secs(7);
    let pool = fixture.pool_with(PoolLimits {
        connections: 1,
        wait: LONG,
        statement,
        ..PoolLimits::default()
    });
    let session = pool.load(Session).await.unwrap().remove(0);
    let expected = ("the-test", "8s", "8s", ROLE, "true");
    let (name, statement, idle, role, tls) = &session;
    assert_eq!((&name[..], &statement[..], &idle[..], &role[..], &tls[..]), expected);
}

#[tokio::test]
async fn connections_are_opened_when_needed_and_no_more_than_the_limit() {
    let fixture = Fixture::create().await;
    let pool = fixture.pool(3);
    assert!(fixture.backends().await.is_empty());
    who_am_i(&pool).await;
    assert_eq!(fixture.backends().await.len(), 1);

    fixture.lock().await;
    let notes = ["a", "b", "c", "d", "e", "f"];
    let calls = notes.map(|note| {
        let pool = pool.clone();
        tokio::spawn(async move { pool.load(Insert(note)).await })
    });
    let mut blocked = Vec::new();
    for _ in 0..3 {
        blocked.push(fixture.blocked_besides(&blocked).await);
    }
    assert_eq!(fixture.backends().await.len(), 3);
    fixture.unlock().await;
    for call in calls {
        call.await.unwrap().unwrap();
    }
    assert_eq!(fixture.backends().await.len(), 3);
    assert_eq!(fixture.number("SELECT count(*) FROM scratch.note").await, 6);
}

#[tokio::test]
async fn a_violated_constraint_is_named_and_the_connection_stays() {
    let fixture = Fixture::create().await;
    let pool = fixture.pool(1);
    let first = pool.load(Insert("a")).await.unwrap()[0].0;
    let refusal = pool.load(Insert("a")).await.unwrap_err();
    assert!(
        matches!(&refusal, DatabaseError::UniqueViolation { constraint } if constraint == "note_once"),
        "{refusal:?}"
    );
    assert_eq!(fixture.runs().await, 2, "it was repeated");
    assert_eq!(who_am_i(&pool).await, first);
}

#[tokio::test]
async fn a_refused_statement_is_not_repeated_and_the_connection_stays() {
    let fixture = Fixture::create().await;
    let pool = fixture.pool(1);
    let before = who_am_i(&pool).await;
    let refusal = pool.load(Faulty).await.unwrap_err();
    assert!(matches!(refusal, DatabaseError::Refused(_)), "{refusal:?}");
    assert_eq!(fixture.runs().await, 1);
    assert_eq!(who_am_i(&pool).await, before);
}

#[tokio::test]
async fn a_statement_that_takes_too_long_ends_and_its_connection_is_not_used_again() {
    let fixture = Fixture::create().await;
    let pool = fixture.pool_with(PoolLimits {
        connections: 1,
        wait: LONG,
        statement: SHORT,
        ..PoolLimits::default()
    });
    let before = who_am_i(&pool).await;
    fixture.lock().await;
    let begun = Instant::now();
    let refusal = pool.load(Insert("a")).await.unwrap_err();
    assert!(begun.elapsed() >= SHORT);
    assert!(matches!(&refusal, DatabaseError::Unavailable(_)), "{refusal:?}");
    assert_eq!(fixture.runs().await, 1, "it was repeated");
    // The pool goes on with another connection, while the server still runs the statement.
    assert_ne!(who_am_i(&pool).await, before);
    // A second later the server gives up as well, with nothing stored.
    eventually(LONG, "the end of the old backend", async || {
        (!fixture.backends().await.contains(&before)).then_some(())
    })
    .await;
    fixture.unlock().await;
    assert_eq!(fixture.number("SELECT count(*) FROM scratch.note").await, 0);
}

#[tokio::test]
async fn a_statement_waits_for_a_connection_only_so_long() {
    let fixture = Fixture::create().await;
    let pool = fixture.pool_with(PoolLimits {
        connections: 1,
        wait: SHORT,
        statement: LONG,
        ..PoolLimits::default()
    });
    who_am_i(&pool).await;
    fixture.lock().await;
    let holder = tokio::spawn({
        let pool = pool.clone();
        async move { pool.load(Insert("a")).await }
    });
    fixture.blocked_besides(&[]).await;
    let begun = Instant::now();
    let refusal = pool.load(WhoAmI).await.unwrap_err();
    assert!(begun.elapsed() >= SHORT);
    assert!(
        matches!(&refusal, DatabaseError::Unavailable(reason) if reason == "every connection is in use"),
        "{refusal:?}"
    );
    fixture.unlock().await;
    holder.await.unwrap().unwrap();
    who_am_i(&pool).await;
}

#[tokio::test]
async fn a_caller_that_goes_away_does_not_cut_a_write_short() {
    let fixture = Fixture::create().await;
    let pool = fixture.pool(1);
    fixture.lock().await;
    let caller = tokio::spawn({
        let pool = pool.clone();
        async move { pool.load(Insert("a")).await }
    });
    let backend = fixture.blocked_besides(&[]).await;
    caller.abort();
    assert!(caller.await.unwrap_err().is_cancelled());
    fixture.unlock().await;

    // The pool's one connection comes back when the write is over.
    assert_eq!(who_am_i(&pool).await, backend);
    assert_eq!(fixture.number("SELECT count(*) FROM scratch.note").await, 1);
    let open = "SELECT count(*) FROM pg_stat_activity
                 WHERE datname = current_database() AND state LIKE 'idle in transaction%'";
    assert_eq!(fixture.number(open).await, 0);
}

#[tokio::test]
async fn a_statement_that_waits_for_a_connection_ends_with_its_caller() {
    let fixture = Fixture::create().await;
    let pool = fixture.pool(1);
    fixture.lock().await;
    let holder = tokio::spawn({
        let pool = pool.clone();
        async move { pool.load(Insert("a")).await }
    });
    fixture.blocked_besides(&[]).await;
    assert!(tokio::time::timeout(SHORT, pool.load(Insert("b"))).await.is_err(), "it waits");
    fixture.unlock().await;
    holder.await.unwrap().unwrap();

    // Whoever waited before this one has had the only connection.
    who_am_i(&pool).await;
    assert_eq!(fixture.number("SELECT count(*) FROM scratch.note").await, 1);
}

#[tokio::test]
async fn idle_connections_are_closed_and_opened_again() {
    let fixture = Fixture::create().await;
    let idle = Duration::ZERO;
    let limits = PoolLimits { connections: 3, wait: LONG, statement: LONG, idle };
    let pool = fixture.pool_with(limits);
    // Three at once, so that there are three connections.
    fixture.lock().await;
    let running: Vec<_> = ["a", "b", "c"]
        .map(|note| {
            let pool = pool.clone();
            tokio::spawn(async move { pool.load(Insert(note)).await })
        })
        .into_iter()
        .collect();
    eventually(LONG, "three backends", async || {
        (fixture.backends().await.len() == 3).then_some(())
    })
    .await;
    fixture.unlock().await;
    for task in running {
        task.await.unwrap().unwrap();
    }
    pool.close_idle();
    eventually(LONG, "no backend", async || fixture.backends().await.is_empty().then_some(()))
        .await;
    who_am_i(&pool).await;
}

#[tokio::test]
async fn one_statement_after_another_uses_one_connection_of_several() {
    let fixture = Fixture::create().await;
    let pool = fixture.pool(3);
    fixture.lock().await;
    let blocked = tokio::spawn({
        let pool = pool.clone();
        async move { pool.load(Insert("a")).await }
    });
    fixture.blocked_besides(&[]).await;
    let other = who_am_i(&pool).await;
    fixture.unlock().await;
    blocked.await.unwrap().unwrap();
    // Both are free now; the one that was used last is used again and again.
    let last = who_am_i(&pool).await;
    for _ in 0..8 {
        assert_eq!(who_am_i(&pool).await, last);
    }
    assert!(fixture.backends().await.contains(&other));
}

#[tokio::test]
async fn the_defaults_of_a_database_change_neither_isolation_nor_durability() {
    let fixture = Fixture::create().await;
    let database = fixture.database.name();
    fixture
        .sql
        .batch_execute(&format!(
            "ALTER DATABASE {database} SET default_transaction_isolation = 'serializable';
             ALTER DATABASE {database} SET synchronous_commit = off"
        ))
        .await
        .unwrap();
    let rows = fixture.pool(1).load(Durability).await.unwrap();
    assert_eq!(rows, [("read committed".to_owned(), "on".to_owned())]);
}

/// The isolation and the durability of a statement's transaction.
struct Durability;

impl Statement for Durability {
    const SQL: &'static str =
        "SELECT current_setting('transaction_isolation'), current_setting('synchronous_commit')";
    type Columns = (Text, Text);
    type Row = (String, String);

    fn bind<'b>(&'b self, _: &mut Binds<'_, 'b>) -> QueryResult<()> {
        Ok(())
    }
}
