//! From the settings to a running propagator, and back to an exit code.

use std::{convert::Infallible, time::Duration};

use chrono::{DateTime, Utc};
use database::{ConnectError, DatabaseUrl, Pool, PoolLimits, RoleError, SchemaError};
use futures_util::StreamExt;
use ring::rand::SystemRandom;
use service_kit::{
    Alarms, EXIT_SETTINGS, Lifecycle, Limits, Listener, Metrics, RequestIds, Settings, admin,
    drain::DEFAULT_GRACE, init_logs, process_signals, telemetry::TelemetryError,
};
use ssh_access::{MIGRATIONS, PROCESS_ROLE, Propagator};
use tokio::time::{Instant, timeout_at};

use crate::{
    report::{ALARMS, Report},
    settings::{DATABASE, LOG, METRICS_LISTEN, SshAccessSettings},
};

/// A part outside can't be reached (`EX_UNAVAILABLE`).
const EXIT_UNAVAILABLE: u8 = 69;
/// A rule is broken, or a fault of ours (`EX_SOFTWARE`).
pub(crate) const EXIT_SOFTWARE: u8 = 70;

/// How long the database may take to answer at start.
const DATABASE_WITHIN: Duration = Duration::from_secs(30);
const DATABASE_PAUSE: Duration = Duration::from_millis(500);

/// Connections at the most, beside the one that listens: one statement is under way at a time.
const CONNECTIONS: usize = 2;

/// Why the process does not run.
struct Refusal {
    code: u8,
    reason: String,
}

/// Runs the process and returns its exit code.
pub(crate) async fn run(clock: fn() -> DateTime<Utc>, random: SystemRandom) -> u8 {
    match propagate(clock, random).await {
        Ok(code) => code,
        Err(refusal) => {
            eprintln!("ssh-access does not start: {}", refusal.reason);
            refusal.code
        }
    }
}

async fn propagate(clock: fn() -> DateTime<Utc>, random: SystemRandom) -> Result<u8, Refusal> {
    let mut settings = Settings::from_process();
    start_logs(&mut settings)?;
    let settings = SshAccessSettings::read(settings).map_err(|errors| Refusal {
        code: EXIT_SETTINGS,
        reason: format!("the settings are wrong:\n{errors}"),
    })?;
    let mut signals = process_signals().map_err(|error| software(&error))?;
    let metrics = Metrics::install().map_err(|error| software(&error))?;
    tokio::select! {
        checked = check_database(&settings.database) => checked?,
        // Nothing was begun, so nothing is left to finish.
        _signal = signals.next() => return Ok(0),
    }

    let mut lifecycle = Lifecycle::new(DEFAULT_GRACE);
    let alarms = Alarms::new(clock, &ALARMS);
    let limits = PoolLimits { connections: CONNECTIONS, ..PoolLimits::default() };
    let pool = Pool::new(&settings.database, "ssh-access", limits);
    let (site, window) = (settings.site.clone(), settings.window);
    let propagator = Propagator::new(pool, site, window, settings.limits, &random)
        .map_err(|_| software(&"no random source"))?;
    let request_ids = RequestIds::new(&random).map_err(|_| software(&"no random source"))?;
    let address = settings.metrics_listen;
    let listener = Listener::bind(address, Limits::default()).await.map_err(|error| Refusal {
        code: EXIT_UNAVAILABLE,
        reason: format!("{METRICS_LISTEN}: {address}: {error}"),
    })?;
    let listens = listener.local_addr().map_or_else(|error| error.to_string(), |a| a.to_string());
    tracing::info!(
        site.id = settings.site.as_str(),
        ssh_access.window_seconds = window.duration().as_secs(),
        ssh_access.metrics_listen = listens,
        "ssh_access.started"
    );
    let report = Report::new(&settings.site, alarms.clone());
    let shutdown = lifecycle.shutdown();
    lifecycle.spawn("propagator", async move {
        propagator.run(shutdown.draining(), |progress| report.tell(&progress)).await;
    });
    let admin =
        admin::serve(listener, metrics, alarms, request_ids).map_err(|error| software(&error))?;
    lifecycle.spawn_support("admin", admin);
    Ok(lifecycle.run(signals).await.exit_code())
}

/// Logs from here on; a wrong filter is a mistake of the settings, told with all others.
fn start_logs(settings: &mut Settings) -> Result<(), Refusal> {
    let filter = settings.optional(LOG, |text| Ok::<_, Infallible>(text.to_owned()));
    match init_logs(filter.as_deref()) {
        Err(error @ TelemetryError::Filter(_)) => settings.mistake(LOG, error.to_string()),
        Err(error) => return Err(software(&error)),
        Ok(()) => {}
    }
    Ok(())
}

/// Refuses a role with too many rights and a schema that this build does not know. A database that
/// does not answer yet is waited for.
async fn check_database(url: &DatabaseUrl) -> Result<(), Refusal> {
    let deadline = Instant::now() + DATABASE_WITHIN;
    let mut last = format!("{DATABASE}: the database does not answer");
    while let Ok(checked) = timeout_at(deadline, check_database_once(url)).await {
        match checked {
            Err(refusal) if refusal.code == EXIT_UNAVAILABLE => {
                tracing::warn!(error = refusal.reason, "db.waited_for");
                last = refusal.reason;
            }
            done => return done,
        }
        tokio::time::sleep(DATABASE_PAUSE).await;
    }
    let reason = format!("{last} (for {} s)", DATABASE_WITHIN.as_secs());
    Err(Refusal { code: EXIT_UNAVAILABLE, reason })
}

async fn check_database_once(url: &DatabaseUrl) -> Result<(), Refusal> {
    let refusal = |code, reason: String| Refusal { code, reason: format!("{DATABASE}: {reason}") };
    let connect = |error: &ConnectError| match error {
        ConnectError::Unreachable(_) => EXIT_UNAVAILABLE,
        ConnectError::Refused(_) => EXIT_SOFTWARE,
        ConnectError::RootCertificates { .. } => EXIT_SETTINGS,
    };
    PROCESS_ROLE.check(url).await.map_err(|error| {
        let code = match &error {
            RoleError::Connect(error) => connect(error),
            RoleError::Catalogue(_) | RoleError::TooMuch { .. } => EXIT_SOFTWARE,
        };
        refusal(code, error.to_string())
    })?;
    MIGRATIONS.check(url).await.map_err(|error| {
        let code = match &error {
            SchemaError::Connect(error) => connect(error),
            SchemaError::Record { .. } | SchemaError::Behind { .. } => EXIT_SOFTWARE,
        };
        refusal(code, error.to_string())
    })
}

fn software(error: &dyn std::fmt::Display) -> Refusal {
    Refusal { code: EXIT_SOFTWARE, reason: error.to_string() }
}
