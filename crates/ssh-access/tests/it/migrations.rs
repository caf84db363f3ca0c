//! The schema's way up and down, and what a process checks of it before it serves.

use database::{DatabaseUrl, SchemaError};
use ssh_access::{CONTEXT, MIGRATIONS};
use test_support::{
    at_once,
    catalogue::{assert_each_change_is_taken_back, left_behind, schema},
};
use tokio_postgres::Client;

use crate::support::{Fixture, key};

const SCHEMA: &str = "ssh_access";

/// A database with the roles and without the schema.
async fn unmigrated() -> (Fixture, Client, DatabaseUrl) {
    let fixture = Fixture::create().await;
    let sql = fixture.sql().await;
    sql.batch_execute(&format!("DROP SCHEMA {SCHEMA} CASCADE")).await.unwrap();
    let owner = fixture.url(CONTEXT.owner());
    (fixture, sql, owner)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schema_goes_up_and_down_and_up_again() {
    let (fixture, sql, owner) = unmigrated().await;
    assert_eq!(MIGRATIONS.migrate(&owner).await.unwrap(), MIGRATIONS.versions());
    let first = schema(&sql, SCHEMA).await;
    assert!(first.len() > 20, "{first:?}");
    fixture.add(&key("m1", 1)).await;
    MIGRATIONS.revert_all(&owner).await.unwrap();
    assert_eq!(left_behind(&sql, SCHEMA).await, [""; 0]);
    assert_eq!(MIGRATIONS.migrate(&owner).await.unwrap(), MIGRATIONS.versions());
    assert_eq!(schema(&sql, SCHEMA).await, first);
    let added = fixture.registry(1).add_key(&key("m1", 1), &crate::support::random()).await;
    assert!(added.unwrap().new);
}

/// Each change, with its way back.
const CHANGES: &[(&str, &str)] = &[
    (
        include_str!("../../../../migrations/ssh-access/20261130090000_keys/up.sql"),
        include_str!("../../../../migrations/ssh-access/20261130090000_keys/down.sql"),
    ),
    (
        include_str!("../../../../migrations/ssh-access/20261130120000_removals/up.sql"),
        include_str!("../../../../migrations/ssh-access/20261130120000_removals/down.sql"),
    ),
    (
        include_str!("../../../../migrations/ssh-access/20261130140000_old_events/up.sql"),
        include_str!("../../../../migrations/ssh-access/20261130140000_old_events/down.sql"),
    ),
];

#[tokio::test(flavor = "multi_thread")]
async fn each_change_takes_back_exactly_what_it_brought() {
    let (_fixture, sql, owner) = unmigrated().await;
    MIGRATIONS.migrate(&owner).await.unwrap();
    MIGRATIONS.revert_all(&owner).await.unwrap();
    assert_eq!(CHANGES.len(), MIGRATIONS.versions().len());
    assert_each_change_is_taken_back(&sql, SCHEMA, CHANGES).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 8)]
async fn of_several_migrations_at_once_one_migrates_and_all_succeed() {
    let (_fixture, _sql, owner) = unmigrated().await;
    let ran = at_once(4, |_| {
        let owner = owner.clone();
        async move { MIGRATIONS.migrate(&owner).await.unwrap().len() }
    })
    .await;
    assert_eq!(ran.iter().sum::<usize>(), MIGRATIONS.versions().len());
}

#[tokio::test]
async fn every_role_finds_a_migrated_schema_fit_and_another_one_not() {
    let fixture = Fixture::create().await;
    for role in CONTEXT.roles {
        MIGRATIONS.check(&fixture.url(role.name)).await.unwrap();
        let rights = CONTEXT.rights_of(role.name);
        role.compare(&fixture.url(role.name), rights).await.unwrap();
    }
    let (fixture, _sql, _owner) = unmigrated().await;
    for role in CONTEXT.roles {
        let refusal = MIGRATIONS.check(&fixture.url(role.name)).await.unwrap_err();
        assert!(matches!(refusal, SchemaError::Record { .. }), "{refusal:?}");
    }
}
