//! All that is needed to know the login issuer, or nothing.

use std::fs;

use super::*;
use crate::start::wrong_settings;

/// A place, with a CA file of some issuer that nobody asks.
async fn place() -> (Place, PathBuf) {
    let place = Place::prepare().await;
    let ca_file = place.site.file("login-ca.pem");
    TestCa::new().write_to(&ca_file).unwrap();
    (place, ca_file)
}

fn command(place: &Place, ca_file: &PathBuf) -> Command {
    let mut command = place.command();
    command.env(ISSUER, "https://login.example/realms/x").env(AUDIENCE, US).env(CA, ca_file);
    command
}

#[tokio::test]
async fn what_is_missing_is_named() {
    let (place, ca_file) = place().await;
    for removed in
        [&[ISSUER][..], &[AUDIENCE], &[CA], &[ISSUER, AUDIENCE], &[ISSUER, CA], &[AUDIENCE, CA]]
    {
        let mut command = command(&place, &ca_file);
        for name in removed {
            command.env_remove(name);
        }
        let (names, said) = wrong_settings(command).await;
        assert_eq!(names, removed, "{said}");
        assert!(said.contains("to take access tokens the process needs to know"), "{said}");
    }
}

#[tokio::test]
async fn each_must_be_of_use() {
    let (place, ca_file) = place().await;
    let missing = place.site.file("missing").display().to_string();
    let empty = place.site.file("empty");
    fs::write(&empty, "").unwrap();
    let long = "a".repeat(256);
    for (name, value, reason) in [
        (ISSUER, "login.example", "not a URL"),
        (ISSUER, "http://login.example", "the scheme must be https"),
        (ISSUER, "https://login.example?", "a query or a fragment"),
        (ISSUER, "https://u:s3cret@login.example", "user information"),
        (ISSUER, "https://Login.example", "normal spelling"),
        (ISSUER, "", "is empty"),
        (AUDIENCE, "site control", "1 to 255 visible ASCII"),
        (AUDIENCE, &long, "1 to 255 visible ASCII"),
        (AUDIENCE, "", "is empty"),
        (CA, &missing, "missing: the CA file can't be read"),
        (CA, &empty.display().to_string(), "holds no certificate"),
        (CA, "", "is empty"),
    ] {
        let mut command = command(&place, &ca_file);
        command.env(name, value);
        let (names, said) = wrong_settings(command).await;
        assert_eq!(names, [name], "{value}: {said}");
        assert!(said.contains(reason) && !said.contains("s3cret"), "{value}: {said}");
    }
}

#[tokio::test]
async fn every_mistake_is_named_at_once() {
    let (place, _) = place().await;
    let mut command = place.command();
    command.env(ISSUER, "x").env(AUDIENCE, "a b").env(CA, place.site.file("missing"));
    let (names, said) = wrong_settings(command).await;
    assert_eq!(names, [ISSUER, AUDIENCE, CA], "{said}");
}

/// The issuer and our name may stand in files, as other settings do.
#[tokio::test]
async fn they_may_come_from_files() {
    let world = World::new().await;
    let (issuer, audience) = (world.place.site.file("issuer"), world.place.site.file("audience"));
    fs::write(&issuer, format!("{}\n", world.provider.issuer())).unwrap();
    fs::write(&audience, format!("{US}\n")).unwrap();
    let mut command = world.command();
    command.env_remove(ISSUER).env_remove(AUDIENCE);
    command.env(format!("{ISSUER}_FILE"), issuer).env(format!("{AUDIENCE}_FILE"), audience);
    let api = world.place.start_by(command).await;
    eventually(LONG, "the first fetch", async || {
        (api.metric("login_key_fetches_total").await > 0.0).then_some(())
    })
    .await;
    assert_eq!(alarm(&api).await, None);
}
