//! The SQL of this context as statements of diesel: parameters in, rows out. `store.rs` runs them.

pub(crate) mod keeper;
pub(crate) mod outbox;
pub(crate) mod producer;
pub(crate) mod runtime;
pub(crate) mod views;
pub(crate) mod wakeups;

use chrono::{DateTime, Utc};
use database::{Binds, Statement};
use diesel::{
    QueryResult,
    sql_types::{Array, Text},
};

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

/// `sql/announce.sql`.
pub(crate) struct Announce {
    pub(crate) channels: Vec<String>,
    pub(crate) payloads: Vec<String>,
}

impl Statement for Announce {
    const SQL: &'static str = include_str!("sql/announce.sql");
    type Columns = (Text,);
    type Row = (String,);

    fn bind<'b>(&'b self, binds: &mut Binds<'_, 'b>) -> QueryResult<()> {
        binds.push::<Array<Text>, _>(&self.channels)?;
        binds.push::<Array<Text>, _>(&self.payloads)
    }
}
