//! A small pool of connections of one role.

use std::time::Duration;

use deadpool::{
    Runtime,
    managed::{QueueMode, Timeouts},
};
use diesel::{
    ConnectionError, QueryResult, expression::QueryMetadata, pg::Pg, result::Error, sql_types::Bool,
};
use diesel_async::{
    AsyncPgConnection, RunQueryDsl, SimpleAsyncConnection,
    pooled_connection::{
        AsyncDieselConnectionManager, ManagerConfig, PoolError, RecyclingMethod,
        deadpool::{Object, Pool as Deadpool},
    },
};
use futures_util::FutureExt;

use crate::{
    Binds, ConnectError, DatabaseError, DatabaseUrl, ReadTransaction, Statement,
    statement::Prepared,
};

/// The bounds of a [`Pool`].
#[derive(Clone, Copy, Debug)]
pub struct PoolLimits {
    /// Connections at the most; they are opened when needed.
    pub connections: usize,
    /// How long a statement waits for a connection.
    pub wait: Duration,
    /// How long a statement may run, seen from here; the server gives up a second later.
    pub statement: Duration,
    /// How long a connection may be unused before [`Pool::close_idle`] closes it.
    pub idle: Duration,
}

impl Default for PoolLimits {
    /// 4 connections, 5 s, 10 s, 60 s.
    fn default() -> Self {
        Self {
            connections: 4,
            wait: Duration::from_secs(5),
            statement: Duration::from_secs(10),
            idle: Duration::from_secs(60),
        }
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
    ///
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
            // The one that was used last: the others become idle and can be closed.
            .queue_mode(QueueMode::Lifo)
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
    ///
    /// The reason, told apart by whether the server answered.
    pub async fn probe(&self) -> Result<(), ConnectError> {
        self.url.connect().await.map(drop)
    }

    /// Runs a statement that asks for nothing: says whether statements are answered now.
    ///
    /// # Errors
    ///
    /// See [`DatabaseError`].
    pub async fn ping(&self) -> Result<(), DatabaseError> {
        self.load(Ping).await.map(drop)
    }

    /// The address, for a connection beside the pool.
    #[must_use]
    pub fn url(&self) -> &DatabaseUrl {
        &self.url
    }

    /// Closes the connections that were not used for a minute. A process calls it now and then: a
    /// fleet of idle listeners must not hold what one busy moment opened.
    pub fn close_idle(&self) {
        self.connections.retain(|_, metrics| metrics.last_used() < self.limits.idle);
    }

    /// Runs one statement, in a transaction of its own, and returns its rows.
    ///
    /// Once it has a connection it runs in a task, to its end also where the caller goes away; while
    /// it waits for one it ends with its caller. Where the connection broke under it, it is run once
    /// more on a new one, so it has to be one that may run twice. A statement that got no connection
    /// or took too long is not repeated: that would only double the load.
    ///
    /// # Errors
    ///
    /// See [`DatabaseError`].
    pub async fn load<S: Statement>(&self, statement: S) -> Result<Vec<S::Row>, DatabaseError>
    where
        Pg: QueryMetadata<S::Columns>,
    {
        // Not in the task: statements of callers that come and go would pile up there.
        let connection = self.connection().await?;
        let pool = self.clone();
        let task = tokio::spawn(async move {
            match pool.load_once(connection, &statement).await {
                Err(Failure::Broken(reason)) => {
                    tracing::warn!(error = reason, "db.statement_repeated");
                    let connection = pool.connection().await?;
                    Ok(pool.load_once(connection, &statement).await?)
                }
                answer => Ok(answer?),
            }
        });
        task.await.unwrap_or_else(|error| {
            Err(DatabaseError::Unavailable(format!("the statement's task ended: {error}")))
        })
    }

    /// Begins a transaction that only reads, all of it from one moment.
    ///
    /// # Errors
    ///
    /// See [`DatabaseError`].
    pub async fn read(&self) -> Result<ReadTransaction, DatabaseError> {
        let begun = ReadTransaction::begin(self.connection().await?, self.limits.statement).await;
        match begun {
            // Nobody refuses to begin one: the connection was dead.
            Err(error) => {
                tracing::warn!(error = %error, "db.statement_repeated");
                // Its neighbours were opened to the same server and are likely dead as well.
                self.connections.retain(|_, _| false);
                ReadTransaction::begin(self.connection().await?, self.limits.statement).await
            }
            Ok(transaction) => Ok(transaction),
        }
    }

    async fn connection(&self) -> Result<Object<AsyncPgConnection>, DatabaseError> {
        self.connections.get().await.map_err(no_connection)
    }

    async fn load_once<S: Statement>(
        &self,
        mut connection: Object<AsyncPgConnection>,
        statement: &S,
    ) -> Result<Vec<S::Row>, Failure>
    where
        Pg: QueryMetadata<S::Columns>,
    {
        let rows = Prepared(statement).load::<S::Row>(&mut connection);
        let error = match tokio::time::timeout(self.limits.statement, rows).await {
            Ok(Ok(rows)) => return Ok(rows),
            Ok(Err(error)) => error,
            Err(_elapsed) => {
                // It still runs there, so nobody else may have the connection.
                drop(Object::take(connection));
                return Err(unavailable("the statement took too long").into());
            }
        };
        // The driver does not name the state in which a dying backend says good-bye, so the
        // connection is asked whether it still works.
        let broken = match DatabaseError::from_diesel(error) {
            DatabaseError::Refused(error) if !self.answers(&mut connection).await => {
                error.to_string()
            }
            DatabaseError::Unavailable(reason) => reason,
            error => return Err(error.into()),
        };
        // Its neighbours were opened to the same server and are likely dead as well.
        drop(Object::take(connection));
        self.connections.retain(|_, _| false);
        Err(Failure::Broken(broken))
    }

    async fn answers(&self, connection: &mut AsyncPgConnection) -> bool {
        let answer: Result<QueryResult<()>, _> =
            tokio::time::timeout(self.limits.wait, connection.batch_execute("SELECT 1")).await;
        matches!(answer, Ok(Ok(())))
    }
}

struct Ping;

impl Statement for Ping {
    const SQL: &'static str = "SELECT true";
    type Columns = (Bool,);
    type Row = (bool,);

    fn bind<'b>(&'b self, _: &mut Binds<'_, 'b>) -> QueryResult<()> {
        Ok(())
    }
}

/// Why one run of a statement brought no rows.
enum Failure {
    /// The connection broke under it.
    Broken(String),
    /// Running it again would not help.
    Final(DatabaseError),
}

impl From<DatabaseError> for Failure {
    fn from(error: DatabaseError) -> Self {
        Self::Final(error)
    }
}

impl From<Failure> for DatabaseError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Broken(reason) => Self::Unavailable(reason),
            Failure::Final(error) => error,
        }
    }
}

fn unavailable(reason: &str) -> DatabaseError {
    DatabaseError::Unavailable(reason.to_owned())
}

fn boxed(error: ConnectError) -> ConnectionError {
    ConnectionError::CouldntSetupConfiguration(Error::QueryBuilderError(Box::new(error)))
}

fn no_connection(error: deadpool::managed::PoolError<PoolError>) -> DatabaseError {
    use deadpool::managed::{PoolError as Reason, TimeoutType};
    match error {
        Reason::Backend(PoolError::ConnectionError(
            ConnectionError::CouldntSetupConfiguration(error),
        )) => unavailable(&error.to_string()),
        Reason::Backend(error) => unavailable(&error.to_string()),
        Reason::Timeout(TimeoutType::Wait) => unavailable("every connection is in use"),
        error => unavailable(&error.to_string()),
    }
}
