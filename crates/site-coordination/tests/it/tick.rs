//! The tick: what it finds without a hint, and how often it looks.

use std::time::Duration;

use chrono::{DateTime, Utc};
use site_coordination::Environment;
use test_support::eventually;
use tokio::time::timeout;
use tokio_postgres::Client;

use crate::{
    support::{Fixture, LONG, SLURM},
    waiting::{Fed, enqueue_reaches},
};

#[tokio::test]
async fn a_lost_hint_costs_a_tick() {
    let fixture = Fixture::create().await;
    let fed = Fed::start(&fixture, Duration::from_millis(50), 2).await;
    let no_hints = "REVOKE EXECUTE ON FUNCTION pg_notify FROM PUBLIC";
    fed.sql.batch_execute(no_hints).await.unwrap();
    let producer = fixture.producer(2);
    for number in 0..5 {
        let poll = fed.parked(SLURM, number).await;
        enqueue_reaches(&producer, poll, &format!("k{number}")).await;
    }
}

/// The looks of a tick as they begin: the time between each and the one before.
struct Looks<'a> {
    sql: &'a Client,
    last: Option<DateTime<Utc>>,
}

impl Looks<'_> {
    async fn next_gap(&mut self) -> Duration {
        const NEWEST_LOOK: &str = "SELECT max(query_start) FROM pg_stat_activity
            WHERE datname = current_database() AND pid <> pg_backend_pid()
              AND query LIKE '%-- What can wake somebody%'";
        loop {
            let look = eventually(LONG, "the next look", async || {
                let row = self.sql.query_one(NEWEST_LOOK, &[]).await.unwrap();
                let look = row.get::<_, Option<std::time::SystemTime>>(0).map(DateTime::from)?;
                (Some(look) != self.last).then_some(look)
            })
            .await;
            if let Some(before) = self.last.replace(look) {
                return (look - before).to_std().unwrap_or_default();
            }
        }
    }

    /// Returns when so many gaps in a row were `wanted`.
    async fn until(&mut self, what: &str, gaps: u32, wanted: impl Fn(Duration) -> bool) {
        let mut found = 0;
        timeout(LONG, async {
            while found < gaps {
                found = if wanted(self.next_gap().await) { found + 1 } else { 0 };
            }
        })
        .await
        .unwrap_or_else(|_| panic!("waited for {what}"));
    }
}

/// A look is a transaction, and a hundred Sites look at one database.
#[tokio::test]
async fn a_stream_is_looked_at_each_tick_only_where_hints_come_or_nobody_hears_them() {
    const TICK: Duration = Duration::from_millis(400);
    let (quiet, stirred) = (|gap| gap > TICK * 2, |gap| gap < TICK * 2);
    let fixture = Fixture::create().await;
    let fed = Fed::start(&fixture, TICK, 1).await;
    let producer = fixture.producer(1);
    let poll = fed.parked(SLURM, 0).await;
    // Nobody is looked for where nobody waits.
    let waits = fed.parked(Environment::K8s, 0).await;
    let listener = fed.listener_besides(0).await;
    let mut looks = Looks { sql: &fed.sql, last: None };
    looks.until("quiet", 3, quiet).await;

    enqueue_reaches(&producer, poll, "k1").await;
    looks.until("the look that a hint brings forward", 1, stirred).await;
    looks.until("quiet", 2, quiet).await;

    let database = fixture.database.name();
    let lock = format!("REVOKE CONNECT ON DATABASE {database} FROM site_coordination_api");
    fed.sql.batch_execute(&lock).await.unwrap();
    fed.sql.execute("SELECT pg_terminate_backend($1, 60000)", &[&listener]).await.unwrap();
    looks.until("looks while nobody hears", 4, stirred).await;
    let unlock = format!("GRANT CONNECT ON DATABASE {database} TO site_coordination_api");
    fed.sql.batch_execute(&unlock).await.unwrap();
    looks.until("quiet", 2, quiet).await;
    assert!(!waits.is_finished());
    waits.abort();
}
