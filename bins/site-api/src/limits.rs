//! What callers and the database may take: every bound is a setting with a default and a range.
//!
//! `docs/OPERATIONS.md` has them all. What they bound is answered with the setting's own figure: a
//! 413 with its `limitBytes`, a 422 with its range.

use std::{ops::RangeInclusive, time::Duration};

use database::PoolLimits;
use service_kit::{BodyLimits, Settings};

/// The bounds of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// `SITE_API_MAX_CONNECTIONS`: connections to the Site API at once.
    pub(crate) connections: usize,
    /// `SITE_API_MAX_REQUESTS`: requests at once; a probe is not counted.
    pub(crate) requests: usize,
    /// `SITE_API_HANDSHAKE_SECONDS`: a TLS handshake.
    pub(crate) handshake: Duration,
    /// `SITE_API_HEAD_SECONDS`: a request's head.
    pub(crate) head: Duration,
    /// `SITE_API_BODY_SECONDS`: a request's body.
    pub(crate) body: Duration,
    /// `SITE_API_IDLE_SECONDS`: a connection without a request.
    pub(crate) idle: Duration,
    /// `SITE_API_MAX_BODY_BYTES`: a request's body, private outputs aside.
    pub(crate) body_bytes: usize,
    /// `SITE_API_MAX_OUTPUT_BYTES`: a private output.
    pub(crate) output_bytes: usize,
    /// `SITE_API_PAGE_COMMANDS`: commands in one answer, and results in one request.
    pub(crate) page_commands: u16,
    /// `SITE_API_PAGE_BYTES`: bytes of bodies in one answer; the first command comes whatever its
    /// size.
    pub(crate) page_bytes: u32,
    /// `SITE_API_LONGEST_WAIT_SECONDS`: the longest wait that a poll may ask for, in seconds.
    pub(crate) longest_wait_seconds: u64,
    /// `SITE_API_LAST_GOOD_GRANTS_SECONDS`: how long the last good grants stay in force when their
    /// file became invalid.
    pub(crate) last_good_grants: Duration,
    /// `SITE_API_TOKEN_REVIEW_SECONDS`: the question whose a ServiceAccount's token is.
    pub(crate) token_review: Duration,
    /// `SITE_API_TOKEN_REVIEWS`: reviews at once.
    pub(crate) token_reviews: usize,
    /// `SITE_API_TOKEN_REVIEW_CACHE_SECONDS`: for how long a good review is taken again.
    pub(crate) token_review_cache: Duration,
    /// `SITE_API_BETO_SECONDS`: a question to Beto, all of it.
    pub(crate) beto: Duration,
    /// `SITE_COORDINATION_DATABASE_CONNECTIONS`: connections for statements.
    pub(crate) database_connections: usize,
}

impl Limits {
    /// Reads the settings; a wrong one is recorded as a mistake there, and its default is given.
    pub(crate) fn read(settings: &mut Settings) -> Self {
        const KIB: u64 = 1024;
        const MIB: u64 = 1024 * KIB;
        Self {
            connections: number(settings, "SITE_API_MAX_CONNECTIONS", 1_024, 1..=65_536),
            requests: number(settings, "SITE_API_MAX_REQUESTS", 256, 1..=65_536),
            handshake: seconds(settings, "SITE_API_HANDSHAKE_SECONDS", 5, 1..=60),
            head: seconds(settings, "SITE_API_HEAD_SECONDS", 10, 1..=120),
            body: seconds(settings, "SITE_API_BODY_SECONDS", 30, 1..=600),
            idle: seconds(settings, "SITE_API_IDLE_SECONDS", 75, 1..=3_600),
            body_bytes: number(settings, "SITE_API_MAX_BODY_BYTES", MIB, KIB..=16 * MIB),
            output_bytes: number(settings, "SITE_API_MAX_OUTPUT_BYTES", 16 * MIB, KIB..=64 * MIB),
            page_commands: number(settings, "SITE_API_PAGE_COMMANDS", 64, 1..=256),
            page_bytes: number(settings, "SITE_API_PAGE_BYTES", MIB, KIB..=16 * MIB),
            longest_wait_seconds: number(settings, "SITE_API_LONGEST_WAIT_SECONDS", 25, 1..=55),
            last_good_grants: seconds(
                settings,
                "SITE_API_LAST_GOOD_GRANTS_SECONDS",
                300,
                0..=3_600,
            ),
            token_review: seconds(settings, "SITE_API_TOKEN_REVIEW_SECONDS", 5, 1..=10),
            token_reviews: number(settings, "SITE_API_TOKEN_REVIEWS", 16, 3..=256),
            token_review_cache: seconds(
                settings,
                "SITE_API_TOKEN_REVIEW_CACHE_SECONDS",
                10,
                0..=10,
            ),
            beto: seconds(settings, "SITE_API_BETO_SECONDS", 3, 1..=10),
            database_connections: number(
                settings,
                "SITE_COORDINATION_DATABASE_CONNECTIONS",
                4,
                1..=64,
            ),
        }
    }

    /// The bounds of the Site API's listener.
    pub(crate) fn listener(&self) -> service_kit::Limits {
        service_kit::Limits {
            connections: self.connections,
            handshake: self.handshake,
            head: self.head,
            idle: self.idle,
            ..service_kit::Limits::default()
        }
    }

    /// The bounds of a request's body.
    pub(crate) fn json_body(&self) -> BodyLimits {
        BodyLimits { bytes: self.body_bytes, deadline: self.body }
    }

    /// The bounds of a private output.
    pub(crate) fn output_body(&self) -> BodyLimits {
        BodyLimits { bytes: self.output_bytes, deadline: self.body }
    }

    /// How many requests may wait for the login issuer's keys: a part of them all, so that callers who
    /// need none have the rest.
    pub(crate) fn strangers(&self) -> usize {
        (self.requests / 4).max(1)
    }

    /// The bounds of the pool for statements.
    pub(crate) fn pool(&self) -> PoolLimits {
        PoolLimits { connections: self.database_connections, ..PoolLimits::default() }
    }
}

fn seconds(
    settings: &mut Settings,
    name: &str,
    default: u64,
    range: RangeInclusive<u64>,
) -> Duration {
    Duration::from_secs(number(settings, name, default, range))
}

/// A number of the range, which must fit into the type.
fn number<T: TryFrom<u64> + Default>(
    settings: &mut Settings,
    name: &str,
    default: u64,
    range: RangeInclusive<u64>,
) -> T {
    let number = settings.or_default(name, default, |text| in_range(text, &range));
    T::try_from(number).unwrap_or_default()
}

/// A decimal number without a sign or a leading zero.
fn in_range(text: &str, range: &RangeInclusive<u64>) -> Result<u64, String> {
    let decimal =
        text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    text.parse()
        .ok()
        .filter(|number| decimal && range.contains(number))
        .ok_or_else(|| format!("must be a number from {} to {}", range.start(), range.end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_settings_each_limit_has_the_default_of_the_protocol() {
        let mut settings = Settings::from_pairs([] as [(&str, &str); 0]);
        let expected = Limits {
            connections: 1_024,
            requests: 256,
            handshake: Duration::from_secs(5),
            head: Duration::from_secs(10),
            body: Duration::from_secs(30),
            idle: Duration::from_secs(75),
            body_bytes: 1_048_576,
            output_bytes: 16_777_216,
            page_commands: 64,
            page_bytes: 1_048_576,
            longest_wait_seconds: 25,
            last_good_grants: Duration::from_secs(300),
            token_review: Duration::from_secs(5),
            token_reviews: 16,
            token_review_cache: Duration::from_secs(10),
            beto: Duration::from_secs(3),
            database_connections: 4,
        };
        assert_eq!(Limits::read(&mut settings), expected);
        assert_eq!(settings.finish(), Ok(()));
    }

    #[test]
    fn a_number_has_one_spelling() {
        for text in ["+7", "07", "7 ", " 7", "7.0", "7s", "1e1", "\u{0667}", "-7"] {
            let mut settings = Settings::from_pairs([("SITE_API_IDLE_SECONDS", text)]);
            Limits::read(&mut settings);
            let said = settings.finish().unwrap_err().to_string();
            assert_eq!(said, "SITE_API_IDLE_SECONDS: must be a number from 1 to 3600", "{text:?}");
        }
    }

    /// Below, at and above: both ends of each range are the last that is taken.
    #[test]
    fn each_limit_is_taken_up_to_the_ends_of_its_range_and_no_further() {
        for (name, least, most) in RANGES {
            let [at_least, at_most] = [least, most].map(|good| {
                let mut settings = Settings::from_pairs([(name, good.to_string())]);
                let limits = Limits::read(&mut settings);
                assert_eq!(settings.finish(), Ok(()), "{name}={good}");
                limits
            });
            assert_ne!(at_least, at_most, "{name} changes nothing");
            let below = least.checked_sub(1).map(|below| below.to_string());
            for wrong in below.into_iter().chain([(most + 1).to_string()]) {
                let mut settings = Settings::from_pairs([(name, wrong.as_str())]);
                Limits::read(&mut settings);
                let said = settings.finish().unwrap_err().to_string();
                assert_eq!(said, format!("{name}: must be a number from {least} to {most}"));
            }
        }
    }

    #[test]
    fn every_wrong_limit_is_named_at_once() {
        let mut settings = Settings::from_pairs(RANGES.map(|(name, ..)| (name, "many")));
        Limits::read(&mut settings);
        let errors = settings.finish().unwrap_err();
        let named: Vec<_> = errors.mistakes().iter().map(|mistake| mistake.name.as_str()).collect();
        assert_eq!(named, RANGES.map(|(name, ..)| name));
    }

    const RANGES: [(&str, u64, u64); 17] = [
        ("SITE_API_MAX_CONNECTIONS", 1, 65_536),
        ("SITE_API_MAX_REQUESTS", 1, 65_536),
        ("SITE_API_HANDSHAKE_SECONDS", 1, 60),
        ("SITE_API_HEAD_SECONDS", 1, 120),
        ("SITE_API_BODY_SECONDS", 1, 600),
        ("SITE_API_IDLE_SECONDS", 1, 3_600),
        ("SITE_API_MAX_BODY_BYTES", 1_024, 16_777_216),
        ("SITE_API_MAX_OUTPUT_BYTES", 1_024, 67_108_864),
        ("SITE_API_PAGE_COMMANDS", 1, 256),
        ("SITE_API_PAGE_BYTES", 1_024, 16_777_216),
        ("SITE_API_LONGEST_WAIT_SECONDS", 1, 55),
        ("SITE_API_LAST_GOOD_GRANTS_SECONDS", 0, 3_600),
        ("SITE_API_TOKEN_REVIEW_SECONDS", 1, 10),
        ("SITE_API_TOKEN_REVIEWS", 3, 256),
        ("SITE_API_TOKEN_REVIEW_CACHE_SECONDS", 0, 10),
        ("SITE_API_BETO_SECONDS", 1, 10),
        ("SITE_COORDINATION_DATABASE_CONNECTIONS", 1, 64),
    ];
}
