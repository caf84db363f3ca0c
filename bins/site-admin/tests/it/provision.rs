//! `site-admin database provision`: the roles with their passwords, or nothing. Roles are a
//! cluster's, so each test has a cluster of its own.

use std::{fs, path::Path};

use tempfile::TempDir;
use test_support::postgres::{Access, Cluster, Options};

use crate::support::{
    ADMINISTRATOR, API, BINDINGS_API, BINDINGS_OWNER, BINDINGS_WRITER, Done, KEEPER, KEYS_API,
    KEYS_OWNER, KEYS_PROCESS, KEYS_REGISTRY, OWNER, PRODUCER, RUNS_API, RUNS_OWNER, RUNS_WRITER,
    admin, files, mode, password,
};

const ROLES: [&str; 14] = [
    "execution_core_api",
    "execution_core_owner",
    "execution_core_writer",
    "resource_provisioning_api",
    "resource_provisioning_owner",
    "resource_provisioning_writer",
    "site_coordination_api",
    "site_coordination_keeper",
    "site_coordination_owner",
    "site_coordination_producer",
    "ssh_access_api",
    "ssh_access_owner",
    "ssh_access_process",
    "ssh_access_registry",
];

/// A new cluster with one empty database.
async fn cluster() -> Cluster {
    let installation = Access::of_this_test().installation;
    let cluster = Cluster::start(&installation, Options::default()).await.unwrap();
    let sql = cluster.superuser("postgres").await.unwrap();
    sql.batch_execute("CREATE DATABASE control").await.unwrap();
    cluster
}

fn provision(cluster: &Cluster, folder: &Path) -> Done {
    provision_as(&cluster.superuser_url("control"), folder)
}

fn provision_as(url: &str, folder: &Path) -> Done {
    let folder = folder.display().to_string();
    let run = admin(&["database", "provision", "--directory", &folder]);
    run.with(ADMINISTRATOR, url).run()
}

/// The roles that there are, with whether each has a password.
async fn roles(cluster: &Cluster) -> Vec<(String, bool)> {
    let sql = cluster.superuser("control").await.unwrap();
    let roles = "SELECT rolname::text, rolpassword LIKE 'SCRAM-SHA-256$%' FROM pg_authid
                  WHERE rolname ~ '^(execution|resource|site|ssh)_' ORDER BY 1";
    let rows = sql.query(roles, &[]).await.unwrap();
    rows.iter().map(|row| (row.get(0), row.get::<_, Option<bool>>(1) == Some(true))).collect()
}

#[tokio::test]
async fn each_new_role_gets_a_url_that_serves_and_a_second_run_changes_nothing() {
    let cluster = cluster().await;
    let folder = TempDir::new().unwrap();
    let folder = folder.path().join("new/urls");
    let said = provision(&cluster, &folder).ok();
    assert_eq!(files(&folder), ROLES.map(|role| format!("{role}.url")));
    let url = |role: &str| fs::read_to_string(folder.join(format!("{role}.url"))).unwrap();
    for role in ROLES {
        assert_eq!(mode(&folder.join(format!("{role}.url"))), 0o600);
        assert!(said.contains(&format!("{role}: made")), "{said}");
        assert!(!said.contains(password(&url(role))), "{said}");
    }
    assert_eq!(roles(&cluster).await, ROLES.map(|role| (role.to_owned(), true)));

    let works = || {
        let migrate = admin(&["database", "migrate"]).with(RUNS_OWNER, &url(ROLES[1]));
        let migrate = migrate.with(BINDINGS_OWNER, &url(ROLES[4]));
        let migrate = migrate.with(KEYS_OWNER, &url(ROLES[11]));
        migrate.with(OWNER, &url(ROLES[8])).run().ok();
        let check = admin(&["database", "check"]).with(RUNS_API, &url(ROLES[0]));
        let check = check.with(RUNS_WRITER, &url(ROLES[2])).with(BINDINGS_API, &url(ROLES[3]));
        let check = check.with(BINDINGS_WRITER, &url(ROLES[5])).with(API, &url(ROLES[6]));
        let check = check.with(KEEPER, &url(ROLES[7])).with(PRODUCER, &url(ROLES[9]));
        let check = check.with(KEYS_API, &url(ROLES[10])).with(KEYS_PROCESS, &url(ROLES[12]));
        let check = check.with(KEYS_REGISTRY, &url(ROLES[13]));
        assert_eq!(check.run().ok().lines().count(), 10);
    };
    works();
    let said = provision(&cluster, &folder).ok();
    assert_eq!(said.matches("was there, keeps its password").count(), ROLES.len(), "{said}");
    works();
}

#[tokio::test]
async fn where_a_file_is_there_or_can_not_be_made_no_role_is_made() {
    let cluster = cluster().await;
    let folder = TempDir::new().unwrap();
    // The last role, or one of the last, so that the others were made before it.
    let existing = folder.path().join("resource_provisioning_writer.url");
    fs::write(&existing, "mine").unwrap();
    let done = provision(&cluster, folder.path());
    done.refused(73, "resource_provisioning_writer.url");
    assert_eq!(files(folder.path()), ["resource_provisioning_writer.url"]);
    assert_eq!(fs::read_to_string(&existing).unwrap(), "mine");
    provision(&cluster, &existing).refused(73, "resource_provisioning_writer.url");
    assert_eq!(roles(&cluster).await, []);
    // With the file away it goes as if nothing had been.
    fs::remove_file(&existing).unwrap();
    provision(&cluster, folder.path()).ok();
    assert_eq!(roles(&cluster).await, ROLES.map(|role| (role.to_owned(), true)));
}

#[tokio::test]
async fn who_may_not_make_roles_makes_nothing() {
    let cluster = cluster().await;
    let sql = cluster.superuser("control").await.unwrap();
    sql.batch_execute("CREATE ROLE nobody LOGIN PASSWORD 'pa55word'").await.unwrap();
    let folder = TempDir::new().unwrap();
    let done = provision_as(&cluster.url("nobody", "pa55word", "control"), folder.path());
    done.refused(70, "permission denied");
    assert!(!done.err.contains("SCRAM") && !done.err.contains("pa55word"), "{done:?}");
    assert_eq!(files(folder.path()), [""; 0]);
    assert_eq!(roles(&cluster).await, []);
    let wrong = provision_as(&cluster.url("nobody", "wr0ng", "control"), folder.path());
    wrong.refused(70, "password authentication failed");
    assert!(!wrong.err.contains("wr0ng"), "{wrong:?}");
}

/// The first release: three roles, and the schema of its one migration.
const FIRST_ROLES: [&str; 3] =
    ["site_coordination_owner", "site_coordination_api", "site_coordination_producer"];

/// An installation of the first release. Gives the URL of each role.
async fn first_installation(cluster: &Cluster) -> impl Fn(&str) -> String {
    let sql = cluster.superuser("control").await.unwrap();
    for role in FIRST_ROLES {
        let make = format!("CREATE ROLE {role} LOGIN NOINHERIT PASSWORD 'pa55word'");
        sql.batch_execute(&make).await.unwrap();
        let connect = format!("GRANT CONNECT ON DATABASE control TO {role}");
        sql.batch_execute(&connect).await.unwrap();
    }
    sql.batch_execute("GRANT CREATE ON DATABASE control TO site_coordination_owner").await.unwrap();
    sql.batch_execute(concat!(
        "SET ROLE site_coordination_owner;
         CREATE SCHEMA site_coordination; SET search_path = site_coordination;
         CREATE TABLE __diesel_schema_migrations (version varchar(50) PRIMARY KEY,
             run_on timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP);
         INSERT INTO __diesel_schema_migrations VALUES ('20261129190000');",
        include_str!("../../../../migrations/site-coordination/20261129190000_streams/up.sql")
    ))
    .await
    .unwrap();
    let urls = FIRST_ROLES.map(|role| (role, cluster.url(role, "pa55word", "control")));
    move |role| urls.iter().find(|(name, _)| *name == role).unwrap().1.clone()
}

#[tokio::test]
async fn an_installation_of_the_first_release_is_upgraded_with_its_passwords_kept() {
    let cluster = cluster().await;
    let url = first_installation(&cluster).await;
    let folder = TempDir::new().unwrap();
    let migrate = || admin(&["database", "migrate"]).with(OWNER, &url(FIRST_ROLES[0])).run();
    // In the wrong order it is refused, and nothing is half done.
    migrate().refused(70, "site_coordination_keeper");
    let sql = cluster.superuser("control").await.unwrap();
    let versions = "SELECT count(*) FROM site_coordination.__diesel_schema_migrations";
    assert_eq!(sql.query_one(versions, &[]).await.unwrap().get::<_, i64>(0), 1);

    let said = provision(&cluster, folder.path()).ok();
    assert_eq!(said.matches("was there, keeps its password").count(), 3, "{said}");
    // Those that are new since, of every context.
    let new: Vec<_> = ROLES.iter().filter(|role| !FIRST_ROLES.contains(role)).collect();
    let new: Vec<_> = new.iter().map(|role| format!("{role}.url")).collect();
    assert_eq!(files(folder.path()), new);
    // Who has set one context's owner migrates that one.
    assert_eq!(migrate().ok().lines().count(), 1);
    let keeper = fs::read_to_string(folder.path().join("site_coordination_keeper.url")).unwrap();
    let check = admin(&["database", "check"]).with(API, &url(FIRST_ROLES[1]));
    let said = check.with(PRODUCER, &url(FIRST_ROLES[2])).with(KEEPER, &keeper).run().ok();
    assert_eq!(said.lines().count(), 3, "{said}");
}
