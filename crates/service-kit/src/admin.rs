//! The second listener: metrics and alarms, for whoever operates the process.
//!
//! It speaks plain HTTP and asks nobody who they are. Bind it to the loopback address, or guard it
//! with a network policy.

use http::{HeaderValue, StatusCode, header};
use serde_json::json;

use crate::{
    alarms::Alarms,
    call::{self, Response},
    drain::Shutdown,
    listener::Listener,
    request_id::RequestIds,
    router::{RouteError, Router, Routes},
    service::{Service, healthz},
    telemetry::Metrics,
};

/// Requests at once on this listener; its routes are probes and exempt.
const REQUESTS: usize = 8;

/// Serves `GET /metrics` in the text format of Prometheus, `GET /alarms`, the raised alarms as
/// `{"alarms": [{"name", "reason", "since"}]}`, and `GET /healthz` for a process that has no other
/// listener; and keeps the recorder's memory bounded. It never ends: run it with
/// [`crate::Lifecycle::spawn_support`], so that a stop can be watched to its end.
///
/// # Errors
///
/// None in practice: the routes don't contradict each other.
pub fn serve(
    listener: Listener,
    metrics: Metrics,
    alarms: Alarms,
    request_ids: RequestIds,
) -> Result<impl Future<Output = ()> + Send + 'static, RouteError> {
    let router = router(metrics.clone(), alarms)?;
    let (trigger, never) = Shutdown::new();
    let service = Service::new(router, REQUESTS, request_ids, never.clone());
    Ok(async move {
        tokio::join!(listener.serve_plain(service, never), metrics.upkeep());
        drop(trigger);
    })
}

fn router(metrics: Metrics, alarms: Alarms) -> Result<Router, RouteError> {
    Routes::new()
        .probe("/healthz", healthz)
        .probe("/metrics", move |_| {
            let mut response = Response::new(metrics.render().into());
            let text = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
            response.headers_mut().insert(header::CONTENT_TYPE, text);
            async { Ok(response) }
        })
        .probe("/alarms", move |_| {
            let body = json!({ "alarms": alarms.current() });
            async move { call::json(StatusCode::OK, &body) }
        })
        .build()
}
