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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ring::rand::SystemRandom;

    use super::*;
    use crate::{
        review::{Pod, key::Keys},
        service_account::ServiceAccount,
    };

    #[expect(clippy::disallowed_methods, reason = "the one place of these tests that makes it")]
    fn keys() -> Keys {
        Keys::new(&SystemRandom::new()).unwrap()
    }

    fn of_numbers() -> impl Fn(usize) -> Key {
        let keys = keys();
        move |number| keys.of("us", &number.to_string())
    }

    fn reviewed(until: Instant) -> Reviewed {
        let account = ServiceAccount::parse("system:serviceaccount:a:b").unwrap();
        Reviewed { account, uid: "u".into(), pod: Pod { name: None, uid: "p".into() }, until }
    }

    #[test]
    fn a_token_and_its_audience_make_one_key() {
        let (keys, others) = (keys(), keys());
        assert!(keys.of("us", "token") == keys.of("us", "token"));
        for other in [keys.of("ust", "oken"), keys.of("us", "token2"), others.of("us", "token")] {
            assert!(other != keys.of("us", "token"));
        }
    }

    #[test]
    fn who_it_is_is_forgotten_in_time_and_that_it_was_good_is_not() {
        let (start, second) = (Instant::now(), Duration::from_secs(1));
        let mut memory = Memory::new();
        let key = of_numbers();
        memory.accepted(key(1), reviewed(start + second), start);
        assert_eq!(memory.of(&key(1), start), Some(reviewed(start + second)));
        assert_eq!(memory.of(&key(1), start + second), None);
        assert!(memory.reviewed.entries.is_empty() && memory.reviewed.order.is_empty());
        assert!(memory.knows(&key(1)));
        memory.refused(&key(1));
        assert!(!memory.knows(&key(1)));
    }

    #[test]
    fn what_is_over_already_is_not_kept() {
        let now = Instant::now();
        let mut memory = Memory::new();
        let key = of_numbers();
        memory.accepted(key(1), reviewed(now), now);
        assert!(memory.knows(&key(1)) && memory.reviewed.entries.is_empty());
    }

    #[test]
    fn the_oldest_makes_room() {
        let now = Instant::now();
        let until = now + Duration::from_secs(10);
        let mut memory = Memory::new();
        let key = of_numbers();
        for number in 0..MOST {
            memory.accepted(key(number), reviewed(until), now);
        }
        // The first is as new as any now, so the second is the oldest.
        memory.accepted(key(0), reviewed(until), now);
        memory.accepted(key(MOST), reviewed(until), now);
        for (number, is_there) in [(0, true), (1, false), (2, true), (MOST, true)] {
            assert_eq!(memory.of(&key(number), now).is_some(), is_there, "{number}");
            assert_eq!(memory.knows(&key(number)), is_there, "{number}");
        }
        for bounded in [memory.reviewed.entries.len(), memory.known.entries.len()] {
            assert_eq!(bounded, MOST);
        }
        assert_eq!((memory.reviewed.order.len(), memory.known.order.len()), (MOST, MOST));
    }
}
