//! Writes down what a role notifies, and can hold it up.

use std::time::Duration;

use tokio_postgres::Client;

use super::TestDatabase;
use crate::eventually;

/// The hints that the sessions of one role send in a database, each with its transaction. Only
/// sessions that begin after the log are seen.
pub struct HintLog {
    sql: Client,
}

/// `pg_notify` as the role finds it: it is found before the one of PostgreSQL.
const SCHEMA: &str = "
    CREATE SCHEMA hint_log;
    CREATE TABLE hint_log.hint (n serial, transaction text, channel text, payload text);
    CREATE FUNCTION hint_log.pg_notify(channel text, payload text) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER AS $$
    BEGIN
        PERFORM pg_advisory_xact_lock_shared(7077);
        INSERT INTO hint_log.hint (transaction, channel, payload)
        VALUES (pg_current_xact_id()::text, channel, payload);
        PERFORM pg_catalog.pg_notify(channel, payload);
    END $$;";

/// Longer than anything takes on a machine that does something else as well.
const LONG: Duration = Duration::from_secs(60);

impl TestDatabase {
    /// Begins a log of what `role` notifies in this database.
    ///
    /// # Panics
    ///
    /// When the cluster does not make it.
    pub async fn hint_log(&self, role: &str) -> HintLog {
        let sql = self.superuser().await;
        let begin = format!(
            "{SCHEMA}
             GRANT USAGE ON SCHEMA hint_log TO {role};
             ALTER ROLE {role} IN DATABASE {} SET search_path = hint_log, pg_catalog",
            self.name()
        );
        sql.batch_execute(&begin).await.expect("the superuser may make it");
        HintLog { sql }
    }
}

impl HintLog {
    /// From now on each hint waits for [`HintLog::release`] before it is sent.
    ///
    /// # Panics
    ///
    /// When the cluster does not answer.
    pub async fn hold(&self) {
        self.sql.batch_execute("SELECT pg_advisory_lock(7077)").await.expect("a lock");
    }

    /// Lets the hints go.
    ///
    /// # Panics
    ///
    /// When the cluster does not answer.
    pub async fn release(&self) {
        self.sql.batch_execute("SELECT pg_advisory_unlock(7077)").await.expect("a lock");
    }

    /// Returns when a hint is held up.
    ///
    /// # Panics
    ///
    /// When none is for a minute.
    pub async fn held(&self) {
        let query = "SELECT FROM pg_stat_activity
                      WHERE datname = current_database() AND wait_event = 'advisory'";
        eventually(LONG, "a hint that is held up", async || {
            self.sql.query_opt(query, &[]).await.expect("the cluster answers")
        })
        .await;
    }

    /// The payloads of the hints that were sent, by their transactions, both in their order. Equal
    /// ones are not told apart.
    ///
    /// # Panics
    ///
    /// When the cluster does not answer.
    pub async fn transactions(&self) -> Vec<Vec<String>> {
        let query = "SELECT array_agg(payload ORDER BY payload) FROM hint_log.hint
                      GROUP BY transaction ORDER BY min(n)";
        let rows = self.sql.query(query, &[]).await.expect("the cluster answers");
        rows.iter().map(|row| row.get(0)).collect()
    }
}
