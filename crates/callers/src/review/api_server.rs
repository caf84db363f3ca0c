//! The question to the API server, with what our files hold at that moment.

use std::time::Duration;

use chrono::{DateTime, Utc};
use https_client::{Answer, BearerToken};
use tokio::time::Instant;

use super::{files::Files, outcome::ReviewTrouble, request::request};
use crate::service_account::ServiceAccountToken;

/// Whom we ask, and how.
pub(super) struct ApiServer {
    files: Files,
    audience: String,
    budget: Duration,
    clock: fn() -> DateTime<Utc>,
}

/// What was asked, when, and what was answered.
pub(super) struct Asked {
    pub(super) answer: Answer,
    pub(super) about: About,
    pub(super) at: Instant,
    pub(super) now: DateTime<Utc>,
}

/// The token that was asked about.
pub(super) enum About {
    Theirs(ServiceAccountToken),
    Ours(BearerToken),
}

impl ApiServer {
    pub(super) fn new(
        files: Files,
        audience: String,
        budget: Duration,
        clock: fn() -> DateTime<Utc>,
    ) -> Self {
        Self { files, audience, budget, clock }
    }

    pub(super) fn audience(&self) -> &str {
        &self.audience
    }

    /// Asks about a token, or about our own, within the budget. Where our own is not known, it is read
    /// again at once, and the API server is asked once more.
    pub(super) async fn ask(
        &self,
        token: Option<&ServiceAccountToken>,
    ) -> Result<Asked, ReviewTrouble> {
        let deadline = Instant::now() + self.budget;
        let first = self.ask_once(token, deadline).await?;
        if first.answer.status != http::StatusCode::UNAUTHORIZED {
            return Ok(first);
        }
        self.ask_once(token, deadline).await
    }

    async fn ask_once(
        &self,
        token: Option<&ServiceAccountToken>,
        deadline: Instant,
    ) -> Result<Asked, ReviewTrouble> {
        let soon = (Instant::now() + self.budget / 4).min(deadline);
        let means = self.files.read(soon).await;
        let about = match token {
            Some(token) => About::Theirs(token.clone()),
            None => About::Ours(means.token.clone()),
        };
        let request = request(&means.token, about.expose(), &self.audience);
        let (at, now) = (Instant::now(), (self.clock)());
        // A review changes nothing, so it is harmless to repeat.
        let answer = means.client.send_repeatable(request, deadline).await?;
        Ok(Asked { answer, about, at, now })
    }
}

impl About {
    pub(super) fn expose(&self) -> &str {
        match self {
            Self::Theirs(token) => token.expose(),
            Self::Ours(token) => token.expose(),
        }
    }
}
