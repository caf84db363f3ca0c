//! A database a test and short ways to say what the tests are about.

use std::time::Duration;

use database::{DatabaseUrl, Pool, PoolLimits};
use resource_provisioning::{
    API_ROLE, Account, Bindings, Gid, MemberId, NewBinding, Registry, SiteId, Uid, UnixUser,
    WRITER_ROLE,
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

    pub(crate) fn bindings(&self) -> Bindings {
        Bindings::new(self.pool(API_ROLE.name, 4))
    }

    pub(crate) async fn sql(&self) -> Client {
        self.database.superuser().await
    }
}

pub(crate) fn site(text: &str) -> SiteId {
    SiteId::parse(text).unwrap()
}

pub(crate) fn member(text: &str) -> MemberId {
    MemberId::parse(text).unwrap()
}

/// A binding of a member at the Site `north-1`.
pub(crate) fn binding(name: &str) -> NewBinding {
    NewBinding {
        site: site("north-1"),
        member: member(name),
        unix_user: UnixUser::parse("ada").unwrap(),
        uid: Uid::parse("20001").unwrap(),
        gid: Gid::parse("100").unwrap(),
        account: Account::parse("climate").unwrap(),
    }
}

/// The same binding with one value other, for each value that there is.
pub(crate) fn other_bindings(name: &str) -> Vec<NewBinding> {
    let change = |change: fn(&mut NewBinding)| {
        let mut other = binding(name);
        change(&mut other);
        other
    };
    vec![
        change(|binding| binding.unix_user = UnixUser::parse("ada2").unwrap()),
        change(|binding| binding.uid = Uid::parse("20002").unwrap()),
        change(|binding| binding.gid = Gid::parse("101").unwrap()),
        change(|binding| binding.account = Account::parse("Climate").unwrap()),
    ]
}
