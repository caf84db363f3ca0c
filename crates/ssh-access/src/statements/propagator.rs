//! The statements of who brings changes to the feeds.

use database::{Binds, Statement};
use diesel::{
    QueryResult,
    sql_types::{Array, BigInt, Binary, Double, Integer, Nullable, Text, Timestamptz},
};

use super::{Bytes, Time};

/// `sql/acquire.sql`.
pub(crate) struct Acquire {
    pub(crate) site: String,
    pub(crate) holder: String,
    pub(crate) seconds: f64,
    pub(crate) window: i32,
}

impl Statement for Acquire {
    const SQL: &'static str = include_str!("../sql/acquire.sql");
    type Columns = (BigInt,);
    /// The fence.
    type Row = (i64,);

    fn bind<'b>(&'b self, binds: &mut Binds<'_, 'b>) -> QueryResult<()> {
        binds.push::<Text, _>(&self.site)?;
        binds.push::<Text, _>(&self.holder)?;
        binds.push::<Double, _>(&self.seconds)?;
        binds.push::<Integer, _>(&self.window)
    }
}

/// `sql/renew.sql`.
pub(crate) struct Renew {
    pub(crate) site: String,
    pub(crate) fence: i64,
    pub(crate) seconds: f64,
}

impl Statement for Renew {
    const SQL: &'static str = include_str!("../sql/renew.sql");
    type Columns = (BigInt,);
    type Row = (i64,);

    fn bind<'b>(&'b self, binds: &mut Binds<'_, 'b>) -> QueryResult<()> {
        binds.push::<Text, _>(&self.site)?;
        binds.push::<BigInt, _>(&self.fence)?;
        binds.push::<Double, _>(&self.seconds)
    }
}

/// `sql/release.sql`.
pub(crate) struct Release {
    pub(crate) site: String,
    pub(crate) fence: i64,
}

impl Statement for Release {
    const SQL: &'static str = include_str!("../sql/release.sql");
    type Columns = (BigInt,);
    type Row = (i64,);

    fn bind<'b>(&'b self, binds: &mut Binds<'_, 'b>) -> QueryResult<()> {
        binds.push::<Text, _>(&self.site)?;
        binds.push::<BigInt, _>(&self.fence)
    }
}

/// `sql/spread.sql`.
pub(crate) struct Spread;

impl Statement for Spread {
    const SQL: &'static str = include_str!("../sql/spread.sql");
    type Columns = (BigInt, Array<Text>);
    /// How many changes it took, and the Sites that have something to do now.
    type Row = (i64, Vec<String>);

    fn bind<'b>(&'b self, _: &mut Binds<'_, 'b>) -> QueryResult<()> {
        Ok(())
    }
}

/// `sql/due.sql`.
pub(crate) struct ReadDue {
    pub(crate) site: String,
    pub(crate) limit: i64,
}

impl Statement for ReadDue {
    const SQL: &'static str = include_str!("../sql/due.sql");
    type Columns = (BigInt, Binary, Integer, Nullable<Text>, Nullable<BigInt>);
    /// Head, its digest, the window, a member, its last change.
    type Row = (i64, Bytes, i32, Option<String>, Option<i64>);

    fn bind<'b>(&'b self, binds: &mut Binds<'_, 'b>) -> QueryResult<()> {
        binds.push::<Text, _>(&self.site)?;
        binds.push::<BigInt, _>(&self.limit)
    }
}

/// `sql/difference.sql`.
pub(crate) struct ReadDifference {
    pub(crate) site: String,
    pub(crate) members: Vec<String>,
    pub(crate) window: f64,
}

impl Statement for ReadDifference {
    const SQL: &'static str = include_str!("../sql/difference.sql");
    type Columns =
        (Text, Text, Text, Text, Nullable<Text>, Nullable<Timestamptz>, Nullable<Timestamptz>);
    type Row = DifferenceRow;

    fn bind<'b>(&'b self, binds: &mut Binds<'_, 'b>) -> QueryResult<()> {
        binds.push::<Text, _>(&self.site)?;
        binds.push::<Array<Text>, _>(&self.members)?;
        binds.push::<Double, _>(&self.window)
    }
}

/// Operation, user, key id, member, key, its end, by when.
pub(crate) type DifferenceRow =
    (String, String, String, String, Option<String>, Option<Time>, Option<Time>);

/// `sql/propagate.sql`.
#[derive(Default)]
pub(crate) struct Propagate {
    pub(crate) site: String,
    pub(crate) fence: i64,
    pub(crate) head: i64,
    pub(crate) head_digest: Bytes,
    pub(crate) operations: Vec<String>,
    pub(crate) unix_users: Vec<String>,
    pub(crate) key_ids: Vec<String>,
    pub(crate) members: Vec<String>,
    pub(crate) public_keys: Vec<Option<String>>,
    pub(crate) expires_at: Vec<Option<Time>>,
    pub(crate) enforce_by: Vec<Option<Time>>,
    pub(crate) digests: Vec<Bytes>,
    pub(crate) chain_digests: Vec<Bytes>,
    pub(crate) seen_members: Vec<String>,
    pub(crate) seen_changes: Vec<i64>,
}

impl Statement for Propagate {
    const SQL: &'static str = include_str!("../sql/propagate.sql");
    type Columns = (BigInt,);
    /// The new head.
    type Row = (i64,);

    fn bind<'b>(&'b self, binds: &mut Binds<'_, 'b>) -> QueryResult<()> {
        binds.push::<Text, _>(&self.site)?;
        binds.push::<BigInt, _>(&self.fence)?;
        binds.push::<BigInt, _>(&self.head)?;
        binds.push::<Binary, _>(&self.head_digest)?;
        binds.push::<Array<Text>, _>(&self.operations)?;
        binds.push::<Array<Text>, _>(&self.unix_users)?;
        binds.push::<Array<Text>, _>(&self.key_ids)?;
        binds.push::<Array<Text>, _>(&self.members)?;
        binds.push::<Array<Nullable<Text>>, _>(&self.public_keys)?;
        binds.push::<Array<Nullable<Timestamptz>>, _>(&self.expires_at)?;
        binds.push::<Array<Nullable<Timestamptz>>, _>(&self.enforce_by)?;
        binds.push::<Array<Binary>, _>(&self.digests)?;
        binds.push::<Array<Binary>, _>(&self.chain_digests)?;
        binds.push::<Array<Text>, _>(&self.seen_members)?;
        binds.push::<Array<BigInt>, _>(&self.seen_changes)
    }
}

/// `sql/compact.sql`.
pub(crate) struct Compact {
    pub(crate) site: String,
    pub(crate) fence: i64,
    pub(crate) acknowledged_seconds: f64,
    pub(crate) any_seconds: f64,
}

impl Statement for Compact {
    const SQL: &'static str = include_str!("../sql/compact.sql");
    type Columns = (BigInt,);
    /// How many went.
    type Row = (i64,);

    fn bind<'b>(&'b self, binds: &mut Binds<'_, 'b>) -> QueryResult<()> {
        binds.push::<Text, _>(&self.site)?;
        binds.push::<BigInt, _>(&self.fence)?;
        binds.push::<Double, _>(&self.acknowledged_seconds)?;
        binds.push::<Double, _>(&self.any_seconds)
    }
}

/// `sql/prune_events.sql`.
pub(crate) struct PruneEvents {
    pub(crate) site: String,
    pub(crate) fence: i64,
    pub(crate) seconds: f64,
}

impl Statement for PruneEvents {
    const SQL: &'static str = include_str!("../sql/prune_events.sql");
    type Columns = (BigInt,);
    /// How many went.
    type Row = (i64,);

    fn bind<'b>(&'b self, binds: &mut Binds<'_, 'b>) -> QueryResult<()> {
        binds.push::<Text, _>(&self.site)?;
        binds.push::<BigInt, _>(&self.fence)?;
        binds.push::<Double, _>(&self.seconds)
    }
}

/// `sql/watch.sql`.
pub(crate) struct Watch {
    pub(crate) site: String,
    pub(crate) fence: i64,
}

impl Statement for Watch {
    const SQL: &'static str = include_str!("../sql/watch.sql");
    type Columns = (
        BigInt,
        Nullable<BigInt>,
        Nullable<Double>,
        BigInt,
        Integer,
        Nullable<Text>,
        Nullable<BigInt>,
        BigInt,
    );
    type Row = WatchRow;

    fn bind<'b>(&'b self, binds: &mut Binds<'_, 'b>) -> QueryResult<()> {
        binds.push::<Text, _>(&self.site)?;
        binds.push::<BigInt, _>(&self.fence)
    }
}

/// Head; what is acknowledged and for how many seconds; removals that are overdue, failures, what the
/// last comparison gave, for how many seconds something waits, how many events were written.
pub(crate) type WatchRow =
    (i64, Option<i64>, Option<f64>, i64, i32, Option<String>, Option<i64>, i64);
