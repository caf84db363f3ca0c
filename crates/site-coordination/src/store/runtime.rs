//! What a Runtime asks and changes.

mod rows;

use std::sync::Arc;

use database::DatabaseError;

use crate::{
    CommandId, Digest, Generation, NewResult, NextRequest, PollRequest, ReadError, SessionId,
    Stream, Writer,
    statements::runtime::{
        OpenSession, PageBounds, ReadPage, ReadPlace, StoreOutput, StoreResult, StoreResults,
        WithPage,
    },
    store::Store,
};

use rows::Place;
pub(crate) use rows::{OpenTry, OutputTry, ResultsTry, Snapshot, Target};

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

    /// Runs the results' statement once, with the page after them where `next` asks for one. A single
    /// result has a shorter statement.
    pub(crate) async fn store_results(
        &self,
        stream: &Stream,
        writer: &Writer,
        results: &[NewResult],
        next: Option<&NextRequest>,
    ) -> Result<ResultsTry, ReadError> {
        match (results, next) {
            ([result], None) => {
                let statement = store_result(stream, writer, result, None);
                rows::results_alone(self.pool.load(statement).await?)
            }
            ([result], Some(_)) => {
                let statement = WithPage(store_result(stream, writer, result, next));
                rows::results_try(self.pool.load(statement).await?)
            }
            (_, None) => {
                let statement = store_results(stream, writer, results, None);
                rows::results_alone(self.pool.load(statement).await?)
            }
            (_, Some(_)) => {
                let statement = WithPage(store_results(stream, writer, results, next));
                rows::results_try(self.pool.load(statement).await?)
            }
        }
    }

    /// Runs the output's statement once; `None` where the stream has no such command.
    pub(crate) async fn store_output(
        &self,
        stream: &Stream,
        writer: &Writer,
        id: &CommandId,
        output: (Digest, &Arc<Vec<u8>>),
        limit: u16,
    ) -> Result<Option<OutputTry>, ReadError> {
        let (digest, bytes) = output;
        let statement = StoreOutput {
            site: stream.site.as_str().to_owned(),
            environment: stream.environment.as_str(),
            command_id: id.as_str().to_owned(),
            generation: writer.generation().get(),
            session_id: writer.session().map(|session| session.as_str().to_owned()),
            digest: *digest.as_bytes(),
            bytes: Arc::clone(bytes),
            limit: i64::from(limit),
        };
        self.pool.load(statement).await?.into_iter().next().map(rows::output_try).transpose()
    }
}

fn store_result(
    stream: &Stream,
    writer: &Writer,
    result: &NewResult,
    next: Option<&NextRequest>,
) -> StoreResult {
    StoreResult {
        site: stream.site.as_str().to_owned(),
        environment: stream.environment.as_str(),
        page: page_bounds(next),
        generation: writer.generation().get(),
        session_id: writer.session().map(|session| session.as_str().to_owned()),
        command_id: result.command.as_str().to_owned(),
        digest: *result.body.digest().as_bytes(),
        outcome: result.outcome.as_str(),
        body: result.body.as_str().to_owned(),
        output: result.output.map(|output| *output.as_bytes()),
    }
}

fn store_results(
    stream: &Stream,
    writer: &Writer,
    results: &[NewResult],
    next: Option<&NextRequest>,
) -> StoreResults {
    StoreResults {
        site: stream.site.as_str().to_owned(),
        environment: stream.environment.as_str(),
        page: page_bounds(next),
        generation: writer.generation().get(),
        session_id: writer.session().map(|session| session.as_str().to_owned()),
        command_ids: results.iter().map(|new| new.command.as_str().to_owned()).collect(),
        digests: results.iter().map(|new| new.body.digest().as_bytes().to_vec()).collect(),
        outcomes: results.iter().map(|new| new.outcome.as_str()).collect(),
        bodies: results.iter().map(|new| new.body.as_str().to_owned()).collect(),
        outputs: results
            .iter()
            .map(|new| new.output.map(|output| output.as_bytes().to_vec()))
            .collect(),
    }
}

fn page_bounds(next: Option<&NextRequest>) -> PageBounds {
    next.map_or_else(PageBounds::default, |next| PageBounds {
        limit: i64::from(next.limit),
        bytes: i64::from(next.bytes),
        cancel_rev: rows::bigint(next.cancel_rev),
    })
}
