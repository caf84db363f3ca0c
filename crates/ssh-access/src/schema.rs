//! The schema's migrations and the roles that may use it.

use database::{Context, Migrations, Role};
use diesel_migrations::{EmbeddedMigrations, embed_migrations};

use crate::RIGHTS;

const SCHEMA: &str = "ssh_access";

/// The changes of the schema, run with the credential of `ssh_access_owner`.
pub const MIGRATIONS: Migrations =
    Migrations { schema: SCHEMA, owner: "ssh_access_owner", embedded: || EMBEDDED };

const EMBEDDED: EmbeddedMigrations = embed_migrations!("../../migrations/ssh-access");

/// The role of a process that serves the agents of Sites.
pub const API_ROLE: Role = Role { name: "ssh_access_api", schema: SCHEMA, deletes: false };

/// The role of the process that propagates changes, which also takes away what is old.
pub const PROCESS_ROLE: Role = Role { name: "ssh_access_process", schema: SCHEMA, deletes: true };

/// The role of the control plane, which adds and removes keys and accounts.
pub const REGISTRY_ROLE: Role =
    Role { name: "ssh_access_registry", schema: SCHEMA, deletes: false };

/// The context as an administrator sees it.
pub const CONTEXT: Context = Context {
    migrations: &MIGRATIONS,
    roles: &[API_ROLE, PROCESS_ROLE, REGISTRY_ROLE],
    rights: RIGHTS,
};
