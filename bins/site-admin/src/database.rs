//! `site-admin database`: roles, migrations and their check.

use clap::Subcommand;
use database::DatabaseUrl;
use ring::rand::SecureRandom;
use service_kit::Settings;
use site_coordination::{API_ROLE, MIGRATIONS, PRODUCER_ROLE, ROLES_SQL};

use crate::{Failure, output::print, provision};

const OWNER_URL: &str = "SITE_COORDINATION_OWNER_DATABASE_URL";
const API_URL: &str = "SITE_COORDINATION_DATABASE_URL";

/// The URL of a producer's role; `commands` uses it too.
pub(crate) const PRODUCER_URL: &str = "SITE_COORDINATION_PRODUCER_DATABASE_URL";

#[derive(Subcommand)]
pub(crate) enum Database {
    /// Print the SQL that makes the roles, for an administrator who runs it by other means.
    Roles,
    /// Make the roles as the database's administrator (SITE_CONTROL_ADMIN_DATABASE_URL), each new
    /// one with a password of its own.
    Provision(provision::Provision),
    /// Run the migrations that have not run, as the owner (SITE_COORDINATION_OWNER_DATABASE_URL).
    Migrate,
    /// Check the schema and the restricted roles, each whose URL is set: the service's
    /// (SITE_COORDINATION_DATABASE_URL) and the producer's
    /// (SITE_COORDINATION_PRODUCER_DATABASE_URL).
    Check,
}

pub(crate) async fn run(command: Database, random: &dyn SecureRandom) -> Result<(), Failure> {
    match command {
        Database::Roles => print(ROLES_SQL.trim_end()),
        Database::Provision(arguments) => provision::run(arguments, random).await,
        Database::Migrate => migrate().await,
        Database::Check => check().await,
    }
}

async fn migrate() -> Result<(), Failure> {
    let mut settings = Settings::from_process();
    let owner = settings.required_secret_as(OWNER_URL, database_url);
    let owner = settings.accept(owner)?;
    let versions = MIGRATIONS.migrate(&owner).await?;
    match versions.as_slice() {
        [] => print(format_args!("{}: nothing to do", MIGRATIONS.schema)),
        versions => print(format_args!("{}: ran {}", MIGRATIONS.schema, versions.join(", "))),
    }
}

async fn check() -> Result<(), Failure> {
    let mut settings = Settings::from_process();
    let api = settings.optional_secret_as(API_URL, database_url);
    let producer = settings.optional_secret_as(PRODUCER_URL, database_url);
    if !settings.is_set(API_URL) && !settings.is_set(PRODUCER_URL) {
        settings.mistake(API_URL, format!("is not set, and neither is {PRODUCER_URL}"));
    }
    settings.finish()?;
    for (url, role) in [(api, API_ROLE), (producer, PRODUCER_ROLE)] {
        let Some(url) = url else { continue };
        role.check(&url).await?;
        MIGRATIONS.check(&url).await?;
        print(format_args!(
            "{}: the schema is current, and {} has no right outside it",
            role.schema, role.name
        ))?;
    }
    Ok(())
}

/// Reads a URL of a setting; the reason never repeats it.
pub(crate) fn database_url(text: &str) -> Result<DatabaseUrl, &'static str> {
    text.parse().map_err(database::DatabaseUrlError::reason)
}
