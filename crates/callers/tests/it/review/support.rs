//! A reviewer, its files, and the peer that it asks.

use std::{path::PathBuf, time::Duration};

use callers::{
    ServiceAccountToken, SubjectGrants,
    review::{ReviewError, Reviewed, Reviewer, ReviewerSettings},
};
use chrono::{DateTime, Utc};
use https_client::Origin;
use serde_json::{Value, json};
use test_support::{Peer, Received, Reply, TestCa, eventually};

use crate::support::{now, random, token_of};

pub(crate) const AUDIENCE: &str = "site-control";
pub(crate) const SUBJECT: &str = "system:serviceaccount:site-a:runtime";
/// An account that is granted nothing.
pub(crate) const STRANGER: &str = "system:serviceaccount:site-a:stranger";
pub(crate) const REVIEWER: &str = "the-reviewers-own-token";

/// A reviewer and whom it asks.
pub(crate) struct World {
    pub(crate) peer: Peer,
    pub(crate) settings: ReviewerSettings,
    pub(crate) reviewer: Reviewer,
    pub(crate) folder: tempfile::TempDir,
}

impl World {
    pub(crate) async fn answering(answer: impl FnMut(&Received) -> Reply + Send + 'static) -> Self {
        let ca = TestCa::new();
        let peer = Peer::start(&ca, answer).await;
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name);
        ca.write_to(&file("ca.crt")).unwrap();
        std::fs::write(file("token"), format!("{REVIEWER}\n")).unwrap();
        let settings = ReviewerSettings {
            origin: Origin::parse(peer.origin()).unwrap(),
            ca_file: file("ca.crt"),
            token_file: file("token"),
            audience: AUDIENCE.to_owned(),
            budget: Duration::from_secs(20),
            cache_for: Duration::from_secs(10),
            in_flight: 4,
            requests: 256,
            granted: SubjectGrants::parse(Some(&json!({ SUBJECT: "k8s" }).to_string()), None)
                .unwrap(),
        };
        let reviewer = Reviewer::open(settings.clone(), &random(), now).unwrap();
        Self { peer, settings, reviewer, folder }
    }

    /// With one answer to everything.
    pub(crate) async fn with(reply: Reply) -> Self {
        Self::answering(move |_| reply.clone()).await
    }

    pub(crate) fn reviewer_with(&self, change: impl FnOnce(&mut ReviewerSettings)) -> Reviewer {
        let mut settings = self.settings.clone();
        change(&mut settings);
        Reviewer::open(settings, &random(), now).unwrap()
    }

    pub(crate) async fn review(
        &self,
        token: &ServiceAccountToken,
    ) -> Result<Reviewed, ReviewError> {
        self.reviewer.review(token).await
    }

    /// With a reviewer that forgets sooner, so that what is under way is not over by then.
    pub(crate) fn forgetting_after(mut self, time: Duration) -> Self {
        self.settings.cache_for = time;
        self.reviewer = self.reviewer_with(|_| ());
        self
    }

    /// Lets so much time pass that nobody is remembered.
    pub(crate) async fn reviewer_forgets(&self) {
        pass(self.settings.cache_for).await;
    }

    /// The tokens that the peer was asked about so far.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.peer.received().iter().map(asked_about).collect()
    }

    /// Returns when it was asked so often.
    pub(crate) async fn until_asked(&self, times: usize) {
        eventually(Duration::from_secs(20), "the questions", async || {
            (self.asked().len() >= times).then_some(())
        })
        .await;
    }

    pub(crate) fn token_file(&self) -> PathBuf {
        self.settings.token_file.clone()
    }
}

/// Lets time pass, for the timers of this test. No request may be under way but those that are held.
pub(crate) async fn pass(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

/// A token of this name that expires in an hour.
pub(crate) fn token(name: &str) -> ServiceAccountToken {
    token_until(name, now() + chrono::TimeDelta::hours(1))
}

pub(crate) fn token_until(name: &str, expiry: DateTime<Utc>) -> ServiceAccountToken {
    token_of(name, &json!({ "exp": expiry.timestamp(), "sub": SUBJECT }))
}

/// As [`token`], of an account that is granted nothing.
pub(crate) fn strangers_token(name: &str) -> ServiceAccountToken {
    let expiry = now() + chrono::TimeDelta::hours(1);
    token_of(name, &json!({ "exp": expiry.timestamp(), "sub": STRANGER }))
}

/// The token about which a request asks.
pub(crate) fn asked_about(request: &Received) -> String {
    let body: Value = serde_json::from_slice(&request.body).unwrap();
    body["spec"]["token"].as_str().unwrap().to_owned()
}

/// Whether a request asks about the token of this name.
pub(crate) fn is_about(request: &Received, name: &str) -> bool {
    asked_about(request).ends_with(&format!(".{name}"))
}

/// A review of the token that the request asks about.
pub(crate) fn answer(request: &Received, status: Value) -> Reply {
    answer_about(&asked_about(request), status)
}

/// A review of a token, whatever was asked.
pub(crate) fn answer_about(token: &str, status: Value) -> Reply {
    let review = json!({
        "kind": "TokenReview",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {},
        "spec": { "token": token, "audiences": [AUDIENCE] },
        "status": status,
    });
    Reply::json(201, review.to_string())
}

/// It is the token of [`SUBJECT`].
pub(crate) fn accepted(request: &Received) -> Reply {
    answer(request, good_status())
}

/// It is the token of [`STRANGER`].
pub(crate) fn of_a_stranger(request: &Received) -> Reply {
    let mut status = good_status();
    status["user"]["username"] = STRANGER.into();
    answer(request, status)
}

/// It is nobody's token.
pub(crate) fn refused(request: &Received) -> Reply {
    answer(request, json!({ "user": {}, "error": "invalid bearer token" }))
}

pub(crate) fn good_status() -> Value {
    json!({
        "authenticated": true,
        "user": {
            "username": SUBJECT,
            "uid": "uid-of-account",
            "groups": ["system:serviceaccounts", "system:serviceaccounts:site-a", "system:authenticated"],
            "extra": {
                "authentication.kubernetes.io/credential-id": ["JTI=a"],
                "authentication.kubernetes.io/node-name": ["node-0"],
                "authentication.kubernetes.io/pod-name": ["runtime-0"],
                "authentication.kubernetes.io/pod-uid": ["uid-of-pod"],
            },
        },
        "audiences": [AUDIENCE],
    })
}
