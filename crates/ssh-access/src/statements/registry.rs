//! The statements of who adds and removes keys and accounts.

use database::{Binds, Statement};
use diesel::{
    QueryResult,
    sql_types::{Array, BigInt, Bool, Nullable, Text, Timestamptz},
};

use super::Time;

/// `sql/add_key.sql`.
pub(crate) struct AddKey {
    pub(crate) key_id: String,
    pub(crate) member: String,
    pub(crate) public_key: String,
    pub(crate) fingerprint: String,
    pub(crate) expires_at: Option<Time>,
}

impl Statement for AddKey {
    const SQL: &'static str = include_str!("../sql/add_key.sql");
    type Columns = (Nullable<Timestamptz>, Bool);
    /// When it was added; whether its end has passed.
    type Row = (Option<Time>, bool);

    fn bind<'b>(&'b self, binds: &mut Binds<'_, 'b>) -> QueryResult<()> {
        binds.push::<Text, _>(&self.key_id)?;
        binds.push::<Text, _>(&self.member)?;
        binds.push::<Text, _>(&self.public_key)?;
        binds.push::<Text, _>(&self.fingerprint)?;
        binds.push::<Nullable<Timestamptz>, _>(&self.expires_at)
    }
}

/// `sql/add_keys.sql`.
#[derive(Default)]
pub(crate) struct AddKeys {
    pub(crate) key_ids: Vec<String>,
    pub(crate) members: Vec<String>,
    pub(crate) public_keys: Vec<String>,
    pub(crate) fingerprints: Vec<String>,
    pub(crate) expires_at: Vec<Option<Time>>,
}

impl Statement for AddKeys {
    const SQL: &'static str = include_str!("../sql/add_keys.sql");
    type Columns = (Text, Timestamptz);
    /// A key, and when it was added.
    type Row = (String, Time);

    fn bind<'b>(&'b self, binds: &mut Binds<'_, 'b>) -> QueryResult<()> {
        binds.push::<Array<Text>, _>(&self.key_ids)?;
        binds.push::<Array<Text>, _>(&self.members)?;
        binds.push::<Array<Text>, _>(&self.public_keys)?;
        binds.push::<Array<Text>, _>(&self.fingerprints)?;
        binds.push::<Array<Nullable<Timestamptz>>, _>(&self.expires_at)
    }
}

/// `sql/retire_keys.sql`.
pub(crate) struct RetireKeys {
    pub(crate) member: String,
}

impl Statement for RetireKeys {
    const SQL: &'static str = include_str!("../sql/retire_keys.sql");
    type Columns = (BigInt,);
    /// How many went.
    type Row = (i64,);

    fn bind<'b>(&'b self, binds: &mut Binds<'_, 'b>) -> QueryResult<()> {
        binds.push::<Text, _>(&self.member)
    }
}

/// `sql/remove_key.sql`.
pub(crate) struct RemoveKey {
    pub(crate) key_id: String,
    pub(crate) member: Option<String>,
}

impl Statement for RemoveKey {
    const SQL: &'static str = include_str!("../sql/remove_key.sql");
    type Columns = (Timestamptz,);
    /// When it was removed.
    type Row = (Time,);

    fn bind<'b>(&'b self, binds: &mut Binds<'_, 'b>) -> QueryResult<()> {
        binds.push::<Text, _>(&self.key_id)?;
        binds.push::<Nullable<Text>, _>(&self.member)
    }
}

/// Key, member, text; when it was added, when it expires, when it was removed; whether it has expired.
pub(crate) type KeyRow = ((String, String, String), (Time, Option<Time>, Option<Time>), bool);

type KeyColumns =
    ((Text, Text, Text), (Timestamptz, Nullable<Timestamptz>, Nullable<Timestamptz>), Bool);

/// `sql/key.sql`.
pub(crate) struct ReadKey {
    pub(crate) key_id: Option<String>,
    pub(crate) member: Option<String>,
    pub(crate) fingerprint: Option<String>,
}

impl Statement for ReadKey {
    const SQL: &'static str = include_str!("../sql/key.sql");
    type Columns = KeyColumns;
    type Row = KeyRow;

    fn bind<'b>(&'b self, binds: &mut Binds<'_, 'b>) -> QueryResult<()> {
        binds.push::<Nullable<Text>, _>(&self.key_id)?;
        binds.push::<Nullable<Text>, _>(&self.member)?;
        binds.push::<Nullable<Text>, _>(&self.fingerprint)
    }
}

/// `sql/same_keys.sql`.
pub(crate) struct ReadSameKeys {
    pub(crate) members: Vec<String>,
    pub(crate) fingerprints: Vec<String>,
}

impl Statement for ReadSameKeys {
    const SQL: &'static str = include_str!("../sql/same_keys.sql");
    type Columns = KeyColumns;
    type Row = KeyRow;

    fn bind<'b>(&'b self, binds: &mut Binds<'_, 'b>) -> QueryResult<()> {
        binds.push::<Array<Text>, _>(&self.members)?;
        binds.push::<Array<Text>, _>(&self.fingerprints)
    }
}

/// `sql/keys.sql`.
pub(crate) struct ReadKeys {
    pub(crate) member: String,
    pub(crate) all: bool,
    pub(crate) after: String,
    pub(crate) limit: i64,
}

impl Statement for ReadKeys {
    const SQL: &'static str = include_str!("../sql/keys.sql");
    type Columns = KeyColumns;
    type Row = KeyRow;

    fn bind<'b>(&'b self, binds: &mut Binds<'_, 'b>) -> QueryResult<()> {
        binds.push::<Text, _>(&self.member)?;
        binds.push::<Bool, _>(&self.all)?;
        binds.push::<Text, _>(&self.after)?;
        binds.push::<BigInt, _>(&self.limit)
    }
}

/// Id, Site, member, user; when it was added and removed.
pub(crate) type AccountRow = (i64, String, String, String, Time, Option<Time>);

type AccountColumns = (BigInt, Text, Text, Text, Timestamptz, Nullable<Timestamptz>);

/// `sql/add_account.sql`.
pub(crate) struct AddAccount {
    pub(crate) site: String,
    pub(crate) member: String,
    pub(crate) unix_user: String,
}

impl Statement for AddAccount {
    const SQL: &'static str = include_str!("../sql/add_account.sql");
    type Columns = AccountColumns;
    type Row = AccountRow;

    fn bind<'b>(&'b self, binds: &mut Binds<'_, 'b>) -> QueryResult<()> {
        binds.push::<Text, _>(&self.site)?;
        binds.push::<Text, _>(&self.member)?;
        binds.push::<Text, _>(&self.unix_user)
    }
}

/// `sql/remove_account.sql`.
pub(crate) struct RemoveAccount {
    pub(crate) site: String,
    pub(crate) unix_user: String,
}

impl Statement for RemoveAccount {
    const SQL: &'static str = include_str!("../sql/remove_account.sql");
    type Columns = AccountColumns;
    type Row = AccountRow;

    fn bind<'b>(&'b self, binds: &mut Binds<'_, 'b>) -> QueryResult<()> {
        binds.push::<Text, _>(&self.site)?;
        binds.push::<Text, _>(&self.unix_user)
    }
}

/// `sql/account.sql`.
pub(crate) struct ReadAccount {
    pub(crate) site: String,
    pub(crate) unix_user: String,
}

impl Statement for ReadAccount {
    const SQL: &'static str = include_str!("../sql/account.sql");
    type Columns = AccountColumns;
    type Row = AccountRow;

    fn bind<'b>(&'b self, binds: &mut Binds<'_, 'b>) -> QueryResult<()> {
        binds.push::<Text, _>(&self.site)?;
        binds.push::<Text, _>(&self.unix_user)
    }
}

/// `sql/accounts.sql`.
pub(crate) struct ReadAccounts {
    pub(crate) site: String,
    pub(crate) member: Option<String>,
    pub(crate) all: bool,
    pub(crate) after: i64,
    pub(crate) limit: i64,
}

impl Statement for ReadAccounts {
    const SQL: &'static str = include_str!("../sql/accounts.sql");
    type Columns = AccountColumns;
    type Row = AccountRow;

    fn bind<'b>(&'b self, binds: &mut Binds<'_, 'b>) -> QueryResult<()> {
        binds.push::<Text, _>(&self.site)?;
        binds.push::<Nullable<Text>, _>(&self.member)?;
        binds.push::<Bool, _>(&self.all)?;
        binds.push::<BigInt, _>(&self.after)?;
        binds.push::<BigInt, _>(&self.limit)
    }
}
