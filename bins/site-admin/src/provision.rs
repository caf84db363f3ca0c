//! `site-admin database provision`: what the database's administrator does once.

use std::{
    fs::OpenOptions,
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use clap::Args;
use database::{AdminConnection, DatabaseUrl};
use postgres_protocol::password::scram_sha_256;
use ring::rand::{SecureRandom, SystemRandom};
use secrecy::{ExposeSecret, SecretString};
use service_kit::Settings;
use site_coordination::{ROLES, ROLES_SQL};
use url::Url;

use crate::{Failure, database::database_url};

const ADMIN_URL: &str = "SITE_CONTROL_ADMIN_DATABASE_URL";

#[derive(Args)]
pub(crate) struct Provision {
    /// The folder for the URL of each new role, a file `<role>.url` with mode 0600. Made when it
    /// is absent; an existing file is never replaced.
    #[arg(long)]
    directory: PathBuf,
}

/// Makes the roles; a role that exists already keeps its password.
pub(crate) async fn run(arguments: Provision) -> Result<(), Failure> {
    let mut settings = Settings::from_process();
    let admin = settings.required_secret_as(ADMIN_URL, |text| {
        database_url(text)?;
        Url::parse(text).map_err(|_| "is no URL")
    });
    let admin = settings.accept(admin)?;
    let mut connection = AdminConnection::open(&parsed(&admin)?).await?;
    let existing = connection.existing_roles(ROLES).await?;
    connection.run(ROLES_SQL).await?;
    std::fs::create_dir_all(&arguments.directory)
        .map_err(|error| cannot(&arguments.directory, &error))?;
    for role in ROLES {
        if existing.iter().any(|known| known == role) {
            println!("{role}: was there, keeps its password");
            continue;
        }
        let password = new_password()?;
        let file = arguments.directory.join(format!("{role}.url"));
        // The file first: a role whose password nobody has would be lost.
        write_new(&file, role_url(&admin, role, &password)?.expose_secret())
            .map_err(|error| cannot(&file, &error))?;
        connection.run(&password_sql(role, &password)).await?;
        println!("{role}: made, its URL is in {}", file.display());
    }
    Ok(())
}

fn parsed(admin: &Url) -> Result<DatabaseUrl, Failure> {
    database_url(admin.as_str()).map_err(Failure::data)
}

/// The administrator's URL with the role and password of another.
fn role_url(admin: &Url, role: &str, password: &SecretString) -> Result<SecretString, Failure> {
    let mut url = admin.clone();
    url.set_username(role)
        .and_then(|()| url.set_password(Some(password.expose_secret())))
        .map_err(|()| Failure::data(format!("{ADMIN_URL} can't carry another role")))?;
    Ok(SecretString::from(url.to_string()))
}

/// Sends only what the server keeps, so that no log of statements can hold the password.
fn password_sql(role: &str, password: &SecretString) -> String {
    let verifier = scram_sha_256(password.expose_secret().as_bytes());
    format!("ALTER ROLE {role} PASSWORD '{verifier}'")
}

/// 160 random bits in lower-case base32.
fn new_password() -> Result<SecretString, Failure> {
    let mut bytes = [0; 20];
    SystemRandom::new().fill(&mut bytes).map_err(|_| Failure::data("the random source failed"))?;
    let text = base32::encode(base32::Alphabet::Crockford, &bytes).to_ascii_lowercase();
    Ok(SecretString::from(text))
}

fn write_new(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

fn cannot(path: &Path, error: &io::Error) -> Failure {
    Failure::cannot_create(format!("{}: {error}", path.display()))
}
