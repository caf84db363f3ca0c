//! The schema's migrations and the roles that may use it.

use database::{Context, Migrations, Role};
use diesel_migrations::{EmbeddedMigrations, embed_migrations};

use crate::RIGHTS;

const SCHEMA: &str = "site_coordination";

/// The changes of the schema, run with the credential of `site_coordination_owner`.
pub const MIGRATIONS: Migrations =
    Migrations { schema: SCHEMA, owner: "site_coordination_owner", embedded: || EMBEDDED };

const EMBEDDED: EmbeddedMigrations = embed_migrations!("../../migrations/site-coordination");

/// The role of a process that serves Runtimes.
pub const API_ROLE: Role = Role { name: "site_coordination_api", schema: SCHEMA, deletes: false };

/// The role of a process that enqueues commands.
pub const PRODUCER_ROLE: Role =
    Role { name: "site_coordination_producer", schema: SCHEMA, deletes: false };

/// The role of a process that removes what retention allows.
pub const KEEPER_ROLE: Role =
    Role { name: "site_coordination_keeper", schema: SCHEMA, deletes: true };

/// The context as an administrator sees it.
pub const CONTEXT: Context = Context {
    migrations: &MIGRATIONS,
    roles: &[API_ROLE, PRODUCER_ROLE, KEEPER_ROLE],
    rights: RIGHTS,
};
