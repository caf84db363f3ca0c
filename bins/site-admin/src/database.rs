//! `site-admin database`: roles, migrations and their check.

use std::fmt;

use clap::Subcommand;
use database::DatabaseUrl;
use ring::rand::SecureRandom;
use serde::Serialize;
use service_kit::Settings;
use site_coordination::{API_ROLE, KEEPER_ROLE, MIGRATIONS, PRODUCER_ROLE, RIGHTS, ROLES_SQL};

use crate::{Failure, output::Format, provision};

const OWNER_URL: &str = "SITE_COORDINATION_OWNER_DATABASE_URL";
const API_URL: &str = "SITE_COORDINATION_DATABASE_URL";

/// The URL of a producer's role; `commands` and `status` use it too.
pub(crate) const PRODUCER_URL: &str = "SITE_COORDINATION_PRODUCER_DATABASE_URL";

/// The URL of the role that deletes by age; `commands prune` uses it too.
pub(crate) const KEEPER_URL: &str = "SITE_COORDINATION_KEEPER_DATABASE_URL";

#[derive(Subcommand)]
pub(crate) enum Database {
    /// Print the SQL that makes the roles, for an administrator who runs it by other means.
    Roles,
    /// Make the roles as the database's administrator (SITE_CONTROL_ADMIN_DATABASE_URL), each new
    /// one with a password of its own.
    Provision(provision::Provision),
    /// Run the migrations that have not run, as the owner (SITE_COORDINATION_OWNER_DATABASE_URL).
    Migrate,
    /// Check the schema and the restricted roles: that each may do what this release grants it, and
    /// no more.
    ///
    /// Each whose URL is set: the service's
    /// (SITE_COORDINATION_DATABASE_URL), the producer's (SITE_COORDINATION_PRODUCER_DATABASE_URL)
    /// and the keeper's (SITE_COORDINATION_KEEPER_DATABASE_URL).
    Check,
}

pub(crate) async fn run(
    command: Database,
    format: Format,
    random: &dyn SecureRandom,
) -> Result<(), Failure> {
    match command {
        Database::Roles => format.print(&Script { sql: ROLES_SQL.trim_end() }),
        Database::Provision(arguments) => provision::run(arguments, format, random).await,
        Database::Migrate => migrate(format).await,
        Database::Check => check(format).await,
    }
}

async fn migrate(format: Format) -> Result<(), Failure> {
    let mut settings = Settings::from_process();
    let owner = settings.required_secret_as(OWNER_URL, database_url);
    let owner = settings.accept(owner)?;
    let versions = MIGRATIONS.migrate(&owner).await?;
    format.print(&Migrated { schema: MIGRATIONS.schema, ran: versions })
}

async fn check(format: Format) -> Result<(), Failure> {
    let mut settings = Settings::from_process();
    let roles = [(API_URL, API_ROLE), (PRODUCER_URL, PRODUCER_ROLE), (KEEPER_URL, KEEPER_ROLE)];
    if !roles.iter().any(|(setting, _)| settings.is_set(setting)) {
        let reason = format!("is not set, and neither is {PRODUCER_URL} nor {KEEPER_URL}");
        settings.mistake(API_URL, reason);
    }
    let roles = roles.map(|(name, role)| (settings.optional_secret_as(name, database_url), role));
    settings.finish()?;
    for (url, role) in roles {
        let Some(url) = url else { continue };
        role.check(&url).await?;
        MIGRATIONS.check(&url).await?;
        let rights = RIGHTS.iter().find(|(name, _)| *name == role.name);
        role.compare(&url, rights.map_or(&[], |(_, rights)| rights)).await?;
        format.print(&Checked { schema: role.schema, role: role.name })?;
    }
    Ok(())
}

/// Reads a URL of a setting; the reason never repeats it.
pub(crate) fn database_url(text: &str) -> Result<DatabaseUrl, &'static str> {
    text.parse().map_err(database::DatabaseUrlError::reason)
}

#[derive(Serialize)]
struct Script {
    sql: &'static str,
}

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.sql)
    }
}

#[derive(Serialize)]
struct Migrated {
    schema: &'static str,
    ran: Vec<String>,
}

impl fmt::Display for Migrated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.ran.as_slice() {
            [] => write!(f, "{}: nothing to do", self.schema),
            versions => write!(f, "{}: ran {}", self.schema, versions.join(", ")),
        }
    }
}

#[derive(Serialize)]
struct Checked {
    schema: &'static str,
    role: &'static str,
}

impl fmt::Display for Checked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { schema, role } = self;
        write!(f, "{schema}: the schema is current, and {role} has the rights of this release")
    }
}
