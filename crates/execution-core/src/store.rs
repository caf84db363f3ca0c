//! The only file that runs statements.

use chrono::{DateTime, Utc};
use database::{DatabaseError, Pool, Statement};

use crate::{
    Attempt, AttemptNumber, Belonging, Commit, Deadline, Environment, GitRef, Invalid, Material,
    MemberId, NewRun, Place, ProjectId, ReadError, Repository, RepositoryInstance, RepositoryPath,
    RepositoryProject, Run, RunId, SiteId,
    statements::{
        Accept, AttemptColumns, Cancel, Finish, ReadBelonging, ReadRun, RepositoryColumns, Submit,
    },
};

type Time = DateTime<Utc>;

/// Statements of this context over one pool.
#[derive(Clone)]
pub(crate) struct Store {
    pool: Pool,
}

impl Store {
    pub(crate) fn new(pool: Pool) -> Self {
        Self { pool }
    }

    /// Stores a Run; `None` where there is one of its id.
    pub(crate) async fn accept(&self, run: NewRun) -> Result<Option<Time>, DatabaseError> {
        self.time(Accept { deadline: run.deadline.time(), run }).await
    }

    /// Submits an Attempt; `None` where the Run is absent or cancelled, or another number is next.
    pub(crate) async fn submit(
        &self,
        run: &RunId,
        number: AttemptNumber,
    ) -> Result<Option<Time>, DatabaseError> {
        let run_id = run.as_str().to_owned();
        self.time(Submit { run_id, number: number.get() }).await
    }

    /// Cancels a Run; `None` where it is absent or cancelled already.
    pub(crate) async fn cancel(&self, run: &RunId) -> Result<Option<Time>, DatabaseError> {
        self.time(Cancel { run_id: run.as_str().to_owned() }).await
    }

    /// Notes that an Attempt is over; `None` where it is absent or over already.
    pub(crate) async fn finish(
        &self,
        run: &RunId,
        number: AttemptNumber,
    ) -> Result<Option<Time>, DatabaseError> {
        let run_id = run.as_str().to_owned();
        self.time(Finish { run_id, number: number.get() }).await
    }

    /// A Run as it is now, and the time; `None` where it is absent or of another place.
    pub(crate) async fn run(
        &self,
        run: &RunId,
        place: Option<&Place>,
    ) -> Result<Option<(Run, Time)>, ReadError> {
        let statement = ReadRun {
            run_id: run.as_str().to_owned(),
            site: place.map(|place| place.site.as_str().to_owned()),
            environment: place.map(|place| place.environment.as_str()),
        };
        let Some(row) = self.pool.load(statement).await?.into_iter().next() else {
            return Ok(None);
        };
        let (names, repository, (deadline, material, accepted_at, cancelled_at), attempts, now) =
            row;
        let (id, project, member, site, environment) = names;
        let accepted = NewRun {
            id: known(RunId::parse(&id), "a Run's id")?,
            project: known(ProjectId::parse(&project), "a Project")?,
            member: known(MemberId::parse(&member), "a member")?,
            place: Place {
                site: known(SiteId::parse(&site), "a Site")?,
                environment: known(Environment::parse(&environment), "an environment")?,
            },
            deadline: known(Deadline::new(deadline), "a deadline")?,
            repository: repository_of(repository)?,
            material: Material::from_database(material),
        };
        let attempts = attempts_of(attempts)?;
        Ok(Some((Run { accepted, accepted_at, cancelled_at, attempts }, now)))
    }

    /// What a Run of a Site belongs to; `None` where it is absent or of another Site.
    pub(crate) async fn belonging(
        &self,
        site: &SiteId,
        run: &RunId,
    ) -> Result<Option<Belonging>, ReadError> {
        let (run_id, site) = (run.as_str().to_owned(), site.as_str().to_owned());
        let rows = self.pool.load(ReadBelonging { run_id, site }).await?;
        let belonging = |(project, environment): (String, String)| {
            Ok(Belonging {
                project: known(ProjectId::parse(&project), "a Project")?,
                environment: known(Environment::parse(&environment), "an environment")?,
            })
        };
        rows.into_iter().next().map(belonging).transpose()
    }

    /// The time that a statement set, where it did.
    async fn time<S>(&self, statement: S) -> Result<Option<Time>, DatabaseError>
    where
        S: Statement<Columns = (diesel::sql_types::Timestamptz,), Row = (Time,)>,
    {
        Ok(self.pool.load(statement).await?.into_iter().next().map(|(time,)| time))
    }
}

fn repository_of(columns: RepositoryColumns) -> Result<Repository, ReadError> {
    let (instance, project, path, reference, commit) = columns;
    Ok(Repository {
        instance: known(RepositoryInstance::parse(&instance), "an instance")?,
        project: RepositoryProject::new(project).ok_or(ReadError::Corrupt("a project's number"))?,
        path: known(RepositoryPath::parse(&path), "a path")?,
        reference: known(GitRef::parse(&reference), "a ref")?,
        commit: known(Commit::parse(&commit), "a commit")?,
    })
}

fn attempts_of((numbers, submitted, over): AttemptColumns) -> Result<Vec<Attempt>, ReadError> {
    let columns = numbers.into_iter().zip(submitted).zip(over);
    columns
        .zip(1..)
        .map(|(((number, submitted_at), final_at), place)| {
            let number = AttemptNumber::new(number)
                .filter(|number| number.get() == place)
                .ok_or(ReadError::Corrupt("an Attempt's number"))?;
            Ok(Attempt { number, submitted_at, final_at })
        })
        .collect()
}

fn known<T>(parsed: Result<T, Invalid>, what: &'static str) -> Result<T, ReadError> {
    parsed.map_err(|_| ReadError::Corrupt(what))
}
