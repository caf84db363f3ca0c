//! Which contexts there are, and which settings hold the URLs of their roles.

use database::{Context, Role};

/// A context with the settings for its roles.
pub(crate) struct Administered {
    pub(crate) context: &'static Context,
    /// The setting with the owner's URL.
    pub(crate) owner_url: &'static str,
    /// For each restricted role the setting with its URL. The first is the one of a service.
    pub(crate) urls: &'static [(&'static str, Role)],
}

/// The URL of a producer's role; `commands` and `status` use it too.
pub(crate) const PRODUCER_URL: &str = "SITE_COORDINATION_PRODUCER_DATABASE_URL";

/// The URL of the role that deletes by age; `commands prune` uses it too.
pub(crate) const KEEPER_URL: &str = "SITE_COORDINATION_KEEPER_DATABASE_URL";

/// The URL of the role that accepts Runs; `runs` uses it too.
pub(crate) const RUNS_WRITER_URL: &str = "EXECUTION_CORE_WRITER_DATABASE_URL";

/// The URL of the role that retains bindings; `bindings` uses it too.
pub(crate) const BINDINGS_WRITER_URL: &str = "RESOURCE_PROVISIONING_WRITER_DATABASE_URL";

/// The URL of the role that adds keys and accounts; `keys` and `accounts` use it too.
pub(crate) const KEYS_URL: &str = "SSH_ACCESS_REGISTRY_DATABASE_URL";

/// Every context.
pub(crate) const CONTEXTS: [Administered; 4] = [
    Administered {
        context: &site_coordination::CONTEXT,
        owner_url: "SITE_COORDINATION_OWNER_DATABASE_URL",
        urls: &[
            ("SITE_COORDINATION_DATABASE_URL", site_coordination::API_ROLE),
            (PRODUCER_URL, site_coordination::PRODUCER_ROLE),
            (KEEPER_URL, site_coordination::KEEPER_ROLE),
        ],
    },
    Administered {
        context: &execution_core::CONTEXT,
        owner_url: "EXECUTION_CORE_OWNER_DATABASE_URL",
        urls: &[
            ("EXECUTION_CORE_DATABASE_URL", execution_core::API_ROLE),
            (RUNS_WRITER_URL, execution_core::WRITER_ROLE),
        ],
    },
    Administered {
        context: &resource_provisioning::CONTEXT,
        owner_url: "RESOURCE_PROVISIONING_OWNER_DATABASE_URL",
        urls: &[
            ("RESOURCE_PROVISIONING_DATABASE_URL", resource_provisioning::API_ROLE),
            (BINDINGS_WRITER_URL, resource_provisioning::WRITER_ROLE),
        ],
    },
    Administered {
        context: &ssh_access::CONTEXT,
        owner_url: "SSH_ACCESS_OWNER_DATABASE_URL",
        urls: &[
            ("SSH_ACCESS_DATABASE_URL", ssh_access::API_ROLE),
            ("SSH_ACCESS_PROCESS_DATABASE_URL", ssh_access::PROCESS_ROLE),
            (KEYS_URL, ssh_access::REGISTRY_ROLE),
        ],
    },
];

/// The contexts without their settings.
pub(crate) fn contexts() -> [&'static Context; 4] {
    CONTEXTS.map(|administered| administered.context)
}
