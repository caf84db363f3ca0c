//! The connection of a database's administrator, for setting up and never for serving.

use diesel::{
    QueryableByName, sql_query,
    sql_types::{Array, Text},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl, SimpleAsyncConnection};

use crate::{ConnectError, DatabaseError, DatabaseUrl};

/// Runs the scripts that make roles.
pub struct AdminConnection(AsyncPgConnection);

#[derive(QueryableByName)]
struct Name {
    #[diesel(sql_type = Text)]
    rolname: String,
}

impl AdminConnection {
    /// Connects as the administrator.
    ///
    /// # Errors
    ///
    /// The reason, told apart by whether the server answered.
    pub async fn open(url: &DatabaseUrl) -> Result<Self, ConnectError> {
        url.connect().await.map(Self)
    }

    /// Those of some roles that exist.
    ///
    /// # Errors
    ///
    /// The database failed.
    pub async fn existing_roles(&mut self, roles: &[&str]) -> Result<Vec<String>, DatabaseError> {
        let names: Vec<Name> = sql_query("SELECT rolname FROM pg_roles WHERE rolname = ANY ($1)")
            .bind::<Array<Text>, _>(roles)
            .load(&mut self.0)
            .await
            .map_err(DatabaseError::from_diesel)?;
        Ok(names.into_iter().map(|name| name.rolname).collect())
    }

    /// Runs a script of one or more statements in one transaction.
    ///
    /// # Errors
    ///
    /// The database failed; nothing was changed.
    pub async fn run(&mut self, script: &str) -> Result<(), DatabaseError> {
        self.0.batch_execute(script).await.map_err(DatabaseError::from_diesel)
    }
}
