//! The routes that the tests ask.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::{Method, StatusCode};
use serde_json::json;
use service_kit::{
    AnswerBody, BodyLimits, BrokenOff, Call, ProblemReply, Response, Router, Routes, body, healthz,
    json as answer,
};
use site_protocol::Code;
use tokio::{
    sync::{Notify, Semaphore},
    time::{Instant, timeout},
};

use super::GENEROUS;

pub(crate) const BODY: BodyLimits = BodyLimits { bytes: 64, deadline: Duration::from_secs(2) };

/// What `/made` is made of.
pub(crate) const MADE_CHUNK: usize = 64 * 1024;
const MADE_CHUNKS: usize = 1024;
pub(crate) const MADE_BYTES: u64 = (MADE_CHUNK * MADE_CHUNKS) as u64;

/// How long `/made-until` and `/little-until` may be taken.
pub(crate) const MADE_UNTIL: Duration = Duration::from_secs(2);

/// Lets a test know that a handler runs, and holds the handler until the test lets it go on.
#[derive(Clone)]
pub(crate) struct Gate {
    entered: Arc<Semaphore>,
    open: Arc<Semaphore>,
    left: Arc<Notify>,
    /// How many chunks of `/made` were made.
    pub(crate) made: Arc<AtomicUsize>,
}

impl Default for Gate {
    fn default() -> Self {
        let closed = || Arc::new(Semaphore::new(0));
        Self { entered: closed(), open: closed(), left: Arc::default(), made: Arc::default() }
    }
}

impl Gate {
    /// Waits until one more handler has come to the gate.
    pub(crate) async fn entered(&self) {
        timeout(GENEROUS, self.entered.acquire()).await.expect("a handler runs").unwrap().forget();
    }

    /// Waits until a handler, or the body that it makes, was dropped.
    pub(crate) async fn left(&self) {
        timeout(GENEROUS, self.left.notified()).await.expect("a handler is dropped");
    }

    /// Lets one handler through.
    pub(crate) fn open(&self) {
        self.open.add_permits(1);
    }

    async fn pass(&self) {
        let _leave = Leave(Arc::clone(&self.left));
        self.entered.add_permits(1);
        self.open.acquire().await.unwrap().forget();
    }
}

/// Tells that it was dropped.
struct Leave(Arc<Notify>);

impl Drop for Leave {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

pub(crate) fn routes(gate: &Gate) -> Router {
    let (held, parked, vouched, making) = (gate.clone(), gate.clone(), gate.clone(), gate.clone());
    Routes::new()
        .probe("/healthz", healthz)
        .route(Method::GET, "/hello", |_| async {
            answer(StatusCode::OK, &json!({ "hello": "world" }))
        })
        .route(Method::GET, "/items/{id}/", echo)
        .route(Method::PUT, "/items/{id}/", echo)
        .route(Method::PUT, "/body", |call: Call| async move {
            let body = body::read_json(&call.head.headers, call.body, BODY).await?;
            answer(StatusCode::OK, &json!({ "bytes": body.len() }))
        })
        .route(Method::PUT, "/ignored", |_| async { answer(StatusCode::OK, &json!({})) })
        .route(Method::GET, "/held", move |_| {
            let gate = held.clone();
            async move {
                gate.pass().await;
                answer(StatusCode::OK, &json!({ "held": true }))
            }
        })
        .route(Method::GET, "/vouched", |call: Call| async move {
            call.vouch();
            answer(StatusCode::OK, &json!({}))
        })
        .route(Method::GET, "/vouched-held", move |call: Call| {
            let gate = vouched.clone();
            async move {
                call.vouch();
                gate.pass().await;
                answer(StatusCode::OK, &json!({ "held": true }))
            }
        })
        .route(Method::GET, "/parked", move |call: Call| {
            let gate = parked.clone();
            async move {
                let released = tokio::select! {
                    () = gate.pass() => false,
                    () = call.shutdown.draining() => true,
                };
                answer(StatusCode::OK, &json!({ "released": released }))
            }
        })
        .route(Method::GET, "/panic", |_| async { panic!("on purpose") })
        .route(Method::GET, "/early-panic", early_panic)
        .route(Method::GET, "/fault", |_| async {
            let cause = std::io::Error::other("the innermost reason");
            Err(ProblemReply::internal(Outer(cause)))
        })
        .route(Method::GET, "/busy", |_| async {
            Err(ProblemReply::new(Code::DatabaseUnavailable, "the database does not answer")
                .retry_after(Duration::from_millis(1500)))
        })
        .route(Method::GET, "/private", |_| async {
            Err(ProblemReply::unauthenticated("no grant has this bearer's id").with("hint", "x"))
        })
        .route(Method::GET, "/huge", |_| async { Ok(Response::new(vec![0; 64 << 20].into())) })
        .route(Method::GET, "/made", move |_| {
            let (made, leave) = (Arc::clone(&making.made), Leave(Arc::clone(&making.left)));
            let chunks = stream::repeat_with(move || {
                let _until_the_end = &leave;
                made.fetch_add(1, Ordering::Relaxed);
                Ok(Bytes::from_static(&[7; MADE_CHUNK]))
            });
            async { Ok(Response::new(AnswerBody::made(MADE_BYTES, chunks.take(MADE_CHUNKS)))) }
        })
        .route(Method::GET, "/made-until", |_| async {
            let chunks = stream::repeat_with(|| Ok(Bytes::from_static(&[7; MADE_CHUNK])));
            let body = AnswerBody::made(MADE_BYTES, chunks.take(MADE_CHUNKS));
            Ok(Response::new(body.until(Instant::now() + MADE_UNTIL)))
        })
        .route(Method::GET, "/little-until", |_| async {
            let body = AnswerBody::made(3, stream::iter([Ok(Bytes::from_static(b"abc"))]));
            Ok(Response::new(body.until(Instant::now() + MADE_UNTIL)))
        })
        .route(Method::GET, "/broken-off", |_| async {
            // More than the server keeps back before it writes.
            let begun = Ok(Bytes::from_static(&[7; 1 << 20]));
            let chunks = [begun, Err(BrokenOff::because("on purpose"))];
            Ok(Response::new(AnswerBody::made(MADE_BYTES, stream::iter(chunks))))
        })
        .build()
        .unwrap()
}

async fn echo(call: Call) -> Result<Response, ProblemReply> {
    answer(StatusCode::OK, &json!({ "id": call.params.get("id") }))
}

/// Panics before there is a future.
fn early_panic(_: Call) -> std::future::Ready<Result<Response, ProblemReply>> {
    panic!("before the future, on purpose")
}

#[derive(Debug)]
struct Outer(std::io::Error);

impl std::fmt::Display for Outer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the outer reason")
    }
}

impl std::error::Error for Outer {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}
