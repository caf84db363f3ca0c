//! What the process is told about execution authority: all that it needs, or that there is none.

use beto::{Caller, RESPONDER, Setup};
use broker::{Broker, BrokerUrl, BrokerUrlError, Trust};
use database::{DatabaseUrl, DatabaseUrlError};
use service_kit::{Settings, telemetry::error_chain};

use crate::limits::Limits;

const ENABLED: &str = "SITE_API_EXECUTION_AUTHORITY_ENABLED";
/// Where accepted Runs are.
pub(crate) const RUNS_DATABASE: &str = "EXECUTION_CORE_DATABASE_URL";
/// Where the bindings of members are.
pub(crate) const BINDINGS_DATABASE: &str = "RESOURCE_PROVISIONING_DATABASE_URL";
const EXECUTE_BROKER: &str = "RESOURCE_PROVISIONING_BROKER_URL";
const VIEWS_BROKER: &str = "SITE_COORDINATION_VIEWS_BROKER_URL";
const BETO_CA: &str = "SITE_API_BETO_CA_FILE";
const BETO_RESPONDER: &str = "SITE_API_BETO_RESPONDER";

/// What execution authority needs.
pub(crate) struct AuthoritySettings {
    /// `EXECUTION_CORE_DATABASE_URL`: the role `execution_core_api`.
    pub(crate) runs: DatabaseUrl,
    /// `RESOURCE_PROVISIONING_DATABASE_URL`: the role `resource_provisioning_api`.
    pub(crate) bindings: DatabaseUrl,
    /// `RESOURCE_PROVISIONING_BROKER_URL`: the caller that asks whether a member may execute.
    pub(crate) execute: Setup,
    /// `SITE_COORDINATION_VIEWS_BROKER_URL`: the caller that asks who may see a private output, if
    /// anybody may.
    pub(crate) views: Option<Setup>,
}

impl AuthoritySettings {
    /// Records a mistake where members would read outputs, on a listener that lets no member in.
    pub(crate) fn need_logins(&self, settings: &mut Settings) {
        if self.views.is_some() {
            let reason = "is set, but SITE_API_LOGIN_ISSUER is not: no member could read an output";
            settings.mistake(VIEWS_BROKER, reason);
        }
    }
}

/// `None` in it where execution authority is disabled. `None` around it where a setting is wrong; every
/// mistake is recorded then. What is given is looked at also where it is disabled: whoever enables it
/// later should not find the mistakes only then.
pub(crate) fn read(settings: &mut Settings, limits: &Limits) -> Option<Option<AuthoritySettings>> {
    let enabled = settings.or_default(ENABLED, false, truth);
    let runs = database(settings, RUNS_DATABASE, enabled);
    let bindings = database(settings, BINDINGS_DATABASE, enabled);
    let execute = broker_url(settings, EXECUTE_BROKER, enabled);
    let views = broker_url(settings, VIEWS_BROKER, false);
    let trust = trust(settings, &[(EXECUTE_BROKER, &execute), (VIEWS_BROKER, &views)]);
    let responder = settings.or_default(BETO_RESPONDER, RESPONDER.to_owned(), responder);
    let mut setup = |name, caller, url: Option<BrokerUrl>| {
        let url = url?;
        let trust = if url.is_tls() { Some(trust.clone()?) } else { None };
        // Only an `amqps` URL without a trust would be refused, and an `amqp` one with it.
        let broker = Broker::new(url, trust).map_err(|error| error.to_string());
        let setup =
            broker.and_then(|broker| Setup::new(caller, broker).map_err(|error| error.to_string()));
        let setup = setup.map_err(|reason| settings.mistake(name, reason)).ok()?;
        Some(setup.with_budget(limits.beto).with_responder(responder.clone()))
    };
    let execute = setup(EXECUTE_BROKER, Caller::ResourceProvisioning, execute);
    // One that is wrong is recorded as a mistake, so that nothing is served without it.
    let views = setup(VIEWS_BROKER, Caller::SiteCoordination, views);
    if !enabled {
        return Some(None);
    }
    Some(Some(AuthoritySettings { runs: runs?, bindings: bindings?, execute: execute?, views }))
}

fn database(settings: &mut Settings, name: &str, required: bool) -> Option<DatabaseUrl> {
    let parse = |text: &str| text.parse().map_err(DatabaseUrlError::reason);
    if required {
        settings.required_secret_as(name, parse)
    } else {
        settings.optional_secret_as(name, parse)
    }
}

fn broker_url(settings: &mut Settings, name: &str, required: bool) -> Option<BrokerUrl> {
    let parse = |text: &str| text.parse().map_err(BrokerUrlError::reason);
    if required {
        settings.required_secret_as(name, parse)
    } else {
        settings.optional_secret_as(name, parse)
    }
}

/// What vouches for the broker, where it speaks TLS. All callers are users of one broker.
fn trust(settings: &mut Settings, urls: &[(&str, &Option<BrokerUrl>)]) -> Option<Trust> {
    let file = settings.optional_path(BETO_CA);
    let given: Vec<_> =
        urls.iter().filter_map(|(name, url)| Some((*name, url.as_ref()?.is_tls()))).collect();
    let verified = given.iter().find(|(_, is_tls)| *is_tls);
    let Some(path) = file else {
        // Empty is recorded as a mistake already.
        if let (Some((name, _)), false) = (verified, settings.is_set(BETO_CA)) {
            settings.mistake(BETO_CA, format!("is not set, but {name} is an amqps:// URL"));
        }
        return None;
    };
    if verified.is_none() && urls.iter().all(|(name, url)| url.is_some() || !settings.is_set(name))
    {
        let names: Vec<_> = urls.iter().map(|(name, _)| *name).collect();
        let reason = format!("is set, but no amqps:// URL is in {}", names.join(" or "));
        settings.mistake(BETO_CA, reason);
    }
    let trust = Trust::from_pem_file(&path);
    let wrong = |error| format!("{}: {}", path.display(), error_chain(&error));
    trust.map_err(|error| settings.mistake(BETO_CA, wrong(error))).ok()
}

fn truth(text: &str) -> Result<bool, &'static str> {
    match text {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err("must be true or false"),
    }
}

/// The user whose answers count. Who asks must never be able to answer itself.
fn responder(text: &str) -> Result<String, &'static str> {
    let visible = text.bytes().all(|byte| byte.is_ascii_graphic());
    if !visible || text.len() > LONGEST_USER {
        return Err("must be 1 to 255 characters of visible ASCII");
    }
    if Caller::of_user(text).is_some() {
        return Err("must not be one of those who ask");
    }
    Ok(text.to_owned())
}

/// As long as AMQP's property for it.
const LONGEST_USER: usize = 255;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_is_no_responder() {
        for caller in Caller::ALL {
            assert!(responder(caller.user()).is_err(), "{caller}");
        }
        let long = "b".repeat(LONGEST_USER);
        for good in ["beto", "b", "site_coordination2", &long] {
            assert_eq!(responder(good).as_deref(), Ok(good));
        }
        for wrong in ["a b", "b\n", "é", &format!("{long}b")] {
            assert!(responder(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn nothing_but_two_words_says_whether_it_is_enabled() {
        assert_eq!((truth("true"), truth("false")), (Ok(true), Ok(false)));
        for wrong in ["TRUE", "True", "1", "yes", "on", "", " true", "true ", "0"] {
            assert!(truth(wrong).is_err(), "{wrong:?}");
        }
    }
}
