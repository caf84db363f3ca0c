//! What the process is told about a cluster: all that it needs to review tokens, or nothing.

use std::{convert::Infallible, path::Path, path::PathBuf};

use callers::{
    SubjectErrors, SubjectGrants,
    review::{OpenError, Reviewer, ReviewerSettings},
};
use https_client::{BearerToken, Origin, roots_from_pem_file};
use ring::rand::SecureRandom;
use service_kit::{Settings, error_chain};

use crate::{limits::Limits, start::Clock};

const RUNTIMES: &str = "SITE_API_GRANTS_JSON";
const ADMISSIONS: &str = "SITE_API_AUTHORITY_GRANTS_JSON";
const URL: &str = "SITE_API_TOKEN_REVIEW_URL";
const CA: &str = "SITE_API_TOKEN_REVIEW_CA_FILE";
const TOKEN: &str = "SITE_API_TOKEN_REVIEW_TOKEN_FILE";
const AUDIENCE: &str = "SITE_API_RUNTIME_AUDIENCE";

/// The audience of a Runtime's token where nothing else is said.
const DEFAULT_AUDIENCE: &str = "site-control";
const LONGEST_AUDIENCE: usize = 253;

/// Who is let in, and where their tokens are reviewed.
pub(crate) struct ReviewSettings {
    /// The two maps.
    pub(crate) grants: SubjectGrants,
    /// Where and how.
    pub(crate) reviewer: ReviewerSettings,
}

/// `None` in it for a listener that takes no tokens of a cluster. `None` around it where a setting is
/// wrong; every mistake is recorded then.
pub(crate) fn read(settings: &mut Settings, limits: &Limits) -> Option<Option<ReviewSettings>> {
    let maps = [RUNTIMES, ADMISSIONS].map(|name| settings.is_set(name));
    let means = [URL, CA, TOKEN].map(|name| settings.is_set(name));
    let audience = settings.or_default(AUDIENCE, DEFAULT_AUDIENCE.to_owned(), audience);
    if !maps.contains(&true) && !means.contains(&true) {
        return Some(None);
    }
    let grants = grants(settings);
    if !maps.contains(&true) {
        let reason = format!("is not set, and neither is {ADMISSIONS}: {ALL_OR_NONE}");
        settings.mistake(RUNTIMES, reason);
    }
    for (name, is_set) in [URL, CA, TOKEN].into_iter().zip(means) {
        if !is_set {
            settings.mistake(name, format!("is not set: {ALL_OR_NONE}"));
        }
    }
    let origin = settings.optional(URL, Origin::parse);
    let ca_file = file(settings, CA, |path| {
        roots_from_pem_file(path).map(drop).map_err(|error| error_chain(&error))
    });
    let token_file = file(settings, TOKEN, |path| {
        BearerToken::read(path).map(drop).map_err(|error| error_chain(&error))
    });
    let grants = grants?;
    let reviewer = ReviewerSettings {
        origin: origin?,
        ca_file: ca_file?,
        token_file: token_file?,
        audience,
        budget: limits.token_review,
        cache_for: limits.token_review_cache,
        in_flight: limits.token_reviews,
        requests: limits.requests,
        granted: grants.clone(),
    };
    Some(Some(ReviewSettings { grants, reviewer }))
}

/// Why the rest of the settings is asked for.
const ALL_OR_NONE: &str = "to take tokens of ServiceAccounts the process needs to know who is granted what, and the API server, its CA and our token";

/// The reviewer of these settings. Where its files have gone since, the setting is named.
pub(crate) fn open(
    settings: ReviewerSettings,
    random: &dyn SecureRandom,
    clock: Clock,
) -> Result<Reviewer, String> {
    Reviewer::open(settings, random, clock).map_err(|error| {
        let name = match error {
            OpenError::Token(_) => TOKEN,
            OpenError::Ca(_) => CA,
            _ => URL,
        };
        format!("{name}: {}", error_chain(&error))
    })
}

fn grants(settings: &mut Settings) -> Option<SubjectGrants> {
    let mut text = |name| settings.optional(name, |text| Ok::<_, Infallible>(text.to_owned()));
    let (runtimes, admissions) = (text(RUNTIMES), text(ADMISSIONS));
    let parsed = SubjectGrants::parse(runtimes.as_deref(), admissions.as_deref());
    let errors = match parsed {
        Ok(grants) => return Some(grants),
        Err(errors) => errors,
    };
    let SubjectErrors { runtimes, admissions } = errors;
    for (name, mistakes) in [(RUNTIMES, runtimes), (ADMISSIONS, admissions)] {
        for mistake in mistakes {
            settings.mistake(name, mistake);
        }
    }
    None
}

/// A file that must be of use now.
fn file(
    settings: &mut Settings,
    name: &str,
    look: impl FnOnce(&Path) -> Result<(), String>,
) -> Option<PathBuf> {
    // Where it is not there at all, that is told already.
    let path = settings.is_set(name).then(|| settings.required_path(name)).flatten()?;
    match look(&path) {
        Ok(()) => Some(path),
        Err(reason) => {
            settings.mistake(name, format!("{}: {reason}", path.display()));
            None
        }
    }
}

fn audience(text: &str) -> Result<String, String> {
    let good = text.len() <= LONGEST_AUDIENCE && text.bytes().all(|byte| byte.is_ascii_graphic());
    if good {
        Ok(text.to_owned())
    } else {
        Err(format!("must be 1 to {LONGEST_AUDIENCE} characters of visible ASCII"))
    }
}
