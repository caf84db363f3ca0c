//! A pool whose connections or server die.

use std::time::Duration;

use database::{DatabaseError, DatabaseUrl, Pool, PoolLimits};
use test_support::postgres::{Access, Cluster, Options};
use tokio::{net::TcpListener, time::Instant};

use crate::support::{Fixture, Insert, LONG, WhoAmI, who_am_i};

#[tokio::test]
async fn idle_connections_that_were_killed_are_replaced_without_anybody_noticing() {
    let fixture = Fixture::create().await;
    let pool = fixture.pool(4);
    for round in 0..5 {
        let calls: Vec<_> = (0..16)
            .map(|_| {
                let pool = pool.clone();
                tokio::spawn(async move { pool.load(WhoAmI).await })
            })
            .collect();
        for call in calls {
            call.await.unwrap().unwrap_or_else(|error| panic!("round {round}: {error:?}"));
        }
        fixture.terminate(&fixture.backends().await).await;
    }
}

#[tokio::test]
async fn a_statement_whose_backend_is_killed_under_it_is_repeated_once() {
    let fixture = Fixture::create().await;
    let pool = fixture.pool(2);
    fixture.lock().await;
    let call = tokio::spawn({
        let pool = pool.clone();
        async move { pool.load(Insert("a")).await }
    });
    let first = fixture.blocked_besides(&[]).await;
    fixture.terminate(&[first]).await;
    let second = fixture.blocked_besides(&[first]).await;
    fixture.unlock().await;
    assert_eq!(call.await.unwrap().unwrap(), [(second,)]);
    assert_eq!(fixture.runs().await, 2);
    assert_eq!(fixture.number("SELECT count(*) FROM scratch.note").await, 1);
}

#[tokio::test]
async fn a_statement_whose_backend_is_killed_twice_fails() {
    let fixture = Fixture::create().await;
    let pool = fixture.pool(2);
    fixture.lock().await;
    let call = tokio::spawn({
        let pool = pool.clone();
        async move { pool.load(Insert("a")).await }
    });
    let mut killed = Vec::new();
    for _ in 0..2 {
        let backend = fixture.blocked_besides(&killed).await;
        fixture.terminate(&[backend]).await;
        killed.push(backend);
    }
    let refusal = call.await.unwrap().unwrap_err();
    assert!(matches!(refusal, DatabaseError::Unavailable(_)), "{refusal:?}");
    fixture.unlock().await;
    assert_eq!(fixture.runs().await, 2);
    who_am_i(&pool).await;
}

#[tokio::test]
async fn a_server_that_is_down_is_unavailable_at_once() {
    let fixture = Fixture::create().await;
    let port = test_support::free_port().unwrap();
    let refusal = pool_at(&fixture, port, LONG).load(WhoAmI).await.unwrap_err();
    assert!(
        matches!(&refusal, DatabaseError::Unavailable(reason) if reason.contains("can't be reached")),
        "{refusal:?}"
    );
}

#[tokio::test]
async fn a_server_that_says_nothing_is_unavailable_after_the_wait() {
    let fixture = Fixture::create().await;
    let silent = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let wait = Duration::from_millis(300);
    let pool = pool_at(&fixture, silent.local_addr().unwrap().port(), wait);
    let begun = Instant::now();
    let refusal = pool.load(WhoAmI).await.unwrap_err();
    assert!(matches!(refusal, DatabaseError::Unavailable(_)), "{refusal:?}");
    assert!(begun.elapsed() < LONG);
    // What is outside a pool has no other bound than that of opening a connection.
    let begun = Instant::now();
    pool.probe().await.unwrap_err();
    assert!(begun.elapsed() < LONG);
}

/// A pool at a port of this machine where no PostgreSQL is.
fn pool_at(fixture: &Fixture, port: u16, wait: Duration) -> Pool {
    let access = Access::of_this_test();
    let url = fixture.database.url(crate::support::ROLE);
    let url: DatabaseUrl =
        url.replace(&format!(":{}/", access.port), &format!(":{port}/")).parse().unwrap();
    Pool::new(
        &url,
        "the-test",
        PoolLimits { connections: 2, wait, statement: LONG, ..PoolLimits::default() },
    )
}

#[tokio::test]
async fn kills_a_server_and_the_pool_goes_on_when_it_is_back() {
    let access = Access::of_this_test();
    let options = Options { durable: true, ..Options::default() };
    let mut cluster = Cluster::start(&access.installation, options).await.unwrap();
    let url: DatabaseUrl = cluster.superuser_url("postgres").parse().unwrap();
    let pool = Pool::new(
        &url,
        "the-test",
        PoolLimits { connections: 3, wait: LONG, statement: LONG, ..PoolLimits::default() },
    );
    for _ in 0..3 {
        who_am_i(&pool).await;
        cluster.kill();
        let refusal = pool.load(WhoAmI).await.unwrap_err();
        assert!(matches!(refusal, DatabaseError::Unavailable(_)), "{refusal:?}");
        cluster.restart().await.unwrap();
    }
    who_am_i(&pool).await;
    cluster.stop().await.unwrap();
}
