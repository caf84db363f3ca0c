//! A Site whose keys are served.

use std::process::Command;

use super::{Place, SITE};

impl Place {
    /// Adds the settings of SSH access to those of a `site-api`.
    pub(crate) fn ssh_access(&self, command: &mut Command) {
        command
            .env("SSH_ACCESS_SITE", SITE)
            .env("SSH_ACCESS_DATABASE_URL", self.database.url("ssh_access_api"))
            .env("SSH_ACCESS_WINDOW_SECONDS", "60");
    }
}
