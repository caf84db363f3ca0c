//! The schema's migrations and the roles that may use it.

use database::{Migrations, Role};
use diesel_migrations::{EmbeddedMigrations, embed_migrations};

const SCHEMA: &str = "site_coordination";

/// The changes of the schema, run with the credential of `site_coordination_owner`.
pub const MIGRATIONS: Migrations = Migrations { schema: SCHEMA, embedded: || EMBEDDED };

const EMBEDDED: EmbeddedMigrations = embed_migrations!("../../migrations/site-coordination");

/// The role of a process that serves Runtimes.
pub const API_ROLE: Role = Role { name: "site_coordination_api", schema: SCHEMA, deletes: false };

/// The role of a process that enqueues commands.
pub const PRODUCER_ROLE: Role =
    Role { name: "site_coordination_producer", schema: SCHEMA, deletes: false };

/// The role of a process that removes what retention allows.
pub const KEEPER_ROLE: Role =
    Role { name: "site_coordination_keeper", schema: SCHEMA, deletes: true };

/// Every role of this context, the owner first.
pub const ROLES: &[&str] = &[
    "site_coordination_owner",
    "site_coordination_api",
    "site_coordination_producer",
    "site_coordination_keeper",
];

/// Makes the roles where they are absent; an administrator of the cluster runs it once in the
/// database of Site Control and then gives each role that logs in its password.
pub const ROLES_SQL: &str = include_str!("roles.sql");
