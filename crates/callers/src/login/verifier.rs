//! From a token to who logged in.

use std::{fmt, path::PathBuf, sync::Arc};

use chrono::{DateTime, Utc};
use https_client::{HttpsClient, RootsError, roots_from_pem_file};
use tokio::sync::{Semaphore, watch};

use super::{
    Audience, Issuer, KeyTimes, Login, LoginError, LoginRefusal, LoginTrouble, Rules, SignedToken,
    cache::{KeyCache, Standing},
    source::{MOST_BYTES, Source},
    token::named_issuer,
};
use crate::jwt::Jwt;

/// Whose tokens are taken, and how.
#[derive(Clone, Debug)]
pub struct LoginSettings {
    /// Who signs them.
    pub issuer: Issuer,
    /// Us, for whom alone they must be.
    pub audience: Audience,
    /// The authorities that may vouch for the issuer's server, PEM. Read once.
    pub ca_file: PathBuf,
    /// For how long its keys are kept.
    pub times: KeyTimes,
    /// The most calls at once that wait for a fetch with a token for which no known key vouches, at
    /// least one: what nobody knows must not fill the memory of who waits.
    pub strangers: usize,
}

/// Verifies access tokens. Clones share everything.
#[derive(Clone)]
pub struct LoginVerifier(Arc<Inner>);

struct Inner {
    rules: Rules,
    clock: fn() -> DateTime<Utc>,
    cache: Arc<KeyCache>,
    strangers: Semaphore,
}

impl LoginVerifier {
    /// Reads the authorities. Nothing is fetched yet: an issuer that is away keeps nobody from the
    /// start.
    ///
    /// # Errors
    ///
    /// [`RootsError`].
    pub fn open(settings: LoginSettings, clock: fn() -> DateTime<Utc>) -> Result<Self, RootsError> {
        let LoginSettings { issuer, audience, ca_file, times, strangers } = settings;
        let roots = roots_from_pem_file(&ca_file)?;
        let client = HttpsClient::new(issuer.origin().clone(), roots, MOST_BYTES);
        let source = Source::new(client, issuer.clone());
        Ok(Self(Arc::new(Inner {
            rules: Rules { issuer, audience },
            clock,
            cache: Arc::new(KeyCache::new(source, times)),
            strangers: Semaphore::new(strangers.clamp(1, Semaphore::MAX_PERMITS)),
        })))
    }

    /// Who logged in, by their access token. Nobody is asked about the token; the issuer's keys are
    /// fetched where there are none, where they are old, and, now and then, where the token names one
    /// that is not there. It takes no longer than a fetch.
    ///
    /// # Errors
    ///
    /// [`LoginError`].
    pub async fn verify(&self, token: &Jwt) -> Result<Login, LoginError> {
        let outcome = self.0.verify(token).await;
        let word = match &outcome {
            Ok(_) => "accepted",
            Err(LoginError::Refused(_)) => "refused",
            Err(LoginError::Trouble(_)) => "trouble",
            Err(LoginError::Busy) => "busy",
        };
        metrics::counter!("logins_total", "outcome" => word).increment(1);
        outcome
    }

    /// Whether a token says that it is of this issuer. Nobody has verified that: it is good for nothing
    /// but to keep a member's token from somebody else who would be asked about it.
    #[must_use]
    pub fn is_named_by(&self, token: &Jwt) -> bool {
        named_issuer(token).is_some_and(|issuer| issuer == self.0.rules.issuer.as_str())
    }

    /// Fetches the keys, if it is time for that, and waits for what comes of it.
    pub async fn refresh(&self) {
        if let Some(fetch) = self.0.cache.fetch() {
            fetch.ended().await;
        }
    }

    /// Why the last fetch failed, where it did, as it changes.
    #[must_use]
    pub fn trouble(&self) -> watch::Receiver<Option<LoginTrouble>> {
        self.0.cache.trouble()
    }
}

impl fmt::Debug for LoginVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoginVerifier").field("rules", &self.0.rules).finish_non_exhaustive()
    }
}

impl Inner {
    async fn verify(&self, jwt: &Jwt) -> Result<Login, LoginError> {
        let token = SignedToken::read(jwt)?;
        let login = token.claims.judge(&self.rules, (self.clock)())?;
        let standing = self.cache.standing();
        let verdict = standing.check(&token);
        if !standing.is_fresh || verdict == Err(LoginRefusal::UnknownKey) {
            match (verdict, self.cache.fetch()) {
                // It is too soon to ask again.
                (_, None) => {}
                // The issuer was away a moment ago, so its last good keys count. Who has one of those
                // waits for nobody; the fetch goes on by itself.
                (Ok(()), Some(_)) if standing.trouble.is_some() => {}
                (Ok(()), Some(fetch)) => fetch.ended().await,
                (Err(_), Some(fetch)) => {
                    let _place = self.strangers.try_acquire().map_err(|_| LoginError::Busy)?;
                    fetch.ended().await;
                }
            }
        }
        let standing = self.cache.standing();
        match (standing.check(&token), standing) {
            (Err(_), Standing { keys: None, trouble, .. }) => {
                Err(trouble.unwrap_or(LoginTrouble::Ended).into())
            }
            // The key may be one that the issuer has by now.
            (Err(LoginRefusal::UnknownKey), Standing { trouble: Some(trouble), .. }) => {
                Err(trouble.into())
            }
            (verdict, _) => verdict.map(|()| login).map_err(LoginError::from),
        }
    }
}

impl Standing {
    /// Whether one of the keys vouches for a token. Without any it is as if its key were not there.
    fn check(&self, token: &SignedToken<'_>) -> Result<(), LoginRefusal> {
        self.keys.as_ref().ok_or(LoginRefusal::UnknownKey)?.verify(token)
    }
}
