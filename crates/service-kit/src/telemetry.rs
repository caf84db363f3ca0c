//! Logs and metrics of a process, installed once by its `main`.
//!
//! Logs are events as JSON lines on the standard error; metrics are rendered for Prometheus by the
//! admin listener. Nothing is sent anywhere from here.

use std::{convert::Infallible, error::Error, io, panic, time::Duration};

pub use errors::error_chain;

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tracing::{Level, Metadata};
use tracing_subscriber::{
    EnvFilter, Layer,
    filter::{FilterExt, filter_fn},
    layer::SubscriberExt,
    util::SubscriberInitExt,
};

use crate::Settings;

/// The histogram of a request's time, in seconds.
pub(crate) const REQUEST_DURATION: &str = "http_request_duration_seconds";

/// Upper bounds of the buckets of every `…_seconds` histogram. A long poll takes up to 25 s.
const SECONDS_BUCKETS: [f64; 13] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0];

/// How often the recorder folds what was observed into its buckets.
const UPKEEP: Duration = Duration::from_secs(5);

/// Why telemetry could not be installed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TelemetryError {
    /// The filter's text is not a list of `target=level`.
    #[error("the log filter is not valid")]
    Filter(#[source] tracing_subscriber::filter::ParseError),
    /// There is a subscriber already.
    #[error("logs are installed already")]
    Logs(#[source] Box<dyn Error + Send + Sync>),
    /// There is a recorder already, or its buckets are wrong.
    #[error("metrics are not installed")]
    Metrics(#[source] metrics_exporter_prometheus::BuildError),
}

/// Writes events as JSON lines to the standard error from now on, and panics as events too.
///
/// `filter` is a list such as `info` or `info,service_kit=debug`; without one it is `info`.
///
/// # Errors
///
/// When the filter is wrong or logs are installed already.
pub fn init_logs(filter: Option<&str>) -> Result<(), TelemetryError> {
    let filter = EnvFilter::try_new(filter.unwrap_or("info")).map_err(TelemetryError::Filter)?;
    let lines = tracing_subscriber::fmt::layer()
        .json()
        .flatten_event(true)
        .with_current_span(true)
        .with_span_list(false)
        .with_writer(io::stderr)
        .with_filter(filter.and(filter_fn(tells_no_secret)));
    let subscriber = tracing_subscriber::registry().with(lines);
    subscriber.try_init().map_err(|error| TelemetryError::Logs(error.into()))?;
    panic::set_hook(Box::new(log_panic));
    Ok(())
}

/// [`init_logs`] with the filter of a setting. A wrong one is a mistake of the settings, told with all
/// others; until then it is logged without a filter.
///
/// # Errors
///
/// When logs are installed already.
pub fn start_logs(settings: &mut Settings, name: &str) -> Result<(), TelemetryError> {
    let filter = settings.optional(name, |text| Ok::<_, Infallible>(text.to_owned()));
    match init_logs(filter.as_deref()) {
        Err(error @ TelemetryError::Filter(_)) => {
            settings.mistake(name, error.to_string());
            init_logs(None)
        }
        started => started,
    }
}

/// What a library prints of its own bytes at its finest level holds the credential of a login, and
/// what it prints of a message that was returned, at any level, is the whole message. No filter of a
/// user brings that up.
fn tells_no_secret(metadata: &Metadata<'_>) -> bool {
    let target = metadata.target();
    let of_its_bytes = target.starts_with("lapin") && *metadata.level() == Level::TRACE;
    !of_its_bytes && target != "lapin::returned_messages"
}

/// The recorder of this process's metrics.
#[derive(Clone)]
pub struct Metrics(PrometheusHandle);

impl Metrics {
    /// Installs the recorder that every metric of the process goes to.
    ///
    /// # Errors
    ///
    /// When there is one already.
    pub fn install() -> Result<Self, TelemetryError> {
        let handle = PrometheusBuilder::new()
            .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &SECONDS_BUCKETS)
            .map_err(TelemetryError::Metrics)?
            .install_recorder()
            .map_err(TelemetryError::Metrics)?;
        metrics::describe_counter!("http_requests_total", "Requests that were answered.");
        metrics::describe_histogram!(REQUEST_DURATION, "Time to an answer, in seconds.");
        metrics::describe_gauge!("connections", "Open connections.");
        metrics::describe_counter!("connections_ended_total", "Connections, by how they ended.");
        metrics::describe_gauge!("alarm", "1 while the alarm is raised.");
        Ok(Self(handle))
    }

    /// The metrics in the text format of Prometheus.
    #[must_use]
    pub fn render(&self) -> String {
        self.0.render()
    }

    /// Keeps the recorder's memory bounded when nobody asks for the metrics. It never ends; run it
    /// as a task that lives as long as the process.
    pub async fn upkeep(self) {
        let mut ticks = tokio::time::interval(UPKEEP);
        loop {
            ticks.tick().await;
            self.0.run_upkeep();
        }
    }
}

fn log_panic(info: &panic::PanicHookInfo<'_>) {
    let message = info.payload_as_str().unwrap_or("a value that is no text");
    let location = info.location().map(ToString::to_string).unwrap_or_default();
    tracing::error!(panic.message = message, panic.location = location, "process.panicked");
}

#[cfg(test)]
mod tests {
    use std::{
        io::Write,
        sync::{Arc, Mutex},
    };

    use super::*;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_the_broker_library_says_of_bytes_and_bodies_is_told_by_no_filter() {
        let lines = Lines::default();
        let writer = lines.clone();
        let layer = tracing_subscriber::fmt::layer()
            .with_writer(move || writer.clone())
            .with_filter(EnvFilter::new("trace").and(filter_fn(tells_no_secret)));
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
            tracing::warn!(target: "lapin::returned_messages", "hunter2 of a body");
            tracing::trace!(target: "lapin::io_loop", "hunter2 of bytes");
            tracing::warn!(target: "lapin::channel", "closed");
            tracing::trace!("ours");
        });
        let told = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
        assert!(!told.contains("hunter2"), "{told}");
        assert!(told.contains("closed") && told.contains("ours"), "{told}");
    }
}
