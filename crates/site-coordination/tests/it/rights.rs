//! The rights of the restricted roles: exactly those of a table here, and nothing works beyond
//! them.

use std::collections::BTreeSet;

use site_coordination::{API_ROLE, PRODUCER_ROLE};
use tokio_postgres::{Client, error::SqlState};

use crate::support::Fixture;

/// Every right on anything outside PostgreSQL's own schemas, of everybody but its owner. In the
/// schema of the context and on the database: of everybody; elsewhere: of its two roles.
const CATALOGUE: &str = "
WITH granted (object, acl, owner, ours) AS (
    SELECT 'database', coalesce(datacl, acldefault('d', datdba)), datdba, true
      FROM pg_database WHERE datname = current_database()
    UNION ALL
    SELECT 'schema ' || nspname, coalesce(nspacl, acldefault('n', nspowner)), nspowner,
           nspname IN ('site_coordination', 'public')
      FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema'
    UNION ALL
    SELECT CASE c.relkind WHEN 'S' THEN 'sequence ' ELSE '' END || n.nspname || '.' || c.relname,
           c.relacl, c.relowner, n.nspname = 'site_coordination'
      FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
     WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
    UNION ALL
    SELECT n.nspname || '.' || c.relname || '.' || a.attname, a.attacl, c.relowner,
           n.nspname = 'site_coordination'
      FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
      JOIN pg_namespace n ON n.oid = c.relnamespace
     WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
    UNION ALL
    SELECT 'function ' || p.oid::regprocedure, coalesce(p.proacl, acldefault('f', p.proowner)),
           p.proowner, n.nspname = 'site_coordination'
      FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
     WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
    UNION ALL
    SELECT 'defaults of ' || defaclrole::regrole, defaclacl, defaclrole, true FROM pg_default_acl
)
SELECT coalesce(nullif(a.grantee, 0)::regrole::text, 'PUBLIC') || ': ' || a.privilege_type || ' '
       || g.object || CASE WHEN a.is_grantable THEN ' and may grant it' ELSE '' END
  FROM granted g, aclexplode(g.acl) a
 WHERE a.grantee <> g.owner
   AND (g.ours OR a.grantee IN ('site_coordination_api'::regrole,
                                'site_coordination_producer'::regrole))
   AND (g.object <> 'database' OR a.grantee = 0 OR a.grantee::regrole::text ~ 'site_coordination')";

/// `role: RIGHTS object`, the rights separated by commas.
const RIGHTS: &[(&str, &str, &str)] = &[
    ("site_coordination_owner", "CONNECT,CREATE", "database"),
    ("site_coordination_api", "CONNECT", "database"),
    ("site_coordination_api", "USAGE", "schema site_coordination"),
    ("site_coordination_api", "SELECT", "site_coordination.__diesel_schema_migrations"),
    ("site_coordination_api", "SELECT", "site_coordination.stream_head"),
    ("site_coordination_api", "SELECT", "site_coordination.stream_progress"),
    ("site_coordination_api", "UPDATE", "site_coordination.stream_progress.done_seq"),
    ("site_coordination_api", "SELECT", "site_coordination.command"),
    ("site_coordination_api", "SELECT", "site_coordination.command_body"),
    ("site_coordination_api", "SELECT,INSERT", "site_coordination.command_result"),
    ("site_coordination_api", "SELECT,INSERT", "site_coordination.result_body"),
    ("site_coordination_producer", "CONNECT", "database"),
    ("site_coordination_producer", "USAGE", "schema site_coordination"),
    ("site_coordination_producer", "SELECT", "site_coordination.__diesel_schema_migrations"),
    ("site_coordination_producer", "SELECT", "site_coordination.stream_head"),
    ("site_coordination_producer", "INSERT", "site_coordination.stream_head.site"),
    ("site_coordination_producer", "INSERT", "site_coordination.stream_head.environment"),
    ("site_coordination_producer", "UPDATE", "site_coordination.stream_head.last_seq"),
    ("site_coordination_producer", "UPDATE", "site_coordination.stream_head.last_digest"),
    ("site_coordination_producer", "SELECT", "site_coordination.stream_progress"),
    ("site_coordination_producer", "INSERT", "site_coordination.stream_progress.site"),
    ("site_coordination_producer", "INSERT", "site_coordination.stream_progress.environment"),
    ("site_coordination_producer", "SELECT,INSERT", "site_coordination.command"),
    ("site_coordination_producer", "SELECT,INSERT", "site_coordination.command_body"),
    ("site_coordination_producer", "SELECT", "site_coordination.command_result"),
    ("site_coordination_producer", "SELECT", "site_coordination.result_body"),
];

const REFUSED_TO_BOTH: &[&str] = &[
    "UPDATE site_coordination.command SET kind = 'x'",
    "UPDATE site_coordination.command_body SET body = '1'",
    "UPDATE site_coordination.command_result SET outcome = 'failed'",
    "UPDATE site_coordination.result_body SET body = '1'",
    "UPDATE site_coordination.stream_progress SET generation = 2",
    "UPDATE site_coordination.stream_progress SET site = 'x'",
    "UPDATE site_coordination.stream_head SET site = 'x'",
    "DELETE FROM site_coordination.stream_head",
    "DELETE FROM site_coordination.stream_progress",
    "DELETE FROM site_coordination.command",
    "DELETE FROM site_coordination.command_body",
    "DELETE FROM site_coordination.command_result",
    "DELETE FROM site_coordination.result_body",
    "DELETE FROM site_coordination.__diesel_schema_migrations",
    "INSERT INTO site_coordination.__diesel_schema_migrations (version) VALUES ('x')",
    "INSERT INTO site_coordination.stream_progress (site, environment, generation)
     VALUES ('north-9', 'k8s', 9)",
    "INSERT INTO site_coordination.stream_head (site, environment, last_seq)
     VALUES ('north-9', 'k8s', 9)",
    "TRUNCATE site_coordination.command CASCADE",
    "TRUNCATE site_coordination.result_body",
    "DO 'BEGIN LOCK TABLE site_coordination.command IN ACCESS EXCLUSIVE MODE; END'",
    "ALTER TABLE site_coordination.command ADD COLUMN more text",
    "DROP TABLE site_coordination.result_body",
    "CREATE TABLE site_coordination.mine (a int)",
    "CREATE FUNCTION site_coordination.mine() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "CREATE TRIGGER mine BEFORE INSERT ON site_coordination.command
     EXECUTE FUNCTION suppress_redundant_updates_trigger()",
    "CREATE TABLE public.mine (a int)",
    "CREATE SCHEMA mine",
    "CREATE TEMPORARY TABLE mine (a int)",
    "CREATE ROLE mine",
    "SET ROLE site_coordination_owner",
    "ALTER TABLE site_coordination.command DISABLE TRIGGER ALL",
    "COPY site_coordination.command TO '/tmp/command'",
];

const REFUSED_TO_THE_API: &[&str] = &[
    "INSERT INTO site_coordination.stream_head (site, environment) VALUES ('north-9', 'k8s')",
    "INSERT INTO site_coordination.stream_progress (site, environment) VALUES ('north-9', 'k8s')",
    "INSERT INTO site_coordination.command SELECT * FROM site_coordination.command",
    "INSERT INTO site_coordination.command_body SELECT * FROM site_coordination.command_body",
    "UPDATE site_coordination.stream_head SET last_seq = last_seq + 1",
    "UPDATE site_coordination.stream_head SET last_digest = last_digest",
    "SELECT FROM site_coordination.stream_head FOR UPDATE",
    "SET ROLE site_coordination_producer",
];

const REFUSED_TO_PRODUCERS: &[&str] = &[
    "INSERT INTO site_coordination.command_result SELECT * FROM site_coordination.command_result",
    "INSERT INTO site_coordination.result_body SELECT * FROM site_coordination.result_body",
    "UPDATE site_coordination.stream_progress SET done_seq = done_seq + 1",
    "SELECT FROM site_coordination.stream_progress FOR UPDATE",
    "SET ROLE site_coordination_api",
];

async fn rights(sql: &Client) -> BTreeSet<String> {
    sql.query(CATALOGUE, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
}

#[tokio::test]
async fn the_catalogue_holds_exactly_the_rights_of_the_table() {
    let expected: BTreeSet<String> = RIGHTS
        .iter()
        .flat_map(|(role, rights, object)| {
            rights.split(',').map(move |right| format!("{role}: {right} {object}"))
        })
        .collect();
    let fixture = Fixture::create().await;
    let sql = fixture.sql().await;
    let found = rights(&sql).await;
    let extra: Vec<_> = found.difference(&expected).collect();
    let missing: Vec<_> = expected.difference(&found).collect();
    assert!(extra.is_empty() && missing.is_empty(), "extra: {extra:#?}\nmissing: {missing:#?}");
}

#[tokio::test]
async fn an_extra_right_of_any_kind_shows_in_the_catalogue() {
    let fixture = Fixture::create().await;
    let sql = fixture.sql().await;
    let before = rights(&sql).await;
    for (grant, revoke) in [
        (
            "GRANT DELETE ON %command TO site_coordination_api",
            "REVOKE DELETE ON %command FROM site_coordination_api",
        ),
        (
            "GRANT UPDATE (kind) ON %command TO PUBLIC",
            "REVOKE UPDATE (kind) ON %command FROM PUBLIC",
        ),
        (
            "GRANT CREATE ON SCHEMA public TO site_coordination_producer",
            "REVOKE CREATE ON SCHEMA public FROM site_coordination_producer",
        ),
        (
            "CREATE SEQUENCE %extra; GRANT USAGE ON SEQUENCE %extra TO site_coordination_api",
            "DROP SEQUENCE %extra",
        ),
        (
            "CREATE FUNCTION %extra() RETURNS int LANGUAGE sql AS 'SELECT 1'",
            "DROP FUNCTION %extra()",
        ),
        (
            "CREATE TABLE public.extra (a int); GRANT SELECT ON public.extra TO site_coordination_api",
            "DROP TABLE public.extra",
        ),
        (
            "GRANT SELECT ON %command TO site_coordination_api WITH GRANT OPTION",
            "REVOKE GRANT OPTION FOR SELECT ON %command FROM site_coordination_api",
        ),
        (
            "ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO PUBLIC",
            "ALTER DEFAULT PRIVILEGES REVOKE SELECT ON TABLES FROM PUBLIC",
        ),
    ] {
        sql.batch_execute(&grant.replace('%', "site_coordination.")).await.unwrap();
        assert_ne!(rights(&sql).await, before, "{grant}");
        sql.batch_execute(&revoke.replace('%', "site_coordination.")).await.unwrap();
        assert_eq!(rights(&sql).await, before, "{revoke}");
    }
}

#[tokio::test]
async fn the_api_role_is_refused_outside_its_rights() {
    refused(API_ROLE.name, REFUSED_TO_THE_API).await;
}

#[tokio::test]
async fn the_producer_role_is_refused_outside_its_rights() {
    refused(PRODUCER_ROLE.name, REFUSED_TO_PRODUCERS).await;
}

/// Tries each statement as `role`, as a session of its own would.
async fn refused(role: &str, statements: &[&str]) {
    let fixture = Fixture::create().await;
    fixture.filled(2).await;
    let sql = fixture.sql().await;
    sql.batch_execute(&format!("SET SESSION AUTHORIZATION {role}")).await.unwrap();
    sql.batch_execute("SELECT FROM site_coordination.command").await.unwrap();
    for statement in REFUSED_TO_BOTH.iter().chain(statements) {
        match sql.batch_execute(statement).await {
            Ok(()) => panic!("{role} may: {statement}"),
            Err(error) => assert_eq!(
                error.code(),
                Some(&SqlState::INSUFFICIENT_PRIVILEGE),
                "{role}: {statement}: {error:?}"
            ),
        }
    }
}
