//! A migration that fails leaves nothing of itself behind.

use database::{DatabaseUrl, MigrateError, Migrations, SchemaError};
use diesel_migrations::{EmbeddedMigrations, embed_migrations};

use crate::support::Fixture;

/// The first works, the second fails half-way.
const HALF_BROKEN: Migrations =
    Migrations { schema: "half_broken", owner: "site_coordination_owner", embedded: || EMBEDDED };

const EMBEDDED: EmbeddedMigrations = embed_migrations!("tests/migrations");

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_migration_is_rolled_back_and_the_one_before_it_stays() {
    let fixture = Fixture::create().await;
    let owner: DatabaseUrl = fixture.database.url("site_coordination_owner").parse().unwrap();
    for _ in 0..2 {
        let refusal = HALF_BROKEN.migrate(&owner).await.unwrap_err();
        assert!(matches!(refusal, MigrateError::Migration(_)), "{refusal:?}");
        assert!(refusal.to_string().contains("already exists"), "{refusal}");
        let tables = fixture
            .sql
            .query(
                "SELECT relname::text FROM pg_class WHERE relkind = 'r'
                    AND relnamespace = 'half_broken'::regnamespace ORDER BY 1",
                &[],
            )
            .await
            .unwrap();
        let tables: Vec<String> = tables.iter().map(|row| row.get(0)).collect();
        assert_eq!(tables, ["__diesel_schema_migrations", "fine"]);
        let behind = HALF_BROKEN.check(&owner).await.unwrap_err();
        assert!(
            matches!(&behind, SchemaError::Behind { missing, .. } if *missing == ["0002"]),
            "{behind:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_owner_of_another_context_makes_no_schema() {
    let fixture = Fixture::create().await;
    // It could: owners may make schemas in the database.
    let other: DatabaseUrl = fixture.database.url("execution_core_owner").parse().unwrap();
    for refusal in
        [HALF_BROKEN.migrate(&other).await.err(), HALF_BROKEN.revert_all(&other).await.err()]
    {
        assert_eq!(
            refusal.unwrap().to_string(),
            "the role execution_core_owner is neither site_coordination_owner nor a member of it"
        );
    }
    let schemas = "SELECT count(*) FROM pg_namespace WHERE nspname = 'half_broken'";
    assert_eq!(fixture.sql.query_one(schemas, &[]).await.unwrap().get::<_, i64>(0), 0);
}
