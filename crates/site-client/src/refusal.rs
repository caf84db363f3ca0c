//! The refusals that a Runtime acts on, with what they carry.

use chrono::{DateTime, Utc};
use serde_json::Value;
use site_protocol::{Code, Digest, Problem};

/// What the Site API says about the stream, where it refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The chain digest or the generation is not one of this stream: a database was restored.
    HistoryDiverged,
    /// The place is above the end of the stream: a database was restored.
    CursorAhead,
    /// The commands after the place were removed by age.
    CursorTrimmed {
        /// Where to go on, a sequence and the chain digest there, where the answer tells it.
        place: Option<(u64, Digest)>,
    },
    /// A newer Runtime has the stream, or the generation that was expected is not the current one.
    StaleGeneration {
        /// The current one, where the answer tells it.
        generation: Option<u64>,
    },
    /// A newer session has the stream; this one's id is refused for ever.
    SessionSuperseded {
        /// The current generation, where the answer tells it.
        generation: Option<u64>,
    },
    /// Another result is stored for the command.
    ResultConflict {
        /// Its digest, where the answer tells it.
        stored: Option<Digest>,
    },
    /// The command was voided: it will have no result.
    AlreadyVoided {
        /// When, where the answer tells it.
        voided_at: Option<DateTime<Utc>>,
    },
    /// An earlier command has no result yet.
    PredecessorMissing {
        /// The last command that has one, where the answer tells it.
        done_seq: Option<u64>,
    },
    /// The result names a private output that is not stored.
    OutputMissing,
    /// The command has as many private outputs as it may have.
    TooManyOutputs,
    /// The body is larger than the Site API takes.
    BodyTooLarge,
    /// The cursor of an SSH agent is not one of this feed.
    CursorUnknown,
    /// The changes after the cursor of an SSH agent were removed by age.
    CursorCompacted,
    /// Any other refusal.
    Other,
}

impl Refusal {
    /// Reads a problem.
    #[must_use]
    pub fn of(problem: &Problem) -> Self {
        let member = |name: &str| problem.extra.get(name);
        let number = |name| member(name).and_then(Value::as_u64);
        let digest = |name| member(name).and_then(Value::as_str).and_then(|text| text.parse().ok());
        let code = |code: Code| problem.code == code.as_str();
        if code(Code::HistoryDiverged) {
            Self::HistoryDiverged
        } else if code(Code::CursorAhead) {
            Self::CursorAhead
        } else if code(Code::CursorUnknown) {
            Self::CursorUnknown
        } else if code(Code::CursorCompacted) {
            Self::CursorCompacted
        } else if code(Code::CursorTrimmed) {
            Self::CursorTrimmed { place: number("after").zip(digest("afterDigest")) }
        } else if code(Code::StaleGeneration) {
            Self::StaleGeneration { generation: number("generation") }
        } else if code(Code::SessionSuperseded) {
            Self::SessionSuperseded { generation: number("generation") }
        } else if code(Code::ResultConflict) {
            Self::ResultConflict { stored: digest("storedDigest") }
        } else if code(Code::AlreadyVoided) {
            let at = member("voidedAt").and_then(Value::as_str);
            Self::AlreadyVoided { voided_at: at.and_then(|text| text.parse().ok()) }
        } else if code(Code::PredecessorMissing) {
            Self::PredecessorMissing { done_seq: number("doneSeq") }
        } else if code(Code::OutputMissing) {
            Self::OutputMissing
        } else if code(Code::TooManyOutputs) {
            Self::TooManyOutputs
        } else if code(Code::BodyTooLarge) {
            Self::BodyTooLarge
        } else {
            Self::Other
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn refusal(code: &str, members: &Value) -> Refusal {
        let mut problem = json!({"type": "urn:x", "title": "", "status": 409, "detail": "",
            "code": code, "retryable": false, "source": "site-api"});
        for (name, value) in members.as_object().unwrap() {
            problem[name] = value.clone();
        }
        Refusal::of(&serde_json::from_value(problem).unwrap())
    }

    #[test]
    fn each_refusal_carries_what_the_problem_says() {
        let digest = "07".repeat(32);
        let time = "2024-05-06T07:08:09.000001Z";
        for (code, members, expected) in [
            ("history_diverged", json!({}), Refusal::HistoryDiverged),
            ("cursor_ahead", json!({"lastSeq": 3}), Refusal::CursorAhead),
            (
                "cursor_trimmed",
                json!({"after": 3, "afterDigest": digest}),
                Refusal::CursorTrimmed { place: Some((3, Digest::from_bytes([7; 32]))) },
            ),
            (
                "stale_generation",
                json!({"generation": 4}),
                Refusal::StaleGeneration { generation: Some(4) },
            ),
            (
                "session_superseded",
                json!({"generation": 5}),
                Refusal::SessionSuperseded { generation: Some(5) },
            ),
            (
                "result_conflict",
                json!({"storedDigest": digest}),
                Refusal::ResultConflict { stored: Some(Digest::from_bytes([7; 32])) },
            ),
            (
                "already_voided",
                json!({"voidedAt": time}),
                Refusal::AlreadyVoided { voided_at: Some(time.parse().unwrap()) },
            ),
            (
                "predecessor_missing",
                json!({"doneSeq": 6}),
                Refusal::PredecessorMissing { done_seq: Some(6) },
            ),
            ("output_missing", json!({}), Refusal::OutputMissing),
            ("too_many_outputs", json!({"limit": 8}), Refusal::TooManyOutputs),
            ("body_too_large", json!({"limitBytes": 8}), Refusal::BodyTooLarge),
            ("cursor_unknown", json!({}), Refusal::CursorUnknown),
            ("cursor_compacted", json!({}), Refusal::CursorCompacted),
            ("unauthenticated", json!({}), Refusal::Other),
            ("a_newer_code", json!({}), Refusal::Other),
        ] {
            assert_eq!(refusal(code, &members), expected, "{code}");
        }
    }

    #[test]
    fn a_member_that_is_missing_or_of_another_form_is_not_made_up() {
        for members in [json!({}), json!({"generation": "4"}), json!({"generation": -4})] {
            let expected = Refusal::StaleGeneration { generation: None };
            assert_eq!(refusal("stale_generation", &members), expected);
        }
        let members = json!({"voidedAt": 7});
        assert_eq!(refusal("already_voided", &members), Refusal::AlreadyVoided { voided_at: None });
    }
}
