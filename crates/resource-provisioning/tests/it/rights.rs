//! The rights of the restricted roles: exactly those of the table, and nothing works beyond them.

use database::RoleError;
use resource_provisioning::{API_ROLE, CONTEXT, RIGHTS, WRITER_ROLE};
use test_support::catalogue::{assert_refused, assert_rights};

use crate::support::Fixture;

/// What is read by everybody.
const ALLOWED: &str = "SELECT FROM resource_provisioning.native_binding";

/// Nobody who serves may change a binding, set a time, or forget anything.
const REFUSED_TO_ALL: &[&str] = &[
    "UPDATE resource_provisioning.native_binding SET unix_user = 'x'",
    "UPDATE resource_provisioning.native_binding SET uid = 1000",
    "UPDATE resource_provisioning.native_binding SET gid = 1000",
    "UPDATE resource_provisioning.native_binding SET account = 'x'",
    "UPDATE resource_provisioning.native_binding SET member_id = 'x'",
    "UPDATE resource_provisioning.native_binding SET site = 'x'",
    "UPDATE resource_provisioning.native_binding SET retained_at = clock_timestamp()",
    "INSERT INTO resource_provisioning.native_binding (site, retained_at)
     VALUES ('x', clock_timestamp())",
    "INSERT INTO resource_provisioning.native_binding (site, released_at)
     VALUES ('x', clock_timestamp())",
    "INSERT INTO resource_provisioning.native_binding (site, binding_id)
     OVERRIDING SYSTEM VALUE VALUES ('x', 1)",
    "DELETE FROM resource_provisioning.native_binding",
    "TRUNCATE resource_provisioning.native_binding",
    "SELECT setval('resource_provisioning.native_binding_binding_id_seq', 1)",
    "DELETE FROM resource_provisioning.__diesel_schema_migrations",
    "INSERT INTO resource_provisioning.__diesel_schema_migrations (version) VALUES ('x')",
    "ALTER TABLE resource_provisioning.native_binding ADD COLUMN more text",
    "DROP INDEX resource_provisioning.native_binding_one_retained",
    "CREATE TABLE resource_provisioning.mine (a int)",
    "CREATE TABLE public.mine (a int)",
    "CREATE SCHEMA mine",
    "CREATE TEMPORARY TABLE mine (a int)",
    "CREATE ROLE mine",
    "SET ROLE resource_provisioning_owner",
    "SELECT FROM site_coordination.command",
    "SELECT FROM execution_core.run",
];

const REFUSED_TO_THE_API: &[&str] = &[
    "INSERT INTO resource_provisioning.native_binding (site) VALUES ('x')",
    "UPDATE resource_provisioning.native_binding SET released_at = clock_timestamp()",
    "SELECT FROM resource_provisioning.native_binding FOR UPDATE",
    "SET ROLE resource_provisioning_writer",
];

#[tokio::test]
async fn the_catalogue_holds_exactly_the_rights_of_the_table() {
    let fixture = Fixture::create().await;
    assert_rights(&fixture.sql().await, "resource_provisioning", RIGHTS).await;
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
    let statements = REFUSED_TO_ALL.iter().copied().chain(["SET ROLE resource_provisioning_api"]);
    assert_refused(&fixture.database, WRITER_ROLE.name, ALLOWED, statements).await;
}

#[tokio::test]
async fn each_role_is_taken_for_itself_and_no_other_for_it() {
    let fixture = Fixture::create().await;
    let others = [
        "site_coordination_api",
        "site_coordination_producer",
        "execution_core_api",
        "execution_core_writer",
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
            "GRANT DELETE ON resource_provisioning.native_binding TO resource_provisioning_api",
            "it may delete in resource_provisioning.native_binding",
        ),
        (
            "GRANT USAGE ON SCHEMA execution_core TO resource_provisioning_api;
             GRANT SELECT (run_id) ON execution_core.run TO resource_provisioning_api",
            "it may read or write execution_core.run",
        ),
    ] {
        sql.batch_execute(grant).await.unwrap();
        let refusal = API_ROLE.check(&fixture.url(API_ROLE.name)).await.unwrap_err();
        assert!(refusal.to_string().contains(reason), "{refusal}");
    }
}
