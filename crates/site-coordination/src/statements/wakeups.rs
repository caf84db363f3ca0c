//! The statements of the tick, which looks at the streams of a Site.

use database::{Binds, Statement};
use diesel::{
    QueryResult,
    sql_types::{BigInt, Nullable, Text},
};

/// `sql/heads.sql`.
pub(crate) struct ReadHeads {
    pub(crate) site: String,
}

impl Statement for ReadHeads {
    const SQL: &'static str = include_str!("../sql/heads.sql");
    type Columns = (Text, BigInt, BigInt, BigInt, BigInt, Nullable<BigInt>, BigInt);
    type Row = HeadRow;

    fn bind<'b>(&'b self, binds: &mut Binds<'_, 'b>) -> QueryResult<()> {
        binds.push::<Text, _>(&self.site)
    }
}

/// Environment, last sequence, count of cancels, done sequence, generation, the milliseconds until the
/// command that is due expires, the Site's last event.
pub(crate) type HeadRow = (String, i64, i64, i64, i64, Option<i64>, i64);

/// `sql/expire.sql`.
pub(crate) struct Expire {
    pub(crate) site: String,
    pub(crate) environment: &'static str,
}

impl Statement for Expire {
    const SQL: &'static str = include_str!("../sql/expire.sql");
    type Columns = (BigInt,);
    /// How many were voided.
    type Row = (i64,);

    fn bind<'b>(&'b self, binds: &mut Binds<'_, 'b>) -> QueryResult<()> {
        binds.push::<Text, _>(&self.site)?;
        binds.push::<Text, _>(self.environment)
    }
}
