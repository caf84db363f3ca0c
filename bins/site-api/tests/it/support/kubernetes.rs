//! A Site whose Runtimes call from a Kubernetes cluster.

use std::{process::Command, sync::Mutex, time::Duration};

use serde_json::{Value, json};
use test_support::{API_AUDIENCE, KubeApi, Projected, TestCa, TokenRequest};

use super::{Answer, Api, Place, Request, plain};

/// Where the Runtimes of the cluster are.
pub(crate) const NAMESPACE: &str = "runtimes";
/// The account of the Runtime with the stream of the other tests.
pub(crate) const RUNTIME: &str = "runtime-slurm";
/// Its Pod.
pub(crate) const POD: &str = "runtime-slurm-0";
/// An account that is let in as an admission.
pub(crate) const ADMISSION: &str = "admission";
/// One that the cluster knows and that is granted nothing.
pub(crate) const STRANGER: &str = "stranger";
/// Our audience.
pub(crate) const OURS: &[&str] = &["site-control"];

/// Our own account.
const SITE_API: (&str, &str) = ("pharos", "site-api");

/// The double of the cluster's API server, and the volume with our reviewer's token and the CA.
pub(crate) struct Cluster {
    pub(crate) api: KubeApi,
    volume: Projected,
    /// What the volume holds.
    ca: Mutex<TestCa>,
    reviewer: Mutex<String>,
}

impl Cluster {
    /// One in which everybody and everything of these tests is there.
    pub(crate) async fn beside(place: &Place) -> Self {
        Self::keeping(place, Duration::from_secs(10)).await
    }

    /// As [`Cluster::beside`], whose server keeps successes for another time.
    pub(crate) async fn keeping(place: &Place, successes: Duration) -> Self {
        let ca = TestCa::new();
        let api = KubeApi::start_keeping(&ca, successes).await;
        let (namespace, name) = SITE_API;
        api.create_account(namespace, name);
        api.allow_reviews(namespace, name);
        for account in [RUNTIME, ADMISSION, STRANGER] {
            api.create_account(NAMESPACE, account);
        }
        api.create_pod(NAMESPACE, POD);
        let volume = Projected::at(place.site.file("kubernetes")).unwrap();
        let reviewer = api.issue(TokenRequest::new(namespace, name, &[API_AUDIENCE]));
        let cluster = Self { api, volume, ca: Mutex::new(ca), reviewer: Mutex::new(reviewer) };
        cluster.swap();
        cluster
    }

    /// Adds the settings of the cluster to those of a `site-api`.
    pub(crate) fn settings(&self, command: &mut Command) {
        let runtimes = json!({ subject(RUNTIME): "slurm" });
        let admissions = json!({ subject(ADMISSION): "slurm" });
        command
            .env("SITE_API_GRANTS_JSON", runtimes.to_string())
            .env("SITE_API_AUTHORITY_GRANTS_JSON", admissions.to_string())
            .env("SITE_API_TOKEN_REVIEW_URL", self.api.origin())
            .env("SITE_API_TOKEN_REVIEW_CA_FILE", self.volume.file("ca.crt"))
            .env("SITE_API_TOKEN_REVIEW_TOKEN_FILE", self.volume.file("token"));
    }

    /// A new token of the Runtime in its Pod.
    pub(crate) fn token(&self) -> String {
        self.token_of(RUNTIME, OURS)
    }

    /// A new token of an account, bound to the Pod.
    pub(crate) fn token_of(&self, account: &str, audiences: &[&str]) -> String {
        self.api.issue(TokenRequest::new(NAMESPACE, account, audiences).pod(POD))
    }

    /// The reviewer's token, as the volume holds it.
    pub(crate) fn reviewer(&self) -> String {
        self.reviewer.lock().unwrap().clone()
    }

    /// Projects a new token of the reviewer, and has the server forget the old one.
    pub(crate) fn rotate_reviewer(&self) {
        let old = self.reviewer();
        let (namespace, name) = SITE_API;
        let new = self.api.issue(TokenRequest::new(namespace, name, &[API_AUDIENCE]));
        *self.reviewer.lock().unwrap() = new;
        self.swap();
        self.api.forget(&old);
    }

    /// Has another authority vouch for the server. Nobody is told yet.
    pub(crate) fn change_authority(&self) {
        let ca = TestCa::new();
        self.api.use_certificate_of(&ca);
        *self.ca.lock().unwrap() = ca;
    }

    /// Projects what is in force.
    pub(crate) fn swap(&self) {
        let ca = self.ca.lock().unwrap().cert_pem();
        self.project(&[("ca.crt", &ca), ("token", &self.reviewer())]);
    }

    /// Projects anything.
    pub(crate) fn project(&self, files: &[(&str, &str)]) {
        self.volume.swap(files).unwrap();
    }
}

/// What the cluster calls an account of the Runtimes' namespace.
pub(crate) fn subject(account: &str) -> String {
    format!("system:serviceaccount:{NAMESPACE}:{account}")
}

impl Place {
    /// Starts `site-api` with the cluster's settings.
    pub(crate) async fn start_in(self, cluster: &Cluster) -> Api {
        let mut command = self.command();
        cluster.settings(&mut command);
        self.start_by(command).await
    }
}

impl Api {
    /// As [`Api::poll`], by a token.
    pub(crate) fn poll_by(&self, token: &str, query: &str) -> Request {
        self.poll(query).without("authorization").bearer(token)
    }

    /// How a poll by a token that does not wait is answered.
    pub(crate) async fn answer_to(&self, token: &str) -> Answer {
        self.send(&self.poll_by(token, "after=0")).await
    }

    /// The reason of the alarm about reviews.
    pub(crate) async fn review_alarm(&self) -> Option<String> {
        let answer = plain(self.admin, &Request::new("GET", "/alarms")).await.json();
        let alarms: Vec<Value> = answer["alarms"].as_array().unwrap().clone();
        let alarm = alarms.into_iter().find(|alarm| alarm["name"] == "token_review")?;
        Some(alarm["reason"].as_str().unwrap().to_owned())
    }
}
