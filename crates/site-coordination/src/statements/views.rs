//! The statements of who reads private outputs.

use database::{Binds, Statement};
use diesel::{
    QueryResult,
    sql_types::{BigInt, Binary, Integer, Text, Timestamptz},
};

use super::{Bytes, Time};

/// `sql/run_output.sql`.
pub(crate) struct ReadRunOutput {
    pub(crate) site: String,
    pub(crate) environment: &'static str,
    pub(crate) run_id: String,
}

impl Statement for ReadRunOutput {
    const SQL: &'static str = include_str!("../sql/run_output.sql");
    type Columns = (BigInt, Text, Binary, BigInt, Timestamptz);
    type Row = RunOutputRow;

    fn bind<'b>(&'b self, binds: &mut Binds<'_, 'b>) -> QueryResult<()> {
        binds.push::<Text, _>(&self.site)?;
        binds.push::<Text, _>(self.environment)?;
        binds.push::<Text, _>(&self.run_id)
    }
}

/// The command's sequence and id; the output's digest, how many bytes it has, when it was stored.
pub(crate) type RunOutputRow = (i64, String, Bytes, i64, Time);

/// `sql/output_part.sql`.
pub(crate) struct ReadOutputPart {
    pub(crate) site: String,
    pub(crate) environment: &'static str,
    pub(crate) seq: i64,
    pub(crate) digest: [u8; 32],
    pub(crate) first: i32,
    pub(crate) length: i32,
}

impl Statement for ReadOutputPart {
    const SQL: &'static str = include_str!("../sql/output_part.sql");
    type Columns = (Binary,);
    type Row = (Bytes,);

    fn bind<'b>(&'b self, binds: &mut Binds<'_, 'b>) -> QueryResult<()> {
        binds.push::<Text, _>(&self.site)?;
        binds.push::<Text, _>(self.environment)?;
        binds.push::<BigInt, _>(&self.seq)?;
        binds.push::<Binary, _>(&self.digest)?;
        binds.push::<Integer, _>(&self.first)?;
        binds.push::<Integer, _>(&self.length)
    }
}
