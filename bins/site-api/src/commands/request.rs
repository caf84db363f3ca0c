//! What several command routes read of a request.

use std::time::Duration;

use http::HeaderMap;
use service_kit::{
    Call, ProblemReply,
    fields::{Headers, Query, WrongFields},
};
use site_coordination::{CommandId, Digest, Generation, SessionId, Writer};
use site_protocol::{Code, RUNTIME_GENERATION_HEADER, RUNTIME_SESSION_HEADER};

use crate::limits::Limits;

/// By how much of itself a wait is shortened at random, so that polls don't come in step.
const JITTER: f64 = 0.1;

/// Who writes: the generation, and from the second on its session. One without the other is the
/// session's mistake.
pub(super) fn writer(headers: &HeaderMap, wrong: &mut WrongFields) -> Option<Writer> {
    let fields = Headers::of(headers);
    let generation = fields.required(RUNTIME_GENERATION_HEADER, wrong, Generation::parse);
    let session = fields.optional(RUNTIME_SESSION_HEADER, wrong, SessionId::parse);
    if session.is_none() && headers.contains_key(RUNTIME_SESSION_HEADER) {
        return None;
    }
    wrong.check(RUNTIME_SESSION_HEADER, Writer::new(generation?, session))
}

/// The command that the path names. One of another form is in no stream.
pub(super) fn command(call: &Call) -> Result<CommandId, ProblemReply> {
    CommandId::parse(call.params.get("commandId"))
        .map_err(|_| ProblemReply::new(Code::NotFound, "the stream has no such command"))
}

/// The count of cancels that the caller knows.
pub(super) fn cancel_rev(query: &mut Query<'_>, wrong: &mut WrongFields) -> u64 {
    let most = i64::MAX.unsigned_abs();
    query.optional("cancelRev", wrong, |text| number(text, 0, most)).unwrap_or(0)
}

/// How long to wait where there is nothing to tell, shortened by `fraction`, 0 to 1, of what may be
/// taken from it.
pub(crate) fn wait(
    query: &mut Query<'_>,
    wrong: &mut WrongFields,
    limits: &Limits,
    fraction: f64,
) -> Duration {
    let longest = limits.longest_wait_seconds;
    let wait = query.optional("wait", wrong, |text| number(text, 0, longest)).unwrap_or(0);
    shortened(Duration::from_secs(wait), fraction)
}

/// A wait that is shortened by `fraction`, 0 to 1, of what may be taken from it.
fn shortened(wait: Duration, fraction: f64) -> Duration {
    wait.mul_f64(1.0 - JITTER * fraction)
}

pub(super) fn digest(text: &str) -> Result<Digest, site_protocol::DigestError> {
    text.parse().map(|digest: site_protocol::Digest| Digest::from_bytes(*digest.as_bytes()))
}

/// A decimal number from `least` to `most`, without a sign or a leading zero.
pub(crate) fn number<T>(text: &str, least: T, most: T) -> Result<T, String>
where
    T: std::str::FromStr + PartialOrd + std::fmt::Display,
{
    let decimal =
        text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    text.parse()
        .ok()
        .filter(|number| decimal && *number >= least && *number <= most)
        .ok_or_else(|| format!("must be a number from {least} to {most}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_shortened_by_a_tenth_at_the_most() {
        let longest = Duration::from_secs(25);
        assert_eq!(shortened(longest, 0.0), longest);
        assert_eq!(shortened(longest, 0.5), Duration::from_millis(23_750));
        assert_eq!(shortened(longest, 1.0), Duration::from_millis(22_500));
        assert_eq!(shortened(Duration::ZERO, 1.0), Duration::ZERO);
    }

    #[test]
    fn a_number_has_one_spelling() {
        assert_eq!(number("0", 0, 25), Ok(0));
        assert_eq!(number("25", 0, 25), Ok(25));
        for text in ["", "26", "-1", "+1", "01", "00", "1.0", "1e0", " 1", "1 ", "\u{0661}"] {
            assert!(number(text, 0, 25).is_err(), "{text:?}");
        }
    }
}
