//! Settings: the environment, and the addresses that stand in it with their passwords.

use broker::BrokerUrl;
use database::DatabaseUrl;
use https_client::Origin;
use service_kit::Settings;
use url::Url;

use crate::{assert_quiet, with_secrets};

/// A secret that stands in a URL as it is.
const SECRET: &str = "zqxj7k4w9v2m";

/// What the readers below ask for, the limits first; `a` stands for the first of all.
const NAMES: [&str; 15] = [
    "SITE_API_MAX_CONNECTIONS",
    "SITE_API_MAX_REQUESTS",
    "SITE_API_HANDSHAKE_SECONDS",
    "SITE_API_HEAD_SECONDS",
    "SITE_API_BODY_SECONDS",
    "SITE_API_IDLE_SECONDS",
    "SITE_API_MAX_BODY_BYTES",
    "SITE_API_MAX_OUTPUT_BYTES",
    "SITE_API_PAGE_COMMANDS",
    "SITE_API_PAGE_BYTES",
    "SITE_API_LONGEST_WAIT_SECONDS",
    "SITE_API_LAST_GOOD_GRANTS_SECONDS",
    "URL",
    "SITE_API_URL",
    "CA",
];

/// Each line is a variable: `NAME=value`, or a letter that stands for one of [`NAMES`] and its value.
/// Mistakes are told by name, each at most once for each reading, and tell no value of a secret.
pub(crate) fn settings(bytes: &[u8]) {
    let Some(text) = with_secrets(bytes, SECRET) else { return };
    let variables = || {
        let lines = text.split('\n').filter_map(variable);
        // What a file holds is another matter than where it is.
        lines.filter(|(name, _)| !name.ends_with("_FILE") && !name.contains('\0'))
    };
    match site_api::parsers::limits(Settings::from_pairs(variables())) {
        Ok(_) => {
            if variables().any(|(name, _)| NAMES[..12].contains(&name)) {
                crate::taken();
            }
        }
        Err(mistakes) => {
            assert_quiet(&mistakes.to_string(), SECRET);
            for mistake in mistakes.mistakes() {
                assert!(variables().any(|(name, _)| name == mistake.name));
            }
        }
    }
    let mut settings = Settings::from_pairs(variables());
    let url = settings.required_secret_as("URL", |text| {
        text.parse::<DatabaseUrl>().map_err(database::DatabaseUrlError::reason)
    });
    let origin = settings.optional("SITE_API_URL", Origin::parse);
    let path = settings.optional_path("CA");
    // The last of a name counts, as in a map.
    let value = |wanted: &str| variables().rfind(|(name, _)| *name == wanted);
    assert!(path.is_none_or(|path| path.to_str() == value("CA").map(|(_, value)| value)));
    let told = settings.accept(url.zip(origin));
    if let Err(mistakes) = told {
        let mistakes: Vec<_> = mistakes.mistakes().iter().collect();
        assert!((1..=3).contains(&mistakes.len()), "{mistakes:?}");
        assert_quiet(&format!("{mistakes:?}"), SECRET);
    }
}

fn variable(line: &str) -> Option<(&str, &str)> {
    let known = || {
        let letter = line.as_bytes().first().filter(|letter| letter.is_ascii_lowercase())?;
        Some((*NAMES.get(usize::from(letter - b'a'))?, &line[1..]))
    };
    line.split_once('=').or_else(known)
}

/// The driver connects as whom and to where the URL says, read by another parser.
pub(crate) fn database_url(bytes: &[u8]) {
    let Some(text) = with_secrets(bytes, SECRET) else { return };
    match text.parse::<DatabaseUrl>() {
        Ok(read) => {
            let url = Url::parse(&text).unwrap();
            crate::taken();
            let told = database::parsers::told(&read);
            assert_eq!(told.role, decoded(url.username()), "{text:?}");
            assert_eq!(told.password.as_deref(), url.password().map(decoded).as_deref());
            assert_eq!(told.database, decoded(url.path().strip_prefix('/').unwrap()), "{text:?}");
            let hosts = decoded(url.host_str().unwrap_or_default().trim_matches(['[', ']']));
            assert_eq!(told.hosts.join(",").into_bytes(), hosts, "{text:?}");
            let plain =
                url.query_pairs().any(|(name, value)| name == "sslmode" && value == "disable");
            assert_eq!(told.is_verified, !plain, "{text:?}");
            if !read.role().contains(SECRET) {
                assert_quiet(&format!("{read:?}"), SECRET);
            }
        }
        Err(error) => assert_quiet(&format!("{error} {error:?}"), SECRET),
    }
}

/// Percent-decoded, as bytes.
fn decoded(text: &str) -> Vec<u8> {
    let mut bytes = text.bytes();
    let mut decoded = Vec::new();
    while let Some(byte) = bytes.next() {
        let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
        let mut ahead = bytes.clone();
        match (byte, digit(ahead.next()), digit(ahead.next())) {
            (b'%', Some(high), Some(low)) => {
                decoded.push(u8::try_from(high * 16 + low).unwrap());
                bytes = ahead;
            }
            _ => decoded.push(byte),
        }
    }
    decoded
}

/// A broker's user and host are those of the URL, and only `amqp://` is plain text.
pub(crate) fn broker_url(bytes: &[u8]) {
    let Some(text) = with_secrets(bytes, SECRET) else { return };
    match text.parse::<BrokerUrl>() {
        Ok(read) => {
            let url = Url::parse(&text).unwrap();
            crate::taken();
            assert_eq!(read.is_tls(), url.scheme() == "amqps");
            assert_eq!(read.user().as_bytes(), decoded(url.username()), "{text:?}");
            let (host, port) = broker::parsers::place(&read);
            assert_eq!(host, url.host_str().unwrap().trim_matches(['[', ']']), "{text:?}");
            let usual = if read.is_tls() { 5671 } else { 5672 };
            assert_eq!(port, url.port().unwrap_or(usual), "{text:?}");
            if !url.username().contains(SECRET) {
                assert_quiet(&format!("{read:?}"), SECRET);
            }
        }
        Err(error) => assert_quiet(&format!("{error} {error:?}"), SECRET),
    }
}

/// An origin prints back, can be asked, and is a name that a certificate can vouch for.
pub(crate) fn origin(bytes: &[u8]) {
    let Some(text) = with_secrets(bytes, SECRET) else { return };
    match Origin::parse(&text) {
        Ok(origin) => {
            crate::taken();
            assert_eq!(Origin::parse(origin.as_str()), Ok(origin.clone()), "{text:?}");
            let uri: http::Uri = format!("{origin}/v1/x?y=1").parse().unwrap_or_else(|error| {
                panic!("{origin} can't be asked: {error}");
            });
            assert_eq!((uri.scheme_str(), uri.path()), (Some("https"), "/v1/x"), "{text:?}");
            let authority = uri.authority().unwrap();
            assert_eq!(format!("https://{authority}"), origin.as_str());
            let host = uri.host().unwrap().trim_matches(['[', ']']).to_owned();
            let name = rustls::pki_types::ServerName::try_from(host);
            assert!(name.is_ok(), "no certificate is of {origin}");
            assert!(!origin.as_str().contains('@') && !origin.as_str().ends_with('/'));
        }
        Err(error) => assert_quiet(&format!("{error} {error:?}"), SECRET),
    }
}
