//! Several reads of one moment.

use std::time::Duration;

use diesel::{expression::QueryMetadata, pg::Pg};
use diesel_async::{
    AsyncPgConnection, RunQueryDsl, SimpleAsyncConnection, pooled_connection::deadpool::Object,
};
use tokio::time::timeout;

use crate::{DatabaseError, Statement, statement::Prepared};

/// A transaction that only reads, and sees the database as it was at its first statement
/// (REPEATABLE READ). It holds a connection of its pool until it is dropped, so whoever keeps it for
/// long bounds how many there are.
///
/// Nothing is repeated here: where the connection breaks, what was read so far is all that there is of
/// that moment.
pub struct ReadTransaction {
    /// `None` once a statement failed: the connection is in an unknown state then.
    connection: Option<Object<AsyncPgConnection>>,
    limit: Duration,
}

/// How long whoever reads may do something else between two statements, such as to send what it has
/// read to somebody slow.
const IDLE: Duration = Duration::from_secs(60);

impl ReadTransaction {
    pub(crate) async fn begin(
        connection: Object<AsyncPgConnection>,
        limit: Duration,
    ) -> Result<Self, DatabaseError> {
        let mut transaction = Self { connection: Some(connection), limit };
        let begin = format!(
            "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; \
             SET LOCAL idle_in_transaction_session_timeout = {}",
            IDLE.as_millis()
        );
        transaction.run(async |connection| connection.batch_execute(&begin).await).await?;
        Ok(transaction)
    }

    /// Runs a statement and returns its rows.
    ///
    /// # Errors
    ///
    /// See [`DatabaseError`]. After one every other statement fails as well.
    pub async fn load<S: Statement>(&mut self, statement: &S) -> Result<Vec<S::Row>, DatabaseError>
    where
        Pg: QueryMetadata<S::Columns>,
    {
        self.run(async |connection| Prepared(statement).load::<S::Row>(connection).await).await
    }

    /// Ends it and gives its connection back. One that is dropped instead closes the connection, which
    /// ends it too.
    ///
    /// # Errors
    ///
    /// See [`DatabaseError`]. Nothing is lost: it only read.
    pub async fn end(mut self) -> Result<(), DatabaseError> {
        self.run(async |connection| connection.batch_execute("COMMIT").await).await?;
        // Back to the pool, as it was taken from there.
        drop(self.connection.take());
        Ok(())
    }

    async fn run<T>(
        &mut self,
        work: impl AsyncFnOnce(&mut AsyncPgConnection) -> diesel::QueryResult<T>,
    ) -> Result<T, DatabaseError> {
        let gone = || DatabaseError::Unavailable("the transaction has failed".to_owned());
        // Taken for the time of the statement: where the caller goes away in the middle of it, nobody
        // else gets the connection.
        let mut connection = Owned(self.connection.take());
        let done = timeout(self.limit, work(connection.0.as_mut().ok_or_else(gone)?)).await;
        match done {
            Ok(Ok(value)) => {
                self.connection = connection.0.take();
                Ok(value)
            }
            Ok(Err(error)) => Err(DatabaseError::from_diesel(error)),
            Err(_elapsed) => {
                Err(DatabaseError::Unavailable("the statement took too long".to_owned()))
            }
        }
    }
}

impl Drop for ReadTransaction {
    fn drop(&mut self) {
        // A transaction is open on it, so nobody else may have it.
        drop(Owned(self.connection.take()));
    }
}

/// A connection that is closed when it is dropped, in place of going back to the pool.
struct Owned(Option<Object<AsyncPgConnection>>);

impl Drop for Owned {
    fn drop(&mut self) {
        if let Some(connection) = self.0.take() {
            drop(Object::take(connection));
        }
    }
}
