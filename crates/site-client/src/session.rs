//! Opening a session.

use bytes::Bytes;
use http::{Method, StatusCode};
use site_protocol::{Digest, Session, SessionRequest, paths};

use crate::{
    BadAnswer, CallError, RandomSource, SiteClient,
    answer::Answer,
    client::{JSON, in_time},
};

/// Whether a session was opened by this call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opened {
    /// Opened now.
    New,
    /// It was the current one already.
    Same,
}

/// A fresh session id: 32 hexadecimal characters of `random`. `None` where the random source has
/// failed: see [`crate::system_random`].
#[must_use]
pub fn new_session_id(random: &RandomSource) -> Option<String> {
    let halves = [random(), random()];
    (halves != [u64::MAX; 2]).then(|| format!("{:016x}{:016x}", halves[0], halves[1]))
}

impl SiteClient {
    /// Opens a session, which takes the stream over from whoever has it. The same id again is
    /// safe, as long as the session is the current one.
    ///
    /// # Errors
    ///
    /// [`CallError`]. After [`CallError::Transport`] it is unknown whether the session was opened:
    /// ask with the same id again.
    pub async fn open_session(
        &self,
        request: &SessionRequest,
    ) -> Result<(Session, Opened), CallError> {
        let body = serde_json::to_vec(request).expect("a text and a number always serialise");
        let body = Some((JSON, Bytes::from(body)));
        let call = self.call(Method::POST, paths::COMMAND_SESSIONS, None, body);
        opened(&in_time(self.timeouts.answer, call).await?, request)
    }
}

/// The answer to an opened session.
pub(crate) fn opened(
    answer: &Answer,
    request: &SessionRequest,
) -> Result<(Session, Opened), CallError> {
    let session: Session = answer.json()?;
    let place_is_possible = session.done_seq <= session.last_seq
        && (session.done_seq > 0 || session.done_digest == Digest::ZERO);
    if session.session_id != request.session_id || session.generation < 2 || !place_is_possible {
        return Err(CallError::BadAnswer(BadAnswer::OtherSession));
    }
    let opened = if answer.status == StatusCode::CREATED { Opened::New } else { Opened::Same };
    Ok((session, opened))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn a_session_id_is_made_of_both_numbers_and_never_of_a_failed_source() {
        let always = |number: u64| -> RandomSource { Arc::new(move || number) };
        let id = new_session_id(&always(0xab)).unwrap();
        assert_eq!(id, "00000000000000ab00000000000000ab");
        assert_eq!(new_session_id(&always(u64::MAX)), None);
        let random = crate::system_random();
        assert_ne!(new_session_id(&random), new_session_id(&random));
    }
}
