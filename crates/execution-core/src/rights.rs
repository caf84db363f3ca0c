//! What each role may do, as the migrations of this release grant it.

use database::RoleRights;

use crate::{API_ROLE, WRITER_ROLE};

/// The rights of each role on the database, on the schema and in it.
pub const RIGHTS: &[RoleRights] = &[
    ("execution_core_owner", &[("CONNECT,CREATE", "database")]),
    (
        API_ROLE.name,
        &[
            ("CONNECT", "database"),
            ("USAGE", "schema execution_core"),
            ("SELECT", "__diesel_schema_migrations"),
            ("SELECT", "run"),
            ("SELECT", "attempt"),
        ],
    ),
    (
        WRITER_ROLE.name,
        &[
            ("CONNECT", "database"),
            ("USAGE", "schema execution_core"),
            ("SELECT", "__diesel_schema_migrations"),
            ("SELECT", "run"),
            ("INSERT", "run.run_id"),
            ("INSERT", "run.project_id"),
            ("INSERT", "run.member_id"),
            ("INSERT", "run.site"),
            ("INSERT", "run.environment"),
            ("INSERT", "run.deadline"),
            ("INSERT", "run.repository_instance"),
            ("INSERT", "run.repository_project_id"),
            ("INSERT", "run.repository_path"),
            ("INSERT", "run.repository_ref"),
            ("INSERT", "run.repository_commit"),
            ("INSERT", "run.material"),
            ("UPDATE", "run.last_attempt"),
            ("UPDATE", "run.cancelled_at"),
            ("SELECT", "attempt"),
            ("INSERT", "attempt.run_id"),
            ("INSERT", "attempt.number"),
            ("UPDATE", "attempt.final_at"),
        ],
    ),
];
