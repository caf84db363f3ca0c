//! What an administrator does to a running node.

use std::process::{Command, Stdio};

use super::{Broker, BrokerError};

impl Broker {
    /// Runs `rabbitmqctl` against the node, and gives what it printed. It takes some seconds.
    ///
    /// # Errors
    ///
    /// When it can't be run or fails.
    pub async fn control(&self, arguments: &[&str]) -> Result<String, BrokerError> {
        let mut command = Command::new(self.installation.server.with_file_name("rabbitmqctl"));
        self.settle_in(&mut command);
        command.arg("--quiet").args(arguments).stdin(Stdio::null());
        let output = tokio::process::Command::from(command).kill_on_drop(true).output().await?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if output.status.success() {
            return Ok(text(&output.stdout));
        }
        Err(BrokerError::Control(text(&output.stderr)))
    }
}
