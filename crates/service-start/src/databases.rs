//! The check at the start: each context's credential and schema, before anything is done.

use std::time::Duration;

use database::{ConnectError, DatabaseUrl, Migrations, Role, RoleError, SchemaError};
use futures_util::future::join_all;
use service_kit::EXIT_SETTINGS;
use tokio::time::{Instant, sleep, timeout_at};

use crate::{EXIT_SOFTWARE, EXIT_UNAVAILABLE, Refusal};

/// How long a database may take to answer.
const WITHIN: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(500);

/// A context as a process reaches it.
pub struct Credential<'a> {
    /// The setting with its URL.
    pub setting: &'static str,
    /// The URL.
    pub url: &'a DatabaseUrl,
    /// The role that it has to be, and nothing beyond it.
    pub role: Role,
    /// What its schema has to have.
    pub migrations: &'static Migrations,
}

/// Checks the credential and the schema of each context that a process uses. A database that does not
/// answer yet is waited for, for thirty seconds.
///
/// # Errors
///
/// A role with too many rights, a schema that this build does not know, or a database that can't be
/// reached: every one of them is told, with the exit code of the first.
pub async fn check_databases(credentials: Vec<Credential<'_>>) -> Result<(), Refusal> {
    let refused: Vec<_> = join_all(credentials.iter().map(Credential::check))
        .await
        .into_iter()
        .filter_map(Result::err)
        .collect();
    let Some(code) = refused.first().map(|refusal| refusal.code) else { return Ok(()) };
    let reasons: Vec<_> = refused.into_iter().map(|refusal| refusal.reason).collect();
    Err(Refusal { code, reason: reasons.join("\n") })
}

impl Credential<'_> {
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
            sleep(PAUSE).await;
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
