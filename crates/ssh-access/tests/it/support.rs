//! A database a test and short ways to say what the tests are about.

use std::{future::pending, time::Duration};

use database::{DatabaseUrl, Pool, PoolLimits};
use ring::rand::SystemRandom;
use ssh_access::{
    API_ROLE, Account, Change, ChangePage, Cursor, Feed, KeyEnd, KeyId, MemberId, NewKey,
    Operation, PROCESS_ROLE, Propagator, PropagatorLimits, PublicKey, REGISTRY_ROLE, Registry,
    SiteId, StoredKey, UnixUser, Wakeups, Window,
};
use ssh_keys::SetDigest;
use test_support::TestDatabase;
use tokio_postgres::Client;

/// Longer than anything takes on a machine that does something else as well.
pub(crate) const LONG: Duration = Duration::from_secs(60);

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

    pub(crate) fn pool(&self, role: &str, connections: usize) -> Pool {
        let limits =
            PoolLimits { connections, wait: LONG, statement: LONG, ..PoolLimits::default() };
        Pool::new(&self.url(role), "test", limits)
    }

    pub(crate) fn registry(&self, connections: usize) -> Registry {
        Registry::new(self.pool(REGISTRY_ROLE.name, connections))
    }

    pub(crate) fn feed(&self) -> Feed {
        self.feed_of("north-1", Window::DEFAULT)
    }

    pub(crate) fn feed_of(&self, at: &str, window: Window) -> Feed {
        Feed::new(self.pool(API_ROLE.name, 4), Wakeups::new(site(at)), window)
    }

    pub(crate) fn propagator(&self) -> Propagator {
        self.propagator_of("north-1", PropagatorLimits::default())
    }

    pub(crate) fn propagator_of(&self, at: &str, limits: PropagatorLimits) -> Propagator {
        self.propagator_with(at, Window::DEFAULT, limits)
    }

    pub(crate) fn propagator_with(
        &self,
        at: &str,
        window: Window,
        limits: PropagatorLimits,
    ) -> Propagator {
        let pool = self.pool(PROCESS_ROLE.name, 4);
        Propagator::new(pool, site(at), window, limits, &random()).unwrap()
    }

    /// A superuser's connection, to look at what no role of the context may, or to break it.
    pub(crate) async fn sql(&self) -> Client {
        self.database.superuser().await
    }

    /// A number that a superuser reads.
    pub(crate) async fn count(&self, query: &str) -> i64 {
        self.sql().await.query_one(query, &[]).await.unwrap().get(0)
    }

    /// Propagates what waits, as the process of a Site does.
    pub(crate) async fn propagate(&self) -> u64 {
        self.propagate_at("north-1").await
    }

    pub(crate) async fn propagate_at(&self, at: &str) -> u64 {
        let propagator = self.propagator_of(at, PropagatorLimits::default());
        let lease = propagator.acquire().await.unwrap().expect("nobody has the lease");
        let written = propagator.propagate(lease).await.unwrap();
        propagator.release(lease).await.unwrap();
        written
    }

    /// A member with so many keys and one account.
    pub(crate) async fn member(&self, name: &str, keys: u32, user: &str) -> Vec<StoredKey> {
        let registry = self.registry(1);
        let mut added = Vec::new();
        for number in 0..keys {
            added.push(registry.add_key(&key(name, number), &random()).await.unwrap().value);
        }
        self.account(name, user).await;
        added
    }

    pub(crate) async fn account(&self, name: &str, user: &str) -> Account {
        let added = self.registry(1).add_account(&here(), &member(name), &unix_user(user)).await;
        added.unwrap().value
    }

    pub(crate) async fn add(&self, key: &NewKey) -> StoredKey {
        self.registry(1).add_key(key, &random()).await.unwrap().value
    }

    pub(crate) async fn remove(&self, id: &KeyId) -> StoredKey {
        self.registry(1).remove_key(id, None).await.unwrap().value
    }
}

/// The time on the database's clock.
pub(crate) async fn now(fixture: &Fixture) -> chrono::DateTime<chrono::Utc> {
    let row = fixture.sql().await.query_one("SELECT clock_timestamp()::text", &[]).await.unwrap();
    let text: String = row.get(0);
    chrono::DateTime::parse_from_str(&text, "%Y-%m-%d %H:%M:%S%.f%#z").unwrap().to_utc()
}

#[expect(clippy::disallowed_methods, reason = "a test makes its own")]
pub(crate) fn random() -> SystemRandom {
    SystemRandom::new()
}

pub(crate) fn site(text: &str) -> SiteId {
    SiteId::parse(text).unwrap()
}

/// The Site of most tests.
pub(crate) fn here() -> SiteId {
    site("north-1")
}

pub(crate) fn member(text: &str) -> MemberId {
    MemberId::parse(text).unwrap()
}

pub(crate) fn unix_user(text: &str) -> UnixUser {
    UnixUser::parse(text).unwrap()
}

/// The n-th key: the same number is the same key.
pub(crate) fn public_key(number: u32) -> PublicKey {
    let mut bytes = [0; 32];
    bytes[..4].copy_from_slice(&number.to_be_bytes());
    let fields: [&[u8]; 2] = [b"ssh-ed25519", &bytes];
    let blob: Vec<u8> = fields
        .iter()
        .flat_map(|field| [&u32::try_from(field.len()).unwrap().to_be_bytes()[..], field].concat())
        .collect();
    PublicKey::parse(&format!("ssh-ed25519 {}", base64(&blob))).unwrap()
}

/// Base64 of a number of bytes that is a multiple of three.
fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let groups = bytes.chunks_exact(3);
    assert!(groups.remainder().is_empty());
    let text = groups.flat_map(|group| {
        let bits = u32::from_be_bytes([0, group[0], group[1], group[2]]);
        [18, 12, 6, 0].map(|shift| char::from(ALPHABET[(bits >> shift) as usize & 63]))
    });
    text.collect()
}

/// The n-th key of a member, without an end.
pub(crate) fn key(of: &str, number: u32) -> NewKey {
    NewKey { member: member(of), key: public_key(number), end: None }
}

pub(crate) fn key_until(of: &str, number: u32, end: &str) -> NewKey {
    NewKey { end: Some(KeyEnd::parse(end).unwrap()), ..key(of, number) }
}

/// What is there after a cursor, without a wait.
pub(crate) async fn changes(feed: &Feed, after: Cursor) -> ChangePage {
    feed.changes(after, Feed::MOST_CHANGES, Duration::ZERO, pending()).await.unwrap()
}

/// The same in short words: what, whom, which key.
pub(crate) fn words(changes: &[Change]) -> Vec<(Operation, &str, &str)> {
    changes
        .iter()
        .map(|change| (change.operation, change.unix_user.as_str(), change.key_id.as_str()))
        .collect()
}

/// Applies every change from the beginning on, as an agent does: checks places, digests and chain, and
/// returns what is in force then, with the place.
pub(crate) async fn applied(feed: &Feed) -> (Vec<(String, String, String)>, Cursor) {
    let mut cursor = Cursor::START;
    let mut set = std::collections::BTreeMap::new();
    loop {
        let page = changes(feed, cursor).await;
        if page.changes.is_empty() {
            assert_eq!((page.next, page.head), (cursor, cursor));
            break;
        }
        for change in &page.changes {
            assert_eq!(change.seq, cursor.seq() + 1, "a gap");
            assert_eq!(change.fields().digest(), change.digest);
            cursor = cursor.after(change.digest).unwrap();
            let place = (change.unix_user.as_str().to_owned(), change.key_id.as_str().to_owned());
            let before = match change.operation {
                Operation::Add => set.insert(place, change.public_key.clone().unwrap()),
                Operation::Remove => {
                    assert!(change.enforce_by.is_some());
                    Some(set.remove(&place).expect("what is removed was there")).filter(|_| false)
                }
            };
            assert_eq!(before, None, "what is added was not there");
        }
        assert_eq!(page.next, cursor, "the chain");
    }
    (set.into_iter().map(|((user, id), key)| (user, id, key)).collect(), cursor)
}

/// A snapshot as a whole, in the same form, with its place.
pub(crate) async fn snapshot(feed: &Feed) -> (Vec<(String, String, String)>, Cursor) {
    let mut snapshot = feed.snapshot().await.unwrap();
    let head = snapshot.head();
    let mut set = Vec::new();
    while let Some(part) = snapshot.next().await.unwrap() {
        set.extend(part.into_iter().map(|key| {
            (key.unix_user.as_str().to_owned(), key.key_id.as_str().to_owned(), key.key.to_string())
        }));
    }
    (set, head)
}

/// The digest of a set in that form.
pub(crate) fn set_digest(set: &[(String, String, String)]) -> ssh_access::Digest {
    let mut digest = SetDigest::new();
    for (user, id, key) in set {
        let (id, key) = (KeyId::parse(id).unwrap(), PublicKey::parse(key).unwrap());
        digest.add(&unix_user(user), &id, &key).unwrap();
    }
    digest.finish()
}
