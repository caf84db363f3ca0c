//! `site-admin database`: roles, migrations and their check.

use std::fmt;

use clap::Subcommand;
use database::{Context, DatabaseUrl, Pool, PoolLimits, Role};
use ring::rand::SecureRandom;
use serde::Serialize;
use service_kit::Settings;

use crate::{
    Failure,
    contexts::{CONTEXTS, contexts},
    output::Format,
    provision,
};

#[derive(Subcommand)]
pub(crate) enum Database {
    /// Print the SQL that makes the roles, for an administrator who runs it by other means.
    Roles,
    /// Make the roles as the database's administrator (SITE_CONTROL_ADMIN_DATABASE_URL), each new
    /// one with a password of its own.
    Provision(provision::Provision),
    /// Run the migrations that have not run, of each context whose owner's URL is set.
    ///
    /// The settings with the URLs: SITE_COORDINATION_OWNER_DATABASE_URL,
    /// EXECUTION_CORE_OWNER_DATABASE_URL, RESOURCE_PROVISIONING_OWNER_DATABASE_URL and
    /// SSH_ACCESS_OWNER_DATABASE_URL. What ran before a failure stays; running it again does what is
    /// missing.
    Migrate,
    /// Check the schemas and the restricted roles: that each may do what this release grants it, and
    /// no more.
    ///
    /// Each whose URL is set. Those of commands: the service's
    /// (SITE_COORDINATION_DATABASE_URL), the producer's (SITE_COORDINATION_PRODUCER_DATABASE_URL)
    /// and the keeper's (SITE_COORDINATION_KEEPER_DATABASE_URL). Those of Runs and bindings, the
    /// service's and the writer's: EXECUTION_CORE_DATABASE_URL, EXECUTION_CORE_WRITER_DATABASE_URL,
    /// RESOURCE_PROVISIONING_DATABASE_URL and RESOURCE_PROVISIONING_WRITER_DATABASE_URL. Those of SSH
    /// access: the service's (SSH_ACCESS_DATABASE_URL), the one of the process ssh-access
    /// (SSH_ACCESS_PROCESS_DATABASE_URL, which that process itself reads as
    /// SSH_ACCESS_DATABASE_URL) and the registry's (SSH_ACCESS_REGISTRY_DATABASE_URL).
    Check,
}

pub(crate) async fn run(
    command: Database,
    format: Format,
    random: &dyn SecureRandom,
) -> Result<(), Failure> {
    match command {
        Database::Roles => {
            let sql = Context::roles_sql(&contexts());
            format.print(&Script { sql: sql.trim_end() })
        }
        Database::Provision(arguments) => provision::run(arguments, format, random).await,
        Database::Migrate => migrate(format).await,
        Database::Check => check(format).await,
    }
}

async fn migrate(format: Format) -> Result<(), Failure> {
    let mut settings = Settings::from_process();
    one_is_set(&mut settings, CONTEXTS.map(|administered| administered.owner_url));
    let owners = CONTEXTS.map(|administered| {
        let owner = settings.optional_secret_as(administered.owner_url, database_url);
        (administered.context.migrations, owner)
    });
    settings.finish()?;
    for (migrations, owner) in owners {
        let Some(owner) = owner else { continue };
        let ran = migrations.migrate(&owner).await?;
        format.print(&Migrated { schema: migrations.schema, ran })?;
    }
    Ok(())
}

async fn check(format: Format) -> Result<(), Failure> {
    let mut settings = Settings::from_process();
    one_is_set(&mut settings, CONTEXTS.iter().flat_map(|one| one.urls).map(|(name, _)| *name));
    let mut roles = Vec::new();
    for administered in CONTEXTS {
        for (name, role) in administered.urls {
            let url = settings.optional_secret_as(name, database_url);
            roles.extend(url.map(|url| (administered.context, *role, url)));
        }
    }
    settings.finish()?;
    for (context, role, url) in roles {
        role.check(&url).await?;
        context.migrations.check(&url).await?;
        role.compare(&url, context.rights_of(role.name)).await?;
        format.print(&Checked { schema: role.schema, role: role.name })?;
    }
    Ok(())
}

/// A command that works on each of some settings needs one of them.
fn one_is_set(settings: &mut Settings, names: impl IntoIterator<Item = &'static str>) {
    let names: Vec<_> = names.into_iter().collect();
    if names.iter().any(|name| settings.is_set(name)) {
        return;
    }
    if let Some((first, others)) = names.split_first() {
        settings.mistake(first, format!("is not set, and none is of {}", others.join(", ")));
    }
}

/// Connections by the URL of a setting, whose role was checked.
pub(crate) async fn restricted_pool(setting: &str, role: Role) -> Result<Pool, Failure> {
    let mut settings = Settings::from_process();
    let url = settings.required_secret_as(setting, database_url);
    let url = settings.accept(url)?;
    role.check(&url).await?;
    Ok(Pool::new(&url, "site-admin", PoolLimits::default()))
}

/// Reads a URL of a setting; the reason never repeats it.
pub(crate) fn database_url(text: &str) -> Result<DatabaseUrl, &'static str> {
    text.parse().map_err(database::DatabaseUrlError::reason)
}

#[derive(Serialize)]
struct Script<'a> {
    sql: &'a str,
}

impl fmt::Display for Script<'_> {
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
