//! The database: a credential that is its own, and a schema that this build knows.

use test_support::process::Exit;

use super::{DATABASE, refusal};
use crate::support::Place;

#[tokio::test]
async fn a_credential_with_other_rights_than_its_own_is_refused() {
    let place = Place::prepare().await;
    for (url, reasons) in [
        (
            place.database.url("site_coordination_owner"),
            ["is neither site_coordination_api nor a member of it", "owns"],
        ),
        (place.database.superuser_url(), ["is a superuser", "may create"]),
        (
            place.database.url("site_coordination_producer"),
            ["site_coordination_producer must not serve", "neither site_coordination_api nor"],
        ),
    ] {
        let mut command = place.command();
        command.env(DATABASE, &url);
        let (exit, said) = refusal(command).await;
        assert_eq!(exit, Exit::Code(70), "{said}");
        assert!(said.contains(&format!("{DATABASE}: ")), "{said}");
        assert!(reasons.iter().all(|reason| said.contains(reason)), "{said}");
        assert!(!said.contains(password(&url)), "{said}");
    }
}

#[tokio::test]
async fn a_database_that_refuses_is_not_waited_for() {
    let place = Place::prepare().await;
    let url = place.database.url("site_coordination_api");
    let wrong = url.replace(password(&url), "wr0ng-password");
    for url in [wrong, url.replace(place.database.name(), "no_such_database")] {
        let mut command = place.command();
        command.env(DATABASE, &url);
        let (exit, said) = refusal(command).await;
        assert_eq!(exit, Exit::Code(70), "{said}");
        assert!(said.contains("the database refused the connection"), "{said}");
        assert!(!said.contains(password(&url)), "{said}");
    }
}

#[tokio::test]
async fn a_schema_that_this_build_does_not_know_is_refused() {
    let place = Place::prepare().await;
    let sql = place.database.superuser().await;
    for (change, reason) in [
        ("DELETE FROM site_coordination.__diesel_schema_migrations", "lacks the migrations"),
        ("DROP SCHEMA site_coordination CASCADE", "can't be read"),
    ] {
        sql.batch_execute(change).await.unwrap();
        let (exit, said) = refusal(place.command()).await;
        assert_eq!(exit, Exit::Code(70), "{said}");
        assert!(said.contains(reason), "{said}");
        assert!(said.contains("run `site-admin database migrate`"), "{said}");
    }
}

fn password(url: &str) -> &str {
    url.split_once('@').unwrap().0.rsplit_once(':').unwrap().1
}
