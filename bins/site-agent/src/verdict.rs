//! What a failed call means for the agent: try again, call for help, start over, or end.

use site_client::{CallError, Refusal};

/// What to do after a failed call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It passes by itself: try again, with back-off.
    Retry,
    /// Somebody has to act (a token, a grant, a certificate, a gateway), and the agent recovers by
    /// itself once they did: raise an alarm and try again, with back-off.
    Alarm,
    /// The stream, or the feed of an SSH agent, is not where the agent left it: open a session, or
    /// take a snapshot, and go on where the Site API is.
    Recover,
    /// A newer Runtime has the stream: end, and do not take it back.
    TakenOver,
    /// Going on could do harm: raise an alarm and end.
    Fatal,
}

/// The verdict on a failed call.
///
/// What ends the agent is only what the Site API itself says about the stream, or a page that
/// contradicts itself; whatever a gateway, a wrong token or a wrong grant answers is repaired from
/// outside and must not need a restart of each agent. `predecessor_missing` passes by itself when
/// another request is still under way; where a database was restored, the next poll shows it.
pub(crate) fn verdict(error: &CallError) -> Verdict {
    if let Some(refusal) = error.refusal() {
        match refusal {
            Refusal::HistoryDiverged
            | Refusal::CursorAhead
            | Refusal::CursorTrimmed { .. }
            | Refusal::CursorUnknown
            | Refusal::CursorCompacted => return Verdict::Recover,
            Refusal::StaleGeneration { .. } | Refusal::SessionSuperseded { .. } => {
                return Verdict::TakenOver;
            }
            Refusal::ResultConflict { .. } => return Verdict::Fatal,
            Refusal::PredecessorMissing { .. } => return Verdict::Alarm,
            Refusal::AlreadyVoided { .. }
            | Refusal::OutputMissing
            | Refusal::TooManyOutputs
            | Refusal::BodyTooLarge
            | Refusal::Other => {}
        }
    }
    match error {
        CallError::Chain(_) => Verdict::Fatal,
        CallError::Feed(_) => Verdict::Recover,
        CallError::BadAnswer(_) | CallError::Untrusted(_) => Verdict::Alarm,
        _ if error.retryable() => Verdict::Retry,
        _ => Verdict::Alarm,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use site_client::{BadAnswer, ChainError, FeedError};
    use site_protocol::Code;

    fn problem(code: &str, status: u16, retryable: bool) -> CallError {
        let problem = json!({"type": "urn:x", "title": "", "status": status, "detail": "",
            "code": code, "retryable": retryable, "source": "site-api"});
        CallError::Problem(Box::new(serde_json::from_value(problem).unwrap()))
    }

    #[test]
    fn every_code_has_its_verdict() {
        for code in Code::ALL {
            let expected = match code {
                Code::HistoryDiverged
                | Code::CursorAhead
                | Code::CursorTrimmed
                | Code::CursorUnknown
                | Code::CursorCompacted => Verdict::Recover,
                Code::StaleGeneration | Code::SessionSuperseded => Verdict::TakenOver,
                Code::ResultConflict => Verdict::Fatal,
                Code::RequestTimeout
                | Code::Internal
                | Code::Overloaded
                | Code::Draining
                | Code::BearersUnavailable
                | Code::TokenReviewUnavailable
                | Code::LoginUnavailable
                | Code::ExecutionAuthorityDisabled
                | Code::AuthorityUnavailable
                | Code::PrivateReadsDisabled
                | Code::DatabaseUnavailable => Verdict::Retry,
                _ => Verdict::Alarm,
            };
            let error = problem(code.as_str(), code.status(), code.retryable());
            assert_eq!(verdict(&error), expected, "{code:?}");
        }
    }

    #[test]
    fn what_is_not_the_site_apis_word_never_ends_the_agent() {
        for (status, expected) in [
            (200, Verdict::Alarm),
            (302, Verdict::Alarm),
            (403, Verdict::Alarm),
            (404, Verdict::Alarm),
            (409, Verdict::Alarm),
            (408, Verdict::Retry),
            (429, Verdict::Retry),
            (502, Verdict::Retry),
            (503, Verdict::Retry),
        ] {
            assert_eq!(verdict(&CallError::NotOurs { status, retry_after: None }), expected);
        }
        assert_eq!(verdict(&CallError::BadAnswer(BadAnswer::OtherReceipt)), Verdict::Alarm);
        assert_eq!(verdict(&CallError::Transport("cut".into())), Verdict::Retry);
        assert_eq!(verdict(&CallError::Untrusted("expired".into())), Verdict::Alarm);
        assert_eq!(verdict(&problem("a_newer_code", 409, true)), Verdict::Retry);
        assert_eq!(verdict(&problem("a_newer_code", 409, false)), Verdict::Alarm);
    }

    #[test]
    fn a_broken_chain_ends_the_agent() {
        assert_eq!(verdict(&CallError::Chain(ChainError::Bounds)), Verdict::Fatal);
    }

    #[test]
    fn a_broken_feed_is_left_for_a_snapshot() {
        assert_eq!(verdict(&CallError::Feed(FeedError::Head)), Verdict::Recover);
    }
}
