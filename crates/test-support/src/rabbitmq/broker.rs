//! One node: started, killed, started again, and gone.

use std::{
    fs, io,
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use rustix::process::Signal;
use tempfile::TempDir;

use super::{BrokerUser, Installation, Search, definitions::definitions};
use crate::{
    process::{LastSignal, Process, WaitError, free_port, is_running},
    tls::TestCa,
};

/// A machine under load starts a node late; a broken one says so at once.
const START_WITHIN: Duration = Duration::from_secs(120);
const STOP_WITHIN: Duration = Duration::from_secs(60);
const EPMD_WITHIN: Duration = Duration::from_secs(30);
const PID_FILE: &str = "node.pid";

/// A running node on 127.0.0.1, with a plain port for tests and one with TLS. Its processes and its
/// folder go with the value.
pub struct Broker {
    // Dropped in this order: first the node, then its port mapper, then the folder.
    server: Option<Process>,
    _epmd: Process,
    pub(super) installation: Installation,
    ports: Ports,
    users: Vec<BrokerUser>,
    folder: TempDir,
}

/// Why a node is not there.
#[derive(Debug, thiserror::Error)]
pub enum BrokerError {
    /// RabbitMQ is not installed.
    #[error("RabbitMQ is not installed: `cargo xtask test` installs it")]
    Missing,
    /// Its folder, its certificate or a program can't be used.
    #[error("preparing a RabbitMQ node")]
    Io(#[from] io::Error),
    /// It ended, or did not get ready or stop in time.
    #[error(transparent)]
    Wait(#[from] WaitError),
    /// `rabbitmqctl` failed.
    #[error("rabbitmqctl failed: {0}")]
    Control(String),
}

#[derive(Clone, Copy)]
struct Ports {
    plain: u16,
    tls: u16,
    distribution: u16,
    epmd: u16,
}

impl Broker {
    /// Makes a node with these users and durable topic exchanges, and waits until it serves.
    ///
    /// # Errors
    ///
    /// When RabbitMQ is missing, or the node does not get ready.
    pub async fn start(users: &[BrokerUser], exchanges: &[&str]) -> Result<Self, BrokerError> {
        let exchanges: Vec<String> = exchanges.iter().map(|name| (*name).to_owned()).collect();
        Self::start_defined(users, &definitions(users, &exchanges).to_string()).await
    }

    /// Makes a node that knows nothing but these definitions, as `load_definitions` reads them, and
    /// waits until it serves. Of `users` only the names and the passwords are used, for URLs.
    ///
    /// # Errors
    ///
    /// As [`Broker::start`].
    pub async fn start_defined(
        users: &[BrokerUser],
        definitions: &str,
    ) -> Result<Self, BrokerError> {
        let installation = Search::of_this_process().find().ok_or(BrokerError::Missing)?;
        let folder = tempfile::Builder::new().prefix("site-control-rabbitmq-").tempdir()?;
        let ports = Ports::free()?;
        write_files(folder.path(), ports, definitions)?;
        let epmd = start_epmd(&installation, ports.epmd).await?;
        let users = users.to_vec();
        let mut broker = Self { server: None, _epmd: epmd, installation, ports, users, folder };
        broker.run().await?;
        Ok(broker)
    }

    /// The URL of a user over a plain connection.
    ///
    /// # Panics
    ///
    /// When the node has no such user.
    #[must_use]
    pub fn url(&self, user: &str) -> String {
        format!("amqp://{}:{}@127.0.0.1:{}", user, self.password(user), self.ports.plain)
    }

    /// The URL of a user over TLS; [`Broker::ca_file`] vouches for the node.
    ///
    /// # Panics
    ///
    /// When the node has no such user.
    #[must_use]
    pub fn tls_url(&self, user: &str) -> String {
        format!("amqps://{}:{}@127.0.0.1:{}", user, self.password(user), self.ports.tls)
    }

    /// The ports on 127.0.0.1: the plain one and the one with TLS.
    #[must_use]
    pub fn ports(&self) -> (u16, u16) {
        (self.ports.plain, self.ports.tls)
    }

    /// The certificate of the authority that signed the node's, PEM.
    #[must_use]
    pub fn ca_file(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    /// Stops it in good order; what is durable stays.
    ///
    /// # Errors
    ///
    /// When it is still there after a minute.
    pub async fn stop(&mut self) -> Result<(), BrokerError> {
        if let Some(server) = self.server.take() {
            server.signal(Signal::TERM);
            server.wait_exit(STOP_WITHIN).await?;
        }
        Ok(())
    }

    /// Kills it with SIGKILL at once, as a machine that loses its power would.
    pub fn kill(&mut self) {
        let Some(server) = self.server.take() else { return };
        // What we started is a script around the node; both are in one process group.
        let node = fs::read_to_string(self.folder.path().join(PID_FILE));
        server.kill();
        let node = node.ok().and_then(|text| text.trim().parse().ok());
        while node.is_some_and(is_running) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Starts it again on the same ports, after a stop where it still runs, and waits until it
    /// serves.
    ///
    /// # Errors
    ///
    /// When it does not get ready.
    pub async fn restart(&mut self) -> Result<(), BrokerError> {
        self.stop().await?;
        self.run().await
    }

    async fn run(&mut self) -> Result<(), BrokerError> {
        let server = Process::start_ending_by(self.command(), LastSignal::Kill)?;
        // Printed after the definitions are loaded and the ports are open.
        server
            .wait_for_line("that it serves", START_WITHIN, |line| {
                line.contains("Server startup complete")
            })
            .await?;
        self.server = Some(server);
        Ok(())
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.installation.server);
        self.settle_in(&mut command);
        command
    }

    /// Has a program of RabbitMQ work with this node and in its folder.
    pub(super) fn settle_in(&self, command: &mut Command) {
        let folder = self.folder.path();
        let inside = [
            ("HOME", "."),
            ("RABBITMQ_BASE", "."),
            ("RABBITMQ_MNESIA_BASE", "data"),
            ("RABBITMQ_LOG_BASE", "log"),
            ("RABBITMQ_CONFIG_FILE", "rabbitmq.conf"),
            ("RABBITMQ_ENABLED_PLUGINS_FILE", "enabled_plugins"),
            ("RABBITMQ_PID_FILE", PID_FILE),
        ];
        for (name, path) in inside {
            command.env(name, folder.join(path));
        }
        let ports = self.ports;
        command
            .current_dir(folder)
            .env("RABBITMQ_LOGS", "-")
            .env("RABBITMQ_CONF_ENV_FILE", "/dev/null")
            .env("RABBITMQ_NODENAME", format!("x{}@localhost", ports.plain))
            .env("RABBITMQ_DIST_PORT", ports.distribution.to_string())
            .env("ERL_EPMD_PORT", ports.epmd.to_string())
            .env("ERL_EPMD_ADDRESS", "127.0.0.1")
            .env(
                "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS",
                "-kernel inet_dist_use_interface {127,0,0,1} +S 2:2 +sbwt none",
            );
    }

    fn password(&self, user: &str) -> &str {
        let found = self.users.iter().find(|known| known.name == user);
        &found.expect("the node was started with this user").password
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Ports {
    fn free() -> io::Result<Self> {
        Ok(Self {
            plain: free_port()?,
            tls: free_port()?,
            distribution: free_port()?,
            epmd: free_port()?,
        })
    }
}

fn write_files(folder: &Path, ports: Ports, definitions: &str) -> io::Result<()> {
    let ca = TestCa::new();
    ca.write_to(&folder.join("ca.pem"))?;
    let (certificate, key) = (folder.join("server.crt"), folder.join("server.key"));
    ca.issue(&["localhost", "127.0.0.1"]).write_to(&certificate, &key)?;
    fs::write(folder.join("definitions.json"), definitions)?;
    fs::write(folder.join("enabled_plugins"), "[].\n")?;
    let shown = folder.display();
    let settings = format!(
        "listeners.tcp.1 = 127.0.0.1:{}\n\
         listeners.ssl.1 = 127.0.0.1:{}\n\
         ssl_options.cacertfile = {shown}/ca.pem\n\
         ssl_options.certfile = {shown}/server.crt\n\
         ssl_options.keyfile = {shown}/server.key\n\
         ssl_options.verify = verify_none\n\
         ssl_options.fail_if_no_peer_cert = false\n\
         load_definitions = {shown}/definitions.json\n\
         vm_memory_high_watermark.relative = 0.2\n\
         disk_free_limit.absolute = 50MB\n",
        ports.plain, ports.tls
    );
    fs::write(folder.join("rabbitmq.conf"), settings)?;
    let cookie = folder.join(".erlang.cookie");
    fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&cookie)?;
    fs::write(&cookie, "PRIVATETOTHISTEST")?;
    fs::set_permissions(cookie, fs::Permissions::from_mode(0o400))
}

/// The port mapper that Erlang needs, as a child of ours: a node would start one that outlives it.
async fn start_epmd(installation: &Installation, port: u16) -> Result<Process, BrokerError> {
    let mut command = Command::new(&installation.epmd);
    command.args(["-d", "-d", "-address", "127.0.0.1", "-port", &port.to_string()]);
    let epmd = Process::start_ending_by(command, LastSignal::Kill)?;
    epmd.wait_for_line("that it listens", EPMD_WITHIN, |line| line.contains("entering the main"))
        .await?;
    Ok(epmd)
}
