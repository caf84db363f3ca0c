//! A database a test and short ways to say what the tests are about.

use std::time::Duration;

use database::{DatabaseUrl, Pool, PoolLimits};
use execution_core::{
    API_ROLE, AttemptNumber, Commit, Deadline, Environment, GitRef, Material, MemberId, NewRun,
    Place, ProjectId, Registry, Repository, RepositoryInstance, RepositoryPath, RepositoryProject,
    RunId, Runs, SiteId, WRITER_ROLE,
};
use test_support::TestDatabase;
use tokio_postgres::Client;

/// Longer than anything takes on a machine that does something else as well.
const LONG: Duration = Duration::from_secs(60);

/// A migrated database.
pub(crate) struct Fixture {
    pub(crate) database: TestDatabase,
}

impl Fixture {
    pub(crate) async fn create() -> Self {
        Self { database: TestDatabase::create().await }
    }

    pub(crate) fn url(&self, role: &str) -> DatabaseUrl {
        self.database.url(role).parse().unwrap()
    }

    fn pool(&self, role: &str, connections: usize) -> Pool {
        let limits =
            PoolLimits { connections, wait: LONG, statement: LONG, ..PoolLimits::default() };
        Pool::new(&self.url(role), "test", limits)
    }

    pub(crate) fn registry(&self, connections: usize) -> Registry {
        Registry::new(self.pool(WRITER_ROLE.name, connections))
    }

    pub(crate) fn runs(&self) -> Runs {
        Runs::new(self.pool(API_ROLE.name, 4))
    }

    /// A superuser's connection, to look at what no role of the context may, or to break it.
    pub(crate) async fn sql(&self) -> Client {
        self.database.superuser().await
    }
}

pub(crate) fn id(text: &str) -> RunId {
    RunId::parse(text).unwrap()
}

pub(crate) fn attempt(number: i32) -> AttemptNumber {
    AttemptNumber::parse(&number.to_string()).unwrap()
}

pub(crate) fn place(site: &str, environment: Environment) -> Place {
    Place { site: SiteId::parse(site).unwrap(), environment }
}

/// The place of most tests.
pub(crate) fn here() -> Place {
    place("north-1", Environment::Slurm)
}

/// A Run of the place of most tests, with a deadline that is far away.
pub(crate) fn run(text: &str) -> NewRun {
    NewRun {
        id: id(text),
        project: ProjectId::parse("project-1").unwrap(),
        member: MemberId::parse("member-1").unwrap(),
        place: here(),
        deadline: Deadline::parse("2999-01-01T00:00:00.123456Z").unwrap(),
        repository: Repository {
            instance: RepositoryInstance::parse("gitlab").unwrap(),
            project: RepositoryProject::parse("4711").unwrap(),
            path: RepositoryPath::parse("research/climate").unwrap(),
            reference: GitRef::parse("main").unwrap(),
            commit: Commit::parse(&"0123456789abcdef".repeat(4)).unwrap(),
        },
        material: Material::parse("{\n  \"image\": \"tr\u{e4}in:3\",\n  \"n\": 1.50}").unwrap(),
    }
}

/// The same Run with one thing other, for each thing that there is but its id.
pub(crate) fn other_runs(text: &str) -> Vec<NewRun> {
    let change = |change: fn(&mut NewRun)| {
        let mut other = run(text);
        change(&mut other);
        other
    };
    vec![
        change(|run| run.project = ProjectId::parse("project-2").unwrap()),
        change(|run| run.member = MemberId::parse("member-2").unwrap()),
        change(|run| run.place = place("north-2", Environment::Slurm)),
        change(|run| run.place = place("north-1", Environment::K8s)),
        change(|run| run.deadline = Deadline::parse("2999-01-01T00:00:00.123457Z").unwrap()),
        change(|run| run.repository.instance = RepositoryInstance::parse("gitlab-2").unwrap()),
        change(|run| run.repository.project = RepositoryProject::parse("4712").unwrap()),
        change(|run| run.repository.path = RepositoryPath::parse("research/oceans").unwrap()),
        change(|run| run.repository.reference = GitRef::parse("main-2").unwrap()),
        change(|run| run.repository.commit = Commit::parse(&"0".repeat(40)).unwrap()),
        // The same JSON, but not the same text.
        change(|run| {
            run.material = Material::parse("{\"image\": \"tr\u{e4}in:3\", \"n\": 1.5}").unwrap();
        }),
    ]
}
