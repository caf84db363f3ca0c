//! From the settings to a running propagator, and back to an exit code.

use chrono::{DateTime, Utc};
use database::{Pool, PoolLimits};
use futures_util::StreamExt;
use ring::rand::SystemRandom;
use service_kit::{
    Alarms, Lifecycle, Limits, Metrics, RequestIds, Settings, admin, drain::DEFAULT_GRACE,
    process_signals, start_logs,
};
use service_start::{Credential, Refusal, address_of, bind, check_databases};
use ssh_access::{MIGRATIONS, PROCESS_ROLE, Propagator};

use crate::{
    events::Occasions,
    report::{ALARMS, Report},
    settings::{DATABASE, LOG, METRICS_LISTEN, SshAccessSettings},
};

/// Connections at the most, beside the one that listens: one statement of the propagator and one of
/// the relay are under way at a time.
const CONNECTIONS: usize = 2;

/// Runs the process and returns its exit code.
pub(crate) async fn run(clock: fn() -> DateTime<Utc>, random: SystemRandom) -> u8 {
    Refusal::exit_code("ssh-access", propagate(clock, random).await)
}

async fn propagate(clock: fn() -> DateTime<Utc>, random: SystemRandom) -> Result<u8, Refusal> {
    let mut settings = Settings::from_process();
    start_logs(&mut settings, LOG).map_err(Refusal::software)?;
    let settings =
        SshAccessSettings::read(settings).map_err(|errors| Refusal::settings(&errors))?;
    let mut signals = process_signals().map_err(Refusal::software)?;
    let metrics = Metrics::install().map_err(Refusal::software)?;
    let credential = Credential {
        setting: DATABASE,
        url: &settings.database,
        role: PROCESS_ROLE,
        migrations: &MIGRATIONS,
    };
    tokio::select! {
        checked = check_databases(vec![credential]) => checked?,
        // Nothing was begun, so nothing is left to finish.
        _signal = signals.next() => return Ok(0),
    }

    let mut lifecycle = Lifecycle::new(DEFAULT_GRACE);
    let alarms = Alarms::new(clock, &ALARMS);
    let limits = PoolLimits { connections: CONNECTIONS, ..PoolLimits::default() };
    let pool = Pool::new(&settings.database, "ssh-access", limits);
    let (site, window) = (settings.site.clone(), settings.window);
    let propagator = Propagator::new(pool.clone(), site.clone(), window, settings.limits, &random)
        .map_err(|_| Refusal::software("no random source"))?;
    let request_ids =
        RequestIds::new(&random).map_err(|_| Refusal::software("no random source"))?;
    let listener = bind(METRICS_LISTEN, settings.metrics_listen, Limits::default()).await?;
    tracing::info!(
        site.id = site.as_str(),
        ssh_access.window_seconds = window.duration().as_secs(),
        ssh_access.metrics_listen = address_of(&listener),
        "ssh_access.started"
    );
    let occasions = Occasions::new();
    if let Some(broker) = settings.events {
        let relay = occasions.relay(broker, pool, site.clone(), alarms.clone());
        lifecycle.spawn_support("events relay", relay.run());
    }
    let report = Report::new(&site, alarms.clone(), occasions);
    let shutdown = lifecycle.shutdown();
    lifecycle.spawn("propagator", async move {
        propagator.run(shutdown.draining(), |progress| report.tell(&progress)).await;
    });
    let admin = admin::serve(listener, metrics, alarms, request_ids).map_err(Refusal::software)?;
    lifecycle.spawn_support("admin", admin);
    Ok(lifecycle.run(signals).await.exit_code())
}
