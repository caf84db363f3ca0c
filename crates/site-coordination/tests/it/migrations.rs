//! The schema's way up and down, and what a process checks of it before it serves.

use database::{DatabaseUrl, SchemaError};
use site_coordination::{API_ROLE, KEEPER_ROLE, MIGRATIONS, PRODUCER_ROLE};
use test_support::catalogue::{assert_each_change_is_taken_back, left_behind, schema};
use tokio_postgres::Client;

use crate::support::{Fixture, at_once, command, count, prove_stream, slurm};

const SCHEMA: &str = "site_coordination";

/// A database with the roles and without the schema.
async fn unmigrated() -> (Fixture, Client, DatabaseUrl) {
    let fixture = Fixture::create().await;
    let sql = fixture.sql().await;
    sql.batch_execute("DROP SCHEMA site_coordination CASCADE").await.unwrap();
    let owner = fixture.url("site_coordination_owner");
    (fixture, sql, owner)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schema_goes_up_and_down_and_up_again() {
    let (fixture, sql, owner) = unmigrated().await;
    assert_eq!(MIGRATIONS.migrate(&owner).await.unwrap(), MIGRATIONS.versions());
    let first = schema(&sql, SCHEMA).await;
    fixture.producer(1).enqueue(&slurm(), command("a")).await.unwrap();

    MIGRATIONS.revert_all(&owner).await.unwrap();
    assert_eq!(left_behind(&sql, SCHEMA).await, [""; 0]);
    let record = "SELECT count(*) FROM site_coordination.__diesel_schema_migrations";
    assert_eq!(count(&sql, record).await, 0);

    assert_eq!(MIGRATIONS.migrate(&owner).await.unwrap(), MIGRATIONS.versions());
    assert_eq!(schema(&sql, SCHEMA).await, first);
    fixture.producer(1).enqueue(&slurm(), command("b")).await.unwrap();
    assert_eq!(prove_stream(&sql, &slurm()).await, ["b"]);
}

/// Each change, with its way back.
const CHANGES: &[(&str, &str)] = &[
    (
        include_str!("../../../../migrations/site-coordination/20261129190000_streams/up.sql"),
        include_str!("../../../../migrations/site-coordination/20261129190000_streams/down.sql"),
    ),
    (
        include_str!("../../../../migrations/site-coordination/20261129220000_sessions/up.sql"),
        include_str!("../../../../migrations/site-coordination/20261129220000_sessions/down.sql"),
    ),
    (
        include_str!(
            "../../../../migrations/site-coordination/20261130090000_outputs_of_runs/up.sql"
        ),
        include_str!(
            "../../../../migrations/site-coordination/20261130090000_outputs_of_runs/down.sql"
        ),
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

#[tokio::test(flavor = "multi_thread")]
async fn migrating_again_does_nothing() {
    let (fixture, sql, owner) = unmigrated().await;
    MIGRATIONS.migrate(&owner).await.unwrap();
    fixture.producer(1).enqueue(&slurm(), command("a")).await.unwrap();
    let before = schema(&sql, SCHEMA).await;
    assert!(MIGRATIONS.migrate(&owner).await.unwrap().is_empty());
    assert_eq!(schema(&sql, SCHEMA).await, before);
    assert_eq!(prove_stream(&sql, &slurm()).await, ["a"]);
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
    MIGRATIONS.check(&owner).await.unwrap();
}

#[tokio::test]
async fn every_role_finds_a_migrated_schema_fit() {
    let fixture = Fixture::create().await;
    for role in [API_ROLE, PRODUCER_ROLE, KEEPER_ROLE] {
        MIGRATIONS.check(&fixture.url(role.name)).await.unwrap();
        role.check(&fixture.url(role.name)).await.unwrap();
    }
}

#[tokio::test]
async fn an_unmigrated_database_is_refused_with_what_to_do() {
    let (fixture, _sql, _owner) = unmigrated().await;
    let refusal = MIGRATIONS.check(&fixture.url(API_ROLE.name)).await.unwrap_err();
    assert!(matches!(refusal, SchemaError::Record { .. }), "{refusal:?}");
    assert_eq!(
        refusal.to_string(),
        "the record of migrations in site_coordination can't be read; run `site-admin database migrate`"
    );
}

#[tokio::test]
async fn a_schema_that_lacks_a_migration_is_refused_with_its_version() {
    let fixture = Fixture::create().await;
    let sql = fixture.sql().await;
    let api = fixture.url(API_ROLE.name);
    // One of a later build does not disturb this one.
    let later =
        "INSERT INTO site_coordination.__diesel_schema_migrations VALUES ('99991231000000')";
    sql.batch_execute(later).await.unwrap();
    MIGRATIONS.check(&api).await.unwrap();

    let versions = MIGRATIONS.versions();
    let last = versions.last().unwrap();
    let forget = "DELETE FROM site_coordination.__diesel_schema_migrations WHERE version = $1";
    assert_eq!(sql.execute(forget, &[last]).await.unwrap(), 1);
    let refusal = MIGRATIONS.check(&api).await.unwrap_err();
    assert_eq!(
        refusal.to_string(),
        format!("site_coordination lacks the migrations {last}; run `site-admin database migrate`")
    );
}
