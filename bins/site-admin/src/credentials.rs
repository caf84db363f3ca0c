//! `site-admin credentials`: native bearers and the grants file that lists them.

mod issue;
mod probe;
mod verify;

use std::{fmt, path::PathBuf};

use callers::{BearerId, Grant, Grants, RevokeError, Scope, SiteId, StoreError, WhichGrant, read};
use chrono::{DateTime, SecondsFormat, Utc};
use clap::{Args, Subcommand};
use ring::rand::SecureRandom;
use serde::Serialize;
use service_kit::error_chain;

use crate::{
    Failure,
    exit::Exit,
    manifest::{Manifest, namespace},
    output::{self, Format},
};

#[derive(Subcommand)]
pub(crate) enum Credentials {
    /// Issue a native bearer and add its grant to the grants file.
    ///
    /// Hands the bearer over, once: the grants file keeps only its digest. Where that fails there
    /// is no grant. Refused while the principal has an active grant: revoke that one, and prove
    /// that its bearer is refused, before another is issued. A running site-api takes the changed
    /// file within seconds of seeing it.
    Issue(issue::Issue),
    /// Revoke a grant, for ever: by the id of its bearer, or the active one of a principal.
    ///
    /// Revoking again changes nothing, says so and exits with 0. The bearer is refused as soon as
    /// site-api has read the changed file; `credentials probe` proves it.
    Revoke(Revoke),
    /// List the grants of a grants file, the newest last.
    List(List),
    /// Say whose a bearer is, and whether its grant is active: 0 if it is, else 77.
    ///
    /// It asks the grants file alone. Whether a running site-api lets the bearer in is what
    /// `credentials probe` asks.
    Verify(verify::Verify),
    /// Ask a Site API whether it lets a bearer in, and wait until it answers as expected.
    ///
    /// It sends one request that is wrong on purpose, so that nothing is read or changed: 401 means
    /// refused, any other answer of the Site API to the request itself means admitted. Exits with
    /// 77 where the answer is not the expected one, and with 69 where there is none.
    Probe(probe::Probe),
}

#[derive(Args)]
pub(crate) struct Revoke {
    #[command(flatten)]
    grants: GrantsFile,
    /// The id of the bearer: the 16 characters between `scnb_` and the point.
    #[arg(long, value_parser = |text: &str| BearerId::parse(text),
          required_unless_present = "scope", conflicts_with_all = ["scope", "site"])]
    id: Option<BearerId>,
    /// In place of the id: what the active bearer is for, commands or ssh-access.
    #[arg(long, value_parser = |text: &str| Scope::parse(text), requires = "site")]
    scope: Option<Scope>,
    /// The Site, together with the scope. The environments of a Site share one principal.
    #[arg(long, value_parser = |text: &str| SiteId::parse(text), requires = "scope")]
    site: Option<SiteId>,
    #[command(flatten)]
    secret: SecretArguments,
}

#[derive(Args)]
pub(crate) struct List {
    #[command(flatten)]
    grants: GrantsFile,
    #[command(flatten)]
    secret: SecretArguments,
}

#[derive(Args)]
struct GrantsFile {
    /// The grants file. It is replaced as a whole where it changes.
    #[arg(long, value_name = "FILE")]
    grants: PathBuf,
}

#[derive(Args)]
struct SecretArguments {
    /// Print the grants file, as it is then, as the Kubernetes Secret `site-api-grants`, for
    /// `kubectl apply -f -`. It holds digests and no bearer.
    #[arg(long)]
    secret: bool,
    /// The namespace of the Secret; without it the manifest names none.
    #[arg(long, requires = "secret", value_parser = namespace)]
    namespace: Option<String>,
}

pub(crate) async fn run(
    command: Credentials,
    format: Format,
    now: DateTime<Utc>,
    random: &dyn SecureRandom,
) -> Result<Exit, Failure> {
    match command {
        Credentials::Issue(arguments) => {
            issue::run(arguments, format, now, random).map(|()| Exit::Done)
        }
        Credentials::Revoke(arguments) => revoke(arguments, format, now).map(|()| Exit::Done),
        Credentials::List(arguments) => list(arguments, format, now).map(|()| Exit::Done),
        Credentials::Verify(arguments) => verify::run(&arguments, format, now),
        Credentials::Probe(arguments) => probe::run(arguments, format).await,
    }
}

fn revoke(arguments: Revoke, format: Format, now: DateTime<Utc>) -> Result<(), Failure> {
    let which = match (arguments.id, arguments.scope, arguments.site) {
        (Some(id), ..) => WhichGrant::Id(id),
        (None, Some(scope), Some(site)) => WhichGrant::Active { scope, site },
        // The parser of the arguments requires one of the two.
        _ => return Err(Failure::data("--id, or --scope and --site, is needed")),
    };
    let revoked = callers::revoke(&arguments.grants.grants, &which, now)?;
    let done = Revocation { grant: Row::of(&revoked.grant, now), changed: revoked.new };
    if arguments.secret.secret {
        output::say(&done);
        return arguments.secret.print(&arguments.grants, format, now);
    }
    format.print(&done)
}

fn list(arguments: List, format: Format, now: DateTime<Utc>) -> Result<(), Failure> {
    if arguments.secret.secret {
        return arguments.secret.print(&arguments.grants, format, now);
    }
    let grants = arguments.grants.read(now)?;
    format.heading(format_args!(
        "{:16} {:24} {:5} {:7} {:20} {:20} REVOKED",
        "ID", "PRINCIPAL", "ENV", "STATE", "ISSUED", "EXPIRES"
    ))?;
    grants.iter().try_for_each(|grant| format.print(&Row::of(grant, now)))
}

impl GrantsFile {
    fn read(&self, now: DateTime<Utc>) -> Result<Grants, Failure> {
        read(&self.grants, now).map_err(|error| match error {
            StoreError::Read { .. } => Failure::absent(error_chain(&error)),
            error => error.into(),
        })
    }
}

impl SecretArguments {
    /// Prints the state of the file now, which holds what this run has changed.
    fn print(self, file: &GrantsFile, format: Format, now: DateTime<Utc>) -> Result<(), Failure> {
        format.print(&Manifest::grants(file.read(now)?.to_json(), self.namespace))
    }
}

/// A grant as it is printed.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    id: String,
    principal: String,
    scope: &'static str,
    site: String,
    environment: Option<&'static str>,
    state: &'static str,
    issued_at: String,
    expires_at: String,
    revoked_at: Option<String>,
}

impl Row {
    fn of(grant: &Grant, now: DateTime<Utc>) -> Self {
        let principal = grant.principal();
        Self {
            id: grant.id().to_string(),
            principal: principal.to_string(),
            scope: principal.scope().as_str(),
            site: principal.site().to_string(),
            environment: principal.environment().map(callers::Environment::as_str),
            state: grant.state(now).as_str(),
            issued_at: time(grant.issued_at()),
            expires_at: time(grant.expires_at()),
            revoked_at: grant.revoked_at().map(time),
        }
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, principal, state, issued_at, expires_at, .. } = self;
        let environment = self.environment.unwrap_or("-");
        let revoked_at = self.revoked_at.as_deref().unwrap_or("-");
        write!(
            f,
            "{id:16} {principal:24} {environment:5} {state:7} {issued_at:20} {expires_at:20} \
             {revoked_at}"
        )
    }
}

/// What became of a grant that was to be revoked.
#[derive(Serialize)]
struct Revocation {
    #[serde(flatten)]
    grant: Row,
    changed: bool,
}

impl fmt::Display for Revocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Row { id, principal, .. } = &self.grant;
        let at = self.grant.revoked_at.as_deref().unwrap_or("-");
        if self.changed {
            return write!(f, "{principal} {id}: revoked at {at}");
        }
        write!(f, "{principal} {id}: was revoked already, at {at}; nothing was changed")
    }
}

fn time(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Secs, true)
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Invalid { .. } => Self::data(error_chain(&error)),
            error => Self::cannot_create(error_chain(&error)),
        }
    }
}

impl From<RevokeError> for Failure {
    fn from(error: RevokeError) -> Self {
        match error {
            RevokeError::Store(error) => error.into(),
            error => Self::absent(error.to_string()),
        }
    }
}
