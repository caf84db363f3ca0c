//! The numbered changes of one context's schema.

use diesel::{
    QueryableByName,
    migration::{Migration, MigrationSource},
    pg::Pg,
    sql_query,
    sql_types::{Bool, Text},
};
use diesel_async::{AsyncMigrationHarness, AsyncPgConnection, RunQueryDsl, SimpleAsyncConnection};
use diesel_migrations::{EmbeddedMigrations, MigrationHarness};

use crate::{ConnectError, DatabaseUrl};

/// The changes that a context embeds, and the schema in which they and their record live.
pub struct Migrations {
    /// The schema; made by the first migration run, owned by the owner role.
    pub schema: &'static str,
    /// The owner role, the only one that makes and changes the schema.
    pub owner: &'static str,
    /// Gives the changes, in order.
    pub embedded: fn() -> EmbeddedMigrations,
}

/// Why a schema could not be migrated.
#[derive(Debug, thiserror::Error)]
pub enum MigrateError {
    /// No connection with the owner's credential.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The credential is another one than the owner's. Owners may make schemas, so that of another
    /// context would take this one for itself.
    #[error("the role {role} is neither {owner} nor a member of it")]
    NotTheOwner {
        /// The role of the credential.
        role: String,
        /// The role that it should have.
        owner: &'static str,
    },
    /// The database refused a statement around the migrations.
    #[error("the schema can't be prepared")]
    Prepare(#[source] diesel::result::Error),
    /// A migration failed; it left nothing behind.
    #[error("a migration failed: {0}")]
    Migration(Box<dyn std::error::Error + Send + Sync>),
}

/// Why a schema does not fit this build.
#[derive(Debug, thiserror::Error)]
pub enum SchemaError {
    /// The check could not be made.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The record of migrations can't be read: none ran, or the role may not read it.
    #[error(
        "the record of migrations in {schema} can't be read; run `site-admin database migrate`"
    )]
    Record {
        /// The schema.
        schema: &'static str,
        /// What the database said.
        #[source]
        source: diesel::result::Error,
    },
    /// This build needs migrations that did not run.
    #[error("{schema} lacks the migrations {}; run `site-admin database migrate`", missing.join(", "))]
    Behind {
        /// The schema.
        schema: &'static str,
        /// The versions that are missing.
        missing: Vec<String>,
    },
}

#[derive(QueryableByName)]
struct IsOwner {
    #[diesel(sql_type = Bool)]
    is_owner: bool,
}

#[derive(QueryableByName)]
struct Applied {
    #[diesel(sql_type = Text)]
    version: String,
}

impl Migrations {
    /// Runs what has not run yet, under an advisory lock, with the owner's credential; returns the
    /// versions that ran. Needs a multi-threaded runtime.
    ///
    /// # Errors
    ///
    /// See [`MigrateError`]; what ran before the failure stays.
    pub async fn migrate(&self, owner: &DatabaseUrl) -> Result<Vec<String>, MigrateError> {
        let mut harness = self.harness(owner).await?;
        let versions =
            harness.run_pending_migrations((self.embedded)()).map_err(MigrateError::Migration)?;
        Ok(versions.iter().map(ToString::to_string).collect())
    }

    /// Takes every change back, the last one first: for tests of the way down.
    ///
    /// # Errors
    ///
    /// See [`MigrateError`].
    pub async fn revert_all(&self, owner: &DatabaseUrl) -> Result<(), MigrateError> {
        let mut harness = self.harness(owner).await?;
        harness.revert_all_migrations((self.embedded)()).map_err(MigrateError::Migration)?;
        Ok(())
    }

    /// Checks that every migration of this build ran. Later ones may have run too: a schema grows
    /// a release before it shrinks, so that this build runs against the next one's schema.
    ///
    /// # Errors
    ///
    /// See [`SchemaError`].
    pub async fn check(&self, url: &DatabaseUrl) -> Result<(), SchemaError> {
        let mut connection = url.connect().await?;
        let query = format!("SELECT version FROM {}.__diesel_schema_migrations", self.schema);
        let applied: Vec<Applied> = match sql_query(query).load(&mut connection).await {
            Ok(applied) => applied,
            Err(source) => {
                return Err(match ConnectError::broken(&mut connection, &source).await {
                    Some(broken) => broken.into(),
                    None => SchemaError::Record { schema: self.schema, source },
                });
            }
        };
        let missing: Vec<String> = self
            .versions()
            .into_iter()
            .filter(|version| applied.iter().all(|row| row.version != *version))
            .collect();
        if missing.is_empty() {
            return Ok(());
        }
        Err(SchemaError::Behind { schema: self.schema, missing })
    }

    /// The versions of this build, in order.
    #[must_use]
    pub fn versions(&self) -> Vec<String> {
        let migrations: Vec<Box<dyn Migration<Pg>>> =
            (self.embedded)().migrations().unwrap_or_default();
        migrations.iter().map(|migration| migration.name().version().to_string()).collect()
    }

    /// A connection of the owner that holds the lock and sees only the context's schema.
    async fn harness(
        &self,
        owner: &DatabaseUrl,
    ) -> Result<AsyncMigrationHarness<AsyncPgConnection>, MigrateError> {
        let mut connection = owner.connect().await?;
        let Self { schema, owner: role, .. } = self;
        let is_owner: Vec<IsOwner> =
            sql_query("SELECT pg_has_role(current_user, $1, 'MEMBER') AS is_owner")
                .bind::<Text, _>(role)
                .load(&mut connection)
                .await
                .map_err(MigrateError::Prepare)?;
        if !is_owner.iter().any(|row| row.is_owner) {
            return Err(MigrateError::NotTheOwner { role: owner.role().to_owned(), owner: role });
        }
        connection
            .batch_execute(&format!(
                "SELECT pg_advisory_lock(hashtextextended('migrations of {schema}', 0));
                 CREATE SCHEMA IF NOT EXISTS {schema};
                 SET search_path = {schema};"
            ))
            .await
            .map_err(MigrateError::Prepare)?;
        Ok(AsyncMigrationHarness::new(connection))
    }
}
