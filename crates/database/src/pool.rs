//! A small pool of connections of one role.

use std::time::Duration;

use deadpool::{Runtime, managed::Timeouts};
use diesel::{ConnectionError, QueryResult, expression::QueryMetadata, pg::Pg, result::Error};
use diesel_async::{
    AsyncPgConnection, RunQueryDsl, SimpleAsyncConnection,
    pooled_connection::{
        AsyncDieselConnectionManager, ManagerConfig, PoolError, RecyclingMethod,
        deadpool::{Object, Pool as Deadpool},
    },
};
use futures_util::FutureExt;

use crate::{ConnectError, DatabaseError, DatabaseUrl, Statement, statement::Prepared};

/// The bounds of a [`Pool`].
#[derive(Clone, Copy, Debug)]
pub struct PoolLimits {
    /// Connections at the most; they are opened when needed.
    pub connections: usize,
    /// How long a statement waits for a connection.
    pub wait: Duration,
    /// How long a statement may run, seen from here; the server gives up a second later.
    pub statement: Duration,
}

impl Default for PoolLimits {
    /// 4 connections, 5 s, 10 s.
    fn default() -> Self {
        Self { connections: 4, wait: Duration::from_secs(5), statement: Duration::from_secs(10) }
    }
}

/// Runs statements on a few connections of one role. Cloning shares the connections.
#[derive(Clone)]
pub struct Pool {
    connections: Deadpool<AsyncPgConnection>,
    url: DatabaseUrl,
    limits: PoolLimits,
}

impl Pool {
    /// Prepares a pool for a process that PostgreSQL shows as `process`. Opens no connection.
    ///
    /// # Panics
    /// Never: the only error of the builder is a missing runtime, which is given.
    #[must_use]
    pub fn new(url: &DatabaseUrl, process: &str, limits: PoolLimits) -> Self {
        let url = url.for_process(process, limits.statement + Duration::from_secs(1));
        let mut config = ManagerConfig::default();
        config.recycling_method = RecyclingMethod::Fast;
        let address = url.clone();
        config.custom_setup = Box::new(move |_| {
            let address = address.clone();
            async move { address.connect().await.map_err(boxed) }.boxed()
        });
        let manager = AsyncDieselConnectionManager::new_with_config(String::new(), config);
        let connections = Deadpool::builder(manager)
            .max_size(limits.connections)
            .runtime(Runtime::Tokio1)
            .timeouts(Timeouts {
                wait: Some(limits.wait),
                create: Some(limits.wait),
                recycle: Some(limits.wait),
            })
            .build()
            .expect("the pool has a runtime for its timeouts");
        Self { connections, url, limits }
    }

    /// Opens a connection and closes it: says at start whether the database takes us.
    ///
    /// # Errors
    /// The reason, told apart by whether the server answered.
    pub async fn probe(&self) -> Result<(), ConnectError> {
        self.url.connect().await.map(drop)
    }

    /// The address, for a connection beside the pool.
    #[must_use]
    pub fn url(&self) -> &DatabaseUrl {
        &self.url
    }

    /// Runs one statement, in a transaction of its own, and returns its rows.
    ///
    /// It runs in a task, to its end also where the caller goes away. Where the connection broke it
    /// is run once more on a new one, so it has to be one that may run twice.
    ///
    /// # Errors
    /// See [`DatabaseError`].
    pub async fn load<S: Statement>(&self, statement: S) -> Result<Vec<S::Row>, DatabaseError>
    where
        Pg: QueryMetadata<S::Columns>,
    {
        let pool = self.clone();
        let task = tokio::spawn(async move {
            match pool.load_once(&statement).await {
                Err(DatabaseError::Unavailable(reason)) => {
                    tracing::warn!(db.error = reason, "db.statement_repeated");
                    pool.load_once(&statement).await
                }
                answer => answer,
            }
        });
        task.await.unwrap_or_else(|error| {
            Err(DatabaseError::Unavailable(format!("the statement's task ended: {error}")))
        })
    }

    async fn load_once<S: Statement>(&self, statement: &S) -> Result<Vec<S::Row>, DatabaseError>
    where
        Pg: QueryMetadata<S::Columns>,
    {
        let mut connection = self.connections.get().await.map_err(no_connection)?;
        let rows = Prepared(statement).load::<S::Row>(&mut connection);
        let error = match tokio::time::timeout(self.limits.statement, rows).await {
            Ok(Ok(rows)) => return Ok(rows),
            Ok(Err(error)) => error,
            Err(_elapsed) => {
                drop(Object::take(connection));
                return Err(DatabaseError::Unavailable("the statement took too long".to_owned()));
            }
        };
        // The driver does not name the state in which a dying backend says good-bye, so the
        // connection is asked whether it still works.
        let error = match DatabaseError::from_diesel(error) {
            DatabaseError::Refused(error) if !self.answers(&mut connection).await => {
                DatabaseError::Unavailable(error.to_string())
            }
            error => error,
        };
        if matches!(error, DatabaseError::Unavailable(_)) {
            // Its neighbours were opened to the same server and are likely dead as well.
            drop(Object::take(connection));
            self.connections.retain(|_, _| false);
        }
        Err(error)
    }

    async fn answers(&self, connection: &mut AsyncPgConnection) -> bool {
        let answer: Result<QueryResult<()>, _> =
            tokio::time::timeout(self.limits.wait, connection.batch_execute("SELECT 1")).await;
        matches!(answer, Ok(Ok(())))
    }
}

fn boxed(error: ConnectError) -> ConnectionError {
    ConnectionError::CouldntSetupConfiguration(Error::QueryBuilderError(Box::new(error)))
}

fn no_connection(error: deadpool::managed::PoolError<PoolError>) -> DatabaseError {
    use deadpool::managed::PoolError as Reason;
    DatabaseError::Unavailable(match error {
        Reason::Backend(PoolError::ConnectionError(
            ConnectionError::CouldntSetupConfiguration(error),
        )) => error.to_string(),
        Reason::Backend(error) => error.to_string(),
        error => error.to_string(),
    })
}
