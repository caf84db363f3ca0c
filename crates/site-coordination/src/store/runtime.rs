//! The statements of a Runtime's side, and of the wake-ups.

mod rows;

use database::DatabaseError;

use crate::{
    CommandId, Environment, Generation, JsonText, Outcome, PollRequest, ReadError, SessionId,
    SiteId, Stream, Writer,
    statements::runtime::{OpenSession, ReadHeads, ReadPage, ReadPlace, StoreResult},
    store::Store,
};

use rows::Place;
pub(crate) use rows::{Head, OpenTry, ResultTry, Snapshot};

impl Store {
    /// Reads the commands after a sequence; a stream that does not exist is an empty one.
    pub(crate) async fn page(
        &self,
        stream: &Stream,
        request: &PollRequest,
    ) -> Result<Snapshot, ReadError> {
        let statement = ReadPage {
            site: stream.site.as_str().to_owned(),
            environment: stream.environment.as_str(),
            limit: i64::from(request.limit),
            bytes: i64::from(request.bytes),
            cancel_rev: rows::bigint(request.cancel_rev),
            after: request.after.get(),
        };
        rows::snapshot(self.pool.load(statement).await?)
    }

    /// Runs the statement that opens a session once; `None` where the stream does not exist.
    pub(crate) async fn open_session(
        &self,
        stream: &Stream,
        session: &SessionId,
        expected: Generation,
    ) -> Result<Option<OpenTry>, DatabaseError> {
        let statement = OpenSession {
            site: stream.site.as_str().to_owned(),
            environment: stream.environment.as_str(),
            session_id: session.as_str().to_owned(),
            expected: expected.get(),
        };
        Ok(self.pool.load(statement).await?.into_iter().next().map(rows::open_try))
    }

    /// How far a stream is; `None` where it does not exist.
    pub(crate) async fn place(&self, stream: &Stream) -> Result<Option<Place>, ReadError> {
        let statement = ReadPlace {
            site: stream.site.as_str().to_owned(),
            environment: stream.environment.as_str(),
        };
        self.pool.load(statement).await?.into_iter().next().map(rows::place).transpose()
    }

    /// Runs the result's statement once; `None` where the stream has no such command.
    pub(crate) async fn store_result(
        &self,
        stream: &Stream,
        writer: &Writer,
        id: &CommandId,
        outcome: Outcome,
        body: &JsonText,
    ) -> Result<Option<ResultTry>, ReadError> {
        let statement = StoreResult {
            site: stream.site.as_str().to_owned(),
            environment: stream.environment.as_str(),
            command_id: id.as_str().to_owned(),
            generation: writer.generation().get(),
            digest: *body.digest().as_bytes(),
            outcome: outcome.as_str(),
            body: body.as_str().to_owned(),
            session_id: writer.session().map(|session| session.as_str().to_owned()),
        };
        let rows = self.pool.load(statement).await?;
        rows.into_iter().next().map(|row| rows::result_try(id, row)).transpose()
    }

    /// What can wake somebody in each stream of a Site.
    pub(crate) async fn heads(
        &self,
        site: &SiteId,
    ) -> Result<Vec<(Environment, Head)>, DatabaseError> {
        let rows = self.pool.load(ReadHeads { site: site.as_str().to_owned() }).await?;
        Ok(rows.into_iter().filter_map(rows::head).collect())
    }
}
