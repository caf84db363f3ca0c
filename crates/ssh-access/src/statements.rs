//! The SQL of this context as statements of diesel: parameters in, rows out. `store.rs` runs them.

pub(crate) mod feed;
pub(crate) mod outbox;
pub(crate) mod propagator;
pub(crate) mod registry;

use chrono::{DateTime, Utc};
use database::{Binds, Statement};
use diesel::{
    QueryResult,
    sql_types::{Array, Text},
};

type Time = DateTime<Utc>;
type Bytes = Vec<u8>;

/// `sql/announce.sql`.
pub(crate) struct Announce {
    pub(crate) channels: Vec<String>,
}

impl Statement for Announce {
    const SQL: &'static str = include_str!("sql/announce.sql");
    type Columns = (Text,);
    type Row = (String,);

    fn bind<'b>(&'b self, binds: &mut Binds<'_, 'b>) -> QueryResult<()> {
        binds.push::<Array<Text>, _>(&self.channels)
    }
}
