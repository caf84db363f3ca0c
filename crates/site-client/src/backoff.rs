//! How long to wait between tries.

use std::{sync::Arc, time::Duration};

use ring::rand::{SecureRandom, SystemRandom};

/// The upper bound of the first wait.
const BASE: Duration = Duration::from_millis(100);
/// The upper bound of every wait without advice.
const CAP: Duration = Duration::from_secs(10);
/// The longest advice of a server that is followed: a wrong `Retry-After` must not silence a Site.
const MAX_ADVICE: Duration = Duration::from_secs(60);

/// Where random numbers come from: each call gives one, uniformly distributed over all `u64`.
pub type RandomSource = Arc<dyn Fn() -> u64 + Send + Sync>;

/// The operating system's random source, for a `main` to pass on. Where it fails, the waits lose
/// their jitter and are the longest ones of their step.
#[expect(clippy::disallowed_methods, reason = "the one place that makes a Runtime's source")]
#[must_use]
pub fn system_random() -> RandomSource {
    let random = SystemRandom::new();
    Arc::new(move || {
        let mut bytes = [0; 8];
        match random.fill(&mut bytes) {
            Ok(()) => u64::from_be_bytes(bytes),
            Err(ring::error::Unspecified) => u64::MAX,
        }
    })
}

/// Exponential back-off with full jitter: the n-th wait is uniform between nothing and
/// 100 ms · 2ⁿ, at most 10 s, so that callers that failed together do not come back together.
#[derive(Clone)]
pub struct Backoff {
    random: RandomSource,
    failures: u32,
}

impl Backoff {
    /// Starts with the shortest wait.
    #[must_use]
    pub fn new(random: RandomSource) -> Self {
        Self { random, failures: 0 }
    }

    /// The next wait. `advice` is what the server asked for (`retryAfterMs` or `Retry-After`): the
    /// wait is never shorter than that, up to a minute, and up to one bound of jitter longer.
    pub fn next(&mut self, advice: Option<Duration>) -> Duration {
        let bound = BASE.saturating_mul(1 << self.failures.min(20)).min(CAP);
        self.failures = self.failures.saturating_add(1);
        let jitter = uniform((self.random)(), bound);
        advice.map_or(jitter, |advice| advice.min(MAX_ADVICE) + jitter)
    }

    /// After a success: the next wait is the shortest again.
    pub fn reset(&mut self) {
        self.failures = 0;
    }
}

impl std::fmt::Debug for Backoff {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Backoff").field("failures", &self.failures).finish_non_exhaustive()
    }
}

/// Maps a random number to a duration from nothing to `bound`, in steps of a microsecond.
fn uniform(random: u64, bound: Duration) -> Duration {
    let steps = bound.as_micros() + 1;
    let micros = (u128::from(random) * steps) >> 64;
    Duration::from_micros(u64::try_from(micros).unwrap_or(u64::MAX)).min(bound)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn always(number: u64) -> RandomSource {
        Arc::new(move || number)
    }

    #[test]
    fn the_bound_doubles_from_100_ms_to_10_s_and_starts_again() {
        let mut backoff = Backoff::new(always(u64::MAX));
        let waits: Vec<_> = (0..9).map(|_| backoff.next(None).as_millis()).collect();
        assert_eq!(waits, [100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000]);
        backoff.reset();
        assert_eq!(backoff.next(None).as_millis(), 100);
    }

    #[test]
    fn the_jitter_reaches_from_nothing_to_the_bound() {
        assert_eq!(Backoff::new(always(0)).next(None), Duration::ZERO);
        assert_eq!(Backoff::new(always(u64::MAX / 2)).next(None).as_millis(), 50);
    }

    #[test]
    fn a_thousand_failures_do_not_overflow() {
        let mut backoff = Backoff::new(always(u64::MAX));
        for _ in 0..1_000 {
            backoff.next(None);
        }
        assert_eq!(backoff.next(None), CAP);
    }

    #[test]
    fn the_system_source_gives_different_numbers() {
        let random = system_random();
        assert_ne!(random(), random());
    }

    proptest! {
        #[test]
        fn advice_is_followed_up_to_a_minute(random: u64, failures in 0_u32..40, ms in 0_u64..200_000) {
            let mut backoff = Backoff { random: always(random), failures };
            let advice = Duration::from_millis(ms);
            let wait = backoff.next(Some(advice));
            prop_assert!(wait >= advice.min(MAX_ADVICE));
            prop_assert!(wait <= advice.min(MAX_ADVICE) + CAP);
        }
    }
}
