//! Several reads of one moment.

use database::{Binds, DatabaseError, Statement};
use diesel::{QueryResult, sql_types::BigInt};
use test_support::eventually;

use crate::support::{Fixture, Insert, LONG, WhoAmI, who_am_i};

/// How many notes there are.
struct Count;

impl Statement for Count {
    const SQL: &'static str = "SELECT count(*) FROM scratch.note";
    type Columns = (BigInt,);
    type Row = (i64,);

    fn bind<'b>(&'b self, _: &mut Binds<'_, 'b>) -> QueryResult<()> {
        Ok(())
    }
}

/// A statement that is wrong.
struct Wrong;

impl Statement for Wrong {
    const SQL: &'static str = "SELECT 1::bigint / 0";
    type Columns = (BigInt,);
    type Row = (i64,);

    fn bind<'b>(&'b self, _: &mut Binds<'_, 'b>) -> QueryResult<()> {
        Ok(())
    }
}

#[tokio::test]
async fn it_stays_in_the_moment_of_its_first_statement_while_others_write() {
    let fixture = Fixture::create().await;
    let pool = fixture.pool(2);
    let mut read = pool.read().await.unwrap();
    assert_eq!(read.load(&Count).await.unwrap(), [(0,)]);
    pool.load(Insert("one")).await.unwrap();
    assert_eq!(pool.load(Count).await.unwrap(), [(1,)]);
    assert_eq!(read.load(&Count).await.unwrap(), [(0,)]);
    read.end().await.unwrap();
    assert_eq!(pool.read().await.unwrap().load(&Count).await.unwrap(), [(1,)]);
}

#[tokio::test]
async fn it_writes_nothing() {
    let fixture = Fixture::create().await;
    let mut read = fixture.pool(1).read().await.unwrap();
    let refusal = read.load(&Insert("one")).await.unwrap_err();
    assert!(matches!(refusal, DatabaseError::Refused(_)), "{refusal:?}");
    assert_eq!(fixture.number("SELECT count(*) FROM scratch.note").await, 0);
}

#[tokio::test]
async fn its_connection_goes_back_to_the_pool_at_its_end_and_nowhere_else() {
    let fixture = Fixture::create().await;
    let pool = fixture.pool(1);
    let first = who_am_i(&pool).await;
    let mut read = pool.read().await.unwrap();
    assert_eq!(read.load(&WhoAmI).await.unwrap(), [(first,)]);
    read.end().await.unwrap();
    assert_eq!(who_am_i(&pool).await, first);
    drop(pool.read().await.unwrap());
    assert_ne!(who_am_i(&pool).await, first, "a transaction was open on it");
    eventually(LONG, "the backend to end", async || {
        (!fixture.backends().await.contains(&first)).then_some(())
    })
    .await;
}

#[tokio::test]
async fn after_a_failure_nothing_of_it_works_and_the_pool_does() {
    let fixture = Fixture::create().await;
    let pool = fixture.pool(1);
    let mut read = pool.read().await.unwrap();
    let refusal = read.load(&Wrong).await.unwrap_err();
    assert!(matches!(refusal, DatabaseError::Refused(_)), "{refusal:?}");
    for _ in 0..2 {
        let refusal = read.load(&Count).await.unwrap_err();
        assert!(matches!(refusal, DatabaseError::Unavailable(_)), "{refusal:?}");
    }
    assert!(read.end().await.is_err());
    assert_eq!(pool.load(Count).await.unwrap(), [(0,)]);
}

#[tokio::test]
async fn a_caller_that_goes_away_in_the_middle_of_a_statement_leaves_its_connection_to_nobody() {
    let fixture = Fixture::create().await;
    let pool = fixture.pool(1);
    let mut read = pool.read().await.unwrap();
    let pid = read.load(&WhoAmI).await.unwrap()[0].0;
    fixture.lock().await;
    {
        // A shared lock that is waited for is no write.
        let waiting = read.load(&Locked);
        tokio::pin!(waiting);
        tokio::select! {
            done = &mut waiting => panic!("{done:?}"),
            _ = fixture.blocked_besides(&[]) => {}
        }
    }
    fixture.unlock().await;
    assert!(read.load(&Count).await.is_err());
    assert_ne!(who_am_i(&pool).await, pid);
}

/// Waits for the lock.
struct Locked;

impl Statement for Locked {
    const SQL: &'static str = "SELECT count(*) FROM (SELECT pg_advisory_lock_shared(7)) waited";
    type Columns = (BigInt,);
    type Row = (i64,);

    fn bind<'b>(&'b self, _: &mut Binds<'_, 'b>) -> QueryResult<()> {
        Ok(())
    }
}

#[tokio::test]
async fn it_begins_also_where_the_connection_of_the_pool_had_died() {
    let fixture = Fixture::create().await;
    let pool = fixture.pool(2);
    let dead = who_am_i(&pool).await;
    fixture.terminate(&[dead]).await;
    let mut read = pool.read().await.unwrap();
    assert_eq!(read.load(&Count).await.unwrap(), [(0,)]);
}
