//! `site-admin credentials verify`.

use std::{
    fmt,
    fs::File,
    io::{self, Read},
    path::PathBuf,
};

use callers::NativeBearer;
use chrono::{DateTime, Utc};
use clap::Args;
use secrecy::zeroize::Zeroizing;
use serde::Serialize;

use super::{GrantsFile, Row};
use crate::{Failure, exit::Exit, output::Format};

/// More than any bearer has, in bytes.
const LIMIT_BYTES: usize = 1024;

#[derive(Args)]
pub(crate) struct Verify {
    #[command(flatten)]
    grants: GrantsFile,
    /// The file that holds the bearer, `-` for standard input.
    #[arg(long, value_name = "FILE", default_value = "-")]
    bearer: PathBuf,
}

pub(super) fn run(arguments: &Verify, format: Format, now: DateTime<Utc>) -> Result<Exit, Failure> {
    let grants = arguments.grants.read(now)?;
    let bearer = bearer(&arguments.bearer)?;
    let (verdict, exit) = match grants.find(&bearer) {
        Ok(grant) if grant.is_active(now) => (Verdict::Known(Row::of(grant, now)), Exit::Done),
        Ok(grant) => (Verdict::Known(Row::of(grant, now)), Exit::NotAdmitted),
        Err(refused) => {
            let (id, state) = (bearer.id().to_string(), "unknown");
            (Verdict::Unknown { id, state, reason: refused.to_string() }, Exit::NotAdmitted)
        }
    };
    format.print(&verdict)?;
    Ok(exit)
}

/// Reads a bearer with one line break at most after it. No message repeats it.
fn bearer(file: &PathBuf) -> Result<NativeBearer, Failure> {
    let name = file.display();
    let source: Result<Box<dyn Read>, io::Error> = if file.as_os_str() == "-" {
        Ok(Box::new(io::stdin()))
    } else {
        File::open(file).map(|file| Box::new(file) as Box<dyn Read>)
    };
    let mut text = Zeroizing::new(String::with_capacity(LIMIT_BYTES));
    source
        .and_then(|source| source.take(LIMIT_BYTES as u64).read_to_string(&mut text))
        .map_err(|error| Failure::absent(format!("{name}: {error}")))?;
    let line = text.strip_suffix('\n').unwrap_or(&text);
    NativeBearer::parse(line).map_err(|error| Failure::data(format!("{name}: {error}")))
}

/// Whose a bearer is.
#[derive(Serialize)]
#[serde(untagged)]
enum Verdict {
    Known(Row),
    Unknown { id: String, state: &'static str, reason: String },
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(Row { id, principal, state, expires_at, revoked_at, .. }) => {
                write!(f, "{principal} {id}: {state}")?;
                match revoked_at {
                    Some(at) => write!(f, " at {at}"),
                    None => write!(f, ", its life ends at {expires_at}"),
                }
            }
            Self::Unknown { id, reason, .. } => write!(f, "{id}: {reason}"),
        }
    }
}
