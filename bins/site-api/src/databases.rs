//! The contexts that this process reaches, each with its own credential.

use service_start::Credential;

use crate::{
    authority::{BINDINGS_DATABASE, RUNS_DATABASE},
    settings::{DATABASE, SiteApiSettings},
    ssh_access::SSH_DATABASE,
};

/// The credential of each context that is used.
pub(crate) fn credentials(settings: &SiteApiSettings) -> Vec<Credential<'_>> {
    let mut credentials = vec![Credential {
        setting: DATABASE,
        url: &settings.database,
        role: site_coordination::API_ROLE,
        migrations: &site_coordination::MIGRATIONS,
    }];
    if let Some(authority) = &settings.authority {
        credentials.push(Credential {
            setting: RUNS_DATABASE,
            url: &authority.runs,
            role: execution_core::API_ROLE,
            migrations: &execution_core::MIGRATIONS,
        });
        credentials.push(Credential {
            setting: BINDINGS_DATABASE,
            url: &authority.bindings,
            role: resource_provisioning::API_ROLE,
            migrations: &resource_provisioning::MIGRATIONS,
        });
    }
    if let Some(ssh) = &settings.ssh_access {
        credentials.push(Credential {
            setting: SSH_DATABASE,
            url: &ssh.database,
            role: ::ssh_access::API_ROLE,
            migrations: &::ssh_access::MIGRATIONS,
        });
    }
    credentials
}
