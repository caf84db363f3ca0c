//! The statements of the outbox.

use database::{Binds, Statement};
use diesel::{
    QueryResult,
    sql_types::{BigInt, Text, Timestamptz},
};

use super::Time;

/// `sql/relay_position.sql`.
pub(crate) struct ReadPosition {
    pub(crate) site: String,
}

impl Statement for ReadPosition {
    const SQL: &'static str = include_str!("../sql/relay_position.sql");
    type Columns = (BigInt,);
    type Row = (i64,);

    fn bind<'b>(&'b self, binds: &mut Binds<'_, 'b>) -> QueryResult<()> {
        binds.push::<Text, _>(&self.site)
    }
}

/// `sql/next_events.sql`.
pub(crate) struct ReadEvents {
    pub(crate) site: String,
    pub(crate) after: i64,
    pub(crate) limit: i64,
}

impl Statement for ReadEvents {
    const SQL: &'static str = include_str!("../sql/next_events.sql");
    type Columns = (BigInt, Text, Text, Text, Timestamptz);
    type Row = EventRow;

    fn bind<'b>(&'b self, binds: &mut Binds<'_, 'b>) -> QueryResult<()> {
        binds.push::<Text, _>(&self.site)?;
        binds.push::<BigInt, _>(&self.after)?;
        binds.push::<BigInt, _>(&self.limit)
    }
}

/// Sequence, id, type, data, time.
pub(crate) type EventRow = (i64, String, String, String, Time);

/// `sql/published.sql`.
pub(crate) struct Published {
    pub(crate) site: String,
    pub(crate) seq: i64,
}

impl Statement for Published {
    const SQL: &'static str = include_str!("../sql/published.sql");
    type Columns = (BigInt,);
    type Row = (i64,);

    fn bind<'b>(&'b self, binds: &mut Binds<'_, 'b>) -> QueryResult<()> {
        binds.push::<Text, _>(&self.site)?;
        binds.push::<BigInt, _>(&self.seq)
    }
}
