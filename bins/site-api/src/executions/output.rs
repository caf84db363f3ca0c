//! `GET /v1/site/executions/{runId}/output`.

use std::{sync::Arc, time::Duration};

use beto::Decision;
use bytes::Bytes;
use callers::login::MemberName;
use chrono::{DateTime, TimeDelta, Utc};
use futures_util::{StreamExt, TryStreamExt, stream};
use http::{HeaderValue, header};
use ring::digest::{Context, SHA256};
use service_kit::{
    AnswerBody, BrokenOff, Call, ProblemReply, Response,
    fields::{Query, WrongFields},
    router::Answer,
    telemetry::error_chain,
};
use site_coordination::{ReadPartError, RunOutput, Views};
use site_protocol::Code;
use tokio::{sync::Semaphore, time::Instant};

use super::{
    entity_tags::EntityTag,
    places::{Full, Place, Places},
};
use crate::{authenticate::Member, problems, state::State};

/// Statements that read parts at once: Runtimes need the connections as well.
const STATEMENTS: usize = 1;
/// The bytes of a part.
const PART: u32 = 256 * 1024;
/// How long a reading may take: a place is not for whoever takes a byte now and then. Its connection
/// is cut then.
const LONGEST: Duration = Duration::from_secs(600);
/// By how much clocks may be apart, as where the token was verified.
const LEEWAY: TimeDelta = TimeDelta::seconds(30);

/// The private outputs of the Site, for who may see them.
pub(crate) struct Outputs {
    views: Views,
    places: Places,
    statements: Arc<Semaphore>,
}

/// An output on its way to who reads it.
struct Reading {
    views: Views,
    output: RunOutput,
    statements: Arc<Semaphore>,
    /// How many bytes were read.
    after: u64,
    /// The digest of those.
    digest: Context,
    ends_at: Instant,
    _place: Place,
}

/// Why the next part can't be had.
#[derive(Debug, thiserror::Error)]
enum PartError {
    #[error("a part of a private output can't be read")]
    Read(#[from] ReadPartError),
    #[error("a private output has other bytes than those that were stored")]
    Changed,
    #[error("the reading took longer than {} s, or than its access token lives", LONGEST.as_secs())]
    Slow,
}

/// Lets a member read the private output of a Run, where Beto says now that the member may. It is asked
/// before anything of the output is read, each time.
///
/// A Run that is not there is asked about as well, and answered as one whose output the member may not
/// see: neither the answer, nor that Beto can't be asked, tells who may not see a Run that there is one.
pub(crate) async fn output(state: Arc<State>, caller: Member, call: Call) -> Answer {
    let authority = super::authority(&state)?;
    let views = authority.views().ok_or_else(private_reads_disabled)?;
    let run = super::run(&call)?;
    let mut wrong = WrongFields::new();
    Query::of(&call.head.uri).finish(&mut wrong);
    wrong.finish()?;

    let belonging = authority.belonging(&state, &run).await?;
    let member = caller.name.as_str();
    match authority.ask_to_view(views, member, belonging.as_ref()).await {
        Ok(Decision::Allow) => {}
        Ok(Decision::Deny) => return Err(problems::no_such_run()),
        Err(trouble) => return Err(problems::could_not_ask().because(trouble)),
    }
    let belonging = belonging.ok_or_else(problems::no_such_run)?;

    let found = state.outputs.of_run(&state, belonging.environment, &run).await?;
    let tag = EntityTag::strong(&found.digest.to_string());
    if tag.is_in(&call.head.headers) {
        return tag.not_modified();
    }
    let longest = longest(caller.expires_at, (state.clock)());
    let mut reading = state.outputs.begin(&caller.name, found, longest)?;
    // While a refusal can still be told as one.
    let first = reading.next().await.map_err(|error| part(&state, error))?;
    let (run, command) = (run.as_str(), reading.output.command.as_str());
    tracing::info!(run.id = run, command.id = command, "output.read");
    metrics::counter!("outputs_read_total", "environment" => belonging.environment.as_str())
        .increment(1);
    tag.on(answer(reading, first, call.request_id.as_str()))
}

/// How long a reading may take that begins now: not longer than its token is good.
fn longest(expires_at: DateTime<Utc>, now: DateTime<Utc>) -> Duration {
    (expires_at - now + LEEWAY).to_std().unwrap_or_default().min(LONGEST)
}

fn private_reads_disabled() -> ProblemReply {
    let detail = "this listener has no caller that could ask who may see a private output";
    ProblemReply::new(Code::PrivateReadsDisabled, detail)
}

fn no_output() -> ProblemReply {
    let detail = "no result of the Run names a private output, or it was deleted by age";
    ProblemReply::new(Code::NotFound, detail)
}

fn part(state: &State, error: PartError) -> ProblemReply {
    match error {
        PartError::Read(ReadPartError::Database(error)) => problems::database(state, error),
        PartError::Read(ReadPartError::Gone) => no_output(),
        error => ProblemReply::internal(error),
    }
}

fn answer(reading: Reading, first: Option<Bytes>, request_id: &str) -> Response {
    let (length, ends_at) = (reading.output.bytes, reading.ends_at);
    let request_id = request_id.to_owned();
    let command = reading.output.command.as_str().to_owned();
    let rest = stream::try_unfold(reading, |mut reading| async move {
        let part = reading.next().await?;
        Ok::<_, PartError>(part.map(|part| (part, reading)))
    });
    let parts = stream::iter(first.map(Ok)).chain(rest).map_err(move |error| {
        let error_chain = error_chain(&error);
        tracing::warn!(
            request.id = request_id,
            command.id = command,
            error = error_chain,
            "output.broken_off"
        );
        BrokenOff::because(error)
    });
    let mut response = Response::new(AnswerBody::made(length, parts).until(ends_at));
    let octets = HeaderValue::from_static("application/octet-stream");
    response.headers_mut().insert(header::CONTENT_TYPE, octets);
    response
}

impl Outputs {
    pub(crate) fn new(views: Views) -> Self {
        let statements = Arc::new(Semaphore::new(STATEMENTS));
        Self { views, places: Places::default(), statements }
    }

    async fn of_run(
        &self,
        state: &State,
        environment: execution_core::Environment,
        run: &execution_core::RunId,
    ) -> Result<RunOutput, ProblemReply> {
        let environment = match environment {
            execution_core::Environment::K8s => site_coordination::Environment::K8s,
            execution_core::Environment::Slurm => site_coordination::Environment::Slurm,
        };
        let run = site_coordination::RunId::parse(run.as_str()).map_err(ProblemReply::internal)?;
        let found = self.views.output_of(environment, &run).await;
        found.map_err(|error| problems::read(state, error))?.ok_or_else(no_output)
    }

    fn begin(
        &self,
        member: &MemberName,
        output: RunOutput,
        longest: Duration,
    ) -> Result<Reading, ProblemReply> {
        let busy = |full: Full| ProblemReply::new(Code::Overloaded, full.to_string());
        Ok(Reading {
            _place: self.places.take(member).map_err(busy)?,
            views: self.views.clone(),
            output,
            statements: Arc::clone(&self.statements),
            after: 0,
            digest: Context::new(&SHA256),
            ends_at: Instant::now() + longest,
        })
    }
}

impl Reading {
    /// The next part; `None` behind the last. The last one is given only where all of them are what
    /// was stored.
    async fn next(&mut self) -> Result<Option<Bytes>, PartError> {
        let length = self.output.bytes;
        if self.after == length {
            return Ok(None);
        }
        if Instant::now() >= self.ends_at {
            return Err(PartError::Slow);
        }
        // Never closed.
        let turn = self.statements.acquire().await;
        let part = self.views.part(&self.output, self.after, PART).await?;
        drop(turn);
        self.after += part.len() as u64;
        self.digest.update(&part);
        let stored = || {
            let digest = self.digest.clone().finish();
            digest.as_ref() == self.output.digest.as_bytes()
        };
        if part.is_empty() || self.after > length || (self.after == length && !stored()) {
            return Err(PartError::Changed);
        }
        Ok(Some(part.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_ends_with_its_token_and_after_ten_minutes_at_the_latest() {
        let now = DateTime::<Utc>::UNIX_EPOCH;
        let of = |seconds| longest(now + TimeDelta::seconds(seconds), now).as_secs();
        assert_eq!([of(-31), of(-30), of(-29), of(0), of(300)], [0, 0, 1, 30, 330]);
        assert_eq!([of(569), of(570), of(571), of(86_400)], [599, 600, 600, 600]);
    }
}
