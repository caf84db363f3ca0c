//! `site-admin database provision`: what the database's administrator does once.

use std::{fmt, path::PathBuf};

use clap::Args;
use database::{AdminConnection, Context, DatabaseError, DatabaseUrl};
use postgres_protocol::password::scram_sha_256;
use ring::rand::SecureRandom;
use secrecy::{ExposeSecret, SecretString};
use serde::Serialize;
use service_kit::Settings;
use url::Url;

use crate::{
    Failure,
    contexts::contexts,
    database::database_url,
    new_files::{NewFiles, make_folder},
    output::Format,
};

const ADMIN_URL: &str = "SITE_CONTROL_ADMIN_DATABASE_URL";

#[derive(Args)]
pub(crate) struct Provision {
    /// The folder for the URL of each new role, a file `<role>.url` with mode 0600. Made when it
    /// is absent; an existing file is never replaced.
    #[arg(long)]
    directory: PathBuf,
}

/// Makes the roles of every context, all of them with their passwords or none; a role that exists already keeps its
/// password.
pub(crate) async fn run(
    arguments: Provision,
    format: Format,
    random: &dyn SecureRandom,
) -> Result<(), Failure> {
    let mut settings = Settings::from_process();
    let admin = settings.required_secret_as(ADMIN_URL, |text| {
        database_url(text)?;
        Url::parse(text).map_err(|_| "is no URL")
    });
    let admin = settings.accept(admin)?;
    let mut connection = AdminConnection::open(&parsed(&admin)?).await?;
    let roles: Vec<_> = contexts().iter().flat_map(|context| context.role_names()).collect();
    let existing = connection.existing_roles(&roles).await?;
    let (known, new): (Vec<&str>, Vec<&str>) =
        roles.into_iter().partition(|role| existing.iter().any(|known| known == role));

    // The files first: a role whose password nobody has would be lost.
    let mut files = NewFiles::default();
    let mut script = Context::roles_sql(&contexts());
    if !new.is_empty() {
        make_folder(&arguments.directory)?;
    }
    for role in &new {
        let password = new_password(random)?;
        let file = arguments.directory.join(format!("{role}.url"));
        files.write(&file, role_url(&admin, role, &password)?.expose_secret(), 0o600)?;
        script.push_str(&password_sql(role, &password));
    }
    let made = connection.run(&script).await;
    // Where the answer is lost, the roles may have been made: their passwords stay.
    if matches!(made, Ok(()) | Err(DatabaseError::Unavailable(_))) {
        files.keep();
    }
    made?;
    known.into_iter().try_for_each(|role| format.print(&Provisioned { role, url_file: None }))?;
    new.into_iter().try_for_each(|role| {
        let file = arguments.directory.join(format!("{role}.url"));
        format.print(&Provisioned { role, url_file: Some(file.display().to_string()) })
    })
}

/// A role that is there now.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Provisioned<'a> {
    role: &'a str,
    /// Where the URL of a new one is.
    url_file: Option<String>,
}

impl fmt::Display for Provisioned<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.url_file {
            None => write!(f, "{}: was there, keeps its password", self.role),
            Some(file) => write!(f, "{}: made, its URL is in {file}", self.role),
        }
    }
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
    format!("ALTER ROLE {role} PASSWORD '{verifier}';\n")
}

/// 160 random bits in lower-case base32.
pub(crate) fn new_password(random: &dyn SecureRandom) -> Result<SecretString, Failure> {
    let mut bytes = [0; 20];
    random.fill(&mut bytes).map_err(|_| Failure::data("the random source failed"))?;
    let text = base32::encode(base32::Alphabet::Crockford, &bytes).to_ascii_lowercase();
    Ok(SecretString::from(text))
}
