//! Which Site it serves: named once, or not at all.

use std::fs;

use super::wrong_settings;
use crate::support::Place;

#[tokio::test]
async fn native_grants_without_a_site_are_refused() {
    let place = Place::prepare().await;
    let refused = async || {
        let mut command = place.command();
        command.env_remove("SITE_API_SITE_ID");
        wrong_settings(command).await.0
    };
    assert_eq!(refused().await, ["SITE_API_SITE_ID"]);
    // Also those that let nobody in, and those that can't be used.
    place.edit_grants(Vec::clear);
    assert_eq!(refused().await, ["SITE_API_SITE_ID"]);
    fs::write(place.site.file("grants.json"), "{").unwrap();
    assert_eq!(refused().await, ["SITE_API_NATIVE_GRANTS_FILE", "SITE_API_SITE_ID"]);
}

#[tokio::test]
async fn a_name_that_is_no_sites_is_refused() {
    let place = Place::prepare().await;
    let long = "a".repeat(65);
    for name in ["a site", "-a", ".a", "a/b", "caf\u{e9}", "a\n", "", &long] {
        let mut command = place.command();
        command.env("SITE_API_SITE_ID", name);
        assert_eq!(wrong_settings(command).await.0, ["SITE_API_SITE_ID"], "{name:?}");
        let mut command = place.command();
        command.env("SSH_ACCESS_SITE", name);
        command.env("SSH_ACCESS_DATABASE_URL", place.database.url("ssh_access_api"));
        assert_eq!(wrong_settings(command).await.0, ["SSH_ACCESS_SITE"], "{name:?}");
    }
}

#[tokio::test]
async fn a_site_of_ssh_access_that_is_another_one_is_refused() {
    let place = Place::prepare().await;
    for other in ["south-1", "North-1", "north-10"] {
        let mut command = place.command();
        command.env("SSH_ACCESS_SITE", other);
        command.env("SSH_ACCESS_DATABASE_URL", place.database.url("ssh_access_api"));
        let (names, said) = wrong_settings(command).await;
        assert_eq!(names, ["SSH_ACCESS_SITE"], "{said}");
        assert!(said.contains(&format!("is {other}, but SITE_API_SITE_ID is north-1")), "{said}");
    }
    let mut command = place.command();
    command.env("SSH_ACCESS_SITE", "north-1");
    command.env("SSH_ACCESS_DATABASE_URL", place.database.url("ssh_access_api"));
    place.start_by(command).await;
}

#[tokio::test]
async fn ssh_access_without_its_database_or_the_site_is_refused() {
    let place = Place::prepare().await;
    let mut command = place.command();
    command.env("SSH_ACCESS_SITE", "north-1").env("SSH_ACCESS_WINDOW_SECONDS", "59");
    let (names, said) = wrong_settings(command).await;
    assert_eq!(names, ["SSH_ACCESS_DATABASE_URL", "SSH_ACCESS_WINDOW_SECONDS"], "{said}");
    let mut command = place.command();
    command.env_remove("SITE_API_SITE_ID").env_remove("SITE_API_NATIVE_GRANTS_FILE");
    command.env("SSH_ACCESS_SITE", "north-1");
    command.env("SSH_ACCESS_DATABASE_URL", place.database.url("ssh_access_api"));
    assert_eq!(wrong_settings(command).await.0, ["SSH_ACCESS_SITE"]);
}

#[tokio::test]
async fn every_broken_rule_about_the_site_is_named_with_all_other_mistakes() {
    let place = Place::prepare().await;
    let mut command = place.command();
    command.env("SSH_ACCESS_SITE", "south-1").env("SITE_API_LISTEN", "here");
    let (names, said) = wrong_settings(command).await;
    let expected = ["SITE_API_LISTEN", "SSH_ACCESS_SITE", "SSH_ACCESS_DATABASE_URL"];
    assert_eq!(names, expected, "{said}");
}
