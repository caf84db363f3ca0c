//! A Site's feed of keys, by the documented rules. Faults are added by each test around it.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::json;
use site_client::{SshCursor, output_digest, ssh_change_digest};
use site_protocol::{
    Digest, SshAcknowledged, SshAcknowledgement, SshAttested, SshChange, SshChanges, SshOperation,
    SshSnapshotEnd, SshSnapshotHead, SshSnapshotKey,
};
use ssh_keys::KeyId;
use test_support::{Received, Reply, eventually};
use tokio::sync::Semaphore;

use crate::LONG;

/// Shared by the test and the peer that answers from it.
#[derive(Clone)]
pub(crate) struct Feed(Arc<Mutex<State>>);

/// A feed as it was at one moment, as a backup holds it.
pub(crate) struct Backup(State);

#[derive(Clone)]
struct State {
    changes: Vec<SshChange>,
    /// The place after each change, and before the first.
    places: Vec<SshCursor>,
    set: BTreeMap<(String, String), SshSnapshotKey>,
    floor: u64,
    window: TimeDelta,
    began: Instant,
    /// By how much the clock was set forward.
    ahead: TimeDelta,
    /// Since when a change waits to be propagated.
    waits_since: Option<DateTime<Utc>>,
    acknowledged: Vec<(SshAcknowledgement, Option<SshAttested>)>,
    snapshots: usize,
    /// Wakes the polls that wait.
    wake: Arc<Semaphore>,
}

/// A key that every side takes, made of a number.
pub(crate) fn public_key(number: u32) -> String {
    let mut blob = Vec::new();
    for field in [&b"ssh-ed25519"[..], &output_digest(&number.to_be_bytes()).as_bytes()[..]] {
        blob.extend(u32::try_from(field.len()).unwrap().to_be_bytes());
        blob.extend(field);
    }
    format!("ssh-ed25519 {}", base64(&blob))
}

/// The id of the key of that number.
pub(crate) fn key_id(number: u32) -> String {
    KeyId::from_bytes(u128::from(number).to_be_bytes()).as_str().to_owned()
}

fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let number = group.iter().fold(0, |number, byte| number << 8 | usize::from(*byte));
        let number = number << (8 * (3 - group.len()));
        for place in 0..4 {
            let character = char::from(ALPHABET[number >> (18 - 6 * place) & 63]);
            text.push(if place <= group.len() { character } else { '=' });
        }
    }
    text
}

impl Feed {
    /// A feed of nothing, with a window of ten minutes.
    pub(crate) fn new() -> Self {
        Self::with_window(Duration::from_secs(600))
    }

    pub(crate) fn with_window(window: Duration) -> Self {
        Self(Arc::new(Mutex::new(State {
            changes: Vec::new(),
            places: vec![SshCursor::START],
            set: BTreeMap::new(),
            floor: 0,
            window: TimeDelta::from_std(window).unwrap(),
            began: Instant::now(),
            ahead: TimeDelta::zero(),
            waits_since: None,
            acknowledged: Vec::new(),
            snapshots: 0,
            wake: Arc::new(Semaphore::new(0)),
        })))
    }

    fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        act(&mut self.0.lock().unwrap())
    }

    /// The key of a number is in force for a user.
    pub(crate) fn add(&self, user: &str, number: u32) {
        self.add_key(user, &key_id(number), &public_key(number), None);
    }

    pub(crate) fn add_key(
        &self,
        user: &str,
        key_id: &str,
        public_key: &str,
        expires_at: Option<DateTime<Utc>>,
    ) {
        self.with(|state| state.add(user, key_id, public_key, expires_at));
    }

    /// The key of a number is no longer in force for a user.
    pub(crate) fn remove(&self, user: &str, number: u32) {
        self.with(|state| state.remove(user, &key_id(number)));
    }

    /// The changes so far are removed by age.
    pub(crate) fn compact(&self) {
        self.with(|state| state.floor = state.changes.len() as u64);
    }

    pub(crate) fn back_up(&self) -> Backup {
        self.with(|state| Backup(state.clone()))
    }

    /// Brings an older state back.
    pub(crate) fn restore(&self, backup: Backup) {
        self.with(|state| {
            let Backup(State { changes, places, set, floor, .. }) = backup;
            (state.changes, state.places, state.set, state.floor) = (changes, places, set, floor);
            state.wake.add_permits(1);
        });
    }

    /// The time on the clock of its database.
    pub(crate) fn now(&self) -> DateTime<Utc> {
        self.with(|state| state.now())
    }

    /// Sets that clock forward.
    pub(crate) fn advance(&self, seconds: i64) {
        self.with(|state| state.ahead += TimeDelta::seconds(seconds));
    }

    /// From now on a change waits and is not propagated, or not any more.
    pub(crate) fn let_wait(&self, waits: bool) {
        self.with(|state| state.waits_since = waits.then(|| state.now()));
    }

    /// The Site API is started anew with another window.
    pub(crate) fn set_window(&self, seconds: i64) {
        self.with(|state| state.window = TimeDelta::seconds(seconds));
    }

    /// What is in force, as users and keys' ids.
    pub(crate) fn in_force(&self) -> Vec<(String, String)> {
        self.with(|state| state.set.keys().cloned().collect())
    }

    pub(crate) fn head(&self) -> SshCursor {
        self.with(|state| state.head())
    }

    pub(crate) fn snapshots(&self) -> usize {
        self.with(|state| state.snapshots)
    }

    /// Every acknowledgement so far, with what the comparison of its set gave.
    pub(crate) fn acknowledged(&self) -> Vec<(SshAcknowledgement, Option<SshAttested>)> {
        self.with(|state| state.acknowledged.clone())
    }

    /// Waits until the head is acknowledged, and gives that acknowledgement.
    pub(crate) async fn wait_for_head(&self) -> SshAcknowledgement {
        self.wait_for("the head to be acknowledged", |_, _| true).await
    }

    /// Waits until the files are attested to be what is in force at the head.
    pub(crate) async fn wait_for_match(&self) -> SshAcknowledgement {
        let what = "a matching attestation at the head";
        self.wait_for(what, |_, attested| attested == Some(SshAttested::Match)).await
    }

    /// Waits for an acknowledgement of the head that fits; one that is there already is taken.
    pub(crate) async fn wait_for(
        &self,
        what: &str,
        fits: impl Fn(&SshAcknowledgement, Option<SshAttested>) -> bool,
    ) -> SshAcknowledgement {
        eventually(LONG, what, async || {
            self.with(|state| {
                let head = state.head().to_string();
                let told = state.acknowledged.iter();
                let mut fitting =
                    told.filter(|(told, attested)| told.cursor == head && fits(told, *attested));
                fitting.next().map(|(told, _)| told.clone())
            })
        })
        .await
    }

    /// The answer to any request of an SSH agent.
    pub(crate) fn answer(&self, request: &Received) -> Reply {
        let path = request.target.split('?').next().unwrap();
        self.with(|state| match (request.method.as_str(), path) {
            ("GET", "/v1/site/ssh-access/changes") => state.changes_after(&request.target),
            ("GET", "/v1/site/ssh-access/snapshot") => state.snapshot(),
            ("PUT", "/v1/site/ssh-access/acknowledgement") => state.acknowledge(&request.body),
            other => panic!("{other:?}"),
        })
    }
}

impl State {
    fn now(&self) -> DateTime<Utc> {
        let start: DateTime<Utc> = "2030-01-01T00:00:00Z".parse().unwrap();
        start + TimeDelta::from_std(self.began.elapsed()).unwrap() + self.ahead
    }

    fn lease_until(&self) -> DateTime<Utc> {
        let skew = (self.window / 10).min(TimeDelta::seconds(60));
        self.waits_since.unwrap_or_else(|| self.now()) + self.window - skew
    }

    fn head(&self) -> SshCursor {
        self.places[self.changes.len()]
    }

    fn add(&mut self, user: &str, id: &str, key: &str, expires_at: Option<DateTime<Utc>>) {
        let key = SshSnapshotKey {
            unix_user: user.to_owned(),
            key_id: id.to_owned(),
            member_id: "member-1".to_owned(),
            public_key: key.to_owned(),
            expires_at,
        };
        let public_key = Some(key.public_key.clone());
        self.set.insert((user.to_owned(), id.to_owned()), key);
        self.change(SshOperation::Add, user, id, |change| {
            (change.public_key, change.expires_at) = (public_key, expires_at);
        });
    }

    fn remove(&mut self, user: &str, id: &str) {
        self.set.remove(&(user.to_owned(), id.to_owned())).unwrap();
        let enforce_by = Some(self.now() + self.window);
        self.change(SshOperation::Remove, user, id, |change| change.enforce_by = enforce_by);
    }

    fn change(
        &mut self,
        op: SshOperation,
        user: &str,
        id: &str,
        fill: impl FnOnce(&mut SshChange),
    ) {
        let mut change = SshChange {
            seq: self.changes.len() as u64 + 1,
            op,
            unix_user: user.to_owned(),
            key_id: id.to_owned(),
            member_id: "member-1".to_owned(),
            public_key: None,
            expires_at: None,
            enforce_by: None,
            digest: Digest::ZERO,
        };
        fill(&mut change);
        change.digest = ssh_change_digest(&change);
        self.places.push(self.head().after(&change.digest).unwrap());
        self.changes.push(change);
        self.wake.add_permits(1);
    }

    fn changes_after(&self, target: &str) -> Reply {
        let after: SshCursor =
            query(target, "after").map_or(SshCursor::START, |text| text.parse().unwrap());
        if after.seq() < self.floor {
            return Reply::problem(410, "cursor_compacted", false);
        }
        let from = usize::try_from(after.seq()).unwrap();
        if self.places.get(from) != Some(&after) {
            return Reply::problem(409, "cursor_unknown", false);
        }
        let number = |name| query(target, name).unwrap().parse::<usize>().unwrap();
        let to = self.changes.len().min(from + number("limit"));
        let page = SshChanges {
            changes: self.changes[from..to].to_vec(),
            next: self.places[to].to_string(),
            head: self.head().to_string(),
            server_time: self.now(),
            lease_until: self.lease_until(),
        };
        let reply = Reply::json(200, json!(page).to_string());
        let wait = number("wait") as u64;
        if from < to || wait == 0 {
            return reply;
        }
        // A change, or the end of the wait.
        while let Ok(permit) = self.wake.try_acquire() {
            permit.forget();
        }
        let wake = Arc::clone(&self.wake);
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_secs(wait)).await;
            wake.add_permits(1);
        });
        Reply::Held(Arc::clone(&self.wake), Box::new(reply))
    }

    fn snapshot(&mut self) -> Reply {
        self.snapshots += 1;
        let head = SshSnapshotHead {
            cursor: self.head().to_string(),
            server_time: self.now(),
            lease_until: self.lease_until(),
        };
        let mut body = json!(head).to_string() + "\n";
        for key in self.set.values() {
            body += &(json!(key).to_string() + "\n");
        }
        let end = SshSnapshotEnd { complete: true, count: self.set.len() as u64 };
        body += &(json!(end).to_string() + "\n");
        Reply::new(200, "application/x-ndjson", body)
    }

    fn acknowledge(&mut self, body: &[u8]) -> Reply {
        let told: SshAcknowledgement = serde_json::from_slice(body).unwrap();
        let cursor: SshCursor = told.cursor.parse().unwrap();
        assert!(told.failures.len() <= 1_000);
        let known = self.places.get(usize::try_from(cursor.seq()).unwrap()) == Some(&cursor);
        if !known || told.chain_digest != cursor.chain_digest() {
            return Reply::problem(409, "cursor_unknown", false);
        }
        let attested = told.set_digest.map(|digest| {
            if cursor != self.head() {
                SshAttested::Behind
            } else if digest == self.set_digest(&told) {
                SshAttested::Match
            } else {
                SshAttested::Mismatch
            }
        });
        self.acknowledged.push((told, attested));
        let answer = SshAcknowledged {
            cursor: cursor.to_string(),
            head: self.head().to_string(),
            attested,
            server_time: self.now(),
        };
        Reply::json(200, json!(answer).to_string())
    }

    fn set_digest(&self, told: &SshAcknowledgement) -> Digest {
        let mut text = String::new();
        for ((user, id), key) in &self.set {
            let failed = |f: &&site_protocol::SshFailure| f.unix_user == *user && f.key_id == *id;
            if !told.failures.iter().any(|failure| failed(&failure)) {
                text += &format!("{user} {id} {}\n", key.public_key);
            }
        }
        output_digest(text.as_bytes())
    }
}

/// The value of a query parameter.
fn query<'a>(target: &'a str, name: &str) -> Option<&'a str> {
    target.split(['?', '&']).find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
}
