//! The certificate that new connections get, and the watching of its files.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use ring::digest::{Context, SHA256};
use rustls::ServerConfig;
use secrecy::zeroize::Zeroizing;
use service_kit::{
    Alarms,
    tls::{self, TlsError, Validity},
};
use tokio::sync::watch;

use crate::{files, start::Clock, state::ALARM_CERTIFICATE};

/// The largest file of either kind, in bytes.
const MOST_BYTES: usize = 1024 * 1024;

/// A certificate that ends sooner than this raises the alarm.
const SOON: TimeDelta = TimeDelta::days(14);

/// So many looks in a row must find a pair that can't be used before it is an alarm: the two files
/// are not replaced in one moment.
const BAD_LOOKS: u32 = 2;

/// Follows the two files. [`CertificateWatch::run`] must run for as long as anybody calls.
pub(crate) struct CertificateWatch {
    files: Files,
    in_use: InUse,
    sender: watch::Sender<Arc<ServerConfig>>,
    bad_looks: u32,
    alarms: Alarms,
    clock: Clock,
}

/// The two files of a certificate.
#[derive(Clone, Debug)]
pub(crate) struct Files {
    /// The chain, PEM.
    pub(crate) certificate: PathBuf,
    /// The private key, PEM.
    pub(crate) key: PathBuf,
}

/// A pair that can be used.
struct InUse {
    /// Tells one content of the two files from another. Of the key nothing else is kept here.
    identity: [u8; 32],
    validity: Option<Validity>,
}

/// The content of the two files.
struct Content {
    certificate: Zeroizing<Vec<u8>>,
    key: Zeroizing<Vec<u8>>,
}

impl CertificateWatch {
    /// Begins with what was read at the start. The receiver has the configuration of each new
    /// connection.
    pub(crate) fn new(
        files: Files,
        config: Arc<ServerConfig>,
        alarms: Alarms,
        clock: Clock,
    ) -> (Self, watch::Receiver<Arc<ServerConfig>>) {
        let (sender, current) = watch::channel(config);
        // The first look takes the pair once more, with its validity.
        let in_use = InUse { identity: [0; 32], validity: None };
        let mut watch = Self { files, in_use, sender, bad_looks: 0, alarms, clock };
        let looked = look(&watch.files);
        watch.observe(looked);
        (watch, current)
    }

    /// Follows the files for ever.
    pub(crate) async fn run(mut self) {
        let files = self.files.clone();
        let hung = || Err("the files can't be read: no answer for some seconds".to_owned());
        files::watch(move || look(&files), |looked| self.observe(looked.unwrap_or_else(hung)))
            .await;
    }

    fn observe(&mut self, looked: Result<Content, String>) {
        let bad = match looked.and_then(|content| self.take_up(&content)) {
            Ok(()) => {
                self.bad_looks = 0;
                None
            }
            Err(reason) => {
                self.bad_looks = self.bad_looks.saturating_add(1);
                Some(format!("{reason}; the certificate from before stays in use"))
            }
        };
        // A bad look that may be the middle of a replacement changes nothing.
        if bad.is_some() && self.bad_looks < BAD_LOOKS {
            return;
        }
        let trouble: Vec<_> =
            bad.into_iter().chain(trouble(self.in_use.validity, (self.clock)())).collect();
        if trouble.is_empty() {
            self.alarms.clear(ALARM_CERTIFICATE);
        } else {
            self.alarms.raise(ALARM_CERTIFICATE, trouble.join("; "));
        }
    }

    /// Gives a new pair to new connections; connections that are open keep theirs.
    fn take_up(&mut self, content: &Content) -> Result<(), String> {
        let identity = content.identity();
        if identity == self.in_use.identity {
            return Ok(());
        }
        let Files { certificate, key } = &self.files;
        let reason =
            |path: &Path, error: &TlsError| format!("{}: {}", path.display(), error.reason());
        let chain = tls::certificate_chain_of(&content.certificate)
            .map_err(|error| reason(certificate, &error))?;
        let validity = tls::validity(&chain);
        let private = tls::private_key_of(&content.key).map_err(|error| reason(key, &error))?;
        let config = tls::server_config_of(chain, private).map_err(|error| reason(key, &error))?;
        let not_after = validity.map(|validity| text(validity.not_after));
        tracing::info!(certificate.not_after = not_after, "certificate.taken_up");
        self.in_use = InUse { identity, validity };
        self.sender.send_replace(config);
        Ok(())
    }
}

impl Content {
    fn identity(&self) -> [u8; 32] {
        let mut context = Context::new(&SHA256);
        // The length keeps the two apart.
        context.update(&(self.certificate.len() as u64).to_be_bytes());
        context.update(&self.certificate);
        context.update(&self.key);
        let mut identity = [0; 32];
        identity.copy_from_slice(context.finish().as_ref());
        identity
    }
}

fn look(files: &Files) -> Result<Content, String> {
    let read = |path: &Path| {
        let reason = match files::read(path, MOST_BYTES) {
            Ok(Some(bytes)) => return Ok(bytes),
            Ok(None) => "the file does not exist".to_owned(),
            Err(reason) => reason,
        };
        Err(format!("{}: {reason}", path.display()))
    };
    Ok(Content { certificate: read(&files.certificate)?, key: read(&files.key)? })
}

/// What an operator should know about a certificate's time.
fn trouble(validity: Option<Validity>, now: DateTime<Utc>) -> Option<String> {
    let Some(Validity { not_before, not_after }) = validity else {
        return Some("it can't be read until when the certificate is valid".to_owned());
    };
    if now >= not_after {
        Some(format!("the certificate has expired, at {}", text(not_after)))
    } else if now < not_before {
        Some(format!("the certificate is not valid before {}", text(not_before)))
    } else if not_after - now < SOON {
        Some(format!("the certificate expires soon, at {}", text(not_after)))
    } else {
        None
    }
}

fn text(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Secs, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_is_told_of_fourteen_days_before_its_end() {
        let time = |text: &str| text.parse::<DateTime<Utc>>().unwrap();
        let validity = Validity {
            not_before: time("2030-01-01T00:00:00Z"),
            not_after: time("2030-03-01T00:00:00Z"),
        };
        for (now, told) in [
            (
                "2029-12-31T23:59:59Z",
                Some("the certificate is not valid before 2030-01-01T00:00:00Z"),
            ),
            ("2030-01-01T00:00:00Z", None),
            ("2030-02-15T00:00:00Z", None),
            ("2030-02-15T00:00:01Z", Some("the certificate expires soon, at 2030-03-01T00:00:00Z")),
            ("2030-02-28T23:59:59Z", Some("the certificate expires soon, at 2030-03-01T00:00:00Z")),
            ("2030-03-01T00:00:00Z", Some("the certificate has expired, at 2030-03-01T00:00:00Z")),
        ] {
            assert_eq!(trouble(Some(validity), time(now)).as_deref(), told, "{now}");
        }
    }
}
