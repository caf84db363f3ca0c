//! The SQL of this context as statements of diesel: parameters in, rows out. `store.rs` runs them.

use chrono::{DateTime, Utc};
use database::{Binds, Statement};
use diesel::{
    QueryResult,
    sql_types::{Array, BigInt, Binary, Bool, Nullable, Text, Timestamptz},
};

type Time = DateTime<Utc>;
type Bytes = Vec<u8>;

/// `sql/enqueue.sql`.
pub(crate) struct Enqueue {
    pub(crate) site: String,
    pub(crate) environment: &'static str,
    pub(crate) command_id: String,
    pub(crate) key: String,
    pub(crate) kind: String,
    pub(crate) run_id: Option<String>,
    pub(crate) digest: [u8; 32],
    pub(crate) body: String,
}

impl Statement for Enqueue {
    const SQL: &'static str = include_str!("sql/enqueue.sql");
    type Columns = (BigInt, Binary, Timestamptz, Bool);
    /// Sequence, digest, time, whether it is new.
    type Row = (i64, Bytes, Time, bool);

    fn bind<'b>(&'b self, binds: &mut Binds<'_, 'b>) -> QueryResult<()> {
        binds.push::<Text, _>(&self.site)?;
        binds.push::<Text, _>(self.environment)?;
        binds.push::<Text, _>(&self.command_id)?;
        binds.push::<Text, _>(&self.key)?;
        binds.push::<Text, _>(&self.kind)?;
        binds.push::<Nullable<Text>, _>(&self.run_id)?;
        binds.push::<Binary, _>(&self.digest)?;
        binds.push::<Text, _>(&self.body)
    }
}

/// `sql/enqueue_many.sql`.
pub(crate) struct EnqueueMany {
    pub(crate) site: String,
    pub(crate) environment: &'static str,
    pub(crate) command_ids: Vec<String>,
    pub(crate) keys: Vec<String>,
    pub(crate) kinds: Vec<String>,
    pub(crate) run_ids: Vec<Option<String>>,
    pub(crate) digests: Vec<Bytes>,
    pub(crate) bodies: Vec<String>,
}

impl Statement for EnqueueMany {
    const SQL: &'static str = include_str!("sql/enqueue_many.sql");
    type Columns = (Text, BigInt, Binary, Timestamptz, Bool);
    /// Command id, sequence, digest, time, whether it is new.
    type Row = (String, i64, Bytes, Time, bool);

    fn bind<'b>(&'b self, binds: &mut Binds<'_, 'b>) -> QueryResult<()> {
        binds.push::<Text, _>(&self.site)?;
        binds.push::<Text, _>(self.environment)?;
        binds.push::<Array<Text>, _>(&self.command_ids)?;
        binds.push::<Array<Text>, _>(&self.keys)?;
        binds.push::<Array<Text>, _>(&self.kinds)?;
        binds.push::<Array<Nullable<Text>>, _>(&self.run_ids)?;
        binds.push::<Array<Binary>, _>(&self.digests)?;
        binds.push::<Array<Text>, _>(&self.bodies)
    }
}

/// `sql/open_stream.sql`.
pub(crate) struct OpenStream {
    pub(crate) site: String,
    pub(crate) environment: &'static str,
}

impl Statement for OpenStream {
    const SQL: &'static str = include_str!("sql/open_stream.sql");
    type Columns = (Text,);
    type Row = (String,);

    fn bind<'b>(&'b self, binds: &mut Binds<'_, 'b>) -> QueryResult<()> {
        binds.push::<Text, _>(&self.site)?;
        binds.push::<Text, _>(self.environment)
    }
}

/// `sql/page.sql`.
pub(crate) struct ReadPage {
    pub(crate) site: String,
    pub(crate) environment: &'static str,
    pub(crate) after: i64,
    pub(crate) limit: i64,
    pub(crate) bytes: i64,
}

impl Statement for ReadPage {
    const SQL: &'static str = include_str!("sql/page.sql");
    type Columns = (
        (BigInt, BigInt, BigInt, Nullable<Binary>, Nullable<BigInt>, Timestamptz),
        Nullable<(BigInt, Text, Text, Nullable<Text>, Binary, Binary, Timestamptz, Text)>,
    );
    type Row = (StreamRow, Option<CommandRow>);

    fn bind<'b>(&'b self, binds: &mut Binds<'_, 'b>) -> QueryResult<()> {
        binds.push::<Text, _>(&self.site)?;
        binds.push::<Text, _>(self.environment)?;
        binds.push::<BigInt, _>(&self.after)?;
        binds.push::<BigInt, _>(&self.limit)?;
        binds.push::<BigInt, _>(&self.bytes)
    }
}

/// Last and done sequence, generation, chain digest at the cursor, age of the due command in
/// seconds, time.
pub(crate) type StreamRow = (i64, i64, i64, Option<Bytes>, Option<i64>, Time);

/// Sequence, id, kind, Run, digest, chain digest, time, body.
pub(crate) type CommandRow = (i64, String, String, Option<String>, Bytes, Bytes, Time, String);

/// `sql/store_result.sql`.
pub(crate) struct StoreResult {
    pub(crate) site: String,
    pub(crate) environment: &'static str,
    pub(crate) command_id: String,
    pub(crate) generation: i64,
    pub(crate) digest: [u8; 32],
    pub(crate) outcome: &'static str,
    pub(crate) body: String,
}

impl Statement for StoreResult {
    const SQL: &'static str = include_str!("sql/store_result.sql");
    type Columns = (
        BigInt,
        BigInt,
        BigInt,
        Nullable<Timestamptz>,
        Nullable<Binary>,
        Nullable<Text>,
        Nullable<Timestamptz>,
    );
    type Row = ResultRow;

    fn bind<'b>(&'b self, binds: &mut Binds<'_, 'b>) -> QueryResult<()> {
        binds.push::<Text, _>(&self.site)?;
        binds.push::<Text, _>(self.environment)?;
        binds.push::<Text, _>(&self.command_id)?;
        binds.push::<BigInt, _>(&self.generation)?;
        binds.push::<Binary, _>(&self.digest)?;
        binds.push::<Text, _>(self.outcome)?;
        binds.push::<Text, _>(&self.body)
    }
}

/// The command's sequence, done sequence, generation, when it was stored by this statement; digest,
/// outcome and time of the earlier result.
pub(crate) type ResultRow =
    (i64, i64, i64, Option<Time>, Option<Bytes>, Option<String>, Option<Time>);

/// `sql/heads.sql`.
pub(crate) struct ReadHeads {
    pub(crate) site: String,
}

impl Statement for ReadHeads {
    const SQL: &'static str = include_str!("sql/heads.sql");
    type Columns = (Text, BigInt);
    type Row = (String, i64);

    fn bind<'b>(&'b self, binds: &mut Binds<'_, 'b>) -> QueryResult<()> {
        binds.push::<Text, _>(&self.site)
    }
}

/// `sql/announce.sql`.
pub(crate) struct Announce {
    pub(crate) channel: String,
    pub(crate) environment: &'static str,
}

impl Statement for Announce {
    const SQL: &'static str = include_str!("sql/announce.sql");
    type Columns = (Text,);
    type Row = (String,);

    fn bind<'b>(&'b self, binds: &mut Binds<'_, 'b>) -> QueryResult<()> {
        binds.push::<Text, _>(&self.channel)?;
        binds.push::<Text, _>(self.environment)
    }
}

/// Sequence, id, key, kind, Run, digest, time; outcome, digest and time of the result.
pub(crate) type SummaryRow = (
    i64,
    String,
    String,
    String,
    Option<String>,
    Bytes,
    Time,
    Option<String>,
    Option<Bytes>,
    Option<Time>,
);

type SummaryColumns = (
    BigInt,
    Text,
    Text,
    Text,
    Nullable<Text>,
    Binary,
    Timestamptz,
    Nullable<Text>,
    Nullable<Binary>,
    Nullable<Timestamptz>,
);

/// `sql/list.sql`.
pub(crate) struct ListCommands {
    pub(crate) site: String,
    pub(crate) environment: &'static str,
    pub(crate) after: i64,
    pub(crate) limit: i64,
}

impl Statement for ListCommands {
    const SQL: &'static str = include_str!("sql/list.sql");
    type Columns = SummaryColumns;
    type Row = SummaryRow;

    fn bind<'b>(&'b self, binds: &mut Binds<'_, 'b>) -> QueryResult<()> {
        binds.push::<Text, _>(&self.site)?;
        binds.push::<Text, _>(self.environment)?;
        binds.push::<BigInt, _>(&self.after)?;
        binds.push::<BigInt, _>(&self.limit)
    }
}

/// `sql/show.sql`.
pub(crate) struct ShowCommand {
    pub(crate) site: String,
    pub(crate) environment: &'static str,
    pub(crate) command_id: String,
}

impl Statement for ShowCommand {
    const SQL: &'static str = include_str!("sql/show.sql");
    type Columns = (SummaryColumns, (Nullable<Text>, Nullable<Text>));
    /// The summary; the command's body and the result's.
    type Row = (SummaryRow, (Option<String>, Option<String>));

    fn bind<'b>(&'b self, binds: &mut Binds<'_, 'b>) -> QueryResult<()> {
        binds.push::<Text, _>(&self.site)?;
        binds.push::<Text, _>(self.environment)?;
        binds.push::<Text, _>(&self.command_id)
    }
}
