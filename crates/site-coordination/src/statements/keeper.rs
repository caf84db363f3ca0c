//! The statements of the keeper. Each deletion answers how many rows went and the last sequence,
//! after which the next one goes on.

use database::{Binds, Statement};
use diesel::{
    QueryResult,
    sql_types::{BigInt, Integer, Nullable, Text},
};

/// How many, and the last sequence.
pub(crate) type PrunedRow = (i64, Option<i64>);

type PrunedColumns = (BigInt, Nullable<BigInt>);

/// `sql/streams.sql`.
pub(crate) struct ReadStreams;

impl Statement for ReadStreams {
    const SQL: &'static str = include_str!("../sql/streams.sql");
    type Columns = (Text, Text);
    type Row = (String, String);

    fn bind<'b>(&'b self, _: &mut Binds<'_, 'b>) -> QueryResult<()> {
        Ok(())
    }
}

/// `sql/event_sites.sql`.
pub(crate) struct ReadEventSites;

impl Statement for ReadEventSites {
    const SQL: &'static str = include_str!("../sql/event_sites.sql");
    type Columns = (Text,);
    type Row = (String,);

    fn bind<'b>(&'b self, _: &mut Binds<'_, 'b>) -> QueryResult<()> {
        Ok(())
    }
}

/// `sql/trim.sql`.
pub(crate) struct Trim {
    pub(crate) site: String,
    pub(crate) environment: &'static str,
    pub(crate) days: i32,
    pub(crate) limit: i64,
}

impl Statement for Trim {
    const SQL: &'static str = include_str!("../sql/trim.sql");
    type Columns = (BigInt,);
    type Row = (i64,);

    fn bind<'b>(&'b self, binds: &mut Binds<'_, 'b>) -> QueryResult<()> {
        binds.push::<Text, _>(&self.site)?;
        binds.push::<Text, _>(self.environment)?;
        binds.push::<Integer, _>(&self.days)?;
        binds.push::<BigInt, _>(&self.limit)
    }
}

/// A part of a stream: after a sequence, so many at the most.
pub(crate) struct Batch {
    pub(crate) site: String,
    pub(crate) environment: &'static str,
    pub(crate) after: i64,
    pub(crate) limit: i64,
}

impl Batch {
    fn bind<'b>(&'b self, binds: &mut Binds<'_, 'b>) -> QueryResult<()> {
        binds.push::<Text, _>(&self.site)?;
        binds.push::<Text, _>(self.environment)?;
        binds.push::<BigInt, _>(&self.after)?;
        binds.push::<BigInt, _>(&self.limit)
    }
}

/// `sql/prune_command_bodies.sql`.
pub(crate) struct PruneCommandBodies(pub(crate) Batch);

impl Statement for PruneCommandBodies {
    const SQL: &'static str = include_str!("../sql/prune_command_bodies.sql");
    type Columns = PrunedColumns;
    type Row = PrunedRow;

    fn bind<'b>(&'b self, binds: &mut Binds<'_, 'b>) -> QueryResult<()> {
        self.0.bind(binds)
    }
}

/// `sql/prune_result_bodies.sql`.
pub(crate) struct PruneResultBodies(pub(crate) Batch);

impl Statement for PruneResultBodies {
    const SQL: &'static str = include_str!("../sql/prune_result_bodies.sql");
    type Columns = PrunedColumns;
    type Row = PrunedRow;

    fn bind<'b>(&'b self, binds: &mut Binds<'_, 'b>) -> QueryResult<()> {
        self.0.bind(binds)
    }
}

/// `sql/prune_outputs.sql`.
pub(crate) struct PruneOutputs(pub(crate) Batch);

impl Statement for PruneOutputs {
    const SQL: &'static str = include_str!("../sql/prune_outputs.sql");
    type Columns = PrunedColumns;
    type Row = PrunedRow;

    fn bind<'b>(&'b self, binds: &mut Binds<'_, 'b>) -> QueryResult<()> {
        self.0.bind(binds)
    }
}

/// `sql/prune_rows.sql`.
pub(crate) struct PruneRows {
    pub(crate) batch: Batch,
    pub(crate) days: i32,
}

impl Statement for PruneRows {
    const SQL: &'static str = include_str!("../sql/prune_rows.sql");
    type Columns = PrunedColumns;
    type Row = PrunedRow;

    fn bind<'b>(&'b self, binds: &mut Binds<'_, 'b>) -> QueryResult<()> {
        self.batch.bind(binds)?;
        binds.push::<Integer, _>(&self.days)
    }
}

/// `sql/prune_events.sql`.
pub(crate) struct PruneEvents {
    pub(crate) site: String,
    pub(crate) after: i64,
    pub(crate) limit: i64,
    pub(crate) days: i32,
}

impl Statement for PruneEvents {
    const SQL: &'static str = include_str!("../sql/prune_events.sql");
    type Columns = PrunedColumns;
    type Row = PrunedRow;

    fn bind<'b>(&'b self, binds: &mut Binds<'_, 'b>) -> QueryResult<()> {
        binds.push::<Text, _>(&self.site)?;
        binds.push::<BigInt, _>(&self.after)?;
        binds.push::<BigInt, _>(&self.limit)?;
        binds.push::<Integer, _>(&self.days)
    }
}
