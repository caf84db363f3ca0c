//! The schema's migrations and the roles that may use it.

use database::{Context, Migrations, Role};
use diesel_migrations::{EmbeddedMigrations, embed_migrations};

use crate::RIGHTS;

const SCHEMA: &str = "execution_core";

/// The changes of the schema, run with the credential of `execution_core_owner`.
pub const MIGRATIONS: Migrations =
    Migrations { schema: SCHEMA, owner: "execution_core_owner", embedded: || EMBEDDED };

const EMBEDDED: EmbeddedMigrations = embed_migrations!("../../migrations/execution-core");

/// The role of a process that answers Runtimes: it reads, and nothing else.
pub const API_ROLE: Role = Role { name: "execution_core_api", schema: SCHEMA, deletes: false };

/// The role of the control plane, which accepts Runs and submits Attempts.
pub const WRITER_ROLE: Role =
    Role { name: "execution_core_writer", schema: SCHEMA, deletes: false };

/// The context as an administrator sees it.
pub const CONTEXT: Context =
    Context { migrations: &MIGRATIONS, roles: &[API_ROLE, WRITER_ROLE], rights: RIGHTS };
