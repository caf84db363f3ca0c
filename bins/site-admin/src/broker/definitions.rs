//! `site-admin broker definitions`: the users with their passwords in files, all of them or none.

use std::{
    fmt, fs, io,
    path::{Path, PathBuf},
};

use ::broker::BrokerUrl;
use base64::{Engine, engine::general_purpose::STANDARD};
use beto::Rights;
use clap::Args;
use ring::{digest, rand::SecureRandom};
use secrecy::{ExposeSecret, SecretString, zeroize::Zeroizing};
use serde::Serialize;
use serde_json::{Value, json};
use url::Url;

use crate::{
    Failure,
    new_files::{NewFiles, make_folder},
    output::{self, Format},
    provision::new_password,
};

#[derive(Args)]
pub(crate) struct Definitions {
    /// The folder for the URL of each user, a file `<user>.url` with mode 0600. Made when it is
    /// absent; an existing file is read and never replaced.
    #[arg(long)]
    directory: PathBuf,
    /// Where the broker is for the URLs that are made, such as amqps://rabbitmq.example:5671.
    #[arg(long, value_name = "URL", value_parser = place)]
    broker: Url,
    /// The virtual host.
    #[arg(long, default_value = "/", value_parser = vhost)]
    vhost: String,
}

pub(crate) fn run(
    arguments: &Definitions,
    format: Format,
    random: &dyn SecureRandom,
) -> Result<(), Failure> {
    let mut files = NewFiles::default();
    make_folder(&arguments.directory)?;
    let mut users = Vec::new();
    let mut told = Vec::new();
    for Rights { user, .. } in Rights::all() {
        let path = arguments.directory.join(format!("{user}.url"));
        let shown = path.display();
        let password = match existing_password(&path, user)? {
            Some(password) => {
                told.push(format!("{user}: was there, keeps its password"));
                password
            }
            None => {
                let password = new_password(random)?;
                let url = user_url(arguments, user, &password)?;
                files.write(&path, url.expose_secret(), 0o600)?;
                told.push(format!("{user}: made, its URL is in {shown}"));
                password
            }
        };
        users.push(json!({
            "name": user, "password_hash": hash(&password, random)?,
            "hashing_algorithm": "rabbit_password_hashing_sha256", "tags": "",
        }));
    }
    // Where they can't be printed, the next run prints the same.
    files.keep();
    told.into_iter().for_each(output::say);
    format.print(&Printed(beto::definitions(&arguments.vhost, &users)))
}

#[derive(Serialize)]
struct Printed(Value);

impl fmt::Display for Printed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#}", self.0)
    }
}

/// The password in the file of a user's URL; none where there is no file.
fn existing_password(path: &Path, user: &str) -> Result<Option<SecretString>, Failure> {
    let shown = path.display();
    let text = match fs::read_to_string(path) {
        Ok(text) => Zeroizing::new(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Failure::data(format!("{shown}: {error}"))),
    };
    let url: BrokerUrl = text
        .strip_suffix('\n')
        .unwrap_or(&text)
        .parse()
        .map_err(|error| Failure::data(format!("{shown}: {error}")))?;
    if url.user() != user {
        return Err(Failure::data(format!("{shown}: its user is not {user}")));
    }
    Ok(Some(SecretString::from(url.expose_password())))
}

fn user_url(
    arguments: &Definitions,
    user: &str,
    password: &SecretString,
) -> Result<SecretString, Failure> {
    let cannot = || Failure::data("--broker can't carry a user");
    let mut url = arguments.broker.clone();
    url.set_username(user).map_err(|()| cannot())?;
    url.set_password(Some(password.expose_secret())).map_err(|()| cannot())?;
    if arguments.vhost != "/" {
        // A slash within it becomes %2F.
        url.path_segments_mut().map_err(|()| cannot())?.push(&arguments.vhost);
    }
    Ok(SecretString::from(String::from(url)))
}

/// What RabbitMQ keeps: a salt of four bytes, and SHA-256 of the salt and the password.
fn hash(password: &SecretString, random: &dyn SecureRandom) -> Result<String, Failure> {
    let mut salt = [0; 4];
    random.fill(&mut salt).map_err(|_| Failure::data("the random source failed"))?;
    let mut salted = Zeroizing::new(salt.to_vec());
    salted.extend_from_slice(password.expose_secret().as_bytes());
    let digest = digest::digest(&digest::SHA256, &salted);
    Ok(STANDARD.encode([&salt, digest.as_ref()].concat()))
}

/// Takes a broker's URL without anybody in it.
fn place(text: &str) -> Result<Url, &'static str> {
    let wrong = "must be amqps://host:port, without a user, a password or a path";
    let url = Url::parse(text).map_err(|_| wrong)?;
    let bare = url.username().is_empty() && url.password().is_none() && url.path().is_empty();
    let bare = bare && url.query().is_none() && url.fragment().is_none();
    let host = url.host_str().is_some_and(|host| !host.is_empty());
    (matches!(url.scheme(), "amqps" | "amqp") && bare && host).then_some(url).ok_or(wrong)
}

/// Takes the name of a virtual host that a URL can carry.
fn vhost(text: &str) -> Result<String, &'static str> {
    let fits = (1..=255).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
    // As a part of a path these two would mean something else.
    if fits && !matches!(text, "." | "..") {
        return Ok(text.to_owned());
    }
    Err("a virtual host is 1 to 255 visible ASCII characters without a space, and not a dot or two")
}
