//! The migrated database that every test clones, made by the real `site-admin` once in each
//! cluster.

use std::{io, path::Path, process::Command};

use super::{Cluster, access::new_password};

const NAME: &str = "site_control_template";

/// Makes the roles and the template of a cluster.
#[derive(Debug)]
pub struct Template;

/// Why there is no template.
#[derive(Debug, thiserror::Error)]
pub enum TemplateError {
    /// `site-admin` can't be started.
    #[error("starting site-admin")]
    Start(#[from] io::Error),
    /// `site-admin` refused.
    #[error("`site-admin database {command}` failed:\n{stderr}")]
    Admin {
        /// Which of its commands.
        command: &'static str,
        /// What it said.
        stderr: String,
    },
    /// A statement was refused.
    #[error("preparing the template database")]
    Sql(#[from] tokio_postgres::Error),
}

impl Template {
    /// Makes a migrated database that from then on [`super::TestDatabase`] clones.
    ///
    /// # Errors
    ///
    /// When `site-admin` or the server refuses.
    pub async fn make(cluster: &mut Cluster, site_admin: &Path) -> Result<(), TemplateError> {
        migrated_database(cluster, NAME, site_admin).await?;
        let admin = cluster.superuser("postgres").await?;
        let closed = format!("ALTER DATABASE {NAME} WITH IS_TEMPLATE true ALLOW_CONNECTIONS false");
        admin.batch_execute(&closed).await?;
        cluster.access_mut().template = Some(NAME.to_owned());
        Ok(())
    }
}

/// Makes a database as its administrator does: the roles that `site-admin database roles` prints, a
/// password for each, and the schema by `site-admin database migrate` as its owner.
///
/// # Errors
///
/// When `site-admin` or the server refuses.
pub async fn migrated_database(
    cluster: &mut Cluster,
    name: &str,
    site_admin: &Path,
) -> Result<(), TemplateError> {
    let admin = cluster.superuser("postgres").await?;
    admin.batch_execute(&format!("CREATE DATABASE {name}")).await?;
    let inside = cluster.superuser(name).await?;
    inside.batch_execute(&run(site_admin, "roles", &[])?).await?;
    drop(inside);

    let made = "SELECT rolname FROM pg_roles WHERE rolname !~ '^pg_' AND NOT rolsuper";
    for row in admin.query(made, &[]).await? {
        let (role, password) = (row.get::<_, String>(0), new_password());
        let sql = format!(
            "ALTER ROLE {role} LOGIN PASSWORD '{password}'; \
             GRANT CONNECT ON DATABASE {name} TO {role}"
        );
        admin.batch_execute(&sql).await?;
        cluster.access_mut().role_passwords.insert(role, password);
    }
    admin.batch_execute(&format!("REVOKE ALL ON DATABASE {name} FROM PUBLIC")).await?;
    run(site_admin, "migrate", &owner_settings(cluster, name))?;
    Ok(())
}

/// `SITE_COORDINATION_OWNER_DATABASE_URL` and its like: one for each role that owns a context.
fn owner_settings(cluster: &Cluster, database: &str) -> Vec<(String, String)> {
    let roles = cluster.access().role_passwords.keys();
    roles
        .filter(|role| role.ends_with("_owner"))
        .map(|role| {
            let setting = format!("{}_DATABASE_URL", role.to_uppercase());
            (setting, cluster.access().role_url(role, database))
        })
        .collect()
}

fn run(
    site_admin: &Path,
    command: &'static str,
    settings: &[(String, String)],
) -> Result<String, TemplateError> {
    let mut child = Command::new(site_admin);
    child.args(["database", command]).envs(settings.iter().map(|(name, value)| (name, value)));
    let output = child.output()?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(TemplateError::Admin { command, stderr });
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
