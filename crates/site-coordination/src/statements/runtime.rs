//! The statements of a Runtime's side.

use std::sync::Arc;

use database::{Binds, Statement};
use diesel::{
    QueryResult,
    sql_types::{Array, BigInt, Binary, Bool, Nullable, Text, Timestamptz},
};

use super::{Bytes, Time};

/// `sql/page.sql` with `sql/page_rows.sql`.
pub(crate) struct ReadPage {
    pub(crate) site: String,
    pub(crate) environment: &'static str,
    pub(crate) limit: i64,
    pub(crate) bytes: i64,
    pub(crate) cancel_rev: i64,
    pub(crate) after: i64,
}

impl Statement for ReadPage {
    const SQL: &'static str = concat!(
        include_str!("../sql/page.sql"),
        include_str!("../sql/page_rows.sql"),
        "SELECT * FROM page ORDER BY seq"
    );
    type Columns = (StreamColumns, Nullable<CommandColumns>);
    type Row = (StreamRow, Option<CommandRow>);

    fn bind<'b>(&'b self, binds: &mut Binds<'_, 'b>) -> QueryResult<()> {
        binds.push::<Text, _>(&self.site)?;
        binds.push::<Text, _>(self.environment)?;
        binds.push::<BigInt, _>(&self.limit)?;
        binds.push::<BigInt, _>(&self.bytes)?;
        binds.push::<BigInt, _>(&self.cancel_rev)?;
        binds.push::<BigInt, _>(&self.after)
    }
}

type StreamColumns = (
    (BigInt, BigInt, BigInt, Nullable<Text>, BigInt),
    (BigInt, Nullable<Binary>, BigInt, Nullable<Binary>, Nullable<BigInt>, Timestamptz),
    Nullable<(Array<BigInt>, Array<Text>, Array<BigInt>)>,
);

/// Last and done sequence, generation, session, count of cancels; last trimmed sequence with its
/// chain digest, cursor with its chain digest, age of the due command in seconds, time; count, id
/// and sequence of each cancel.
pub(crate) type StreamRow = (
    (i64, i64, i64, Option<String>, i64),
    (i64, Option<Bytes>, i64, Option<Bytes>, Option<i64>, Time),
    Option<(Vec<i64>, Vec<String>, Vec<i64>)>,
);

type CommandColumns = (
    BigInt,
    Text,
    Text,
    Nullable<Text>,
    Nullable<Timestamptz>,
    Binary,
    Binary,
    Timestamptz,
    Bool,
    Text,
);

/// Sequence, id, kind, Run, `not_after`, digest, chain digest, time, whether it is voided, body.
pub(crate) type CommandRow =
    (i64, String, String, Option<String>, Option<Time>, Bytes, Bytes, Time, bool, String);

/// `sql/open_session.sql`.
pub(crate) struct OpenSession {
    pub(crate) site: String,
    pub(crate) environment: &'static str,
    pub(crate) session_id: String,
    pub(crate) expected: i64,
}

impl Statement for OpenSession {
    const SQL: &'static str = include_str!("../sql/open_session.sql");
    type Columns = (BigInt, Nullable<Text>, Nullable<BigInt>, Bool);
    type Row = OpenSessionRow;

    fn bind<'b>(&'b self, binds: &mut Binds<'_, 'b>) -> QueryResult<()> {
        binds.push::<Text, _>(&self.site)?;
        binds.push::<Text, _>(self.environment)?;
        binds.push::<Text, _>(&self.session_id)?;
        binds.push::<BigInt, _>(&self.expected)
    }
}

/// Generation and session before; the generation that this statement opened; whether the session
/// was there before.
pub(crate) type OpenSessionRow = (i64, Option<String>, Option<i64>, bool);

/// `sql/place.sql`.
pub(crate) struct ReadPlace {
    pub(crate) site: String,
    pub(crate) environment: &'static str,
}

impl Statement for ReadPlace {
    const SQL: &'static str = include_str!("../sql/place.sql");
    type Columns = (BigInt, Nullable<Binary>, BigInt, Timestamptz);
    type Row = PlaceRow;

    fn bind<'b>(&'b self, binds: &mut Binds<'_, 'b>) -> QueryResult<()> {
        binds.push::<Text, _>(&self.site)?;
        binds.push::<Text, _>(self.environment)
    }
}

/// Done sequence with its chain digest, last sequence, time.
pub(crate) type PlaceRow = (i64, Option<Bytes>, i64, Time);

/// `sql/store_result.sql`.
pub(crate) struct StoreResult {
    pub(crate) site: String,
    pub(crate) environment: &'static str,
    pub(crate) page: PageBounds,
    pub(crate) generation: i64,
    pub(crate) session_id: Option<String>,
    pub(crate) command_id: String,
    pub(crate) digest: [u8; 32],
    pub(crate) outcome: &'static str,
    pub(crate) body: String,
    pub(crate) output: Option<[u8; 32]>,
}

/// `sql/store_results.sql`.
pub(crate) struct StoreResults {
    pub(crate) site: String,
    pub(crate) environment: &'static str,
    pub(crate) page: PageBounds,
    pub(crate) generation: i64,
    pub(crate) session_id: Option<String>,
    pub(crate) command_ids: Vec<String>,
    pub(crate) digests: Vec<Bytes>,
    pub(crate) outcomes: Vec<&'static str>,
    pub(crate) bodies: Vec<String>,
    pub(crate) outputs: Vec<Option<Bytes>>,
}

/// The bounds of the page after results; all zero where there is none.
#[derive(Default)]
pub(crate) struct PageBounds {
    pub(crate) limit: i64,
    pub(crate) bytes: i64,
    pub(crate) cancel_rev: i64,
}

/// The same statement with the page after it.
pub(crate) struct WithPage<S>(pub(crate) S);

impl Statement for StoreResult {
    const SQL: &'static str = concat!(
        include_str!("../sql/store_result.sql"),
        include_str!("../sql/store_results_alone.sql")
    );
    type Columns = TargetColumns;
    type Row = TargetRow;

    fn bind<'b>(&'b self, binds: &mut Binds<'_, 'b>) -> QueryResult<()> {
        binds.push::<Text, _>(&self.site)?;
        binds.push::<Text, _>(self.environment)?;
        self.page.bind(binds)?;
        binds.push::<BigInt, _>(&self.generation)?;
        binds.push::<Nullable<Text>, _>(&self.session_id)?;
        binds.push::<Text, _>(&self.command_id)?;
        binds.push::<Binary, _>(&self.digest)?;
        binds.push::<Text, _>(self.outcome)?;
        binds.push::<Text, _>(&self.body)?;
        binds.push::<Nullable<Binary>, _>(&self.output)
    }
}

impl Statement for WithPage<StoreResult> {
    const SQL: &'static str = concat!(
        include_str!("../sql/store_result.sql"),
        ", ",
        include_str!("../sql/store_result_cursor.sql"),
        include_str!("../sql/page_rows.sql"),
        include_str!("../sql/store_results_end.sql")
    );
    type Columns = TargetOrPageColumns;
    type Row = TargetOrPageRow;

    fn bind<'b>(&'b self, binds: &mut Binds<'_, 'b>) -> QueryResult<()> {
        self.0.bind(binds)
    }
}

impl Statement for StoreResults {
    const SQL: &'static str = concat!(
        include_str!("../sql/store_results.sql"),
        include_str!("../sql/store_results_alone.sql")
    );
    type Columns = TargetColumns;
    type Row = TargetRow;

    fn bind<'b>(&'b self, binds: &mut Binds<'_, 'b>) -> QueryResult<()> {
        binds.push::<Text, _>(&self.site)?;
        binds.push::<Text, _>(self.environment)?;
        self.page.bind(binds)?;
        binds.push::<BigInt, _>(&self.generation)?;
        binds.push::<Nullable<Text>, _>(&self.session_id)?;
        binds.push::<Array<Text>, _>(&self.command_ids)?;
        binds.push::<Array<Binary>, _>(&self.digests)?;
        binds.push::<Array<Text>, _>(&self.outcomes)?;
        binds.push::<Array<Text>, _>(&self.bodies)?;
        binds.push::<Array<Nullable<Binary>>, _>(&self.outputs)
    }
}

impl Statement for WithPage<StoreResults> {
    const SQL: &'static str = concat!(
        include_str!("../sql/store_results.sql"),
        ", ",
        include_str!("../sql/store_results_cursor.sql"),
        include_str!("../sql/page_rows.sql"),
        include_str!("../sql/store_results_end.sql")
    );
    type Columns = TargetOrPageColumns;
    type Row = TargetOrPageRow;

    fn bind<'b>(&'b self, binds: &mut Binds<'_, 'b>) -> QueryResult<()> {
        self.0.bind(binds)
    }
}

impl PageBounds {
    fn bind<'b>(&'b self, binds: &mut Binds<'_, 'b>) -> QueryResult<()> {
        binds.push::<BigInt, _>(&self.limit)?;
        binds.push::<BigInt, _>(&self.bytes)?;
        binds.push::<BigInt, _>(&self.cancel_rev)
    }
}

type TargetOrPageColumns =
    (Nullable<TargetColumns>, Nullable<StreamColumns>, Nullable<CommandColumns>);

/// A command, or a row of the page.
pub(crate) type TargetOrPageRow = (Option<TargetRow>, Option<StreamRow>, Option<CommandRow>);

type TargetColumns = (
    (Text, BigInt),
    (BigInt, BigInt, Nullable<Text>),
    Nullable<Timestamptz>,
    Nullable<(Binary, Text, Timestamptz)>,
    Nullable<Timestamptz>,
    Bool,
);

/// A command's id and sequence; the stream's done sequence, generation and session; when this
/// statement stored the result; digest, outcome and time of the earlier result; when the command was
/// voided; whether the output that the result names is there.
pub(crate) type TargetRow = (
    (String, i64),
    (i64, i64, Option<String>),
    Option<Time>,
    Option<(Bytes, String, Time)>,
    Option<Time>,
    bool,
);

/// `sql/store_output.sql`.
pub(crate) struct StoreOutput {
    pub(crate) site: String,
    pub(crate) environment: &'static str,
    pub(crate) command_id: String,
    pub(crate) generation: i64,
    pub(crate) session_id: Option<String>,
    pub(crate) digest: [u8; 32],
    /// Shared: it can be large, and the statement can run more than once.
    pub(crate) bytes: Arc<Vec<u8>>,
    pub(crate) limit: i64,
}

impl Statement for StoreOutput {
    const SQL: &'static str = include_str!("../sql/store_output.sql");
    type Columns = (
        (BigInt, Bool),
        (BigInt, BigInt, Nullable<Text>),
        (Nullable<Timestamptz>, Nullable<Timestamptz>, BigInt),
        (Nullable<Binary>, Nullable<Timestamptz>),
    );
    type Row = OutputRow;

    fn bind<'b>(&'b self, binds: &mut Binds<'_, 'b>) -> QueryResult<()> {
        binds.push::<Text, _>(&self.site)?;
        binds.push::<Text, _>(self.environment)?;
        binds.push::<Text, _>(&self.command_id)?;
        binds.push::<BigInt, _>(&self.generation)?;
        binds.push::<Nullable<Text>, _>(&self.session_id)?;
        binds.push::<Binary, _>(&self.digest)?;
        binds.push::<Binary, _>(self.bytes.as_slice())?;
        binds.push::<BigInt, _>(&self.limit)
    }
}

/// The command's sequence and whether it has a Run; the stream's done sequence, generation and
/// session; when this statement stored the output, when it was stored before, how many there were;
/// digest of the command's result, when it was voided.
pub(crate) type OutputRow = (
    (i64, bool),
    (i64, i64, Option<String>),
    (Option<Time>, Option<Time>, i64),
    (Option<Bytes>, Option<Time>),
);
