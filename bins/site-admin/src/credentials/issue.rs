//! `site-admin credentials issue`.

use std::{fmt, path::PathBuf, time::Duration};

use callers::{Environment, Grant, IssueError, NativeBearer, Principal, Scope, SiteId, StoreError};
use chrono::{DateTime, Utc};
use clap::Args;
use ring::rand::SecureRandom;
use secrecy::zeroize::Zeroizing;
use serde::Serialize;
use service_kit::error_chain;

use super::{GrantsFile, Row, SecretArguments};
use crate::{
    Failure,
    new_files::NewFiles,
    output::{self, Format},
};

#[derive(Args)]
pub(crate) struct Issue {
    #[command(flatten)]
    grants: GrantsFile,
    /// What the bearer is for: commands or ssh-access.
    #[arg(long, value_parser = |text: &str| Scope::parse(text))]
    scope: Scope,
    /// The Site.
    #[arg(long, value_parser = |text: &str| SiteId::parse(text))]
    site: SiteId,
    /// The environment, k8s or slurm; for the scope commands and no other.
    #[arg(long, value_parser = |text: &str| Environment::parse(text))]
    environment: Option<Environment>,
    /// How long the bearer lives, in days.
    #[arg(long, default_value_t = 90, value_parser = clap::value_parser!(u32).range(1..=366))]
    days: u32,
    /// A new file for the bearer, with mode 0600; without it the bearer is printed. Needed with
    /// --secret, which prints something else.
    #[arg(long, value_name = "FILE", required_if_eq("secret", "true"))]
    out: Option<PathBuf>,
    #[command(flatten)]
    secret: SecretArguments,
}

pub(super) fn run(
    arguments: Issue,
    format: Format,
    now: DateTime<Utc>,
    random: &dyn SecureRandom,
) -> Result<(), Failure> {
    let Issue { grants, scope, site, environment, days, out, secret } = arguments;
    let principal = principal(scope, site, environment)?;
    let life = Duration::from_secs(u64::from(days) * 24 * 60 * 60);
    let mut file = NewFiles::default();
    let hand_over = |bearer: NativeBearer, grant: &Grant| match (&out, format) {
        (Some(out), _) => {
            let line = Zeroizing::new([bearer.expose(), "\n"].concat());
            file.write(out, &line, 0o600).map_err(NotIssued::HandOver)
        }
        (None, Format::Text) => output::hand_over(bearer.expose()).map_err(NotIssued::HandOver),
        (None, Format::Json) => {
            let line = handed_over(&bearer, &Row::of(grant, now));
            line.and_then(|line| output::hand_over(&line)).map_err(NotIssued::HandOver)
        }
    };
    let issued = callers::issue(&grants.grants, principal, life, now, random, hand_over);
    // Where only the folder was not synchronised, the grant is there and its bearer stays.
    if matches!(issued, Ok(_) | Err(NotIssued::Grant(IssueError::Store(StoreError::Sync { .. })))) {
        file.keep();
    }
    let grant = issued?;
    let place = match &out {
        Some(out) => format!("is in {}", out.display()),
        None => "is shown this once".to_owned(),
    };
    let (principal, end) = (grant.principal(), grant.expires_at());
    output::say(format_args!("{principal} until {end}: the bearer {place}"));
    match &out {
        _ if secret.secret => secret.print(&grants, format, now),
        Some(out) if format == Format::Json => {
            let bearer_file = out.display().to_string();
            format.print(&Kept { bearer_file, grant: Row::of(&grant, now) })
        }
        _ => Ok(()),
    }
}

fn principal(
    scope: Scope,
    site: SiteId,
    environment: Option<Environment>,
) -> Result<Principal, Failure> {
    match (scope, environment) {
        (Scope::Commands, Some(environment)) => Ok(Principal::Commands { site, environment }),
        (Scope::SshAccess, None) => Ok(Principal::SshAccess { site }),
        (Scope::Commands, None) => Err(Failure::data("--scope commands needs --environment")),
        (Scope::SshAccess, Some(_)) => {
            Err(Failure::data("--scope ssh-access has no --environment"))
        }
    }
}

/// A bearer as JSON with its grant. The bearer goes into this one buffer, which is wiped; its
/// characters need no escape.
fn handed_over(bearer: &NativeBearer, grant: &Row) -> Result<Zeroizing<String>, Failure> {
    let grant = output::json(grant)?;
    let fields = grant.strip_prefix('{').unwrap_or_default();
    Ok(Zeroizing::new(["{\"bearer\":\"", bearer.expose(), "\",", fields].concat()))
}

/// Where a bearer is, with its grant.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Kept {
    bearer_file: String,
    #[serde(flatten)]
    grant: Row,
}

impl fmt::Display for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.grant)
    }
}

/// Why there is no new bearer.
enum NotIssued {
    Grant(IssueError),
    HandOver(Failure),
}

impl From<IssueError> for NotIssued {
    fn from(error: IssueError) -> Self {
        Self::Grant(error)
    }
}

impl From<NotIssued> for Failure {
    fn from(error: NotIssued) -> Self {
        match error {
            NotIssued::Grant(error) => error.into(),
            NotIssued::HandOver(failure) => failure,
        }
    }
}

impl From<IssueError> for Failure {
    fn from(error: IssueError) -> Self {
        match error {
            error @ (IssueError::AlreadyActive { .. } | IssueError::Life(_)) => {
                Self::data(error.to_string())
            }
            IssueError::Store(error) => error.into(),
            error @ IssueError::NotGranted(_) => Self::cannot_create(error_chain(&error)),
            error => Self::refused(&error),
        }
    }
}
