//! Our reviewer's token and the cluster's CA, from files that somebody else renews.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use errors::error_chain;
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
    ca_texts: CaTexts,
    /// What was told last of a file that can't be used, until it can.
    token_trouble: Option<String>,
    ca_trouble: Option<String>,
}

/// What the CA file held. A text is parsed once, and not again for as long as it stays.
#[derive(Clone)]
struct CaTexts {
    /// That of which the client was made.
    used: Arc<[u8]>,
    /// The last that could not be used, and why.
    refused: Option<(Arc<[u8]>, String)>,
}

struct Found {
    token: Result<BearerToken, TokenFileError>,
    ca: Ca,
}

/// What the CA file holds.
enum Ca {
    /// What is in force.
    Used,
    /// What was refused before, with the reason.
    StillRefused(String),
    /// Another one that is good, with its client.
    New(Arc<[u8]>, Box<HttpsClient>),
    /// Another one that can't be used.
    Refused(Arc<[u8]>, RootsError),
    /// It can't be read.
    Unread(RootsError),
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
        let token = BearerToken::read(&paths.token).map_err(Unusable::Token)?;
        let used: Arc<[u8]> = read_pem_file(&paths.ca).map_err(Unusable::Ca)?.into();
        let client = client(&origin, &used).map_err(Unusable::Ca)?;
        let means = Means { token, client };
        let ca_texts = CaTexts { used, refused: None };
        let in_force = InForce { means, ca_texts, token_trouble: None, ca_trouble: None };
        let reading = Arc::default();
        Ok(Self { paths, origin, in_force: Mutex::new(in_force), reading })
    }

    /// Reads both again, and says what is in force then. Where they can't be read until `until`, what
    /// was in force stays.
    pub(super) async fn read(&self, until: Instant) -> Means {
        let (paths, origin) = (self.paths.clone(), self.origin.clone());
        let reading = async {
            let turn = Arc::clone(&self.reading).lock_owned().await;
            let ca_texts = self.ca_texts();
            // Another CA is parsed there as well: it may be large.
            tokio::task::spawn_blocking(move || (paths.read(&origin, &ca_texts), turn)).await
        };
        match timeout_at(until, reading).await {
            // The turn ends when it is in force, so that no older reading follows a newer one.
            Ok(Ok((found, _turn))) => self.take(found),
            // A reading that panicked was told by the hook.
            Ok(Err(_)) | Err(_) => self.keep(),
        }
    }

    fn ca_texts(&self) -> CaTexts {
        self.in_force.lock().unwrap_or_else(PoisonError::into_inner).ca_texts.clone()
    }

    fn take(&self, found: Found) -> Means {
        let mut guard = self.in_force.lock().unwrap_or_else(PoisonError::into_inner);
        let InForce { means, ca_texts, token_trouble, ca_trouble } = &mut *guard;
        match found.token {
            Ok(token) => {
                means.token = token;
                *token_trouble = None;
            }
            Err(error) => tell(token_trouble, &self.paths.token, error_chain(&error)),
        }
        match found.ca {
            Ca::Used => *ca_trouble = None,
            Ca::New(text, client) => {
                means.client = *client;
                *ca_texts = CaTexts { used: text, refused: None };
                *ca_trouble = None;
                tracing::info!(file = %self.paths.ca.display(), "token_review.ca_replaced");
            }
            Ca::StillRefused(reason) => tell(ca_trouble, &self.paths.ca, reason),
            Ca::Refused(text, error) => {
                let reason = error_chain(&error);
                ca_texts.refused = Some((text, reason.clone()));
                tell(ca_trouble, &self.paths.ca, reason);
            }
            Ca::Unread(error) => tell(ca_trouble, &self.paths.ca, error_chain(&error)),
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
    fn read(&self, origin: &Origin, known: &CaTexts) -> Found {
        Found { token: BearerToken::read(&self.token), ca: self.ca(origin, known) }
    }

    fn ca(&self, origin: &Origin, known: &CaTexts) -> Ca {
        let text = match read_pem_file(&self.ca) {
            Ok(text) => text,
            Err(error) => return Ca::Unread(error),
        };
        if *text == *known.used {
            return Ca::Used;
        }
        if let Some((refused, reason)) = &known.refused
            && *text == **refused
        {
            return Ca::StillRefused(reason.clone());
        }
        let text: Arc<[u8]> = text.into();
        match client(origin, &text) {
            Ok(client) => Ca::New(text, Box::new(client)),
            Err(error) => Ca::Refused(text, error),
        }
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

#[cfg(test)]
mod tests {
    use std::fs;

    use test_support::TestCa;

    use super::*;

    #[tokio::test]
    async fn a_text_is_parsed_once_for_as_long_as_it_stays() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name);
        let origin = Origin::parse("https://kube").unwrap();
        let (good, other) = (TestCa::new().cert_pem(), TestCa::new().cert_pem());
        fs::write(file("token"), "token").unwrap();
        fs::write(file("ca"), &good).unwrap();
        let files = Files::open(origin.clone(), file("token"), file("ca")).ok().unwrap();
        let soon = Instant::now() + std::time::Duration::from_secs(60);
        let found = |text: &str| {
            fs::write(file("ca"), text).unwrap();
            files.paths.ca(&origin, &files.ca_texts())
        };
        assert!(matches!(found(&good), Ca::Used));
        assert!(matches!(found("broken"), Ca::Refused(..)));
        files.read(soon).await;
        assert!(matches!(found("broken"), Ca::StillRefused(_)));
        // Another one that is broken is looked at, and so is one that is good.
        assert!(matches!(found("as broken"), Ca::Refused(..)));
        assert!(matches!(found(&other), Ca::New(..)));
        files.read(soon).await;
        assert!(matches!(found(&other), Ca::Used));
        assert!(matches!(found(&good), Ca::New(..)));
        fs::remove_file(file("ca")).unwrap();
        assert!(matches!(files.paths.ca(&origin, &files.ca_texts()), Ca::Unread(_)));
    }
}
