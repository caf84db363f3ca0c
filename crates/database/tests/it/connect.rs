//! Opening a connection: to the right server, verified, or not at all.

use std::{fs, path::Path};

use database::{ConnectError, DatabaseUrl, Pool, PoolLimits};
use test_support::{
    TestCa, TestDatabase,
    postgres::{Access, Cluster, Options},
};

use crate::support::{ROLE, Session};

async fn probe(url: &str) -> Result<(), ConnectError> {
    let url: DatabaseUrl = url.parse().unwrap();
    Pool::new(&url, "the-test", PoolLimits::default()).probe().await
}

/// The URL of a role with parts of it exchanged.
fn changed(database: &TestDatabase, changes: &[(&str, &str)]) -> String {
    changes.iter().fold(database.url(ROLE), |url, (from, to)| {
        assert!(url.contains(from), "{from} is not in the URL");
        url.replace(from, to)
    })
}

fn ca_file() -> String {
    Access::of_this_test().ca_file.display().to_string()
}

/// Expects that the server was not reached, for a reason that contains `expected`.
async fn unreachable(url: &str, expected: &str) {
    let refusal = probe(url).await.unwrap_err();
    assert!(
        matches!(&refusal, ConnectError::Unreachable(reason) if reason.contains(expected)),
        "{refusal:?}"
    );
}

#[tokio::test]
async fn a_server_of_the_right_authority_and_name_is_taken() {
    let database = TestDatabase::create().await;
    probe(&database.url(ROLE)).await.unwrap();
    let by_default = changed(&database, &[("sslmode=verify-full&", "")]);
    probe(&by_default).await.unwrap();
    let by_name = changed(&database, &[("127.0.0.1", "localhost")]);
    probe(&format!("{by_name}&hostaddr=127.0.0.1")).await.unwrap();
}

#[tokio::test]
async fn a_server_of_another_authority_is_refused() {
    let database = TestDatabase::create().await;
    let folder = tempfile::tempdir().unwrap();
    let other = folder.path().join("other.pem");
    TestCa::new().write_to(&other).unwrap();
    let url = changed(&database, &[(&ca_file(), other.to_str().unwrap())]);
    unreachable(&url, "invalid peer certificate").await;
    // Both in one file: one of them is enough.
    let both = folder.path().join("both.pem");
    let text = [fs::read(&other).unwrap(), fs::read(ca_file()).unwrap()].concat();
    fs::write(&both, text).unwrap();
    probe(&changed(&database, &[(&ca_file(), both.to_str().unwrap())])).await.unwrap();
}

#[tokio::test]
async fn a_server_of_another_name_is_refused() {
    let database = TestDatabase::create().await;
    let url = changed(&database, &[("127.0.0.1", "other.example")]);
    unreachable(&format!("{url}&hostaddr=127.0.0.1"), "other.example").await;
}

#[tokio::test]
async fn certificates_that_cannot_be_read_are_a_mistake_in_the_settings() {
    let database = TestDatabase::create().await;
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path
    };
    let garbage = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    for path in [
        Path::new("/nowhere/ca.pem").to_owned(),
        file("empty.pem", ""),
        file("garbage.pem", garbage),
    ] {
        let path = path.to_str().unwrap();
        let refusal = probe(&changed(&database, &[(&ca_file(), path)])).await.unwrap_err();
        assert!(
            matches!(&refusal, ConnectError::RootCertificates { path: named, .. } if named == path),
            "{refusal:?}"
        );
    }
}

#[tokio::test]
async fn a_server_that_refuses_the_credential_is_told_from_one_that_is_away() {
    let database = TestDatabase::create().await;
    let password = &Access::of_this_test().role_passwords[ROLE];
    for url in [
        changed(&database, &[(password, "hunter2")]),
        changed(&database, &[(ROLE, "nobody")]),
        changed(&database, &[(database.name(), "nowhere")]),
        // The cluster takes no connection without TLS.
        changed(&database, &[("sslmode=verify-full", "sslmode=disable")]),
    ] {
        let refusal = probe(&url).await.unwrap_err();
        assert!(matches!(refusal, ConnectError::Refused(_)), "{refusal:?}");
        let text = format!("{refusal} {refusal:?}");
        assert!(!text.contains("hunter2") && !text.contains(password.as_str()), "{text}");
    }
}

#[tokio::test]
async fn without_tls_only_where_the_url_and_the_server_say_so() {
    let installation = Access::of_this_test().installation;
    let cluster = Cluster::start(&installation, Options::default()).await.unwrap();
    let rules = cluster.folder().join("data/pg_hba.conf");
    let text = fs::read_to_string(&rules).unwrap();
    fs::write(&rules, text + "host all all 127.0.0.1/32 scram-sha-256\n").unwrap();
    let sql = cluster.superuser("postgres").await.unwrap();
    sql.batch_execute("SELECT pg_reload_conf()").await.unwrap();

    let verified = cluster.superuser_url("postgres");
    let plain = verified.replace("sslmode=verify-full", "sslmode=disable");
    test_support::eventually(crate::support::LONG, "the server's new rules", async || {
        probe(&plain).await.ok()
    })
    .await;
    for (url, encrypted) in [(plain, "false"), (verified, "true")] {
        let pool = Pool::new(&url.parse().unwrap(), "the-test", PoolLimits::default());
        assert_eq!(pool.load(Session).await.unwrap()[0].4, encrypted);
    }
    cluster.stop().await.unwrap();
}
