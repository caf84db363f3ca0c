//! `site-admin beto respond`: answers by a policy file.

use std::{fmt, io, path::PathBuf, time::Duration};

use ::broker::{Broker, BrokerUrl, BrokerUrlError, Trust};
use beto::{About, Asked, Decision, Heard, Responder, ResponderError};
use clap::Args;
use futures_util::StreamExt;
use serde::Serialize;
use service_kit::{Settings, error_chain, process_signals};

use super::policy::Policy;
use crate::{
    Failure,
    output::{self, Format},
};

const BROKER_URL: &str = "BETO_RESPONDER_BROKER_URL";
const BROKER_CA: &str = "BETO_RESPONDER_BROKER_CA_FILE";

/// How long the broker may take for everything up to the first question.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);
/// Between two attempts to connect.
const PAUSE: Duration = Duration::from_secs(1);

#[derive(Args)]
pub(crate) struct Respond {
    /// The policy: JSON with `version` and `rules`, see docs/BETO.md.
    #[arg(long, value_name = "FILE")]
    policy: PathBuf,
}

/// Answers until a signal comes.
pub(crate) async fn run(arguments: Respond, format: Format) -> Result<(), Failure> {
    let mut settings = Settings::from_process();
    let broker = broker(&mut settings);
    let broker = settings.accept(broker)?;
    let mut policy = PolicyFile::open(arguments.policy).await?;
    let mut signals = process_signals().map_err(|error| Failure::refused(&error))?;
    tokio::select! {
        _ = signals.next() => Ok(()),
        ended = answer_for_ever(&broker, &mut policy, format) => ended,
    }
}

fn broker(settings: &mut Settings) -> Option<Broker> {
    let url: Option<BrokerUrl> = settings
        .required_secret_as(BROKER_URL, |text| text.parse().map_err(BrokerUrlError::reason));
    let trust = match settings.optional_path(BROKER_CA) {
        None => None,
        Some(path) => match Trust::from_pem_file(&path) {
            Ok(trust) => Some(trust),
            Err(error) => {
                let wrong = format!("{}: {}", path.display(), error_chain(&error));
                settings.mistake(BROKER_CA, wrong);
                return None;
            }
        },
    };
    let broker = Broker::new(url?, trust);
    broker.map_err(|error| settings.mistake(BROKER_CA, error.to_string())).ok()
}

/// Connects again whenever the connection is lost. Ends only where nothing can be printed.
async fn answer_for_ever(
    broker: &Broker,
    policy: &mut PolicyFile,
    format: Format,
) -> Result<(), Failure> {
    loop {
        match Responder::connect(broker, CONNECT_WITHIN).await {
            Ok(mut responder) => {
                output::say("answers questions now, for development and tests");
                let lost = answer(&mut responder, policy, format).await?;
                output::say(format_args!("the connection was lost: {}", error_chain(&lost)));
            }
            Err(error) => output::say(format_args!("can't answer yet: {}", error_chain(&error))),
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Answers over one connection, and says why it ended.
async fn answer(
    responder: &mut Responder,
    policy: &mut PolicyFile,
    format: Format,
) -> Result<ResponderError, Failure> {
    loop {
        match responder.next().await {
            Ok(Heard::Question(asked)) => {
                let decision = policy.now().await.map(|policy| policy.decide(&asked.question));
                let answered = decision.map(|decision| Answered::new(&asked, decision));
                if let Err(error) = responder.answer(asked, decision).await {
                    return Ok(error);
                }
                answered.map_or(Ok(()), |answered| format.print(&answered))?;
            }
            Ok(Heard::Dropped(refusal)) => {
                output::say(format_args!("a message is not answered: {refusal}"));
            }
            Err(error) => return Ok(error),
        }
    }
}

/// The policy file, read again for each question.
struct PolicyFile {
    path: PathBuf,
    /// What it held, and what that means; none while it is wrong.
    read: Vec<u8>,
    policy: Option<Policy>,
}

impl PolicyFile {
    /// Reads it for the first time.
    async fn open(path: PathBuf) -> Result<Self, Failure> {
        let shown = path.display();
        let cannot = |error: io::Error| Failure::absent(format!("{shown}: {error}"));
        let read = tokio::fs::read(&path).await.map_err(cannot)?;
        let policy = Policy::parse(&read)
            .map_err(|mistakes| Failure::data(format!("{shown}:\n{}", mistakes.join("\n"))))?;
        Ok(Self { path, read, policy: Some(policy) })
    }

    /// The policy that is in force; none while there is no usable one, which is said once.
    async fn now(&mut self) -> Option<&Policy> {
        let wrong = match tokio::fs::read(&self.path).await {
            Ok(read) if read == self.read => return self.policy.as_ref(),
            Ok(read) => {
                let parsed = Policy::parse(&read);
                self.read = read;
                match parsed {
                    Ok(policy) => return Some(self.policy.insert(policy)),
                    Err(mistakes) => mistakes.join("\n"),
                }
            }
            Err(error) => {
                // What it holds when it is back is read anew.
                self.read.clear();
                error.to_string()
            }
        };
        let shown = self.path.display();
        output::say(format_args!("{shown}: nothing is answered while it is wrong:\n{wrong}"));
        self.policy = None;
        None
    }
}

/// A question that was answered.
#[derive(Serialize)]
struct Answered {
    decision: &'static str,
    caller: &'static str,
    permission: &'static str,
    member: String,
    project: Option<String>,
    tenant: Option<String>,
    site: String,
}

impl Answered {
    fn new(asked: &Asked, decision: Decision) -> Self {
        let question = &asked.question;
        let (project, tenant) = match question.about() {
            About::Project(project) => (Some(project.as_str().to_owned()), None),
            About::Tenant(tenant) => (None, Some(tenant.as_str().to_owned())),
        };
        Self {
            decision: decision.as_str(),
            caller: asked.caller.user(),
            permission: question.permission().as_str(),
            member: question.member().as_str().to_owned(),
            project,
            tenant,
            site: question.site().as_str().to_owned(),
        }
    }
}

impl fmt::Display for Answered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { decision, caller, permission, member, project, tenant, site } = self;
        write!(f, "{decision}: {caller} asks {permission} for {member}")?;
        match (project, tenant) {
            (Some(project), _) => write!(f, " in {project} at {site}"),
            (None, tenant) => write!(f, " of {} at {site}", tenant.as_deref().unwrap_or_default()),
        }
    }
}
