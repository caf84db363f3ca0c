//! From the settings to a listener, and back to an exit code.

use std::sync::{Arc, atomic::AtomicU64};

use chrono::{DateTime, Utc};
use database::Pool;
use futures_util::StreamExt;
use ring::rand::SystemRandom;
use service_kit::{
    Alarms, EXIT_SETTINGS, Lifecycle, Metrics, RequestIds, Service, Settings, admin,
    drain::DEFAULT_GRACE, process_signals, start_logs,
};
use service_start::{ALARM_EVENTS, Refusal, address_of, bind, check_databases};
use site_coordination::{RuntimeSide, SiteId, Views, Wakeups};
use tokio::sync::Semaphore;

use crate::{
    authority::{self, Authority, AuthoritySettings},
    certificate::CertificateWatch,
    commands,
    databases::credentials,
    events,
    executions::output::Outputs,
    grants::{GrantsWatch, NativeGrants},
    login::Logins,
    routes,
    service_accounts::{self, ServiceAccounts},
    settings::{LISTEN, LOG, METRICS_LISTEN, SiteApiSettings},
    ssh_access::SshAccess,
    state::{
        ALARM_BETO, ALARM_CERTIFICATE, ALARM_DATABASE, ALARM_GRANTS, ALARM_LOGIN,
        ALARM_PROPAGATION, ALARM_TOKEN_REVIEW, State, UPLOADS,
    },
    watch,
};

/// The clock of the process.
pub type Clock = fn() -> DateTime<Utc>;

/// Runs the process and returns its exit code.
pub async fn run(clock: Clock, random: SystemRandom) -> u8 {
    Refusal::exit_code("site-api", serve(clock, random).await)
}

async fn serve(clock: Clock, random: SystemRandom) -> Result<u8, Refusal> {
    let mut settings = Settings::from_process();
    start_logs(&mut settings, LOG).map_err(Refusal::software)?;
    let settings =
        SiteApiSettings::read(settings, clock()).map_err(|errors| Refusal::settings(&errors))?;
    let mut signals = process_signals().map_err(Refusal::software)?;
    let metrics = Metrics::install().map_err(Refusal::software)?;
    let names = [
        ALARM_BETO,
        ALARM_CERTIFICATE,
        ALARM_DATABASE,
        ALARM_EVENTS,
        ALARM_GRANTS,
        ALARM_LOGIN,
        ALARM_PROPAGATION,
        ALARM_TOKEN_REVIEW,
    ];
    let alarms = Alarms::new(clock, &names);
    tokio::select! {
        checked = check_databases(credentials(&settings)) => checked?,
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
    let router = routes::router(&state).map_err(Refusal::software)?;

    let request_ids =
        || RequestIds::new(&random).map_err(|_| Refusal::software("no random source"));
    let listener = bind(LISTEN, settings.listen, settings.limits.listener()).await?;
    let admin =
        bind(METRICS_LISTEN, settings.metrics_listen, service_kit::Limits::default()).await?;
    tracing::info!(
        site.id = settings.site.as_str(),
        site_api.listen = address_of(&listener),
        site_api.metrics_listen = address_of(&admin),
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
        lifecycle.spawn_support("events relay", async { match relay.await {} });
    }
    let admin = admin::serve(admin, metrics, alarms, request_ids()?).map_err(Refusal::software)?;
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
    let authority =
        authority.ok_or_else(|| Refusal::software("the Site is none of every context"))?;
    lifecycle.spawn_support("beto watch", authority::watch(authority.health(), alarms.clone()));
    lifecycle.spawn_support("idle connections", authority::close_idle(authority.pools()));
    Ok(authority)
}
