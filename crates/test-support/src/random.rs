//! Random numbers that can be had again.

use std::{
    hash::{BuildHasher, RandomState},
    ops::Range,
    time::Duration,
};

/// The variable that names the seed; without it each run takes another.
pub const TEST_SEED: &str = "SITE_CONTROL_TEST_SEED";

/// A sequence of numbers that follows from its seed (SplitMix64). Not for secrets.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Takes the seed of [`TEST_SEED`], or a new one, and prints it.
    ///
    /// # Panics
    ///
    /// When the variable holds no number.
    #[expect(clippy::disallowed_methods, reason = "a variable that a test process reads")]
    #[expect(clippy::print_stdout, reason = "a failed test shows how to have it again")]
    #[must_use]
    pub fn of_this_test() -> Self {
        let seed = match std::env::var(TEST_SEED) {
            Ok(text) => text.parse().expect("the seed is a number"),
            Err(_) => RandomState::new().hash_one(0),
        };
        println!("{TEST_SEED}={seed}");
        Self(seed)
    }

    /// The sequence of a seed.
    #[must_use]
    pub fn from_seed(seed: u64) -> Self {
        Self(seed)
    }

    /// A sequence of its own that follows from this one, for another task.
    #[must_use]
    pub fn split(&mut self) -> Self {
        Self(self.number())
    }

    /// A number below 2^64.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number of a range that is not empty.
    pub fn within(&mut self, range: Range<u64>) -> u64 {
        range.start + self.number() % (range.end - range.start)
    }

    /// A time below `longest`.
    pub fn duration(&mut self, longest: Duration) -> Duration {
        let nanos = u64::try_from(longest.as_nanos()).unwrap_or(u64::MAX);
        Duration::from_nanos(self.within(0..nanos.max(1)))
    }

    /// One of some things; none of none.
    pub fn choose<'a, T>(&mut self, things: &'a [T]) -> Option<&'a T> {
        if things.is_empty() {
            return None;
        }
        let index = self.within(0..things.len() as u64);
        things.get(usize::try_from(index).ok()?)
    }
}
