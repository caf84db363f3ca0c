//! The schema's migrations and the roles that may use it.

use database::{Context, Migrations, Role};
use diesel_migrations::{EmbeddedMigrations, embed_migrations};

use crate::RIGHTS;

const SCHEMA: &str = "resource_provisioning";

/// The changes of the schema, run with the credential of `resource_provisioning_owner`.
pub const MIGRATIONS: Migrations =
    Migrations { schema: SCHEMA, owner: "resource_provisioning_owner", embedded: || EMBEDDED };

const EMBEDDED: EmbeddedMigrations = embed_migrations!("../../migrations/resource-provisioning");

/// The role of a process that answers Runtimes: it reads, and nothing else.
pub const API_ROLE: Role =
    Role { name: "resource_provisioning_api", schema: SCHEMA, deletes: false };

/// The role of the control plane, which retains and releases bindings.
pub const WRITER_ROLE: Role =
    Role { name: "resource_provisioning_writer", schema: SCHEMA, deletes: false };

/// The context as an administrator sees it.
pub const CONTEXT: Context =
    Context { migrations: &MIGRATIONS, roles: &[API_ROLE, WRITER_ROLE], rights: RIGHTS };
