//! The watch over a running handler: is its command cancelled, does the stream still belong to us?

use std::time::Duration;

use site_client::{Backoff, CallError, PollRequest, Refusal, SiteClient};
use tokio::time::Instant;

use super::{
    calls::{HASTY, tell_failure},
    cancels::Cancels,
};
use crate::{
    handler::Interruption,
    verdict::{Verdict, verdict},
};

/// How long a handler runs unwatched. Ending a watch costs its connection, which commands that take
/// a moment only are not to pay.
const UNWATCHED: Duration = Duration::from_millis(200);

/// A poll for marks alone, repeated until there is a reason to end the handler.
pub(super) struct Watch<'a> {
    pub(super) client: &'a SiteClient,
    /// With a limit of 0.
    pub(super) question: PollRequest,
    pub(super) command_id: &'a str,
    pub(super) cancels: &'a mut Cancels,
    pub(super) backoff: Backoff,
}

impl Watch<'_> {
    /// Returns with the reason, or never.
    pub(super) async fn interruption(mut self) -> Interruption {
        tokio::time::sleep(UNWATCHED).await;
        let mut diverged = false;
        loop {
            let asked_at = Instant::now();
            self.question.cancel_rev = self.cancels.rev();
            let error = match self.client.poll(&self.question).await {
                Ok(page) => {
                    self.cancels.learn(&page);
                    if self.cancels.has(self.command_id) {
                        return Interruption::Cancelled;
                    }
                    if page.superseded || (page.cancelled.is_empty() && asked_at.elapsed() < HASTY)
                    {
                        tokio::time::sleep(self.backoff.next(None)).await;
                    } else {
                        self.backoff.reset();
                    }
                    continue;
                }
                Err(error) => error,
            };
            let verdict = verdict(&error);
            if verdict != Verdict::Recover || !std::mem::replace(&mut diverged, true) {
                tell_failure("watch", &error);
            }
            match verdict {
                Verdict::TakenOver => return Interruption::Abandoned,
                Verdict::Retry | Verdict::Alarm => {}
                Verdict::Recover => self.ask_from_another_place(&error),
                // What it means for the stream is seen when the result is sent.
                Verdict::Fatal => std::future::pending().await,
            }
            tokio::time::sleep(self.backoff.next(error.retry_after())).await;
        }
    }

    /// What a restored database means for the stream is seen when the result is sent. Until then the
    /// stream may still be taken over, which is told only to whoever asks from a place that is there.
    fn ask_from_another_place(&mut self, error: &CallError) {
        let after = match error.refusal() {
            Some(Refusal::CursorTrimmed { place: Some((seq, _)) }) => seq,
            _ => 0,
        };
        self.question = PollRequest { after, after_digest: None, ..self.question.clone() };
        // The marks are others too.
        *self.cancels = Cancels::default();
    }
}
