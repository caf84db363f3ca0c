//! The rights of the restricted roles: exactly those of the table, and nothing works beyond them.

use database::RoleError;
use ssh_access::{API_ROLE, CONTEXT, PROCESS_ROLE, REGISTRY_ROLE, RIGHTS};
use test_support::catalogue::{assert_refused, assert_rights, rights};

use crate::support::Fixture;

const SCHEMA: &str = "ssh_access";

/// Nobody who serves may change what a key or an account is, rewrite history, set a time of the
/// database's, or make anything.
const REFUSED_TO_ALL: &[&str] = &[
    "UPDATE ssh_access.member_key SET public_key = 'x'",
    "UPDATE ssh_access.member_key SET member_id = 'x'",
    "UPDATE ssh_access.member_key SET expires_at = NULL",
    "UPDATE ssh_access.member_key SET added_at = clock_timestamp()",
    "UPDATE ssh_access.site_account SET member_id = 'x'",
    "UPDATE ssh_access.site_account SET unix_user = 'x'",
    "UPDATE ssh_access.site_key SET public_key = 'x'",
    "UPDATE ssh_access.site_change SET enforce_by = NULL",
    "UPDATE ssh_access.site_change SET chain_digest = digest",
    "UPDATE ssh_access.event SET data = '{}'",
    "DELETE FROM ssh_access.member",
    "DELETE FROM ssh_access.member_key",
    "DELETE FROM ssh_access.site_account",
    "DELETE FROM ssh_access.site_feed",
    "DELETE FROM ssh_access.site_ack",
    "DELETE FROM ssh_access.propagator_lease",
    "INSERT INTO ssh_access.member_key (key_id, removed_at) VALUES ('x', clock_timestamp())",
    "INSERT INTO ssh_access.site_change (site, seq, created_at) VALUES ('x', 1, clock_timestamp())",
    "TRUNCATE ssh_access.site_key",
    "DELETE FROM ssh_access.__diesel_schema_migrations",
    "ALTER TABLE ssh_access.member ADD COLUMN more text",
    "DROP TABLE ssh_access.event_relay",
    "CREATE TABLE ssh_access.mine (a int)",
    "CREATE FUNCTION ssh_access.mine() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "CREATE TABLE public.mine (a int)",
    "CREATE SCHEMA mine",
    "CREATE TEMPORARY TABLE mine (a int)",
    "CREATE ROLE mine",
    "SET ROLE ssh_access_owner",
    "SELECT FROM site_coordination.command",
    "SELECT FROM execution_core.run",
    "SELECT FROM resource_provisioning.native_binding",
];

const REFUSED_TO_THE_API: &[&str] = &[
    "SELECT FROM ssh_access.member",
    "SELECT FROM ssh_access.member_key",
    "SELECT FROM ssh_access.site_account",
    "SELECT member_id FROM ssh_access.changed_member",
    "SELECT member_id FROM ssh_access.pending_member",
    "SELECT FROM ssh_access.propagator_lease",
    "SELECT FROM ssh_access.event",
    "DELETE FROM ssh_access.event",
    "INSERT INTO ssh_access.changed_member (member_id) VALUES ('x')",
    "DELETE FROM ssh_access.changed_member",
    "DELETE FROM ssh_access.pending_member",
    "INSERT INTO ssh_access.site_key (site) VALUES ('x')",
    "DELETE FROM ssh_access.site_key",
    "INSERT INTO ssh_access.site_change (site) VALUES ('x')",
    "DELETE FROM ssh_access.site_change",
    "INSERT INTO ssh_access.site_feed (site) VALUES ('x')",
    "UPDATE ssh_access.site_feed SET head = 1",
    "UPDATE ssh_access.site_feed SET window_seconds = 60",
    "SELECT FROM ssh_access.site_key FOR UPDATE",
    "UPDATE ssh_access.site_ack SET site = 'x'",
    "INSERT INTO ssh_access.site_ack (site, acknowledged_at) VALUES ('x', clock_timestamp())",
    "SET ROLE ssh_access_process",
];

const REFUSED_TO_THE_PROCESS: &[&str] = &[
    "SELECT FROM ssh_access.member",
    "INSERT INTO ssh_access.member_key (key_id) VALUES ('x')",
    "UPDATE ssh_access.member_key SET removed_at = NULL",
    "INSERT INTO ssh_access.site_account (site) VALUES ('x')",
    "UPDATE ssh_access.site_account SET removed_at = NULL",
    "INSERT INTO ssh_access.changed_member (member_id) VALUES ('x')",
    "UPDATE ssh_access.changed_member SET member_id = 'x'",
    "UPDATE ssh_access.pending_member SET since = clock_timestamp()",
    "UPDATE ssh_access.site_ack SET seq = 0",
    "INSERT INTO ssh_access.site_ack (site) VALUES ('x')",
    "UPDATE ssh_access.site_feed SET site = 'x'",
    "DELETE FROM ssh_access.event_counter",
    "DELETE FROM ssh_access.event_relay",
    "SET ROLE ssh_access_registry",
];

const REFUSED_TO_THE_REGISTRY: &[&str] = &[
    "SELECT FROM ssh_access.changed_member",
    "SELECT FROM ssh_access.pending_member",
    "DELETE FROM ssh_access.changed_member",
    "SELECT FROM ssh_access.site_key",
    "SELECT FROM ssh_access.site_change",
    "DELETE FROM ssh_access.site_key",
    "UPDATE ssh_access.site_feed SET head = 1",
    "UPDATE ssh_access.site_ack SET seq = 1",
    "SELECT FROM ssh_access.propagator_lease",
    "DELETE FROM ssh_access.event",
    "UPDATE ssh_access.propagator_lease SET fence = 1",
    "INSERT INTO ssh_access.member_key (key_id, added_at) VALUES ('x', clock_timestamp())",
    "INSERT INTO ssh_access.site_account (site, added_at) VALUES ('x', clock_timestamp())",
    "SET ROLE ssh_access_process",
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
            "GRANT UPDATE (public_key) ON ssh_access.site_key TO ssh_access_process",
            "REVOKE UPDATE (public_key) ON ssh_access.site_key FROM ssh_access_process",
        ),
        (
            "GRANT SELECT ON site_coordination.command TO ssh_access_api",
            "REVOKE SELECT ON site_coordination.command FROM ssh_access_api",
        ),
        (
            "GRANT SELECT ON ssh_access.member_key TO site_coordination_api",
            "REVOKE SELECT ON ssh_access.member_key FROM site_coordination_api",
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
    let allowed = "SELECT FROM ssh_access.site_feed; SELECT since FROM ssh_access.pending_member;
                   SELECT changed_at FROM ssh_access.changed_member";
    let statements = REFUSED_TO_ALL.iter().chain(REFUSED_TO_THE_API).copied();
    assert_refused(&fixture.database, API_ROLE.name, allowed, statements).await;
}

#[tokio::test]
async fn the_process_role_is_refused_outside_its_rights() {
    let fixture = Fixture::create().await;
    let allowed = "SELECT FROM ssh_access.member_key; DELETE FROM ssh_access.site_key";
    let statements = REFUSED_TO_ALL.iter().chain(REFUSED_TO_THE_PROCESS).copied();
    assert_refused(&fixture.database, PROCESS_ROLE.name, allowed, statements).await;
}

#[tokio::test]
async fn the_registrys_role_is_refused_outside_its_rights() {
    let fixture = Fixture::create().await;
    let allowed = "SELECT FROM ssh_access.member_key; SELECT FROM ssh_access.site_ack";
    let statements = REFUSED_TO_ALL.iter().chain(REFUSED_TO_THE_REGISTRY).copied();
    assert_refused(&fixture.database, REGISTRY_ROLE.name, allowed, statements).await;
}

#[tokio::test]
async fn each_role_is_taken_for_itself_and_no_other_for_it() {
    let fixture = Fixture::create().await;
    let others = ["site_coordination_api", "execution_core_api", CONTEXT.owner()];
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
    sql.batch_execute("GRANT DELETE ON ssh_access.site_key TO ssh_access_api").await.unwrap();
    let refusal = API_ROLE.check(&fixture.url(API_ROLE.name)).await.unwrap_err();
    assert!(refusal.to_string().contains("it may delete in ssh_access.site_key"), "{refusal}");
}
