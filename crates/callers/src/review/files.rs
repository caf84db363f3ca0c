//! Our reviewer's token and the cluster's CA, from files that somebody else renews.

use std::{
    error::Error,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use https_client::{
    BearerToken, HttpsClient, Origin, RootsError, TokenFileError, read_pem_file, roots_from_pem,
};
use tokio::time::{Instant, timeout_at};

/// The largest answer that is read, in bytes. A review is a few KiB.
const MOST_ANSWER_BYTES: usize = 64 * 1024;

/// With what the API server is asked. The files are read again each time, and what can't be read or
/// used keeps the last that was good.
pub(super) struct Files {
    paths: Paths,
    origin: Origin,
    in_force: Mutex<InForce>,
    /// One reading at a time: a file system that hangs holds one thread and no more.
    reading: Arc<tokio::sync::Mutex<()>>,
}

/// What is in force at a moment.
#[derive(Clone)]
pub(super) struct Means {
    /// Our reviewer's token.
    pub(super) token: BearerToken,
    /// A client that trusts the cluster's CA and nothing else.
    pub(super) client: HttpsClient,
}

#[derive(Clone)]
struct Paths {
    token: PathBuf,
    ca: PathBuf,
}

struct InForce {
    means: Means,
    /// The text of the CA file of which the client was made.
    ca: Vec<u8>,
    /// What was told last of a file that can't be used, until it can.
    token_trouble: Option<String>,
    ca_trouble: Option<String>,
}

struct Found {
    token: Result<BearerToken, TokenFileError>,
    ca: Result<Vec<u8>, RootsError>,
}

/// What stands in the way at the start.
pub(super) enum Unusable {
    Token(TokenFileError),
    Ca(RootsError),
}

impl Files {
    /// Reads both for the first time, and waits for their file system.
    pub(super) fn open(origin: Origin, token: PathBuf, ca: PathBuf) -> Result<Self, Unusable> {
        let paths = Paths { token, ca };
        let Found { token, ca } = paths.read();
        let token = token.map_err(Unusable::Token)?;
        let ca = ca.map_err(Unusable::Ca)?;
        let client = client(&origin, &ca).map_err(Unusable::Ca)?;
        let means = Means { token, client };
        let in_force = InForce { means, ca, token_trouble: None, ca_trouble: None };
        let reading = Arc::default();
        Ok(Self { paths, origin, in_force: Mutex::new(in_force), reading })
    }

    /// Reads both again, and says what is in force then. Where they can't be read until `until`, what
    /// was in force stays.
    pub(super) async fn read(&self, until: Instant) -> Means {
        let paths = self.paths.clone();
        let reading = async {
            let turn = Arc::clone(&self.reading).lock_owned().await;
            tokio::task::spawn_blocking(move || {
                let found = paths.read();
                drop(turn);
                found
            })
            .await
        };
        match timeout_at(until, reading).await {
            Ok(Ok(found)) => self.take(found),
            // A reading that panicked was told by the hook.
            Ok(Err(_)) | Err(_) => self.keep(),
        }
    }

    fn take(&self, found: Found) -> Means {
        let mut guard = self.in_force.lock().unwrap_or_else(PoisonError::into_inner);
        let InForce { means, ca, token_trouble, ca_trouble } = &mut *guard;
        match found.token {
            Ok(token) => {
                means.token = token;
                *token_trouble = None;
            }
            Err(error) => tell(token_trouble, &self.paths.token, told(&error)),
        }
        match found.ca {
            Ok(text) if text == *ca => *ca_trouble = None,
            Ok(text) => match client(&self.origin, &text) {
                Ok(client) => {
                    means.client = client;
                    *ca = text;
                    *ca_trouble = None;
                    tracing::info!(file = %self.paths.ca.display(), "token_review.ca_replaced");
                }
                Err(error) => tell(ca_trouble, &self.paths.ca, told(&error)),
            },
            Err(error) => tell(ca_trouble, &self.paths.ca, told(&error)),
        }
        means.clone()
    }

    /// Both are kept, as neither could be read.
    fn keep(&self) -> Means {
        let mut guard = self.in_force.lock().unwrap_or_else(PoisonError::into_inner);
        // Without its time: a reason that changes would be told again.
        let reason = "the file system did not answer in time".to_owned();
        let InForce { means, token_trouble, ca_trouble, .. } = &mut *guard;
        tell(token_trouble, &self.paths.token, reason.clone());
        tell(ca_trouble, &self.paths.ca, reason);
        means.clone()
    }
}

impl Paths {
    fn read(&self) -> Found {
        Found { token: BearerToken::read(&self.token), ca: read_pem_file(&self.ca) }
    }
}

fn client(origin: &Origin, ca: &[u8]) -> Result<HttpsClient, RootsError> {
    let roots = roots_from_pem(ca)?;
    Ok(HttpsClient::new(origin.clone(), roots, MOST_ANSWER_BYTES))
}

/// Once for each reason, as the files are read with each review.
fn tell(last: &mut Option<String>, file: &Path, reason: String) {
    if last.as_ref() != Some(&reason) {
        tracing::error!(
            file = %file.display(),
            error = reason,
            detail = "what it held when it was good stays in use",
            "token_review.file_kept"
        );
        *last = Some(reason);
    }
}

fn told(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        text = format!("{text}: {source}");
        next = source.source();
    }
    text
}
