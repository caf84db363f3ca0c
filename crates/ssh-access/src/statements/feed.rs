//! The statements of who serves the agent of a Site.

use database::{Binds, Statement};
use diesel::{
    QueryResult,
    sql_types::{BigInt, Binary, Bool, Integer, Nullable, Text, Timestamptz},
};

use super::{Bytes, Time};

/// `sql/state.sql`.
pub(crate) struct ReadState {
    pub(crate) site: String,
    pub(crate) seq: i64,
    pub(crate) window: i32,
}

impl Statement for ReadState {
    const SQL: &'static str = include_str!("../sql/state.sql");
    type Columns =
        (BigInt, Binary, BigInt, Nullable<Binary>, Timestamptz, Timestamptz, Nullable<Timestamptz>);
    type Row = StateRow;

    fn bind<'b>(&'b self, binds: &mut Binds<'_, 'b>) -> QueryResult<()> {
        binds.push::<Text, _>(&self.site)?;
        binds.push::<BigInt, _>(&self.seq)?;
        binds.push::<Integer, _>(&self.window)
    }
}

/// Head and its digest, floor, the digest at the sequence, when it was read, until when a lease goes,
/// since when something waits.
pub(crate) type StateRow = (i64, Bytes, i64, Option<Bytes>, Time, Time, Option<Time>);

/// `sql/changes.sql`.
pub(crate) struct ReadChanges {
    pub(crate) site: String,
    pub(crate) after: i64,
    pub(crate) limit: i64,
}

impl Statement for ReadChanges {
    const SQL: &'static str = include_str!("../sql/changes.sql");
    type Columns = (
        (BigInt, Text, Text, Text, Text),
        (Nullable<Text>, Nullable<Timestamptz>, Nullable<Timestamptz>),
        (Binary, Binary),
    );
    type Row = ChangeRow;

    fn bind<'b>(&'b self, binds: &mut Binds<'_, 'b>) -> QueryResult<()> {
        binds.push::<Text, _>(&self.site)?;
        binds.push::<BigInt, _>(&self.after)?;
        binds.push::<BigInt, _>(&self.limit)
    }
}

/// Sequence, operation, user, key id, member; key, its end, by when; digest and chain digest.
pub(crate) type ChangeRow = (
    (i64, String, String, String, String),
    (Option<String>, Option<Time>, Option<Time>),
    (Bytes, Bytes),
);

/// `sql/set.sql`.
pub(crate) struct ReadSet {
    pub(crate) site: String,
    pub(crate) after_user: String,
    pub(crate) after_key: String,
    pub(crate) limit: i64,
}

impl Statement for ReadSet {
    const SQL: &'static str = include_str!("../sql/set.sql");
    type Columns = (Text, Text, Text, Text, Nullable<Timestamptz>);
    /// User, key id, member, key, its end.
    type Row = (String, String, String, String, Option<Time>);

    fn bind<'b>(&'b self, binds: &mut Binds<'_, 'b>) -> QueryResult<()> {
        binds.push::<Text, _>(&self.site)?;
        binds.push::<Text, _>(&self.after_user)?;
        binds.push::<Text, _>(&self.after_key)?;
        binds.push::<BigInt, _>(&self.limit)
    }
}

/// `sql/head.sql`.
pub(crate) struct ReadHead {
    pub(crate) site: String,
}

impl Statement for ReadHead {
    const SQL: &'static str = include_str!("../sql/head.sql");
    type Columns = (BigInt,);
    type Row = (i64,);

    fn bind<'b>(&'b self, binds: &mut Binds<'_, 'b>) -> QueryResult<()> {
        binds.push::<Text, _>(&self.site)
    }
}

/// `sql/acknowledge.sql`.
pub(crate) struct StoreAcknowledgement {
    pub(crate) site: String,
    pub(crate) seq: i64,
    pub(crate) digest: [u8; 32],
    pub(crate) attested: Option<&'static str>,
    pub(crate) failing: i32,
    pub(crate) failures: String,
}

impl Statement for StoreAcknowledgement {
    const SQL: &'static str = include_str!("../sql/acknowledge.sql");
    type Columns = (
        Nullable<BigInt>,
        Nullable<Binary>,
        Bool,
        Nullable<Binary>,
        BigInt,
        Binary,
        BigInt,
        Timestamptz,
    );
    type Row = AcknowledgementRow;

    fn bind<'b>(&'b self, binds: &mut Binds<'_, 'b>) -> QueryResult<()> {
        binds.push::<Text, _>(&self.site)?;
        binds.push::<BigInt, _>(&self.seq)?;
        binds.push::<Binary, _>(&self.digest)?;
        binds.push::<Nullable<Text>, _>(&self.attested)?;
        binds.push::<Integer, _>(&self.failing)?;
        binds.push::<Text, _>(&self.failures)
    }
}

/// The stored sequence and digest, whether this was stored, the feed's digest at the place, head and
/// its digest, floor, when.
pub(crate) type AcknowledgementRow =
    (Option<i64>, Option<Bytes>, bool, Option<Bytes>, i64, Bytes, i64, Time);
