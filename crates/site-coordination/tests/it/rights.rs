//! The rights of the restricted roles: exactly those of a table here, and nothing works beyond
//! them.

use site_coordination::{API_ROLE, KEEPER_ROLE, PRODUCER_ROLE, RIGHTS};
use test_support::catalogue::{assert_refused, assert_rights, rights};

use crate::support::Fixture;

const SCHEMA: &str = "site_coordination";

/// Nobody who serves may change a history or its own rights.
const REFUSED_TO_ALL: &[&str] = &[
    "UPDATE site_coordination.command SET kind = 'x'",
    "UPDATE site_coordination.command SET not_after = clock_timestamp()",
    "UPDATE site_coordination.command_body SET body = '1'",
    "UPDATE site_coordination.command_result SET outcome = 'failed'",
    "UPDATE site_coordination.command_result SET received_at = clock_timestamp()",
    "UPDATE site_coordination.result_body SET body = '1'",
    "UPDATE site_coordination.command_cancel SET cancel_rev = 9",
    "UPDATE site_coordination.command_void SET voided_at = clock_timestamp()",
    "UPDATE site_coordination.private_output SET bytes = 'x'",
    "UPDATE site_coordination.session SET session_id = 'x'",
    "UPDATE site_coordination.event SET data = '{}'",
    "UPDATE site_coordination.event_counter SET site = 'x'",
    "UPDATE site_coordination.event_relay SET site = 'x'",
    "UPDATE site_coordination.stream_progress SET site = 'x'",
    "UPDATE site_coordination.stream_head SET site = 'x'",
    "DELETE FROM site_coordination.stream_head",
    "DELETE FROM site_coordination.stream_progress",
    "DELETE FROM site_coordination.session",
    "DELETE FROM site_coordination.event_counter",
    "DELETE FROM site_coordination.event_relay",
    "DELETE FROM site_coordination.__diesel_schema_migrations",
    "INSERT INTO site_coordination.__diesel_schema_migrations (version) VALUES ('x')",
    "INSERT INTO site_coordination.stream_progress (site, environment, generation)
     VALUES ('north-9', 'k8s', 9)",
    "INSERT INTO site_coordination.stream_head (site, environment, last_seq)
     VALUES ('north-9', 'k8s', 9)",
    "INSERT INTO site_coordination.event (site, seq, type, environment, subject, data, occurred_at)
     VALUES ('north-1', 9, 'x', 'k8s', 'x', 'x', clock_timestamp())",
    "TRUNCATE site_coordination.command CASCADE",
    "TRUNCATE site_coordination.result_body",
    "TRUNCATE site_coordination.event",
    "DO 'BEGIN LOCK TABLE site_coordination.stream_head IN ACCESS EXCLUSIVE MODE; END'",
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

/// Only the keeper deletes.
const DELETES: &[&str] = &[
    "DELETE FROM site_coordination.command",
    "DELETE FROM site_coordination.command_body",
    "DELETE FROM site_coordination.command_result",
    "DELETE FROM site_coordination.result_body",
    "DELETE FROM site_coordination.private_output",
    "DELETE FROM site_coordination.command_cancel",
    "DELETE FROM site_coordination.command_void",
    "DELETE FROM site_coordination.event",
    "UPDATE site_coordination.stream_head SET trimmed_seq = 1",
    "SET ROLE site_coordination_keeper",
];

const REFUSED_TO_THE_API: &[&str] = &[
    "INSERT INTO site_coordination.command SELECT * FROM site_coordination.command",
    "INSERT INTO site_coordination.command_body SELECT * FROM site_coordination.command_body",
    "INSERT INTO site_coordination.command_cancel (site, environment, seq, cancel_rev)
     VALUES ('north-1', 'slurm', 1, 1)",
    "INSERT INTO site_coordination.command_void (site, environment, seq, reason, note)
     VALUES ('north-1', 'slurm', 1, 'operator', 'x')",
    "UPDATE site_coordination.stream_head SET last_seq = last_seq + 1",
    "UPDATE site_coordination.stream_head SET last_digest = last_digest",
    "UPDATE site_coordination.stream_head SET cancel_rev = cancel_rev + 1",
    "SELECT FROM site_coordination.stream_head FOR UPDATE",
    "SET ROLE site_coordination_producer",
];

const REFUSED_TO_PRODUCERS: &[&str] = &[
    "INSERT INTO site_coordination.command_result SELECT * FROM site_coordination.command_result",
    "INSERT INTO site_coordination.result_body SELECT * FROM site_coordination.result_body",
    "INSERT INTO site_coordination.private_output (site, environment, seq, digest, bytes)
     VALUES ('north-1', 'slurm', 1, sha256('x'), 'x')",
    "INSERT INTO site_coordination.session (site, environment, generation, session_id)
     VALUES ('north-1', 'slurm', 2, 'abcdefghijklmnop')",
    "INSERT INTO site_coordination.event_relay VALUES ('north-1', 1)",
    "UPDATE site_coordination.stream_progress SET generation = 2",
    "UPDATE site_coordination.stream_progress SET session_id = 'abcdefghijklmnop'",
    "UPDATE site_coordination.session SET superseded_at = clock_timestamp()",
    "UPDATE site_coordination.event_relay SET published_seq = 1",
    "SELECT FROM site_coordination.private_output",
    "SET ROLE site_coordination_api",
];

/// It deletes what it may not read, and adds nothing.
const REFUSED_TO_THE_KEEPER: &[&str] = &[
    "SELECT body FROM site_coordination.command_body",
    "SELECT body FROM site_coordination.result_body",
    "SELECT digest FROM site_coordination.private_output",
    "SELECT FROM site_coordination.session",
    "INSERT INTO site_coordination.stream_head (site, environment) VALUES ('north-9', 'k8s')",
    "INSERT INTO site_coordination.command SELECT * FROM site_coordination.command",
    "INSERT INTO site_coordination.command_result SELECT * FROM site_coordination.command_result",
    "INSERT INTO site_coordination.command_void (site, environment, seq, reason)
     VALUES ('north-1', 'slurm', 1, 'expired')",
    "INSERT INTO site_coordination.event_counter (site) VALUES ('north-9')",
    "UPDATE site_coordination.stream_head SET last_seq = last_seq + 1",
    "UPDATE site_coordination.stream_head SET cancel_rev = cancel_rev + 1",
    "UPDATE site_coordination.stream_progress SET done_seq = done_seq + 1",
    "UPDATE site_coordination.event_counter SET last_seq = 0",
    "UPDATE site_coordination.event_relay SET published_seq = 9",
    "SELECT FROM site_coordination.stream_progress FOR UPDATE",
    "SET ROLE site_coordination_api",
    "SET ROLE site_coordination_producer",
];

#[tokio::test]
async fn the_catalogue_holds_exactly_the_rights_of_the_table() {
    let fixture = Fixture::create().await;
    assert_rights(&fixture.sql().await, SCHEMA, RIGHTS).await;
}

#[tokio::test]
async fn an_extra_right_of_any_kind_shows_in_the_catalogue() {
    let fixture = Fixture::create().await;
    let sql = fixture.sql().await;
    let before = rights(&sql, SCHEMA).await;
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
        assert_ne!(rights(&sql, SCHEMA).await, before, "{grant}");
        sql.batch_execute(&revoke.replace('%', "site_coordination.")).await.unwrap();
        assert_eq!(rights(&sql, SCHEMA).await, before, "{revoke}");
    }
}

#[tokio::test]
async fn the_api_role_is_refused_outside_its_rights() {
    refused(API_ROLE.name, &[DELETES, REFUSED_TO_THE_API]).await;
}

#[tokio::test]
async fn the_producer_role_is_refused_outside_its_rights() {
    refused(PRODUCER_ROLE.name, &[DELETES, REFUSED_TO_PRODUCERS]).await;
}

#[tokio::test]
async fn the_keeper_role_is_refused_outside_its_rights() {
    refused(KEEPER_ROLE.name, &[REFUSED_TO_THE_KEEPER]).await;
}

/// Tries each statement as `role`, as a session of its own would.
async fn refused(role: &str, statements: &[&[&str]]) {
    let fixture = Fixture::create().await;
    fixture.filled(2).await;
    let statements = REFUSED_TO_ALL.iter().chain(statements.iter().copied().flatten()).copied();
    let allowed = "SELECT FROM site_coordination.command";
    assert_refused(&fixture.database, role, allowed, statements).await;
}
