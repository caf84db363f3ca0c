//! `site-admin credentials`: native bearers and the grants file that lists them.

use std::{path::PathBuf, time::Duration};

use callers::{Environment, IssueError, NativeBearer, Principal, Scope, SiteId, StoreError, issue};
use chrono::{DateTime, Utc};
use clap::{Args, Subcommand};
use ring::rand::SecureRandom;
use secrecy::zeroize::Zeroizing;
use service_kit::error_chain;

use crate::{Failure, new_files::NewFiles, output};

#[derive(Subcommand)]
pub(crate) enum Credentials {
    /// Issue a native bearer and add its grant to the grants file.
    ///
    /// Hands the bearer over, once: the grants file keeps only its digest. Where that fails there
    /// is no grant. Refused while the principal has an active grant. A running site-api reads the
    /// file at its next start.
    Issue(Issue),
}

#[derive(Args)]
pub(crate) struct Issue {
    /// The grants file; made when it is absent, replaced as a whole.
    #[arg(long, value_name = "FILE")]
    grants: PathBuf,
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
    /// A new file for the bearer, with mode 0600; without it the bearer is printed.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub(crate) fn run(
    command: Credentials,
    now: DateTime<Utc>,
    random: &dyn SecureRandom,
) -> Result<(), Failure> {
    let Credentials::Issue(Issue { grants, scope, site, environment, days, out }) = command;
    let principal = match (scope, environment) {
        (Scope::Commands, Some(environment)) => Principal::Commands { site, environment },
        (Scope::SshAccess, None) => Principal::SshAccess { site },
        (Scope::Commands, None) => {
            return Err(Failure::data("--scope commands needs --environment"));
        }
        (Scope::SshAccess, Some(_)) => {
            return Err(Failure::data("--scope ssh-access has no --environment"));
        }
    };
    let life = Duration::from_secs(u64::from(days) * 24 * 60 * 60);
    let mut file = NewFiles::default();
    let hand_over = |bearer: NativeBearer| match &out {
        Some(out) => {
            let line = Zeroizing::new([bearer.expose(), "\n"].concat());
            file.write(out, &line, 0o600).map_err(NotIssued::HandOver)
        }
        None => output::hand_over(bearer.expose()).map_err(NotIssued::HandOver),
    };
    let issued = issue(&grants, principal, life, now, random, hand_over);
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
    Ok(())
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
            IssueError::Store(error @ StoreError::Invalid { .. }) => {
                Self::data(error_chain(&error))
            }
            IssueError::Store(error) => Self::cannot_create(error_chain(&error)),
            error => Self::refused(&error),
        }
    }
}
