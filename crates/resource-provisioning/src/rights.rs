//! What each role may do, as the migrations of this release grant it.

use database::RoleRights;

use crate::{API_ROLE, WRITER_ROLE};

/// The rights of each role on the database, on the schema and in it.
pub const RIGHTS: &[RoleRights] = &[
    ("resource_provisioning_owner", &[("CONNECT,CREATE", "database")]),
    (
        API_ROLE.name,
        &[
            ("CONNECT", "database"),
            ("USAGE", "schema resource_provisioning"),
            ("SELECT", "__diesel_schema_migrations"),
            ("SELECT", "native_binding"),
        ],
    ),
    (
        WRITER_ROLE.name,
        &[
            ("CONNECT", "database"),
            ("USAGE", "schema resource_provisioning"),
            ("SELECT", "__diesel_schema_migrations"),
            ("SELECT", "native_binding"),
            ("INSERT", "native_binding.site"),
            ("INSERT", "native_binding.member_id"),
            ("INSERT", "native_binding.unix_user"),
            ("INSERT", "native_binding.uid"),
            ("INSERT", "native_binding.gid"),
            ("INSERT", "native_binding.account"),
            ("UPDATE", "native_binding.released_at"),
        ],
    ),
];
