//! From the settings to a listener, and back to an exit code.

use std::{fs, io, sync::Arc, time::Duration};

use callers::Grants;
use chrono::{DateTime, Utc};
use database::{ConnectError, Pool, PoolLimits, RoleError, SchemaError};
use ring::rand::SystemRandom;
use service_kit::{
    Alarms, EXIT_SETTINGS, Lifecycle, Limits, Listener, Metrics, RequestIds, Service, Settings,
    admin, drain::DEFAULT_GRACE, init_logs, process_signals, service::DEFAULT_REQUESTS,
    tls::server_config,
};
use site_coordination::{API_ROLE, MIGRATIONS, RuntimeSide, Wakeups};

use crate::{
    routes,
    settings::SiteApiSettings,
    state::{ALARM_DATABASE, ALARM_GRANTS, State},
};

/// A part outside can't be reached (`EX_UNAVAILABLE`).
pub(crate) const EXIT_UNAVAILABLE: u8 = 69;
/// A rule is broken, or a fault of ours (`EX_SOFTWARE`).
pub(crate) const EXIT_SOFTWARE: u8 = 70;

/// How long the database may take to answer at start.
const DATABASE_WITHIN: Duration = Duration::from_secs(30);
const DATABASE_PAUSE: Duration = Duration::from_millis(500);

/// Why the process does not serve.
struct Refusal {
    code: u8,
    reason: String,
}

/// Runs the process and returns its exit code.
pub(crate) async fn run() -> u8 {
    match serve().await {
        Ok(code) => code,
        Err(refusal) => {
            eprintln!("site-api does not start: {}", refusal.reason);
            refusal.code
        }
    }
}

async fn serve() -> Result<u8, Refusal> {
    let settings = SiteApiSettings::read(Settings::from_process()).map_err(|errors| Refusal {
        code: EXIT_SETTINGS,
        reason: format!("the settings are wrong:\n{errors}"),
    })?;
    init_logs(settings.log.as_deref()).map_err(|error| settings_refusal(&error))?;
    let signals = process_signals().map_err(|error| software(&error))?;
    let metrics = Metrics::install().map_err(|error| software(&error))?;
    let alarms = Alarms::new(clock, &[ALARM_DATABASE, ALARM_GRANTS]);
    let tls = server_config(&settings.certificate, &settings.key)
        .map_err(|error| settings_refusal(&error))?;
    let grants = read_grants(&settings, &alarms)?;
    check_database(&settings).await?;

    let random = SystemRandom::new();
    let pool = Pool::new(&settings.database, "site-api", PoolLimits::default());
    let wakeups = Wakeups::new(settings.site.clone());
    let state = Arc::new(State {
        site: settings.site.clone(),
        grants,
        commands: RuntimeSide::new(pool.clone(), wakeups.clone()),
        alarms: alarms.clone(),
        clock,
        random: random.clone(),
    });
    let router = routes::router(&state).map_err(|error| software(&error))?;

    let mut lifecycle = Lifecycle::new(DEFAULT_GRACE);
    let request_ids = || RequestIds::new(&random).map_err(|_| software(&"no random source"));
    let listener = bind(settings.listen).await?;
    let admin = bind(settings.metrics_listen).await?;
    tracing::info!(
        site = settings.site.as_str(),
        listen = %address(&listener),
        metrics.listen = %address(&admin),
        "listening"
    );
    let service = Service::new(router, DEFAULT_REQUESTS, request_ids()?, lifecycle.shutdown());
    lifecycle
        .spawn("listener", listener.serve_tls(move || tls.clone(), service, lifecycle.shutdown()));
    let admin =
        admin::serve(admin, metrics, alarms, request_ids()?).map_err(|error| software(&error))?;
    lifecycle.spawn_support("admin", admin);
    lifecycle.spawn_support("wakeups", wakeups.run(pool));
    Ok(lifecycle.run(signals).await.exit_code())
}

/// Reads the grants. A file that is absent makes native bearers unavailable: the Secret is
/// optional. One that is wrong refuses the start.
fn read_grants(settings: &SiteApiSettings, alarms: &Alarms) -> Result<Option<Grants>, Refusal> {
    let Some(path) = &settings.grants else { return Ok(None) };
    let name = "SITE_API_NATIVE_GRANTS_FILE";
    match fs::read_to_string(path) {
        Ok(text) => Grants::parse(&text, clock()).map(Some).map_err(|errors| Refusal {
            code: EXIT_SETTINGS,
            reason: format!("{name}, {}:\n{errors}", path.display()),
        }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            alarms.raise(ALARM_GRANTS, format!("{} does not exist", path.display()));
            Ok(None)
        }
        Err(error) => Err(Refusal {
            code: EXIT_SETTINGS,
            reason: format!("{name}, {}: {error}", path.display()),
        }),
    }
}

/// Refuses a role with too many rights and a schema that this build does not know. A database that
/// does not answer yet is waited for.
async fn check_database(settings: &SiteApiSettings) -> Result<(), Refusal> {
    let checked = async {
        loop {
            match check_database_once(settings).await {
                Err(refusal) if refusal.code == EXIT_UNAVAILABLE => {
                    tracing::warn!(reason = refusal.reason, "waiting for the database");
                    tokio::time::sleep(DATABASE_PAUSE).await;
                }
                done => return done,
            }
        }
    };
    tokio::time::timeout(DATABASE_WITHIN, checked).await.unwrap_or_else(|_| {
        Err(Refusal {
            code: EXIT_UNAVAILABLE,
            reason: format!(
                "SITE_COORDINATION_DATABASE_URL: the database did not answer within {} s",
                DATABASE_WITHIN.as_secs()
            ),
        })
    })
}

async fn check_database_once(settings: &SiteApiSettings) -> Result<(), Refusal> {
    let name = "SITE_COORDINATION_DATABASE_URL";
    let refusal = |code, reason: String| Refusal { code, reason: format!("{name}: {reason}") };
    let connect = |error: &ConnectError| match error {
        ConnectError::Unreachable(_) => EXIT_UNAVAILABLE,
        ConnectError::Refused(_) | ConnectError::RootCertificates { .. } => EXIT_SOFTWARE,
    };
    API_ROLE.check(&settings.database).await.map_err(|error| {
        let code = match &error {
            RoleError::Connect(error) => connect(error),
            RoleError::Catalogue(_) | RoleError::TooMuch { .. } => EXIT_SOFTWARE,
        };
        refusal(code, error.to_string())
    })?;
    MIGRATIONS.check(&settings.database).await.map_err(|error| {
        let code = match &error {
            SchemaError::Connect(error) => connect(error),
            SchemaError::Record { .. } | SchemaError::Behind { .. } => EXIT_SOFTWARE,
        };
        refusal(code, error.to_string())
    })
}

async fn bind(address: std::net::SocketAddr) -> Result<Listener, Refusal> {
    Listener::bind(address, Limits::default())
        .await
        .map_err(|error| Refusal { code: EXIT_UNAVAILABLE, reason: format!("{address}: {error}") })
}

fn address(listener: &Listener) -> String {
    listener.local_addr().map_or_else(|error| error.to_string(), |address| address.to_string())
}

fn clock() -> DateTime<Utc> {
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the clock")]
    Utc::now()
}

fn software(error: &dyn std::fmt::Display) -> Refusal {
    Refusal { code: EXIT_SOFTWARE, reason: error.to_string() }
}

fn settings_refusal(error: &dyn std::fmt::Display) -> Refusal {
    Refusal { code: EXIT_SETTINGS, reason: error.to_string() }
}
