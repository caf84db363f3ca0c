//! Members and operators who logged in: who an access token of the login issuer is.
//!
//! What keeps the issuer's keys from being fetched is our matter: an alarm, and never a refusal of the
//! caller.

use std::time::Duration;

use callers::{
    Jwt,
    login::{
        Audience, Issuer, KeyTimes, Login, LoginError, LoginRefusal, LoginSettings, LoginTrouble,
        LoginVerifier,
    },
};
use https_client::{RootsError, roots_from_pem_file};
use service_kit::{Alarms, Settings, telemetry::error_chain};
use tokio::time::{MissedTickBehavior, interval};

use crate::{limits::Limits, start::Clock, state::ALARM_LOGIN};

const ISSUER: &str = "SITE_API_LOGIN_ISSUER";
const AUDIENCE: &str = "SITE_API_LOGIN_AUDIENCE";
const CA: &str = "SITE_API_LOGIN_CA_FILE";

/// Why the rest of the settings is asked for.
const ALL_OR_NONE: &str = "to take access tokens the process needs to know their issuer, its own audience in them, and what vouches for the issuer's server";

/// How often it is looked whether it is time to fetch the keys again, while there is an alarm.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// `None` in it for a listener that takes no access tokens. `None` around it where a setting is wrong;
/// every mistake is recorded then.
pub(crate) fn read(settings: &mut Settings, limits: &Limits) -> Option<Option<LoginSettings>> {
    let names = [ISSUER, AUDIENCE, CA];
    let are_set = names.map(|name| settings.is_set(name));
    if !are_set.contains(&true) {
        return Some(None);
    }
    for (name, is_set) in names.into_iter().zip(are_set) {
        if !is_set {
            settings.mistake(name, format!("is not set: {ALL_OR_NONE}"));
        }
    }
    let issuer = settings.optional(ISSUER, Issuer::parse);
    let audience = settings.optional(AUDIENCE, Audience::parse);
    let ca_file = settings.optional_path(CA).and_then(|path| match roots_from_pem_file(&path) {
        Ok(_) => Some(path),
        Err(error) => {
            settings.mistake(CA, format!("{}: {}", path.display(), error_chain(&error)));
            None
        }
    });
    Some(Some(LoginSettings {
        issuer: issuer?,
        audience: audience?,
        ca_file: ca_file?,
        times: KeyTimes::default(),
        strangers: limits.strangers(),
    }))
}

/// Answers who logged in. Clones share everything.
#[derive(Clone)]
pub(crate) struct Logins(Option<LoginVerifier>);

/// Why a token gives no member.
#[derive(Debug)]
pub(crate) enum NotLoggedIn {
    /// This listener takes no access tokens.
    NotTaken,
    /// It is no access token of a member for us.
    Refused(LoginRefusal),
    /// Nothing can be said about it.
    Unavailable(LoginTrouble),
    /// Too many tokens wait for the issuer's keys.
    Busy,
}

impl Logins {
    /// Those of a listener that takes no access tokens.
    pub(crate) fn none() -> Self {
        Self(None)
    }

    /// Those of these settings. Where the CA file has gone since, the setting is named.
    pub(crate) fn open(settings: LoginSettings, clock: Clock) -> Result<Self, String> {
        let told = |error: RootsError| format!("{CA}: {}", error_chain(&error));
        LoginVerifier::open(settings, clock).map(|verifier| Self(Some(verifier))).map_err(told)
    }

    /// Who logged in.
    pub(crate) async fn verify(&self, token: &Jwt) -> Result<Login, NotLoggedIn> {
        let verifier = self.0.as_ref().ok_or(NotLoggedIn::NotTaken)?;
        verifier.verify(token).await.map_err(|error| match error {
            LoginError::Refused(refusal) => NotLoggedIn::Refused(refusal),
            LoginError::Trouble(trouble) => NotLoggedIn::Unavailable(trouble),
            LoginError::Busy => NotLoggedIn::Busy,
            _ => NotLoggedIn::Unavailable(LoginTrouble::Ended),
        })
    }

    /// Whether a token says that it is of the login issuer: then it is nobody else's business.
    pub(crate) fn is_named_by(&self, token: &Jwt) -> bool {
        self.0.as_ref().is_some_and(|verifier| verifier.is_named_by(token))
    }

    /// Fetches the keys once, and again every few seconds for as long as they can't be fetched, which
    /// is the alarm. For ever; while there is none nothing is asked.
    pub(crate) async fn watch(self, alarms: Alarms) {
        let Some(verifier) = self.0 else { return };
        let mut trouble = verifier.trouble();
        let mut ticks = interval(LOOK_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        ticks.tick().await;
        verifier.refresh().await;
        loop {
            let reason = trouble.borrow_and_update().as_ref().map(|trouble| error_chain(trouble));
            match reason {
                Some(reason) => alarms.raise(ALARM_LOGIN, reason),
                None => alarms.clear(ALARM_LOGIN),
            }
            tokio::select! {
                changed = trouble.changed() => if changed.is_err() { return },
                _ = ticks.tick(), if alarms.is_raised(ALARM_LOGIN) => verifier.refresh().await,
            }
        }
    }
}
