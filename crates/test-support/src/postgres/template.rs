//! The migrated database that every test clones, made by the real `site-admin` once a cluster.

use std::{ffi::OsString, fs, io, path::Path, process::Command};

use super::Cluster;

const NAME: &str = "site_control_template";

/// Why there is no migrated database.
#[derive(Debug, thiserror::Error)]
pub enum TemplateError {
    /// `site-admin` can't be started, or what it wrote can't be read.
    #[error("running site-admin")]
    Io(#[from] io::Error),
    /// `site-admin` refused.
    #[error("`site-admin database {command}` failed:\n{stderr}")]
    Admin {
        /// Which of its commands.
        command: &'static str,
        /// What it said.
        stderr: String,
    },
    /// A file of `site-admin database provision` holds no URL with a password.
    #[error("the file of the role {0} holds no URL with a password")]
    Url(String),
    /// A statement was refused.
    #[error("preparing the database")]
    Sql(#[from] tokio_postgres::Error),
}

/// Makes a migrated database that from then on [`super::TestDatabase`] clones.
///
/// # Errors
///
/// When `site-admin` or the server refuses.
pub async fn make_template(cluster: &mut Cluster, site_admin: &Path) -> Result<(), TemplateError> {
    migrated_database(cluster, NAME, site_admin).await?;
    let admin = cluster.superuser("postgres").await?;
    let closed = format!("ALTER DATABASE {NAME} WITH IS_TEMPLATE true ALLOW_CONNECTIONS false");
    admin.batch_execute(&closed).await?;
    cluster.access_mut().template = Some(NAME.to_owned());
    Ok(())
}

/// Makes a database as its administrator does: the roles, each with its password, by `site-admin
/// database provision`, and the schema by `site-admin database migrate` as its owner. The first of
/// a cluster makes the roles.
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

    let urls = tempfile::tempdir()?;
    let mut provision = Command::new(site_admin);
    provision.args(["database", "provision", "--directory"]).arg(urls.path());
    provision.env("SITE_CONTROL_ADMIN_DATABASE_URL", cluster.superuser_url(name));
    run(provision, "provision")?;

    let mut migrate = Command::new(site_admin);
    migrate.args(["database", "migrate"]);
    for entry in fs::read_dir(urls.path())? {
        let file = entry?.path();
        let role = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let password = password(&fs::read_to_string(&file)?);
        let password = password.ok_or_else(|| TemplateError::Url(role.clone()))?;
        if role.ends_with("_owner") {
            migrate.env(owner_setting(&role), &file);
        }
        cluster.access_mut().role_passwords.insert(role, password);
    }
    run(migrate, "migrate")
}

/// The setting for the file with an owner's URL: one for each context, named after the role.
fn owner_setting(role: &str) -> OsString {
    format!("{}_DATABASE_URL_FILE", role.to_uppercase()).into()
}

/// The password of a URL of a role. Of its characters none has to be escaped in a URL.
fn password(url: &str) -> Option<String> {
    let (_, rest) = url.split_once("://")?;
    let (login, _) = rest.split_once('@')?;
    let (_, password) = login.split_once(':')?;
    Some(password.to_owned())
}

fn run(mut command: Command, name: &'static str) -> Result<(), TemplateError> {
    let output = command.output()?;
    if output.status.success() {
        return Ok(());
    }
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(TemplateError::Admin { command: name, stderr })
}
