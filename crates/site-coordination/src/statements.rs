//! The SQL of this context as statements of diesel: parameters in, rows out. `store.rs` runs them.

use chrono::{DateTime, Utc};
use database::{Binds, Statement};
use diesel::{
    QueryResult,
    sql_types::{BigInt, Binary, Nullable, Text, Timestamptz},
};

pub(crate) mod producer;

type Time = DateTime<Utc>;
type Bytes = Vec<u8>;

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
