//! What is so while nothing is broken, one claim after the other.

use std::error::Error;

use bytes::Bytes;
use http::{Method, StatusCode};
use serde_json::Value;

use crate::{
    claim::Claim,
    surroundings::{
        AUDIENCE, OTHER_AUDIENCE, Surroundings,
        calls::{Api, code, execute, execution},
        rule,
    },
};

const RUN: &str = "run-1";
const MEMBER: &str = "ada";
const STRANGER: &str = "eve";

/// Plays it, and gives the claims.
pub(super) async fn play(all: &mut Surroundings) -> Result<Vec<Claim>, Box<dyn Error>> {
    let mut story =
        Story { api: Api::of(&all.site)?, bearer: all.site.bearer()?, claims: Vec::new() };
    story.accepted(all).await?;
    story.authorised(all).await?;
    story.output(all).await?;
    Ok(story.claims)
}

struct Story {
    api: Api,
    bearer: String,
    claims: Vec<Claim>,
}

impl Story {
    /// Notes what was told where something was expected.
    fn expect(&mut self, claim: &str, told: &str, expected: &str) {
        self.claims.push(Claim::new(claim, told, told == expected));
    }

    async fn authorise(&mut self, attempt: u32) -> Result<String, Box<dyn Error>> {
        let answer = self.api.authorise(&self.bearer, RUN, attempt, "execute").await?;
        Ok(code(&answer))
    }

    async fn get(&self, path: &str, bearer: &str) -> Result<String, Box<dyn Error>> {
        Ok(code(&self.api.get(path, bearer).await?))
    }

    /// Who may read an accepted Run.
    async fn accepted(&mut self, all: &Surroundings) -> Result<(), Box<dyn Error>> {
        let path = execution(RUN);
        let told = self.get(&path, &self.bearer).await?;
        self.expect("a Run that nobody accepted is not there", &told, "not_found");
        all.accept(RUN, MEMBER)?;

        let answer = self.api.get(&path, &self.bearer).await?;
        let etag = answer.headers.get("etag").and_then(|etag| etag.to_str().ok());
        let etag = etag.ok_or("a Run without an ETag")?.to_owned();
        let shown: Value = serde_json::from_slice(&answer.body)?;
        let is_it = shown["run"]["runId"] == RUN && shown["run"]["material"]["image"] == "train:3";
        self.claims.push(Claim::new("its Runtime reads the accepted Run", code(&answer), is_it));

        let known = [("if-none-match", etag.as_str())];
        let again = self.api.send(Method::GET, &path, &self.bearer, &known, Bytes::new()).await?;
        self.expect("what is known is not sent again", &code(&again), "304 Not Modified");

        let admission = all.admission_token();
        let told = self.get(&path, &admission).await?;
        self.expect("an admission reads the accepted Run", &told, "200 OK");
        let told = code(&self.api.authorise(&admission, RUN, 1, "execute").await?);
        self.expect("an admission authorises nothing", &told, "forbidden");
        let told = self.get("/v1/site/commands/", &admission).await?;
        self.expect("an admission pulls no command", &told, "forbidden");
        let told = self.get(&format!("{path}/output"), &admission).await?;
        self.expect("an admission reads no private output", &told, "unauthenticated");
        Ok(())
    }

    /// Each thing that is missing is told by its code, at the next request.
    async fn authorised(&mut self, all: &Surroundings) -> Result<(), Box<dyn Error>> {
        let told = self.authorise(1).await?;
        self.expect("no binding: refused", &told, "binding_not_retained");
        let binding = all.retain(MEMBER, 2001)?;
        let told = self.authorise(1).await?;
        self.expect("no permission: refused", &told, "permission_denied");
        all.allow(&[rule("runs.execute", MEMBER)])?;
        let told = self.authorise(1).await?;
        self.expect("everything there: authorised", &told, "200 OK");
        let told = self.authorise(2).await?;
        self.expect("an Attempt that nobody submitted: refused", &told, "attempt_unknown");
        all.submit(RUN, 2)?;
        let told = self.authorise(1).await?;
        self.expect("an Attempt that is not the latest: refused", &told, "attempt_not_current");
        all.release(&binding)?;
        let told = self.authorise(2).await?;
        self.expect("a binding that was released: refused", &told, "binding_not_retained");
        all.retain(MEMBER, 2001)?;
        all.allow(&[])?;
        let told = self.authorise(2).await?;
        self.expect("a permission that was taken away: refused", &told, "permission_denied");
        all.allow(&[rule("runs.execute", MEMBER)])?;
        let told = self.authorise(2).await?;
        self.expect("everything there again: authorised", &told, "200 OK");
        Ok(())
    }

    /// A private output is its member's.
    async fn output(&mut self, all: &Surroundings) -> Result<(), Box<dyn Error>> {
        let bytes = Bytes::from(vec![7; 1 << 20]);
        execute(all, &self.api, RUN, &bytes).await?;
        let path = format!("{}/output", execution(RUN));
        let ours = all.member_tokens(MEMBER, AUDIENCE).await;
        let (ours, id_token) = (ours.access_token, ours.id_token);
        let told = self.get(&path, &ours).await?;
        self.expect("no permission to see: no output", &told, "not_found");
        all.allow(&[rule("runs.execute", MEMBER), rule("runs.output.view", MEMBER)])?;
        let answer = self.api.get(&path, &ours).await?;
        let is_it = answer.status == StatusCode::OK && answer.body == bytes;
        let figure = format!("{}, {} bytes", answer.status, answer.body.len());
        self.claims.push(Claim::new("its member reads the private output", figure, is_it));

        let strangers = all.member_tokens(STRANGER, AUDIENCE).await.access_token;
        let told = self.get(&path, &strangers).await?;
        self.expect("another member is refused", &told, "not_found");
        for (claim, token) in [
            (
                "a token for another audience is refused",
                all.member_tokens(MEMBER, OTHER_AUDIENCE).await.access_token,
            ),
            ("an ID token is refused", id_token),
            ("a Runtime's bearer is refused", self.bearer.clone()),
        ] {
            let told = self.get(&path, &token).await?;
            self.expect(claim, &told, "unauthenticated");
        }
        all.allow(&[rule("runs.execute", MEMBER)])?;
        let told = self.get(&path, &ours).await?;
        self.expect("a permission to see that was taken away: no output", &told, "not_found");
        Ok(())
    }
}
