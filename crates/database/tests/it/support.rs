//! A database with a scratch table, and the statements of the tests.

use std::time::Duration;

use database::{Binds, DatabaseUrl, Pool, PoolLimits, Statement};
use diesel::{
    QueryResult,
    sql_types::{Array, Integer, Nullable, Text},
};
use test_support::{TestDatabase, eventually};
use tokio_postgres::Client;

/// Longer than anything takes on a machine that does something else as well.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// A restricted role that the migrated template brings.
pub(crate) const ROLE: &str = "site_coordination_api";

/// The advisory lock on which [`Insert`] and [`Blocked`] wait.
const LOCK: i64 = 7;

/// A database with the table `scratch.note (text)`, unique, and the sequence `scratch.runs`.
pub(crate) struct Fixture {
    pub(crate) database: TestDatabase,
    pub(crate) sql: Client,
}

impl Fixture {
    pub(crate) async fn create() -> Self {
        let database = TestDatabase::create().await;
        let sql = database.superuser().await;
        sql.batch_execute(&format!(
            "CREATE SCHEMA scratch;
             CREATE TABLE scratch.note (text text CONSTRAINT note_once UNIQUE);
             CREATE SEQUENCE scratch.runs;
             GRANT USAGE ON SCHEMA scratch TO {ROLE};
             GRANT ALL ON scratch.note, scratch.runs TO {ROLE}"
        ))
        .await
        .unwrap();
        Self { database, sql }
    }

    pub(crate) fn url(&self) -> DatabaseUrl {
        self.database.url(ROLE).parse().unwrap()
    }

    /// A pool that waits long.
    pub(crate) fn pool(&self, connections: usize) -> Pool {
        self.pool_with(PoolLimits {
            connections,
            wait: LONG,
            statement: LONG,
            ..PoolLimits::default()
        })
    }

    pub(crate) fn pool_with(&self, limits: PoolLimits) -> Pool {
        Pool::new(&self.url(), "the-test", limits)
    }

    /// Holds the lock until [`Fixture::unlock`].
    pub(crate) async fn lock(&self) {
        self.sql.execute("SELECT pg_advisory_lock($1)", &[&LOCK]).await.unwrap();
    }

    pub(crate) async fn unlock(&self) {
        self.sql.execute("SELECT pg_advisory_unlock($1)", &[&LOCK]).await.unwrap();
    }

    /// The number that a query without parameters gives.
    pub(crate) async fn number(&self, query: &str) -> i64 {
        self.sql.query_one(query, &[]).await.unwrap().get(0)
    }

    /// How often a statement that draws from `scratch.runs` ran.
    pub(crate) async fn runs(&self) -> i64 {
        self.number("SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM scratch.runs").await
    }

    /// The pool's backends.
    pub(crate) async fn backends(&self) -> Vec<i32> {
        let query = "SELECT pid FROM pg_stat_activity
                      WHERE datname = current_database() AND usename = $1";
        self.sql.query(query, &[&ROLE]).await.unwrap().iter().map(|row| row.get(0)).collect()
    }

    /// Waits until a backend of the pool waits for the lock, and returns it.
    pub(crate) async fn blocked_besides(&self, others: &[i32]) -> i32 {
        let query = "SELECT pid FROM pg_stat_activity
            WHERE datname = current_database() AND usename = $1 AND wait_event = 'advisory'";
        eventually(LONG, "a backend that waits for the lock", async || {
            let rows = self.sql.query(query, &[&ROLE]).await.unwrap();
            rows.iter().map(|row| row.get(0)).find(|pid| !others.contains(pid))
        })
        .await
    }

    /// Ends backends and returns when they are gone.
    pub(crate) async fn terminate(&self, backends: &[i32]) {
        for pid in backends {
            let query = "SELECT pg_terminate_backend($1, 60000)";
            let gone: bool = self.sql.query_one(query, &[pid]).await.unwrap().get(0);
            assert!(gone, "the backend {pid} is still there");
        }
    }
}

/// The process id of the backend that ran it.
pub(crate) struct WhoAmI;

impl Statement for WhoAmI {
    const SQL: &'static str = "SELECT pg_backend_pid()";
    type Columns = (Integer,);
    type Row = (i32,);

    fn bind<'b>(&'b self, _: &mut Binds<'_, 'b>) -> QueryResult<()> {
        Ok(())
    }
}

pub(crate) async fn who_am_i(pool: &Pool) -> i32 {
    pool.load(WhoAmI).await.unwrap()[0].0
}

/// Draws from `scratch.runs`, waits for the lock and inserts a note; gives its backend.
pub(crate) struct Insert(pub(crate) &'static str);

impl Statement for Insert {
    const SQL: &'static str = "
        WITH run AS MATERIALIZED (SELECT nextval('scratch.runs') AS n),
        lock AS MATERIALIZED (SELECT pg_advisory_xact_lock_shared(7), n FROM run)
        INSERT INTO scratch.note SELECT $1 FROM lock RETURNING pg_backend_pid()";
    type Columns = (Integer,);
    type Row = (i32,);

    fn bind<'b>(&'b self, binds: &mut Binds<'_, 'b>) -> QueryResult<()> {
        binds.push::<Text, _>(self.0)
    }
}

/// Draws from `scratch.runs` and then divides by zero.
pub(crate) struct Faulty;

impl Statement for Faulty {
    const SQL: &'static str = "SELECT (nextval('scratch.runs') / 0)::int";
    type Columns = (Integer,);
    type Row = (i32,);

    fn bind<'b>(&'b self, _: &mut Binds<'_, 'b>) -> QueryResult<()> {
        Ok(())
    }
}

/// Uses its parameters in another order than that of their numbers, one of them twice.
pub(crate) struct Mixed {
    pub(crate) one: i32,
    pub(crate) none: Option<String>,
    pub(crate) list: Vec<Option<String>>,
}

impl Statement for Mixed {
    const SQL: &'static str = "
        SELECT $3, coalesce($2, 'none') || $1::text, $1 -- not $4, nor the end of a comment */
          FROM generate_series(1, $1) ORDER BY 2";
    type Columns = (Array<Nullable<Text>>, Text, Integer);
    type Row = (Vec<Option<String>>, String, i32);

    fn bind<'b>(&'b self, binds: &mut Binds<'_, 'b>) -> QueryResult<()> {
        binds.push::<Integer, _>(&self.one)?;
        binds.push::<Nullable<Text>, _>(&self.none)?;
        binds.push::<Array<Nullable<Text>>, _>(&self.list)
    }
}

/// The settings of the session that matter.
pub(crate) struct Session;

impl Statement for Session {
    const SQL: &'static str = "
        SELECT current_setting('application_name'), current_setting('statement_timeout'),
               current_setting('idle_in_transaction_session_timeout'), current_user::text,
               (SELECT ssl::text FROM pg_stat_ssl WHERE pid = pg_backend_pid())";
    type Columns = (Text, Text, Text, Text, Text);
    type Row = (String, String, String, String, String);

    fn bind<'b>(&'b self, _: &mut Binds<'_, 'b>) -> QueryResult<()> {
        Ok(())
    }
}
