//! `site-admin credentials probe`: what a running Site API says to a bearer.

use std::{fmt, path::PathBuf, time::Duration};

use clap::{Args, ValueEnum};
use serde::Serialize;
use service_kit::error_chain;
use site_client::{CallError, Origin, PollRequest, SiteClient, Timeouts, TokenFile, Writer};
use tokio::time::{Instant, sleep};

use crate::{Failure, exit::Exit, output::Format};

/// Between two questions.
const PAUSE: Duration = Duration::from_millis(500);

#[derive(Args)]
pub(crate) struct Probe {
    /// The Site API, `https://host[:port]`.
    #[arg(long, value_parser = |text: &str| Origin::parse(text))]
    url: Origin,
    /// The CA certificates that may vouch for it, in PEM; nothing else is trusted.
    #[arg(long, value_name = "FILE")]
    ca_file: PathBuf,
    /// The file that holds the bearer.
    #[arg(long, value_name = "FILE")]
    bearer: PathBuf,
    /// What the answer should be.
    #[arg(long, value_enum, default_value_t = Expected::Admitted)]
    expect: Expected,
    /// For how many seconds it is asked again, until it answers as expected.
    #[arg(long, value_name = "SECONDS", default_value_t = 0,
          value_parser = clap::value_parser!(u64).range(..=3600))]
    within: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
enum Expected {
    /// The bearer is let in.
    Admitted,
    /// It gets 401.
    Refused,
}

pub(super) async fn run(arguments: Probe, format: Format) -> Result<Exit, Failure> {
    let roots = site_client::roots_from_pem_file(&arguments.ca_file);
    let roots = roots.map_err(|error| named(&arguments.ca_file, &error))?;
    let token = TokenFile::open(&arguments.bearer).await;
    let token = token.map_err(|error| named(&arguments.bearer, &error))?;
    let client = SiteClient::new(arguments.url, roots, token, Timeouts::default());
    let until = Instant::now() + Duration::from_secs(arguments.within);
    loop {
        let asked = ask(&client).await;
        let last = Instant::now() + PAUSE > until;
        match asked {
            Ok(answer) if answer.answer == arguments.expect => {
                format.print(&answer)?;
                return Ok(Exit::Done);
            }
            Ok(answer) if last => {
                format.print(&answer)?;
                return Ok(Exit::NotAdmitted);
            }
            Err(error) if last => return Err(Failure::unavailable(&error)),
            Ok(_) | Err(_) => sleep(PAUSE).await,
        }
    }
}

/// No page is as long as this, so a bearer that is let in gets 422 before anything is read.
async fn ask(client: &SiteClient) -> Result<Answer, CallError> {
    let wrong = PollRequest {
        writer: Writer::FIRST,
        after: 0,
        after_digest: None,
        cancel_rev: 0,
        limit: u32::MAX,
        wait: Duration::ZERO,
    };
    match client.poll(&wrong).await {
        Ok(_) => Ok(Answer { answer: Expected::Admitted, status: 200, code: None }),
        Err(CallError::Problem(problem)) if problem.status < 500 && problem.status != 429 => {
            let refused = problem.status == 401;
            let answer = if refused { Expected::Refused } else { Expected::Admitted };
            Ok(Answer { answer, status: problem.status, code: Some(problem.code) })
        }
        Err(error) => Err(error),
    }
}

fn named(file: &std::path::Path, error: &dyn std::error::Error) -> Failure {
    Failure::absent(format!("{}: {}", file.display(), error_chain(error)))
}

#[derive(Serialize)]
struct Answer {
    answer: Expected,
    status: u16,
    code: Option<String>,
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let answer = match self.answer {
            Expected::Admitted => "admitted",
            Expected::Refused => "refused",
        };
        write!(f, "{answer}: {}", self.status)?;
        self.code.iter().try_for_each(|code| write!(f, " {code}"))
    }
}
