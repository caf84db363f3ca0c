//! What happens around every handler: request id, span, load, panics, one event in the log,
//! metrics.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Instant};

use futures_util::FutureExt;
use http::{HeaderValue, Method, StatusCode, header};
use site_protocol::Code;
use tokio::sync::Semaphore;
use tracing::{Instrument, field::Empty};

use crate::{
    call::{Call, RequestBody, Response, json},
    drain::Shutdown,
    problem::ProblemReply,
    request_id::{REQUEST_ID_HEADER, RequestId, RequestIds},
    router::{Answer, Match, Router},
    telemetry::REQUEST_DURATION,
};

/// Requests at once, where nothing else is set.
pub const DEFAULT_REQUESTS: usize = 256;

/// Answers requests with a table of routes.
pub struct Service {
    router: Router,
    request_ids: RequestIds,
    slots: Semaphore,
    shutdown: Shutdown,
}

impl Service {
    /// A service that answers at most `requests` at once; one more is refused with 503
    /// `overloaded`, unless it is a probe.
    #[must_use]
    pub fn new(
        router: Router,
        requests: usize,
        request_ids: RequestIds,
        shutdown: Shutdown,
    ) -> Arc<Self> {
        let slots = Semaphore::new(requests.min(Semaphore::MAX_PERMITS));
        Arc::new(Self { router, request_ids, slots, shutdown })
    }

    /// Answers one request. There is an answer to every one: a handler that panics is a 500.
    ///
    /// A caller that hangs up drops this future, and the handler with it; the log then has the
    /// status 499.
    pub async fn answer(&self, request: http::Request<RequestBody>) -> Response {
        let (head, body) = request.into_parts();
        let request_id = self.request_ids.of(&head.headers);
        let Match { pattern, probe, target } = self.router.find(&head.method, head.uri.path());
        let method = method_label(&head.method);
        let span = tracing::info_span!(
            "request",
            request.id = request_id.as_str(),
            http.method = method,
            http.route = pattern,
            caller.principal = Empty,
        );
        let answered = async {
            let record = Record::new(method, pattern, probe);
            let outcome = match target {
                Ok((handler, params)) => {
                    let id = request_id.clone();
                    let shutdown = self.shutdown.clone();
                    let call = Call { head, body, params, request_id: id, shutdown };
                    self.guarded(probe, || handler(call)).await
                }
                Err(problem) => Err(problem),
            };
            record.finish(outcome, &request_id)
        };
        answered.instrument(span).await
    }

    /// Answers bytes that are no request: with a problem, one event and metrics like any other.
    pub(crate) fn refuse(&self, problem: ProblemReply) -> Response {
        let request_id = self.request_ids.fresh();
        let span = tracing::info_span!("request", request.id = request_id.as_str());
        let _entered = span.enter();
        Record::new("other", "unmatched", false).finish(Err(problem), &request_id)
    }

    async fn guarded<F: Future<Output = Answer>>(
        &self,
        probe: bool,
        handler: impl FnOnce() -> F,
    ) -> Answer {
        let slot = self.slots.try_acquire();
        if slot.is_err() && !probe {
            return Err(ProblemReply::new(Code::Overloaded, "too many requests at once"));
        }
        // A handler shares nothing with others that a panic could leave half done, except what
        // guards itself (locks that poison, transactions that roll back).
        let handled = AssertUnwindSafe(async { handler().await }).catch_unwind();
        let answer = handled.await;
        drop(slot);
        answer.unwrap_or_else(|_| Err(ProblemReply::internal("the handler panicked")))
    }
}

/// The handler of a liveness and readiness probe: 200 while the process serves, 503 `draining` once
/// it is stopping. A database that does not answer is an alarm, not a restart.
///
/// # Errors
///
/// The problem `draining`.
pub async fn healthz(call: Call) -> Answer {
    if call.shutdown.is_draining() {
        return Err(ProblemReply::new(Code::Draining, "the process is stopping"));
    }
    json(StatusCode::OK, &serde_json::json!({ "status": "ok" }))
}

/// One request's event and metrics, written when it is dropped: also where the caller hung up.
struct Record {
    started: Instant,
    method: &'static str,
    pattern: &'static str,
    probe: bool,
    end: Option<End>,
}

/// How a request was answered.
struct End {
    status: StatusCode,
    problem: Option<Code>,
    cause: Option<String>,
}

impl Record {
    fn new(method: &'static str, pattern: &'static str, probe: bool) -> Self {
        Self { started: Instant::now(), method, pattern, probe, end: None }
    }

    /// Completes the answer and notes how it ended.
    fn finish(mut self, outcome: Answer, request_id: &RequestId) -> Response {
        let (mut response, problem, cause) = match outcome {
            Ok(response) => (response, None, None),
            Err(problem) => {
                let (code, cause) = (problem.code(), problem.cause_chain());
                (problem.into_response(request_id.as_str()), Some(code), cause)
            }
        };
        let headers = response.headers_mut();
        if let Some(id) = request_id.header() {
            headers.insert(REQUEST_ID_HEADER, id);
        }
        headers
            .entry(header::CACHE_CONTROL)
            .or_insert(const { HeaderValue::from_static("no-store") });
        self.end = Some(End { status: response.status(), problem, cause });
        response
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        let elapsed = self.started.elapsed();
        let end = self.end.take();
        let status = end.as_ref().map_or(499, |end| end.status.as_u16());
        let code = end.as_ref().and_then(|end| end.problem).map(Code::as_str);
        let cause = end.as_ref().and_then(|end| end.cause.as_deref());
        let duration_ms = elapsed.as_secs_f64() * 1000.0;
        macro_rules! answered {
            ($level:ident) => {
                tracing::$level!(
                    http.status = status,
                    http.duration_ms = duration_ms,
                    http.route = self.pattern,
                    problem.code = code,
                    error = cause,
                    "request.answered"
                )
            };
        }
        match status {
            500 => answered!(error),
            200 if self.probe => answered!(debug),
            _ => answered!(info),
        }
        let (route, method) = (self.pattern, self.method);
        let status = status.to_string();
        metrics::counter!(
            "http_requests_total", "route" => route, "method" => method, "status" => status
        )
        .increment(1);
        metrics::histogram!(REQUEST_DURATION, "route" => route).record(elapsed.as_secs_f64());
    }
}

/// The method as a label: a caller may send any word.
fn method_label(method: &Method) -> &'static str {
    match method.as_str() {
        "GET" => "GET",
        "PUT" => "PUT",
        "POST" => "POST",
        "DELETE" => "DELETE",
        "PATCH" => "PATCH",
        "HEAD" => "HEAD",
        "OPTIONS" => "OPTIONS",
        _ => "other",
    }
}
