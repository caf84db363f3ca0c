//! The check at the start: each context's credential and schema, before anything is served.

use std::time::Duration;

use database::{ConnectError, DatabaseUrl, Migrations, Role, RoleError, SchemaError};
use futures_util::future::join_all;
use service_kit::EXIT_SETTINGS;
use tokio::time::{Instant, timeout_at};

use crate::{
    authority::{BINDINGS_DATABASE, RUNS_DATABASE},
    settings::{DATABASE, SiteApiSettings},
    ssh_access::SSH_DATABASE,
    start::{EXIT_SOFTWARE, EXIT_UNAVAILABLE, Refusal},
};

/// How long a database may take to answer.
const WITHIN: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(500);

/// A context as this process reaches it.
struct Reached<'a> {
    /// The setting with its URL.
    setting: &'static str,
    url: &'a DatabaseUrl,
    role: Role,
    migrations: &'static Migrations,
}

/// Refuses a role with too many rights and a schema that this build does not know, of each context
/// that is used; every one of them is told. A database that does not answer yet is waited for.
pub(crate) async fn check(settings: &SiteApiSettings) -> Result<(), Refusal> {
    let mut reached = vec![Reached {
        setting: DATABASE,
        url: &settings.database,
        role: site_coordination::API_ROLE,
        migrations: &site_coordination::MIGRATIONS,
    }];
    if let Some(authority) = &settings.authority {
        reached.push(Reached {
            setting: RUNS_DATABASE,
            url: &authority.runs,
            role: execution_core::API_ROLE,
            migrations: &execution_core::MIGRATIONS,
        });
        reached.push(Reached {
            setting: BINDINGS_DATABASE,
            url: &authority.bindings,
            role: resource_provisioning::API_ROLE,
            migrations: &resource_provisioning::MIGRATIONS,
        });
    }
    if let Some(ssh) = &settings.ssh_access {
        reached.push(Reached {
            setting: SSH_DATABASE,
            url: &ssh.database,
            role: ::ssh_access::API_ROLE,
            migrations: &::ssh_access::MIGRATIONS,
        });
    }
    let refused: Vec<_> = join_all(reached.iter().map(Reached::check))
        .await
        .into_iter()
        .filter_map(Result::err)
        .collect();
    let Some(code) = refused.first().map(|refusal| refusal.code) else { return Ok(()) };
    let reasons: Vec<_> = refused.into_iter().map(|refusal| refusal.reason).collect();
    Err(Refusal { code, reason: reasons.join("\n") })
}

impl Reached<'_> {
    async fn check(&self) -> Result<(), Refusal> {
        let deadline = Instant::now() + WITHIN;
        let mut last = format!("{}: the database does not answer", self.setting);
        while let Ok(checked) = timeout_at(deadline, self.check_once()).await {
            match checked {
                Err(refusal) if refusal.code == EXIT_UNAVAILABLE => {
                    tracing::warn!(error = refusal.reason, "db.waited_for");
                    last = refusal.reason;
                }
                done => return done,
            }
            tokio::time::sleep(PAUSE).await;
        }
        let reason = format!("{last} (for {} s)", WITHIN.as_secs());
        Err(Refusal { code: EXIT_UNAVAILABLE, reason })
    }

    async fn check_once(&self) -> Result<(), Refusal> {
        let refusal =
            |code, reason: String| Refusal { code, reason: format!("{}: {reason}", self.setting) };
        let connect = |error: &ConnectError| match error {
            ConnectError::Unreachable(_) => EXIT_UNAVAILABLE,
            ConnectError::Refused(_) => EXIT_SOFTWARE,
            ConnectError::RootCertificates { .. } => EXIT_SETTINGS,
        };
        // Each on a connection of its own, which is most of the time that a start takes.
        let (role, schema) =
            tokio::join!(self.role.check(self.url), self.migrations.check(self.url));
        role.map_err(|error| {
            let code = match &error {
                RoleError::Connect(error) => connect(error),
                RoleError::Catalogue(_) | RoleError::TooMuch { .. } => EXIT_SOFTWARE,
            };
            refusal(code, error.to_string())
        })?;
        schema.map_err(|error| {
            let code = match &error {
                SchemaError::Connect(error) => connect(error),
                SchemaError::Record { .. } | SchemaError::Behind { .. } => EXIT_SOFTWARE,
            };
            refusal(code, error.to_string())
        })
    }
}
