//! Requests as a Runtime, an admission or a member makes them.

use std::{error::Error, time::Duration};

use bytes::Bytes;
use http::{Method, Request, StatusCode, header};
use https_client::{Answer, HttpsClient, Origin, SendError, roots_from_pem_file};
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};
use test_support::TestSite;
use tokio::time::Instant;

use super::Surroundings;

/// Longer than any answer of a server that works, however loaded the machine is.
const WITHIN: Duration = Duration::from_secs(30);
const MOST_BYTES: usize = 32 * 1024 * 1024;

/// The Site API, to be called by anybody.
#[derive(Clone)]
pub(crate) struct Api(HttpsClient);

impl Api {
    pub(crate) fn of(site: &TestSite) -> Result<Self, Box<dyn Error>> {
        let roots = roots_from_pem_file(&site.file("tls/ca.crt"))?;
        Ok(Self(HttpsClient::new(Origin::parse(&site.origin())?, roots, MOST_BYTES)))
    }

    /// Sends a request with a bearer.
    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        bearer: &str,
        headers: &[(&str, &str)],
        body: Bytes,
    ) -> Result<Answer, SendError> {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::AUTHORIZATION, format!("Bearer {bearer}"));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(body).expect("the parts of a request are fixed");
        self.0.send(request, Instant::now() + WITHIN).await
    }

    pub(crate) async fn get(&self, path: &str, bearer: &str) -> Result<Answer, SendError> {
        self.send(Method::GET, path, bearer, &[], Bytes::new()).await
    }

    /// Asks whether an Attempt may do an action now.
    pub(crate) async fn authorise(
        &self,
        bearer: &str,
        run: &str,
        attempt: u32,
        action: &str,
    ) -> Result<Answer, SendError> {
        let body = json!({ "attempt": attempt, "action": action }).to_string();
        let json = [("content-type", "application/json")];
        let path = format!("{}/authorisations", execution(run));
        self.send(Method::POST, &path, bearer, &json, body.into()).await
    }
}

/// The path of a Run.
pub(crate) fn execution(run: &str) -> String {
    format!("/v1/site/executions/{run}")
}

/// The code of a problem; the status where it is none.
pub(crate) fn code(answer: &Answer) -> String {
    let problem: Option<Value> = serde_json::from_slice(&answer.body).ok();
    let code = problem.as_ref().and_then(|problem| problem["code"].as_str());
    code.map_or_else(|| answer.status.to_string(), str::to_owned)
}

/// Has a command of a Run executed as its Runtime does, with a private output.
pub(crate) async fn execute(
    all: &Surroundings,
    api: &Api,
    run: &str,
    bytes: &Bytes,
) -> Result<(), Box<dyn Error>> {
    let command = all.enqueue(run, &json!({ "script": "train.sh" }))?;
    let bearer = all.site.bearer()?;
    let digest = hex::encode(digest(&SHA256, bytes));
    let generation = ("runtime-generation", "1");
    let octets = [generation, ("content-type", "application/octet-stream")];
    let path = format!("/v1/site/commands/{command}/outputs/{digest}");
    let put = api.send(Method::PUT, &path, &bearer, &octets, bytes.clone()).await?;
    if put.status != StatusCode::CREATED {
        return Err(format!("the output is not stored: {}", code(&put)).into());
    }
    let result = json!({ "outcome": "succeeded", "privateOutput": digest }).to_string();
    let json = [generation, ("content-type", "application/json")];
    let path = format!("/v1/site/commands/{command}/result");
    let put = api.send(Method::PUT, &path, &bearer, &json, result.into()).await?;
    if put.status != StatusCode::CREATED {
        return Err(format!("the result is not stored: {}", code(&put)).into());
    }
    Ok(())
}
