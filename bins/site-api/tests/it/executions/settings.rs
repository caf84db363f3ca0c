//! What execution authority refuses to start with.

use test_support::process::Exit;

use crate::{
    start::{refusal, wrong_settings},
    support::{Place, RUN},
};

const ENABLED: &str = "SITE_API_EXECUTION_AUTHORITY_ENABLED";
const RUNS: &str = "EXECUTION_CORE_DATABASE_URL";
const BINDINGS: &str = "RESOURCE_PROVISIONING_DATABASE_URL";
const BROKER: &str = "RESOURCE_PROVISIONING_BROKER_URL";
const VIEWS: &str = "SITE_COORDINATION_VIEWS_BROKER_URL";
const CA: &str = "SITE_API_BETO_CA_FILE";
const RESPONDER: &str = "SITE_API_BETO_RESPONDER";
const SECONDS: &str = "SITE_API_BETO_SECONDS";

const URL: &str = "amqps://resource_provisioning:hunter2@broker.example";

#[tokio::test]
async fn everything_that_is_missing_is_named_at_once() {
    let place = Place::prepare().await;
    let mut command = place.command();
    command.env(ENABLED, "true");
    assert_eq!(wrong_settings(command).await.0, [RUNS, BINDINGS, BROKER]);
    for name in [RUNS, BINDINGS, BROKER] {
        let mut command = place.command();
        place.authority(&mut command);
        command.env_remove(name);
        assert_eq!(wrong_settings(command).await.0, [name]);
    }
}

#[tokio::test]
async fn every_mistake_is_named_at_once_and_no_password_with_it() {
    let place = Place::prepare().await;
    let mut command = place.command();
    place.authority(&mut command);
    command
        .env(RUNS, "postgresql://execution_core_api:hunter2@localhost/d?sslmode=prefer")
        .env(BINDINGS, "mysql://resource_provisioning_api:hunter2@localhost/d")
        .env(BROKER, "https://resource_provisioning:hunter2@broker.example")
        .env(CA, place.site.file("none.pem"))
        .env(RESPONDER, "source_control")
        .env(SECONDS, "0");
    let (names, said) = wrong_settings(command).await;
    let mut named = names.clone();
    named.sort_unstable();
    let mut all = [RUNS, BINDINGS, BROKER, CA, RESPONDER, SECONDS];
    all.sort_unstable();
    assert_eq!(named, all, "{said}");
    assert!(said.contains("must not be one of those who ask"), "{said}");
    assert!(!said.contains("hunter2"), "{said}");
}

#[tokio::test]
async fn it_is_enabled_by_one_word_and_by_no_other() {
    let place = Place::prepare().await;
    for wrong in ["TRUE", "1", "yes", "on", " true", ""] {
        let mut command = place.command();
        place.authority(&mut command);
        command.env(ENABLED, wrong);
        assert_eq!(wrong_settings(command).await.0, [ENABLED], "{wrong:?}");
    }
}

/// Whoever enables it later should not find the mistakes only then.
#[tokio::test]
async fn what_is_given_is_looked_at_also_where_it_is_disabled() {
    let place = Place::prepare().await;
    for (name, value) in [
        (RUNS, "nonsense"),
        (BINDINGS, ""),
        (BROKER, "amqp://resource_provisioning@broker.example"),
        (BROKER, "amqp://source_control:hunter2@broker.example"),
        (VIEWS, "amqp://resource_provisioning:hunter2@broker.example"),
        (VIEWS, "broker.example"),
        (RESPONDER, "join_tokens"),
        (SECONDS, "11"),
    ] {
        let mut command = place.command();
        command.env(ENABLED, "false").env(name, value);
        assert_eq!(wrong_settings(command).await.0, [name], "{value}");
    }
    // Those who are right are not used: there are no such parties.
    let mut command = place.command();
    command
        .env(RUNS, "postgresql://execution_core_api:hunter2@127.0.0.1:1/d?sslmode=disable")
        .env(BROKER, "amqp://resource_provisioning:hunter2@127.0.0.1:1");
    place.start_by(command).await;
}

#[tokio::test]
async fn the_brokers_user_must_be_the_caller() {
    let place = Place::prepare().await;
    for user in ["site_coordination", "beto", "guest"] {
        let mut command = place.command();
        place.authority(&mut command);
        command.env(BROKER, format!("amqp://{user}:hunter2@127.0.0.1:1"));
        let (names, said) = wrong_settings(command).await;
        assert_eq!(names, [BROKER], "{said}");
        assert!(said.contains("the broker's user must be resource_provisioning"), "{said}");
    }
    let mut command = place.command();
    place.authority(&mut command);
    command.env(VIEWS, "amqp://resource_provisioning:hunter2@127.0.0.1:1");
    let (names, said) = wrong_settings(command).await;
    assert_eq!(names, [VIEWS], "{said}");
    assert!(said.contains("the broker's user must be site_coordination"), "{said}");
}

/// Else every member would be told that the token is bad.
#[tokio::test]
async fn outputs_for_members_need_the_members_to_log_in() {
    let place = Place::prepare().await;
    let mut command = place.command();
    place.authority(&mut command);
    command.env(VIEWS, "amqp://site_coordination:x@127.0.0.1:1");
    let (names, said) = wrong_settings(command).await;
    assert_eq!(names, [VIEWS], "{said}");
    assert!(said.contains("is set, but SITE_API_LOGIN_ISSUER is not"), "{said}");
}

#[tokio::test]
async fn a_broker_with_tls_needs_what_vouches_for_it_and_one_without_takes_none() {
    let place = Place::prepare().await;
    let ca = place.site.file("tls/ca.crt");
    let key = place.site.file("tls/tls.key");
    for (url, file, named) in [
        (URL, None, Some("is not set, but RESOURCE_PROVISIONING_BROKER_URL is an amqps:// URL")),
        (URL, Some(&key), Some("holds no certificate")),
        (URL, Some(&ca), None),
        ("amqp://resource_provisioning:x@127.0.0.1:1", Some(&ca), Some("no amqps:// URL is in")),
    ] {
        let mut command = place.command();
        place.authority(&mut command);
        // So that a right one is not started.
        command.env(BROKER, url).env(SECONDS, "x");
        if let Some(file) = file {
            command.env(CA, file);
        }
        let (names, said) = wrong_settings(command).await;
        let expected: Vec<_> = named.map(|_| CA).into_iter().chain([SECONDS]).collect();
        let (mut names, mut all) = (names, expected);
        names.sort_unstable();
        all.sort_unstable();
        assert_eq!(names, all, "{url}: {said}");
        assert!(named.is_none_or(|reason| said.contains(reason)), "{url}: {said}");
    }
}

#[tokio::test]
async fn each_context_has_a_credential_of_its_own_and_every_wrong_one_is_told() {
    let place = Place::prepare().await;
    for (name, wrong) in [
        (RUNS, "execution_core_writer"),
        (RUNS, "resource_provisioning_api"),
        (RUNS, "site_coordination_api"),
        (BINDINGS, "resource_provisioning_writer"),
        (BINDINGS, "execution_core_api"),
    ] {
        let mut command = place.command();
        place.authority(&mut command);
        command.env(name, place.database.url(wrong));
        let (exit, said) = refusal(command).await;
        assert_eq!(exit, Exit::Code(70), "{said}");
        assert!(said.contains(&format!("{name}: the role {wrong} must not serve")), "{said}");
    }
    let mut command = place.command();
    place.authority(&mut command);
    command
        .env(RUNS, place.database.url("execution_core_owner"))
        .env(BINDINGS, place.database.superuser_url());
    let (exit, said) = refusal(command).await;
    assert_eq!(exit, Exit::Code(70), "{said}");
    assert!(
        said.contains(&format!("{RUNS}: ")) && said.contains(&format!("{BINDINGS}: ")),
        "{said}"
    );
}

#[tokio::test]
async fn a_schema_that_this_build_does_not_know_is_refused() {
    for (schema, name) in [("execution_core", RUNS), ("resource_provisioning", BINDINGS)] {
        let place = Place::prepare().await;
        let sql = place.database.superuser().await;
        sql.batch_execute(&format!("DELETE FROM {schema}.__diesel_schema_migrations"))
            .await
            .unwrap();
        let mut command = place.command();
        place.authority(&mut command);
        let (exit, said) = refusal(command).await;
        assert_eq!(exit, Exit::Code(70), "{said}");
        assert!(
            said.contains(&format!("{name}: ")) && said.contains("lacks the migrations"),
            "{said}"
        );
    }
}

/// A broker that is away refuses nothing; the connections to the two contexts are opened for a request.
#[tokio::test]
async fn it_starts_without_its_broker_and_holds_no_connection_of_the_two_contexts_while_nobody_asks()
 {
    let place = Place::prepare().await;
    let api = place.start_with_authority().await;
    let sql = api.sql().await;
    let held = async || -> i64 {
        let held = "SELECT count(*) FROM pg_stat_activity
                     WHERE datname = current_database()
                       AND usename IN ('execution_core_api', 'resource_provisioning_api')";
        sql.query_one(held, &[]).await.unwrap().get(0)
    };
    assert_eq!(api.send(&api.poll("after=0")).await.status, 200);
    assert_eq!(held().await, 0);
    assert_eq!(api.send(&api.read_run(RUN)).await.code(), "not_found");
    assert_eq!(held().await, 1);
}
