//! The SQL of this context as statements of diesel: parameters in, rows out. `store.rs` runs them.

use chrono::{DateTime, Utc};
use database::{Binds, Statement};
use diesel::{
    QueryResult,
    sql_types::{BigInt, Bool, Nullable, Text, Timestamptz},
};

use crate::NewBinding;

type Time = DateTime<Utc>;

/// A binding: its id, Site, member; Unix user, uid, gid, account; when it was retained and released.
pub(crate) type BindingRow =
    ((i64, String, String), (String, i64, i64, String), (Time, Option<Time>));

type BindingColumns =
    ((BigInt, Text, Text), (Text, BigInt, BigInt, Text), (Timestamptz, Nullable<Timestamptz>));

/// `sql/retain.sql`.
pub(crate) struct Retain(pub(crate) NewBinding);

impl Statement for Retain {
    const SQL: &'static str = include_str!("sql/retain.sql");
    type Columns = (BigInt, Timestamptz);
    /// Its id, and when it was retained.
    type Row = (i64, Time);

    fn bind<'b>(&'b self, binds: &mut Binds<'_, 'b>) -> QueryResult<()> {
        let NewBinding { site, member, unix_user, uid, gid, account } = &self.0;
        binds.push::<Text, _>(site.as_str())?;
        binds.push::<Text, _>(member.as_str())?;
        binds.push::<Text, _>(unix_user.as_str())?;
        binds.push::<BigInt, _>(&uid.0)?;
        binds.push::<BigInt, _>(&gid.0)?;
        binds.push::<Text, _>(account.as_str())
    }
}

/// `sql/release.sql`.
pub(crate) struct Release {
    pub(crate) id: i64,
}

impl Statement for Release {
    const SQL: &'static str = include_str!("sql/release.sql");
    type Columns = (BigInt,);
    type Row = (i64,);

    fn bind<'b>(&'b self, binds: &mut Binds<'_, 'b>) -> QueryResult<()> {
        binds.push::<BigInt, _>(&self.id)
    }
}

/// `sql/retained.sql`.
pub(crate) struct ReadRetained {
    pub(crate) site: String,
    pub(crate) member: String,
}

impl Statement for ReadRetained {
    const SQL: &'static str = include_str!("sql/retained.sql");
    type Columns = BindingColumns;
    type Row = BindingRow;

    fn bind<'b>(&'b self, binds: &mut Binds<'_, 'b>) -> QueryResult<()> {
        binds.push::<Text, _>(&self.site)?;
        binds.push::<Text, _>(&self.member)
    }
}

/// `sql/binding.sql`.
pub(crate) struct ReadBinding {
    pub(crate) id: i64,
}

impl Statement for ReadBinding {
    const SQL: &'static str = include_str!("sql/binding.sql");
    type Columns = BindingColumns;
    type Row = BindingRow;

    fn bind<'b>(&'b self, binds: &mut Binds<'_, 'b>) -> QueryResult<()> {
        binds.push::<BigInt, _>(&self.id)
    }
}

/// `sql/list.sql`.
pub(crate) struct ListBindings {
    pub(crate) site: String,
    pub(crate) member: Option<String>,
    pub(crate) released: bool,
    pub(crate) after: i64,
    pub(crate) limit: i64,
}

impl Statement for ListBindings {
    const SQL: &'static str = include_str!("sql/list.sql");
    type Columns = BindingColumns;
    type Row = BindingRow;

    fn bind<'b>(&'b self, binds: &mut Binds<'_, 'b>) -> QueryResult<()> {
        binds.push::<Text, _>(&self.site)?;
        binds.push::<Nullable<Text>, _>(&self.member)?;
        binds.push::<Bool, _>(&self.released)?;
        binds.push::<BigInt, _>(&self.after)?;
        binds.push::<BigInt, _>(&self.limit)
    }
}
