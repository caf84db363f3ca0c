//! The rights of the restricted roles: exactly those of the table, and nothing works beyond them.

use database::RoleError;
use execution_core::{API_ROLE, CONTEXT, RIGHTS, WRITER_ROLE};
use test_support::catalogue::{assert_refused, assert_rights, rights};

use crate::support::Fixture;

const SCHEMA: &str = "execution_core";

/// What is read by everybody.
const ALLOWED: &str = "SELECT FROM execution_core.run; SELECT FROM execution_core.attempt";

/// Nobody who serves may change what was accepted, set a time, or forget anything.
const REFUSED_TO_ALL: &[&str] = &[
    "UPDATE execution_core.run SET material = '1'",
    "UPDATE execution_core.run SET deadline = clock_timestamp()",
    "UPDATE execution_core.run SET member_id = 'x'",
    "UPDATE execution_core.run SET project_id = 'x'",
    "UPDATE execution_core.run SET site = 'x'",
    "UPDATE execution_core.run SET environment = 'k8s'",
    "UPDATE execution_core.run SET repository_project_id = 1",
    "UPDATE execution_core.run SET repository_commit = 'x'",
    "UPDATE execution_core.run SET accepted_at = clock_timestamp()",
    "UPDATE execution_core.attempt SET submitted_at = clock_timestamp()",
    "UPDATE execution_core.attempt SET number = 9",
    "INSERT INTO execution_core.run (run_id, accepted_at) VALUES ('x', clock_timestamp())",
    "INSERT INTO execution_core.run (run_id, cancelled_at) VALUES ('x', clock_timestamp())",
    "INSERT INTO execution_core.run (run_id, last_attempt) VALUES ('x', 7)",
    "INSERT INTO execution_core.attempt (run_id, number, submitted_at)
     VALUES ('x', 1, clock_timestamp())",
    "INSERT INTO execution_core.attempt (run_id, number, final_at)
     VALUES ('x', 1, clock_timestamp())",
    "DELETE FROM execution_core.run",
    "DELETE FROM execution_core.attempt",
    "TRUNCATE execution_core.attempt",
    "TRUNCATE execution_core.run CASCADE",
    "DELETE FROM execution_core.__diesel_schema_migrations",
    "INSERT INTO execution_core.__diesel_schema_migrations (version) VALUES ('x')",
    "ALTER TABLE execution_core.run ADD COLUMN more text",
    "DROP TABLE execution_core.attempt",
    "CREATE TABLE execution_core.mine (a int)",
    "CREATE FUNCTION execution_core.mine() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "CREATE TABLE public.mine (a int)",
    "CREATE SCHEMA mine",
    "CREATE TEMPORARY TABLE mine (a int)",
    "CREATE ROLE mine",
    "SET ROLE execution_core_owner",
    "SELECT FROM site_coordination.command",
    "SELECT FROM resource_provisioning.native_binding",
];

const REFUSED_TO_THE_API: &[&str] = &[
    "INSERT INTO execution_core.run (run_id) VALUES ('x')",
    "INSERT INTO execution_core.attempt (run_id, number) VALUES ('x', 1)",
    "UPDATE execution_core.run SET cancelled_at = clock_timestamp()",
    "UPDATE execution_core.run SET last_attempt = 1",
    "UPDATE execution_core.attempt SET final_at = clock_timestamp()",
    "SELECT FROM execution_core.run FOR UPDATE",
    "SELECT FROM execution_core.attempt FOR SHARE",
    "SET ROLE execution_core_writer",
];

#[tokio::test]
async fn the_catalogue_holds_exactly_the_rights_of_the_table() {
    let fixture = Fixture::create().await;
    assert_rights(&fixture.sql().await, SCHEMA, RIGHTS).await;
}

#[tokio::test]
async fn an_extra_right_shows_in_the_catalogue() {
    let fixture = Fixture::create().await;
    let sql = fixture.sql().await;
    let before = rights(&sql, SCHEMA).await;
    for (grant, revoke) in [
        (
            "GRANT UPDATE (state) ON execution_core.run TO execution_core_api",
            "REVOKE UPDATE (state) ON execution_core.run FROM execution_core_api",
        ),
        (
            "GRANT SELECT ON site_coordination.command TO execution_core_writer",
            "REVOKE SELECT ON site_coordination.command FROM execution_core_writer",
        ),
        (
            "GRANT SELECT ON execution_core.run TO site_coordination_api",
            "REVOKE SELECT ON execution_core.run FROM site_coordination_api",
        ),
    ] {
        sql.batch_execute(grant).await.unwrap();
        assert_ne!(rights(&sql, SCHEMA).await, before, "{grant}");
        sql.batch_execute(revoke).await.unwrap();
        assert_eq!(rights(&sql, SCHEMA).await, before, "{revoke}");
    }
}

#[tokio::test]
async fn the_api_role_is_refused_outside_its_rights() {
    let fixture = Fixture::create().await;
    let statements = REFUSED_TO_ALL.iter().chain(REFUSED_TO_THE_API).copied();
    assert_refused(&fixture.database, API_ROLE.name, ALLOWED, statements).await;
}

#[tokio::test]
async fn the_writers_role_is_refused_outside_its_rights() {
    let fixture = Fixture::create().await;
    let statements = REFUSED_TO_ALL.iter().copied().chain(["SET ROLE execution_core_api"]);
    assert_refused(&fixture.database, WRITER_ROLE.name, ALLOWED, statements).await;
}

#[tokio::test]
async fn each_role_is_taken_for_itself_and_no_other_for_it() {
    let fixture = Fixture::create().await;
    let others = [
        "site_coordination_api",
        "site_coordination_producer",
        "resource_provisioning_api",
        "resource_provisioning_writer",
        CONTEXT.owner(),
    ];
    for role in CONTEXT.roles {
        role.check(&fixture.url(role.name)).await.unwrap();
        let ours = CONTEXT.roles.iter().map(|other| other.name).filter(|name| *name != role.name);
        for other in ours.chain(others) {
            let refusal = role.check(&fixture.url(other)).await.unwrap_err();
            let RoleError::TooMuch { reasons, .. } = refusal else { panic!("{refusal:?}") };
            let expected = format!("it is neither {} nor a member of it", role.name);
            assert!(reasons.contains(&expected), "{other}: {reasons:?}");
        }
    }
}

#[tokio::test]
async fn a_role_with_too_much_is_refused() {
    let fixture = Fixture::create().await;
    let sql = fixture.sql().await;
    for (grant, reason) in [
        (
            "GRANT DELETE ON execution_core.run TO execution_core_api",
            "it may delete in execution_core.run",
        ),
        (
            "GRANT USAGE ON SCHEMA site_coordination TO execution_core_api;
             GRANT SELECT ON site_coordination.command_body TO execution_core_api",
            "it may read or write site_coordination.command_body",
        ),
    ] {
        sql.batch_execute(grant).await.unwrap();
        let refusal = API_ROLE.check(&fixture.url(API_ROLE.name)).await.unwrap_err();
        assert!(refusal.to_string().contains(reason), "{refusal}");
    }
}
