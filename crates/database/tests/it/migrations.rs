//! A migration that fails leaves nothing of itself behind.

use database::{DatabaseUrl, MigrateError, Migrations, SchemaError};
use diesel_migrations::{EmbeddedMigrations, embed_migrations};

use crate::support::Fixture;

/// The first works, the second fails half-way.
const HALF_BROKEN: Migrations = Migrations { schema: "half_broken", embedded: || EMBEDDED };

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
