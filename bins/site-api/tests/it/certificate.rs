//! The certificate changes while the process runs.

use std::{fs, path::PathBuf};

use test_support::{TestCa, eventually};

use crate::support::{Api, LONG, Place, Request, Wire, plain};

/// The files of `site-api`'s certificate, and an authority that is not the one of the start.
struct Renewal {
    api: Api,
    ca: TestCa,
    /// A client that trusts only that authority.
    new: Wire,
}

impl Renewal {
    async fn prepare() -> Self {
        let api = Place::prepare().await.start().await;
        let ca = TestCa::new();
        let trust = api.place.site.file("new-ca.crt");
        ca.write_to(&trust).unwrap();
        let new = Wire::to(api.wire.address(), &trust);
        Self { api, ca, new }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.api.place.site.file(&format!("tls/{name}"))
    }

    /// Puts one of the two files into its place.
    fn put(&self, name: &str, text: &str) {
        fs::write(self.file("new"), text).unwrap();
        fs::rename(self.file("new"), self.file(name)).unwrap();
    }

    /// The reason of the alarm about the certificate.
    async fn alarm(&self) -> Option<String> {
        let answer = plain(self.api.admin, &Request::new("GET", "/alarms")).await.json();
        let alarms = answer["alarms"].as_array().unwrap().clone();
        let alarm = alarms.iter().find(|alarm| alarm["name"] == "certificate")?;
        Some(alarm["reason"].as_str().unwrap().to_owned())
    }

    async fn alarm_with(&self, part: &str) {
        let what = format!("the alarm {part}");
        eventually(LONG, &what, async || {
            self.alarm().await.is_some_and(|reason| reason.contains(part)).then_some(())
        })
        .await;
    }

    async fn no_alarm(&self) {
        eventually(LONG, "no alarm", async || self.alarm().await.is_none().then_some(())).await;
    }

    async fn is_served(&self) {
        eventually(LONG, "the new certificate", async || self.new.try_open().await.ok()).await;
        self.api.wire.try_open().await.err().expect("the old one is served no more");
    }

    fn told(&self, event: &str) -> usize {
        let event = format!("\"{event}\"");
        self.api.process.lines().iter().filter(|line| line.text.contains(&event)).count()
    }
}

#[tokio::test]
async fn new_connections_get_a_new_certificate_and_open_ones_live_on() {
    let renewal = Renewal::prepare().await;
    let mut open = renewal.api.wire.open().await;
    let request = Request::new("GET", "/healthz").without("connection");
    open.write(&request.bytes()).await;
    assert_eq!(open.answer().await.unwrap().status, 200);
    renewal.new.try_open().await.err().expect("the new authority has signed nothing yet");

    let issued = renewal.ca.issue(&["localhost"]);
    renewal.put("tls.crt", &issued.cert_pem);
    renewal.put("tls.key", &issued.key_pem);
    renewal.is_served().await;
    open.write(&request.bytes()).await;
    assert_eq!(open.answer().await.unwrap().status, 200);
    renewal.no_alarm().await;
    assert_eq!(renewal.told("alarm.raised"), 0);
}

#[tokio::test]
async fn a_pair_that_does_not_go_together_keeps_the_old_one_with_an_alarm() {
    let renewal = Renewal::prepare().await;
    let issued = renewal.ca.issue(&["localhost"]);
    renewal.put("tls.crt", &issued.cert_pem);
    renewal.alarm_with("the certificate from before stays in use").await;
    assert_eq!(renewal.api.send(&Request::new("GET", "/healthz")).await.status, 200);
    renewal.put("tls.key", &issued.key_pem);
    renewal.is_served().await;
    renewal.no_alarm().await;
}

#[tokio::test]
async fn files_that_can_not_be_used_keep_the_old_pair_with_the_reason() {
    let renewal = Renewal::prepare().await;
    let read = |name: &str| fs::read_to_string(renewal.file(name)).unwrap();
    let (certificate, key) = (read("tls.crt"), read("tls.key"));
    for (name, text, reason) in [
        ("tls.crt", "", "tls.crt: the certificate's file has no certificate"),
        ("tls.key", "", "tls.key: can't read the private key: the file has no key"),
        ("tls.key", &key[..key.len() / 2], "tls.key: can't read the private key: the file is not"),
    ] {
        renewal.put(name, text);
        renewal.alarm_with(reason).await;
        assert_eq!(renewal.api.send(&Request::new("GET", "/healthz")).await.status, 200);
        renewal.put("tls.crt", &certificate);
        renewal.put("tls.key", &key);
        renewal.no_alarm().await;
    }
    fs::remove_file(renewal.file("tls.key")).unwrap();
    renewal.alarm_with("tls.key: the file does not exist").await;
    let secret = &key.lines().nth(1).unwrap()[..16];
    let lines = renewal.api.process.lines();
    assert!(!lines.iter().any(|line| line.text.contains(secret)));
}

#[tokio::test]
async fn a_certificate_that_has_expired_or_soon_will_is_an_alarm() {
    let renewal = Renewal::prepare().await;
    let expired = renewal.ca.issue_expired(&["localhost"]);
    renewal.put("tls.crt", &expired.cert_pem);
    renewal.put("tls.key", &expired.key_pem);
    renewal.alarm_with("the certificate has expired, at 2021-01-01T00:00:00Z").await;

    for (days, alarm) in [("13", true), ("15", false)] {
        let folder = renewal.api.place.site.file(&format!("{days}-days"));
        let shown = folder.display().to_string();
        let issue = ["tls", "issue", "--directory", &shown, "--name", "localhost", "--days", days];
        renewal.api.place.site.admin(&issue).unwrap();
        for name in ["tls.crt", "tls.key"] {
            renewal.put(name, &fs::read_to_string(folder.join(name)).unwrap());
        }
        if alarm {
            renewal.alarm_with("the certificate expires soon, at ").await;
        } else {
            renewal.no_alarm().await;
        }
    }
}

#[tokio::test]
async fn a_certificate_that_has_expired_at_the_start_is_served_with_an_alarm() {
    let place = Place::prepare().await;
    let expired = TestCa::new().issue_expired(&["localhost"]);
    fs::remove_file(place.site.file("tls/tls.key")).unwrap();
    expired.write_to(&place.site.file("tls/tls.crt"), &place.site.file("tls/tls.key")).unwrap();
    let api = place.start().await;
    assert_eq!(api.alarms().await, ["certificate"]);
}
