//! The SQL of this context as statements of diesel: parameters in, rows out. `store.rs` runs them.

use chrono::{DateTime, Utc};
use database::{Binds, Statement};
use diesel::{
    QueryResult,
    sql_types::{Array, BigInt, Integer, Nullable, Text, Timestamptz},
};

use crate::NewRun;

type Time = DateTime<Utc>;

/// `sql/accept.sql`.
pub(crate) struct Accept {
    pub(crate) run: NewRun,
    pub(crate) deadline: Time,
}

impl Statement for Accept {
    const SQL: &'static str = include_str!("sql/accept.sql");
    type Columns = (Timestamptz,);
    /// When it was accepted.
    type Row = (Time,);

    fn bind<'b>(&'b self, binds: &mut Binds<'_, 'b>) -> QueryResult<()> {
        let NewRun { id, project, member, place, deadline: _, repository, material } = &self.run;
        binds.push::<Text, _>(id.as_str())?;
        binds.push::<Text, _>(project.as_str())?;
        binds.push::<Text, _>(member.as_str())?;
        binds.push::<Text, _>(place.site.as_str())?;
        binds.push::<Text, _>(place.environment.as_str())?;
        binds.push::<Timestamptz, _>(&self.deadline)?;
        binds.push::<Text, _>(repository.instance.as_str())?;
        binds.push::<BigInt, _>(&repository.project.0)?;
        binds.push::<Text, _>(repository.path.as_str())?;
        binds.push::<Text, _>(repository.reference.as_str())?;
        binds.push::<Text, _>(repository.commit.as_str())?;
        binds.push::<Text, _>(material.as_str())
    }
}

/// `sql/submit.sql`.
pub(crate) struct Submit {
    pub(crate) run_id: String,
    pub(crate) number: i32,
}

impl Statement for Submit {
    const SQL: &'static str = include_str!("sql/submit.sql");
    type Columns = (Timestamptz,);
    /// When it was submitted.
    type Row = (Time,);

    fn bind<'b>(&'b self, binds: &mut Binds<'_, 'b>) -> QueryResult<()> {
        binds.push::<Text, _>(&self.run_id)?;
        binds.push::<Integer, _>(&self.number)
    }
}

/// `sql/cancel.sql`.
pub(crate) struct Cancel {
    pub(crate) run_id: String,
}

impl Statement for Cancel {
    const SQL: &'static str = include_str!("sql/cancel.sql");
    type Columns = (Timestamptz,);
    /// When it was cancelled.
    type Row = (Time,);

    fn bind<'b>(&'b self, binds: &mut Binds<'_, 'b>) -> QueryResult<()> {
        binds.push::<Text, _>(&self.run_id)
    }
}

/// `sql/finish.sql`.
pub(crate) struct Finish {
    pub(crate) run_id: String,
    pub(crate) number: i32,
}

impl Statement for Finish {
    const SQL: &'static str = include_str!("sql/finish.sql");
    type Columns = (Timestamptz,);
    /// Since when it is over.
    type Row = (Time,);

    fn bind<'b>(&'b self, binds: &mut Binds<'_, 'b>) -> QueryResult<()> {
        binds.push::<Text, _>(&self.run_id)?;
        binds.push::<Integer, _>(&self.number)
    }
}

/// `sql/run.sql`.
pub(crate) struct ReadRun {
    pub(crate) run_id: String,
    /// The only Site whose Run it may be.
    pub(crate) site: Option<String>,
    /// The only environment, likewise.
    pub(crate) environment: Option<&'static str>,
}

/// `sql/belonging.sql`.
pub(crate) struct ReadBelonging {
    pub(crate) run_id: String,
    pub(crate) site: String,
}

impl Statement for ReadBelonging {
    const SQL: &'static str = include_str!("sql/belonging.sql");
    type Columns = (Text, Text);
    /// Project, environment.
    type Row = (String, String);

    fn bind<'b>(&'b self, binds: &mut Binds<'_, 'b>) -> QueryResult<()> {
        binds.push::<Text, _>(&self.run_id)?;
        binds.push::<Text, _>(&self.site)
    }
}

/// The Run, Project and member, Site and environment.
pub(crate) type NameColumns = (String, String, String, String, String);

/// Instance, project, path, ref, commit.
pub(crate) type RepositoryColumns = (String, i64, String, String, String);

/// Numbers, when each was submitted, since when each is over.
pub(crate) type AttemptColumns = (Vec<i32>, Vec<Time>, Vec<Option<Time>>);

impl Statement for ReadRun {
    const SQL: &'static str = include_str!("sql/run.sql");
    type Columns = (
        (Text, Text, Text, Text, Text),
        (Text, BigInt, Text, Text, Text),
        (Timestamptz, Text, Timestamptz, Nullable<Timestamptz>),
        (Array<Integer>, Array<Timestamptz>, Array<Nullable<Timestamptz>>),
        Timestamptz,
    );
    /// Names; repository; deadline, material, when it was accepted and cancelled; Attempts; now.
    type Row =
        (NameColumns, RepositoryColumns, (Time, String, Time, Option<Time>), AttemptColumns, Time);

    fn bind<'b>(&'b self, binds: &mut Binds<'_, 'b>) -> QueryResult<()> {
        binds.push::<Text, _>(&self.run_id)?;
        binds.push::<Nullable<Text>, _>(&self.site)?;
        binds.push::<Nullable<Text>, _>(&self.environment)
    }
}
