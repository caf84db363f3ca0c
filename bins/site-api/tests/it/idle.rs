//! What a listener costs while nothing happens: a hundred of them share one database.

use std::time::{Duration, Instant};

use tokio_postgres::Client;

use crate::support::{LONG, Place};
use test_support::eventually;

/// Long enough that a quiet look more or less does not matter.
const WINDOW: Duration = Duration::from_secs(15);

/// A look each three seconds and a poll. Each of what would be too much is more: a look a second
/// (15), or two (30).
const MOST_TRANSACTIONS: i64 = 9;

#[tokio::test]
async fn an_idle_listener_with_a_parked_poll_asks_little_of_the_database() {
    let place = Place::prepare().await;
    place.enqueue(&["{}"]);
    let mut command = place.command();
    command.env("SITE_API_LONGEST_WAIT_SECONDS", "55");
    let api = place.start_by(command).await;
    api.listening_for_hints().await;
    let poll = api.parked(api.poll("after=1&wait=55")).await;
    assert!(!poll.is_finished());
    asks_little(&api.place).await;
    poll.abort();
}

/// The database counts transactions of its own upkeep as well, now and then: the best of three
/// windows counts. What a listener does it does in each.
pub(crate) async fn asks_little(place: &Place) {
    let sql = place.database.superuser().await;
    let connections = "SELECT count(*) FROM pg_stat_activity
                        WHERE datname = current_database() AND application_name = 'site-api'";
    // One that a busy moment opened is closed after a minute.
    eventually(LONG * 2, "two connections", async || {
        let count: i64 = sql.query_one(connections, &[]).await.unwrap().get(0);
        (count <= 2).then_some(())
    })
    .await;
    let mut counted = Vec::new();
    while counted.len() < 3 && counted.last().is_none_or(|count| *count > MOST_TRANSACTIONS) {
        counted.push(transactions(&sql).await);
    }
    assert!(counted.last().is_some_and(|count| *count <= MOST_TRANSACTIONS), "{counted:?}");
}

/// How many transactions the database counts in a window, but for our own.
async fn transactions(sql: &Client) -> i64 {
    let count = "SELECT xact_commit + xact_rollback FROM pg_stat_database
                  WHERE datname = current_database()";
    let begun = Instant::now();
    let before: i64 = sql.query_one(count, &[]).await.unwrap().get(0);
    tokio::time::sleep(WINDOW.saturating_sub(begun.elapsed())).await;
    let after: i64 = sql.query_one(count, &[]).await.unwrap().get(0);
    after - before - 1
}
