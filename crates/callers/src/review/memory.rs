//! What is remembered of reviews: for some seconds who a token is, and for longer that it was good.

use std::collections::{BTreeMap, HashMap};

use tokio::time::Instant;

use super::{key::Key, outcome::Reviewed};

/// So many good reviews are remembered, and so many tokens that had one.
const MOST: usize = 1024;

/// Good reviews alone. It remembers who a token is, never whether it may do something.
pub(super) struct Memory {
    reviewed: Bounded<Reviewed>,
    known: Bounded<()>,
}

impl Memory {
    pub(super) fn new() -> Self {
        Self { reviewed: Bounded::new(MOST), known: Bounded::new(MOST) }
    }

    /// Who the token is, where a good review of it is still good at `now`.
    pub(super) fn of(&mut self, key: &Key, now: Instant) -> Option<Reviewed> {
        let found = self.reviewed.get(key)?;
        if now < found.until {
            return Some(found.clone());
        }
        self.reviewed.remove(key);
        None
    }

    /// Whether the last review of the token was good and is not forgotten yet.
    pub(super) fn knows(&self, key: &Key) -> bool {
        self.known.get(key).is_some()
    }

    /// Takes a good review, which is given out again until its time is over.
    pub(super) fn accepted(&mut self, key: Key, reviewed: Reviewed, now: Instant) {
        self.known.insert(key, ());
        if now < reviewed.until {
            self.reviewed.insert(key, reviewed);
        }
    }

    /// The token was refused.
    pub(super) fn refused(&mut self, key: &Key) {
        self.known.remove(key);
        self.reviewed.remove(key);
    }
}

/// A map with a bound: where it is full, the oldest entry makes room.
struct Bounded<T> {
    most: usize,
    /// With the number under which `order` has the key.
    entries: HashMap<Key, (u64, T)>,
    order: BTreeMap<u64, Key>,
    next: u64,
}

impl<T> Bounded<T> {
    fn new(most: usize) -> Self {
        Self { most, entries: HashMap::new(), order: BTreeMap::new(), next: 0 }
    }

    fn get(&self, key: &Key) -> Option<&T> {
        self.entries.get(key).map(|(_, value)| value)
    }

    /// Puts in what is the newest then.
    fn insert(&mut self, key: Key, value: T) {
        self.remove(&key);
        while self.entries.len() >= self.most {
            let Some((_, oldest)) = self.order.pop_first() else { break };
            self.entries.remove(&oldest);
        }
        self.order.insert(self.next, key);
        self.entries.insert(key, (self.next, value));
        self.next += 1;
    }

    fn remove(&mut self, key: &Key) {
        if let Some((number, _)) = self.entries.remove(key) {
            self.order.remove(&number);
        }
    }
}
