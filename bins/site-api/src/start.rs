//! From the settings to a listener, and back to an exit code.

use std::{
    convert::Infallible,
    net::SocketAddr,
    sync::{Arc, atomic::AtomicU64},
};

use chrono::{DateTime, Utc};
use database::Pool;
use futures_util::StreamExt;
use ring::rand::SystemRandom;
use service_kit::{
    Alarms, EXIT_SETTINGS, Lifecycle, Listener, Metrics, RequestIds, Service, Settings,
    SettingsErrors, admin, drain::DEFAULT_GRACE, init_logs, process_signals,
    telemetry::TelemetryError,
};
use site_coordination::{RuntimeSide, SiteId, Views, Wakeups};
use tokio::sync::Semaphore;

use crate::{
    authority::{self, Authority, AuthoritySettings},
    certificate::CertificateWatch,
    commands, databases,
    events::{self, ALARM_EVENTS},
    executions::output::Outputs,
    grants::{GrantsWatch, NativeGrants},
    login::Logins,
    routes,
    service_accounts::{self, ServiceAccounts},
    settings::{LISTEN, METRICS_LISTEN, SiteApiSettings},
    ssh_access::SshAccess,
    state::{
        ALARM_BETO, ALARM_CERTIFICATE, ALARM_DATABASE, ALARM_GRANTS, ALARM_LOGIN,
        ALARM_TOKEN_REVIEW, State, UPLOADS,
    },
    watch,
};

/// A part outside can't be reached (`EX_UNAVAILABLE`).
pub(crate) const EXIT_UNAVAILABLE: u8 = 69;
/// A rule is broken, or a fault of ours (`EX_SOFTWARE`).
pub const EXIT_SOFTWARE: u8 = 70;

/// Why the process does not serve.
pub(crate) struct Refusal {
    pub(crate) code: u8,
    pub(crate) reason: String,
}

/// The clock of the process.
pub type Clock = fn() -> DateTime<Utc>;

/// Runs the process and returns its exit code.
pub async fn run(clock: Clock, random: SystemRandom) -> u8 {
    match serve(clock, random).await {
        Ok(code) => code,
        Err(refusal) => {
            eprintln!("site-api does not start: {}", refusal.reason);
            refusal.code
        }
    }
}

async fn serve(clock: Clock, random: SystemRandom) -> Result<u8, Refusal> {
    let mut settings = Settings::from_process();
    start_logs(&mut settings)?;
    let settings = SiteApiSettings::read(settings, clock()).map_err(wrong_settings)?;
    let mut signals = process_signals().map_err(|error| software(&error))?;
    let metrics = Metrics::install().map_err(|error| software(&error))?;
    let names = [
        ALARM_BETO,
        ALARM_CERTIFICATE,
        ALARM_DATABASE,
        ALARM_EVENTS,
        ALARM_GRANTS,
        ALARM_LOGIN,
        ALARM_TOKEN_REVIEW,
    ];
    let alarms = Alarms::new(clock, &names);
    tokio::select! {
        checked = databases::check(&settings) => checked?,
        // Nothing was begun, so nothing is left to finish.
        _signal = signals.next() => return Ok(0),
    }

    let mut lifecycle = Lifecycle::new(DEFAULT_GRACE);
    let tls = settings.tls;
    let (certificate, tls) = CertificateWatch::new(tls.files, tls.config, alarms.clone(), clock);
    lifecycle.spawn_support("certificate watch", certificate.run());
    let grants = match settings.grants {
        Some(file) => {
            let last_good_for = settings.limits.last_good_grants;
            let (watch, grants) = GrantsWatch::new(
                file.path,
                file.found,
                settings.site_is_named,
                last_good_for,
                alarms.clone(),
                clock,
            );
            lifecycle.spawn_support("grants watch", watch.run());
            grants
        }
        None => {
            // No alarm: a listener of other identities needs none.
            let detail = "SITE_API_NATIVE_GRANTS_FILE is not set";
            tracing::warn!(detail, "native_bearers.unavailable");
            NativeGrants::none(clock)
        }
    };
    let service_accounts = match settings.service_accounts {
        Some(review) => {
            let reviewer = service_accounts::open(review.reviewer, &random, clock)
                .map_err(|reason| Refusal { code: EXIT_SETTINGS, reason })?;
            let accounts = ServiceAccounts::new(reviewer, review.grants, alarms.clone());
            lifecycle.spawn_support("token review watch", accounts.clone().watch());
            accounts
        }
        None => ServiceAccounts::none(),
    };
    let login = match settings.login {
        Some(login) => {
            let login = Logins::open(login, clock)
                .map_err(|reason| Refusal { code: EXIT_SETTINGS, reason })?;
            lifecycle.spawn_support("login watch", login.clone().watch(alarms.clone()));
            login
        }
        None => Logins::none(),
    };
    let authority = match settings.authority {
        Some(authority) => Some(open_authority(
            authority,
            &settings.site,
            (&random, clock),
            &mut lifecycle,
            &alarms,
        )?),
        None => None,
    };
    let pool = Pool::new(&settings.database, "site-api", settings.limits.pool());
    let authority_pools = authority.as_ref().map(Authority::pools);
    let ssh_access = settings.ssh_access.as_ref().map(|settings| {
        let (ssh_access, wakeups) = SshAccess::open(settings);
        lifecycle.spawn_support("ssh access wakeups", wakeups.run(ssh_access.pool()));
        ssh_access
    });
    let pools: Vec<_> = [pool.clone()]
        .into_iter()
        .chain(authority_pools.into_iter().flatten())
        .chain(ssh_access.as_ref().map(SshAccess::pool))
        .collect();
    let wakeups = Wakeups::new(settings.site.clone()).voiding_expired();
    let state = Arc::new(State {
        site: settings.site.clone(),
        grants,
        service_accounts,
        login,
        commands: RuntimeSide::new(pool.clone(), wakeups.clone()),
        authority,
        outputs: Outputs::new(Views::new(pool.clone(), settings.site.clone())),
        ssh_access,
        limits: settings.limits,
        uploads: Arc::new(Semaphore::new(UPLOADS)),
        alarms: alarms.clone(),
        clock,
        random: random.clone(),
        database_failures: AtomicU64::new(0),
    });
    let router = routes::router(&state).map_err(|error| software(&error))?;

    let request_ids = || RequestIds::new(&random).map_err(|_| software(&"no random source"));
    let listener = bind(LISTEN, settings.listen, settings.limits.listener()).await?;
    let admin =
        bind(METRICS_LISTEN, settings.metrics_listen, service_kit::Limits::default()).await?;
    tracing::info!(
        site.id = settings.site.as_str(),
        site_api.listen = %address(&listener),
        site_api.metrics_listen = %address(&admin),
        "site_api.listening"
    );
    let service =
        Service::new(router, settings.limits.requests, request_ids()?, lifecycle.shutdown());
    let serving = listener.serve_tls(move || tls.borrow().clone(), service, lifecycle.shutdown());
    let last_hints = commands::send_last_hints(Arc::clone(&state));
    lifecycle.spawn("listener", async move {
        serving.await;
        last_hints.await;
    });
    if let Some(broker) = settings.events {
        let (pool, wakeups, alarms) = (pool.clone(), wakeups.clone(), alarms.clone());
        let relay = events::relay(broker, pool, wakeups, alarms, state.fraction());
        lifecycle.spawn_support("events relay", relay);
    }
    let admin =
        admin::serve(admin, metrics, alarms, request_ids()?).map_err(|error| software(&error))?;
    lifecycle.spawn_support("admin", admin);
    lifecycle.spawn_support("database watch", watch::database(state, pools));
    lifecycle.spawn_support("wakeups", wakeups.run(pool));
    Ok(lifecycle.run(signals).await.exit_code())
}

/// Begins to connect to Beto, with what keeps the alarm about it true.
fn open_authority(
    settings: AuthoritySettings,
    site: &SiteId,
    (random, clock): (&SystemRandom, Clock),
    lifecycle: &mut Lifecycle,
    alarms: &Alarms,
) -> Result<Authority, Refusal> {
    let authority = Authority::open(settings, site, random, clock);
    let authority = authority.ok_or_else(|| software(&"the Site is none of every context"))?;
    lifecycle.spawn_support("beto watch", authority::watch(authority.health(), alarms.clone()));
    lifecycle.spawn_support("idle connections", authority::close_idle(authority.pools()));
    Ok(authority)
}

/// Logs from here on; a wrong filter is a mistake of the settings, told with all others.
fn start_logs(settings: &mut Settings) -> Result<(), Refusal> {
    let name = "SITE_API_LOG";
    let filter = settings.optional(name, |text| Ok::<_, Infallible>(text.to_owned()));
    match init_logs(filter.as_deref()) {
        Err(error @ TelemetryError::Filter(_)) => settings.mistake(name, error.to_string()),
        Err(error) => return Err(software(&error)),
        Ok(()) => {}
    }
    Ok(())
}

async fn bind(
    setting: &str,
    address: SocketAddr,
    limits: service_kit::Limits,
) -> Result<Listener, Refusal> {
    Listener::bind(address, limits).await.map_err(|error| Refusal {
        code: EXIT_UNAVAILABLE,
        reason: format!("{setting}: {address}: {error}"),
    })
}

fn address(listener: &Listener) -> String {
    listener.local_addr().map_or_else(|error| error.to_string(), |address| address.to_string())
}

fn software(error: &dyn std::fmt::Display) -> Refusal {
    Refusal { code: EXIT_SOFTWARE, reason: error.to_string() }
}

fn wrong_settings(errors: SettingsErrors) -> Refusal {
    Refusal { code: EXIT_SETTINGS, reason: format!("the settings are wrong:\n{errors}") }
}
