//! The statements of a producer.

use database::{Binds, Statement};
use diesel::{
    QueryResult,
    sql_types::{Array, BigInt, Binary, Bool, Nullable, Text, Timestamptz},
};

use super::{Bytes, Time};

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
    pub(crate) not_after: Option<Time>,
    /// Commands without an ending at the most.
    pub(crate) limit: i64,
}

impl Statement for Enqueue {
    const SQL: &'static str = include_str!("../sql/enqueue.sql");
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
        binds.push::<Text, _>(&self.body)?;
        binds.push::<Nullable<Timestamptz>, _>(&self.not_after)?;
        binds.push::<BigInt, _>(&self.limit)
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
    pub(crate) not_afters: Vec<Option<Time>>,
    /// Commands without an ending at the most.
    pub(crate) limit: i64,
}

impl Statement for EnqueueMany {
    const SQL: &'static str = include_str!("../sql/enqueue_many.sql");
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
        binds.push::<Array<Text>, _>(&self.bodies)?;
        binds.push::<Array<Nullable<Timestamptz>>, _>(&self.not_afters)?;
        binds.push::<BigInt, _>(&self.limit)
    }
}

/// `sql/backlog.sql`.
pub(crate) struct ReadBacklog {
    pub(crate) site: String,
    pub(crate) environment: &'static str,
}

impl Statement for ReadBacklog {
    const SQL: &'static str = include_str!("../sql/backlog.sql");
    type Columns = (BigInt,);
    /// Commands without an ending.
    type Row = (i64,);

    fn bind<'b>(&'b self, binds: &mut Binds<'_, 'b>) -> QueryResult<()> {
        binds.push::<Text, _>(&self.site)?;
        binds.push::<Text, _>(self.environment)
    }
}

/// What is known of a command, when it was cancelled, how it was voided, its result.
pub(crate) type SummaryRow = (SummaryFields, Option<Time>, Option<VoidRow>, Option<ResultRow>);

/// Sequence, id, key, kind, Run, not after, digest, time.
pub(crate) type SummaryFields =
    (i64, String, String, String, Option<String>, Option<Time>, Bytes, Time);

/// Reason, note, time.
pub(crate) type VoidRow = (String, Option<String>, Time);

/// Outcome, digest, the digest of the output, time.
pub(crate) type ResultRow = (String, Bytes, Option<Bytes>, Time);

type SummaryColumns = (
    (BigInt, Text, Text, Text, Nullable<Text>, Nullable<Timestamptz>, Binary, Timestamptz),
    Nullable<Timestamptz>,
    Nullable<VoidColumns>,
    Nullable<ResultColumns>,
);

type VoidColumns = (Text, Nullable<Text>, Timestamptz);

type ResultColumns = (Text, Binary, Nullable<Binary>, Timestamptz);

/// `sql/list.sql`.
pub(crate) struct ListCommands {
    pub(crate) site: String,
    pub(crate) environment: &'static str,
    pub(crate) after: i64,
    pub(crate) limit: i64,
}

impl Statement for ListCommands {
    const SQL: &'static str = include_str!("../sql/list.sql");
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
    const SQL: &'static str = include_str!("../sql/show.sql");
    type Columns = (SummaryColumns, (Nullable<Text>, Nullable<Text>));
    /// The summary; the command's body and the result's.
    type Row = (SummaryRow, (Option<String>, Option<String>));

    fn bind<'b>(&'b self, binds: &mut Binds<'_, 'b>) -> QueryResult<()> {
        binds.push::<Text, _>(&self.site)?;
        binds.push::<Text, _>(self.environment)?;
        binds.push::<Text, _>(&self.command_id)
    }
}

/// `sql/cancel.sql`.
pub(crate) struct CancelCommand {
    pub(crate) site: String,
    pub(crate) environment: &'static str,
    pub(crate) command_id: String,
}

impl Statement for CancelCommand {
    const SQL: &'static str = include_str!("../sql/cancel.sql");
    type Columns = (Nullable<BigInt>, Nullable<Timestamptz>, Bool);
    /// The mark's number and time, whether it is new.
    type Row = (Option<i64>, Option<Time>, bool);

    fn bind<'b>(&'b self, binds: &mut Binds<'_, 'b>) -> QueryResult<()> {
        binds.push::<Text, _>(&self.site)?;
        binds.push::<Text, _>(self.environment)?;
        binds.push::<Text, _>(&self.command_id)
    }
}

/// `sql/void.sql`.
pub(crate) struct VoidCommand {
    pub(crate) site: String,
    pub(crate) environment: &'static str,
    pub(crate) command_id: String,
    pub(crate) note: String,
}

impl Statement for VoidCommand {
    const SQL: &'static str = include_str!("../sql/void.sql");
    type Columns = ((BigInt, BigInt, Bool), Nullable<VoidColumns>);
    /// The command's sequence, done sequence, whether there is a result; the void.
    type Row = ((i64, i64, bool), Option<VoidRow>);

    fn bind<'b>(&'b self, binds: &mut Binds<'_, 'b>) -> QueryResult<()> {
        binds.push::<Text, _>(&self.site)?;
        binds.push::<Text, _>(self.environment)?;
        binds.push::<Text, _>(&self.command_id)?;
        binds.push::<Text, _>(&self.note)
    }
}

/// `sql/ending.sql`.
pub(crate) struct ReadEnding {
    pub(crate) site: String,
    pub(crate) environment: &'static str,
    pub(crate) command_id: String,
}

impl Statement for ReadEnding {
    const SQL: &'static str = include_str!("../sql/ending.sql");
    type Columns = (Nullable<ResultColumns>, Nullable<Text>, Nullable<VoidColumns>);
    /// The result, its body, the void.
    type Row = (Option<ResultRow>, Option<String>, Option<VoidRow>);

    fn bind<'b>(&'b self, binds: &mut Binds<'_, 'b>) -> QueryResult<()> {
        binds.push::<Text, _>(&self.site)?;
        binds.push::<Text, _>(self.environment)?;
        binds.push::<Text, _>(&self.command_id)
    }
}

/// `sql/status.sql`.
pub(crate) struct ReadStatus {
    pub(crate) site: Option<String>,
}

impl Statement for ReadStatus {
    const SQL: &'static str = include_str!("../sql/status.sql");
    type Columns = (
        (Text, Text),
        (BigInt, BigInt, BigInt, BigInt, BigInt),
        Nullable<BigInt>,
        Nullable<(Text, Timestamptz)>,
    );
    type Row = StatusRow;

    fn bind<'b>(&'b self, binds: &mut Binds<'_, 'b>) -> QueryResult<()> {
        binds.push::<Nullable<Text>, _>(&self.site)
    }
}

/// Site and environment; last and done sequence, generation, cancel revision, trimmed sequence; age
/// of the due command in seconds; session and when it was opened.
pub(crate) type StatusRow =
    ((String, String), (i64, i64, i64, i64, i64), Option<i64>, Option<(String, Time)>);
