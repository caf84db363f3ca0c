//! `site-admin database`: roles, migrations and their check.

use test_support::TestDatabase;
use tokio_postgres::Client;

use crate::support::{
    ADMINISTRATOR, API, Admin, BINDINGS_API, BINDINGS_OWNER, BINDINGS_WRITER, KEEPER, KEYS_API,
    KEYS_OWNER, KEYS_PROCESS, KEYS_REGISTRY, OWNER, PRODUCER, RUNS_API, RUNS_OWNER, RUNS_WRITER,
    admin, password,
};

const SCHEMA: &str = "site_coordination";

/// A database as its administrator leaves it: made, its roles there, nothing in it.
async fn empty() -> TestDatabase {
    let database = TestDatabase::create().await;
    let sql = database.superuser().await;
    sql.batch_execute(&format!("DROP SCHEMA {SCHEMA} CASCADE")).await.unwrap();
    database
}

fn migrate(database: &TestDatabase) -> Admin {
    admin(&["database", "migrate"]).with(OWNER, &database.url("site_coordination_owner"))
}

fn check(database: &TestDatabase) -> Admin {
    let check = admin(&["database", "check"]);
    let check = check.with(API, &database.url("site_coordination_api"));
    let check = check.with(PRODUCER, &database.url("site_coordination_producer"));
    check.with(KEEPER, &database.url("site_coordination_keeper"))
}

/// What the catalogue says of the schema: its tables and who may do what.
async fn catalogue(sql: &Client) -> Vec<String> {
    let rights = "SELECT table_name || ' ' || grantee || ' ' || privilege_type
                    FROM information_schema.table_privileges
                   WHERE table_schema = 'site_coordination' ORDER BY 1";
    sql.query(rights, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
}

#[tokio::test]
async fn migrating_twice_does_nothing_the_second_time() {
    let database = empty().await;
    let first = migrate(&database).run().ok();
    assert!(first.starts_with("site_coordination: ran 2"), "{first}");
    let sql = database.superuser().await;
    let made = catalogue(&sql).await;
    assert!(!made.is_empty());
    assert_eq!(migrate(&database).run().ok(), "site_coordination: nothing to do\n");
    assert_eq!(catalogue(&sql).await, made);
}

#[tokio::test]
async fn two_that_migrate_at_once_are_both_right() {
    let database = empty().await;
    let runs: Vec<_> = (0..4)
        .map(|_| {
            let run = migrate(&database);
            std::thread::spawn(move || run.run().ok())
        })
        .collect();
    let said: Vec<_> = runs.into_iter().map(|run| run.join().unwrap()).collect();
    let worked = said.iter().filter(|said| said.contains(": ran ")).count();
    assert_eq!(worked, 1, "{said:?}");
}

#[tokio::test]
async fn only_the_owner_migrates() {
    for role in ["site_coordination_api", "site_coordination_producer"] {
        let database = empty().await;
        let url = database.url(role);
        let done = admin(&["database", "migrate"]).with(OWNER, &url).run();
        done.refused(70, "is neither site_coordination_owner nor a member of it");
        assert!(!done.err.contains(password(&url)), "{done:?}");
        assert_eq!(catalogue(&database.superuser().await).await, [""; 0]);
    }
}

#[tokio::test]
async fn a_wrong_credential_is_refused_and_an_absent_server_unavailable() {
    let database = empty().await;
    let url = database.url("site_coordination_owner");
    let wrong = url.replace(password(&url), "wr0ng-password");
    let nobody = "postgresql://o:wr0ng-password@127.0.0.1:1/d?sslmode=disable";
    for (url, code, said) in [
        (wrong.as_str(), 70, "password authentication failed"),
        (&url.replace(database.name(), "none"), 70, "does not exist"),
        (nobody, 69, "the database can't be reached"),
        ("postgresql://o:wr0ng-password@h/d", 64, "needs sslrootcert"),
        ("postgresql://o:wr0ng-password@h/d?sslrootcert=/none.pem", 64, "/none.pem"),
        ("postgresql://o:wr0ng-password@h/d?sslmode=disable&user=x", 64, "another parameter"),
        ("mysql://o:wr0ng-password@h/d", 64, "is no postgresql:// URL"),
        ("", 64, "is empty"),
    ] {
        let migrated = admin(&["database", "migrate"]).with(OWNER, url).run();
        migrated.refused(code, said);
        let checked = admin(&["database", "check"]).with(API, url).run();
        checked.refused(code, said);
        let listing = ["commands", "list", "--site", "a", "--environment", "k8s"];
        let listed = admin(&listing).with(PRODUCER, url).run();
        listed.refused(code, said);
        for done in [migrated, checked, listed] {
            assert!(!done.err.contains("wr0ng-password"), "{done:?}");
            assert!(!done.err.contains(password(&database.url("site_coordination_owner"))));
        }
    }
}

#[test]
fn a_missing_url_is_named() {
    admin(&["database", "provision", "--directory", "d"]).run().refused(64, ADMINISTRATOR);
    let (migrate, check) =
        (admin(&["database", "migrate"]).run(), admin(&["database", "check"]).run());
    migrate.refused(64, OWNER);
    check.refused(64, API);
    for (_, owner, roles) in CONTEXTS {
        assert!(migrate.err.contains(owner), "{migrate:?}");
        assert!(roles.iter().all(|(setting, _)| check.err.contains(setting)), "{check:?}");
    }
    let list = ["commands", "list", "--site", "a", "--environment", "k8s"];
    admin(&list).run().refused(64, PRODUCER);
}

/// A context, the setting for its owner, and its other settings with their roles.
type Context = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

const CONTEXTS: [Context; 4] = [
    (
        "site_coordination",
        OWNER,
        &[
            (API, "site_coordination_api"),
            (PRODUCER, "site_coordination_producer"),
            (KEEPER, "site_coordination_keeper"),
        ],
    ),
    (
        "execution_core",
        RUNS_OWNER,
        &[(RUNS_API, "execution_core_api"), (RUNS_WRITER, "execution_core_writer")],
    ),
    (
        "resource_provisioning",
        BINDINGS_OWNER,
        &[
            (BINDINGS_API, "resource_provisioning_api"),
            (BINDINGS_WRITER, "resource_provisioning_writer"),
        ],
    ),
    (
        "ssh_access",
        KEYS_OWNER,
        &[
            (KEYS_API, "ssh_access_api"),
            (KEYS_PROCESS, "ssh_access_process"),
            (KEYS_REGISTRY, "ssh_access_registry"),
        ],
    ),
];

#[tokio::test]
async fn each_context_whose_owner_is_set_is_migrated_and_no_other() {
    let database = TestDatabase::create().await;
    let sql = database.superuser().await;
    for (schema, ..) in CONTEXTS {
        sql.batch_execute(&format!("DROP SCHEMA {schema} CASCADE")).await.unwrap();
    }
    let schemas = async || -> Vec<String> {
        let rows = "SELECT nspname::text FROM pg_namespace
                     WHERE nspname IN ('site_coordination', 'execution_core',
                                       'resource_provisioning', 'ssh_access') ORDER BY nspname";
        sql.query(rows, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
    };
    // One by itself, then all of them.
    let (schema, owner, _) = CONTEXTS[1];
    let url = |schema: &str| database.url(&format!("{schema}_owner"));
    let said = admin(&["database", "migrate"]).with(owner, &url(schema)).run().ok();
    assert!(said.starts_with("execution_core: ran 2") && said.lines().count() == 1, "{said}");
    assert_eq!(schemas().await, ["execution_core"]);
    let all = |mut run: Admin| {
        for (schema, owner, _) in CONTEXTS {
            run = run.with(owner, &url(schema));
        }
        run.run()
    };
    let said = all(admin(&["database", "migrate"])).ok();
    let lines: Vec<_> = said.lines().collect();
    assert!(lines[0].starts_with("site_coordination: ran 2"), "{said}");
    assert_eq!(lines[1], "execution_core: nothing to do");
    assert!(lines[2].starts_with("resource_provisioning: ran 2"), "{said}");
    assert!(lines[3].starts_with("ssh_access: ran 2"), "{said}");
    assert_eq!(schemas().await.len(), 4);
    // Nobody else's owner migrates a schema.
    sql.batch_execute("DROP SCHEMA execution_core CASCADE").await.unwrap();
    let wrong = admin(&["database", "migrate"]).with(RUNS_OWNER, &url("resource_provisioning"));
    wrong.run().refused(70, "is neither execution_core_owner nor a member of it");
    assert_eq!(schemas().await, ["resource_provisioning", "site_coordination", "ssh_access"]);
}

#[tokio::test]
async fn the_check_passes_for_each_role_of_each_context_and_refuses_any_other() {
    let database = TestDatabase::create().await;
    let mut all = admin(&["database", "check"]);
    for (setting, role) in CONTEXTS.iter().flat_map(|(.., roles)| *roles) {
        let one = admin(&["database", "check"]).with(setting, &database.url(role)).run().ok();
        assert_eq!(one.lines().count(), 1, "{one}");
        assert!(one.contains(&format!("current, and {role} has")), "{one}");
        all = all.with(setting, &database.url(role));
        for (_, other) in CONTEXTS.iter().flat_map(|(.., roles)| *roles) {
            if other != role {
                let swapped = admin(&["database", "check"]).with(setting, &database.url(other));
                swapped.run().refused(70, &format!("it is neither {role} nor a member of it"));
            }
        }
    }
    assert_eq!(all.run().ok().lines().count(), 10);
}

#[tokio::test]
async fn the_check_passes_for_each_role_whose_url_is_set() {
    let database = TestDatabase::create().await;
    let said = check(&database).run().ok();
    assert_eq!(said.lines().count(), 3, "{said}");
    for role in ["site_coordination_api", "site_coordination_producer", "site_coordination_keeper"]
    {
        assert!(
            said.contains(&format!(
                "the schema is current, and {role} has the rights of this release"
            )),
            "{said}"
        );
    }
    let url = database.url("site_coordination_api");
    let one = admin(&["database", "check"]).with(API, &url).run().ok();
    assert_eq!(one.lines().count(), 1, "{one}");
}

#[tokio::test]
async fn the_check_refuses_swapped_and_too_powerful_credentials() {
    let database = TestDatabase::create().await;
    for (url, reason) in [
        (database.url("site_coordination_producer"), "neither site_coordination_api nor"),
        (database.url("site_coordination_owner"), "owns"),
        (database.superuser_url(), "is a superuser"),
    ] {
        admin(&["database", "check"]).with(API, &url).run().refused(70, reason);
    }
}

#[tokio::test]
async fn commands_are_touched_with_the_producers_credential_and_no_other() {
    let database = TestDatabase::create().await;
    let stream = ["--site", "north-1", "--environment", "slurm"];
    let one = ["--key", "k", "--kind", "test", "--body", "-"];
    for (url, reason) in [
        (database.url("site_coordination_api"), "neither site_coordination_producer nor"),
        (database.url("site_coordination_owner"), "owns"),
        (database.superuser_url(), "is a superuser"),
    ] {
        for (command, more) in [("enqueue", &one[..]), ("list", &[]), ("show", &one[..2])] {
            let run = admin(&[&["commands", command], &stream[..], more].concat());
            run.with(PRODUCER, &url).input(b"{}").run().refused(70, reason);
        }
    }
    let commands = "SELECT FROM site_coordination.command";
    assert!(database.superuser().await.query(commands, &[]).await.unwrap().is_empty());
}

#[tokio::test]
async fn the_check_refuses_a_schema_that_is_behind() {
    let database = empty().await;
    check(&database).run().refused(70, "run `site-admin database migrate`");
    migrate(&database).run().ok();
    check(&database).run().ok();
}

#[tokio::test]
async fn the_roles_are_printed_as_sql_that_runs_again_and_sets_no_password() {
    let sql = admin(&["database", "roles"]).run().ok();
    assert!(!sql.to_lowercase().contains("password '"), "{sql}");
    let database = TestDatabase::create().await;
    let superuser = database.superuser().await;
    let before = catalogue(&superuser).await;
    for _ in 0..2 {
        superuser.batch_execute(&sql).await.unwrap();
    }
    assert_eq!(catalogue(&superuser).await, before);
    check(&database).run().ok();
}

#[tokio::test]
async fn the_check_names_each_right_that_is_missing_or_too_much() {
    let database = TestDatabase::create().await;
    let sql = database.superuser().await;
    let schema = "SET search_path = site_coordination";
    sql.batch_execute(schema).await.unwrap();
    for (change, back, said) in [
        (
            "GRANT UPDATE (kind) ON command TO site_coordination_api",
            "REVOKE UPDATE (kind) ON command FROM site_coordination_api",
            "site_coordination_api are not those of this release; missing: nothing; \
             too much: UPDATE on command.kind",
        ),
        (
            "REVOKE SELECT ON session FROM site_coordination_producer",
            "GRANT SELECT ON session TO site_coordination_producer",
            "site_coordination_producer are not those of this release; missing: SELECT on session; \
             too much: nothing",
        ),
        (
            "GRANT SELECT ON stream_head TO site_coordination_keeper WITH GRANT OPTION",
            "REVOKE GRANT OPTION FOR SELECT ON stream_head FROM site_coordination_keeper",
            "too much: SELECT on stream_head with the right to grant it",
        ),
    ] {
        sql.batch_execute(change).await.unwrap();
        let done = check(&database).run();
        assert_eq!(done.code, 70, "{done:?}");
        assert!(done.err.contains(said), "{said}: {done:?}");
        sql.batch_execute(back).await.unwrap();
        check(&database).run().ok();
    }
}
