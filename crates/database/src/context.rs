//! A context as an administrator sees it: its schema, and who may touch it.

use crate::{Migrations, Role};

/// What an administrator needs of a context. Each context has one as a constant, and the programs of
/// administration have a list of them.
pub struct Context {
    /// The schema and its changes, and the role that owns it, which no service has.
    pub migrations: &'static Migrations,
    /// The restricted roles, of which each process has one.
    pub roles: &'static [Role],
    /// What each role may do, the owner included.
    pub rights: &'static [RoleRights],
}

/// What a role may do: its name, then privileges, separated by commas, with the object that they are
/// for. An object of the context's schema has no schema in its name; a column stands behind its
/// table.
pub type RoleRights = (&'static str, &'static [(&'static str, &'static str)]);

impl Context {
    /// The name of the role that owns the schema.
    #[must_use]
    pub fn owner(&self) -> &'static str {
        self.migrations.owner
    }

    /// The names of all roles, the owner's first.
    #[must_use]
    pub fn role_names(&self) -> Vec<&'static str> {
        [self.owner()].into_iter().chain(self.roles.iter().map(|role| role.name)).collect()
    }

    /// What a role may do; nothing where it is none of this context.
    #[must_use]
    pub fn rights_of(&self, role: &str) -> &'static [(&'static str, &'static str)] {
        self.rights.iter().find(|(name, _)| *name == role).map_or(&[], |(_, rights)| rights)
    }

    /// The SQL that makes the roles of some contexts where they are absent. An administrator of the
    /// cluster runs it in the database of Site Control and then gives each role that logs in its
    /// password. Running it again changes nothing.
    #[must_use]
    pub fn roles_sql(contexts: &[&Self]) -> String {
        let owners: Vec<_> = contexts.iter().map(|context| context.owner()).collect();
        let others: Vec<_> =
            contexts.iter().flat_map(|context| context.roles).map(|role| role.name).collect();
        include_str!("roles.sql")
            .replace("{owners}", &quoted(&owners))
            .replace("{others}", &quoted(&others))
    }
}

/// Names of roles as a list of SQL, over several lines. They are literals of ours, of small letters
/// and `_`.
fn quoted(names: &[&str]) -> String {
    let names: Vec<_> = names.iter().map(|name| format!("\n        '{name}'")).collect();
    format!("{}\n    ", names.join(","))
}
