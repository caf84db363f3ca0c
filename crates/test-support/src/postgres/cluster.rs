//! A private cluster: made, started, killed, started again, and gone.

use std::{
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::time::Instant;
use tokio_postgres::Client;

use super::{Access, Installation, access::new_password, initdb, run_as::RunAs};
use crate::process::{Exit, LastSignal, Process, WaitError, free_port, is_running};

/// A machine under load starts a server late; a broken one says so at once.
const START_WITHIN: Duration = Duration::from_secs(120);
const STOP_WITHIN: Duration = Duration::from_secs(60);
const STOPS_FAST_WITHIN: Duration = Duration::from_secs(10);
/// Ports that another process took between our look and the server's bind.
const PORTS_TO_TRY: u32 = 5;

/// What kind of cluster.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Whether commits survive a kill: `fsync` stays on, and nothing about durability is touched.
    pub durable: bool,
    /// The folder to make the cluster's folder in; the machine's temporary folder by default. Every
    /// part of its path must be open to other users when root runs this, because PostgreSQL refuses
    /// to run as root.
    pub parent: Option<PathBuf>,
}

/// A running cluster with TLS and SCRAM on 127.0.0.1. Its processes and its folder go with the
/// value.
pub struct Cluster {
    // Dropped in this order: first the server, then what it has left, then the folder.
    server: Option<Process>,
    access: Access,
    options: Options,
    user: RunAs,
    /// Beside our own environment, from the next start on.
    variables: Vec<OsString>,
    folder: TempDir,
}

/// Why a cluster is not there.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// Its folder, its certificate or a program can't be used.
    #[error("preparing a PostgreSQL cluster")]
    Io(#[from] io::Error),
    /// Root needs another user for PostgreSQL, and there is none.
    #[error("PostgreSQL does not run as root, and neither `postgres` nor `nobody` is a user here")]
    NoUser,
    /// `initdb` failed.
    #[error("initdb failed:\n{0}")]
    Initdb(String),
    /// The server ended before it answered.
    #[error("PostgreSQL ended ({0}) while it started:\n{1}")]
    Ended(Exit, String),
    /// The server does not answer.
    #[error("PostgreSQL does not answer:\n{log}")]
    NotReady {
        /// The last refusal.
        source: tokio_postgres::Error,
        /// The server's last lines.
        log: String,
    },
    /// The server does not stop.
    #[error("stopping PostgreSQL")]
    Stop(#[from] WaitError),
}

impl Cluster {
    /// Makes a cluster, starts it and waits until it answers.
    ///
    /// # Errors
    ///
    /// When it can't be made or does not answer.
    pub async fn start(
        installation: &Installation,
        options: Options,
    ) -> Result<Self, ClusterError> {
        let user = RunAs::of_this_process()?;
        let mut builder = tempfile::Builder::new();
        builder.prefix("site-control-postgres-");
        let folder = match &options.parent {
            Some(parent) => builder.tempdir_in(parent)?,
            None => builder.tempdir()?,
        };
        user.own(folder.path())?;
        let superuser_password = new_password();
        initdb::make(installation, folder.path(), &user, &superuser_password)?;
        let access = Access {
            installation: installation.clone(),
            socket_folder: folder.path().to_owned(),
            port: 0,
            ca_file: folder.path().join("ca.pem"),
            superuser_password,
            template: None,
            role_passwords: std::collections::BTreeMap::new(),
        };
        let variables = Vec::new();
        let mut cluster = Self { server: None, access, options, user, variables, folder };
        let mut tries = 0;
        loop {
            tries += 1;
            cluster.access.port = free_port()?;
            match cluster.run().await {
                Err(ClusterError::Ended(_, log))
                    if tries < PORTS_TO_TRY && log.contains("Address already in use") => {}
                result => return result.map(|()| cluster),
            }
        }
    }

    /// How to reach it.
    pub fn access(&self) -> &Access {
        &self.access
    }

    pub(super) fn access_mut(&mut self) -> &mut Access {
        &mut self.access
    }

    /// Its folder, which is removed in the end; a caller may put files beside the cluster's.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The URL of a database for a role, with a verified TLS connection.
    pub fn url(&self, role: &str, password: &str, database: &str) -> String {
        self.access.url(role, password, database)
    }

    /// The URL of a database for the superuser, with a verified TLS connection.
    pub fn superuser_url(&self, database: &str) -> String {
        self.access.superuser_url(database)
    }

    /// A superuser's connection for administration.
    ///
    /// # Errors
    ///
    /// When the server does not answer.
    pub async fn superuser(&self, database: &str) -> Result<Client, tokio_postgres::Error> {
        self.access.superuser(database).await
    }

    /// Stops it fast, sessions and all, and removes it.
    ///
    /// # Errors
    ///
    /// When it is still there after a minute; it is killed then.
    pub async fn stop(mut self) -> Result<(), ClusterError> {
        self.resume();
        if let Some(server) = self.server.take() {
            server.signal(Signal::INT);
            server.wait_exit(STOP_WITHIN).await?;
        }
        Ok(())
    }

    /// Kills all its processes with SIGKILL at once, as a machine that loses its power would. The
    /// data stay.
    pub fn kill(&mut self) {
        let Some(server) = self.server.take() else { return };
        // A stopped server starts no process between our look and its end.
        server.signal(Signal::STOP);
        let backends = children_of(server.pid());
        server.kill();
        signal_all(&backends, Signal::KILL);
        // The server refuses to start while one of them holds the shared memory.
        for pid in backends {
            while is_running(pid) {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }

    /// The process id of the server, while there is one.
    pub fn server_pid(&self) -> Option<u32> {
        self.server.as_ref().map(Process::pid)
    }

    /// Stops all its processes where they stand, as a machine does whose disk or hypervisor hangs.
    pub fn pause(&self) {
        let Some(server) = &self.server else { return };
        // The server first: it starts no process between our look and its own stop.
        server.signal(Signal::STOP);
        signal_all(&children_of(server.pid()), Signal::STOP);
    }

    /// Lets them go on.
    pub fn resume(&self) {
        let Some(server) = &self.server else { return };
        signal_all(&children_of(server.pid()), Signal::CONT);
        server.signal(Signal::CONT);
    }

    /// Variables of the server's environment, beside ours, from its next start on.
    pub fn set_variables(&mut self, variables: Vec<(OsString, OsString)>) {
        let assignment = |(mut name, value): (OsString, OsString)| {
            name.push("=");
            name.push(value);
            name
        };
        self.variables = variables.into_iter().map(assignment).collect();
    }

    /// Starts it again on the same port, after a fast stop where it still runs, and waits until it
    /// answers.
    ///
    /// # Errors
    ///
    /// When it does not answer.
    pub async fn restart(&mut self) -> Result<(), ClusterError> {
        self.halt().await;
        self.run().await
    }

    /// Stops it fast, sessions and all. The data stay, for [`Cluster::restart`].
    ///
    /// Callers that come in all the time can keep a server from its end, as it waits for each of them
    /// to be told; it is killed then, as by [`Cluster::kill`].
    pub async fn halt(&mut self) {
        let Some(server) = &self.server else { return };
        server.signal(Signal::INT);
        if server.wait_exit(STOPS_FAST_WITHIN).await.is_err() {
            self.kill();
        }
        self.server = None;
    }

    /// Copies the data of the server while it is stopped, under a name, and starts it again. A copy
    /// of that name is replaced.
    ///
    /// # Errors
    ///
    /// When it can't be copied, or the server does not come back.
    pub async fn back_up(&mut self, name: &str) -> Result<(), ClusterError> {
        self.halt().await;
        let (data, backup) = (self.data(), self.backup(name));
        self.copy(&data, &backup).await?;
        self.run().await
    }

    /// Puts a copy in the place of the server's data, as somebody does who has lost these. The server
    /// stays stopped until [`Cluster::restart`].
    ///
    /// # Errors
    ///
    /// When there is no such copy.
    pub async fn put_back(&mut self, name: &str) -> Result<(), ClusterError> {
        self.halt().await;
        let (data, backup) = (self.data(), self.backup(name));
        self.copy(&backup, &data).await
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn backup(&self, name: &str) -> PathBuf {
        self.folder.path().join(format!("backup-{name}"))
    }

    /// A copy of a folder with its owner and rights, in the place of what is there.
    async fn copy(&self, from: &Path, to: &Path) -> Result<(), ClusterError> {
        let mut copy = Command::new("cp");
        copy.args(["--archive", "--no-target-directory"]).arg(from).arg(to);
        let to = to.to_owned();
        let copied = tokio::task::spawn_blocking(move || {
            match fs::remove_dir_all(&to) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            let output = copy.output()?;
            if output.status.success() {
                return Ok(());
            }
            Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned()))
        });
        Ok(copied.await.unwrap_or_else(|panicked| Err(io::Error::other(panicked)))?)
    }

    async fn run(&mut self) -> Result<(), ClusterError> {
        let program = self.access.installation.program("postgres");
        let mut command = match &self.variables[..] {
            [] => self.user.command(&program),
            // For the server alone, not for the change of the user before it.
            variables => {
                let mut command = self.user.command(Path::new("/usr/bin/env"));
                command.args(variables).arg(&program);
                command
            }
        };
        command.arg("-D").arg(self.data());
        for setting in self.settings() {
            command.arg("-c").arg(setting);
        }
        command.current_dir(self.folder.path()).env("LC_ALL", "C");
        let server = Process::start_ending_by(command, LastSignal::Interrupt)?;
        let deadline = Instant::now() + START_WITHIN;
        let refusal = loop {
            match self.access.superuser("postgres").await {
                Ok(_) => {
                    self.server = Some(server);
                    return Ok(());
                }
                Err(_) if server.exit().is_some() => {
                    let exit = server.wait_exit(STOP_WITHIN).await?;
                    return Err(ClusterError::Ended(exit, server.tail()));
                }
                Err(error) if Instant::now() > deadline => break error,
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        };
        Err(ClusterError::NotReady { source: refusal, log: server.tail() })
    }

    fn settings(&self) -> Vec<String> {
        let folder = self.folder.path().display();
        let mut settings = vec![
            "listen_addresses=127.0.0.1".to_owned(),
            format!("port={}", self.access.port),
            format!("unix_socket_directories={folder}"),
            "ssl=on".to_owned(),
            format!("ssl_cert_file={folder}/server.crt"),
            format!("ssl_key_file={folder}/server.key"),
            "password_encryption=scram-sha-256".to_owned(),
            // A hundred listeners have two each, and a benchmark has its own beside them.
            "max_connections=500".to_owned(),
            "log_timezone=UTC".to_owned(),
            "timezone=UTC".to_owned(),
        ];
        if !self.options.durable {
            settings.push("fsync=off".to_owned());
        }
        settings
    }

    /// A killed server leaves its small System V segment behind; the next start takes it over, the
    /// end removes it.
    fn remove_shared_memory(&self) {
        let Ok(lock) = fs::read_to_string(self.folder.path().join("data/postmaster.pid")) else {
            return;
        };
        let Some(id) = lock.lines().nth(6).and_then(|line| line.split_whitespace().nth(1)) else {
            return;
        };
        let _ = Command::new("ipcrm").args(["-m", id]).stderr(Stdio::null()).status();
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.resume();
        if let Some(server) = &self.server {
            // An immediate shutdown: it ends its own processes and frees its memory.
            server.signal(Signal::QUIT);
            if !server.wait_exit_blocking(Duration::from_secs(10)) {
                self.kill();
            }
        }
        self.server = None;
        self.remove_shared_memory();
    }
}

fn signal_all(pids: &[u32], signal: Signal) {
    let pids = pids.iter().filter_map(|pid| i32::try_from(*pid).ok().and_then(Pid::from_raw));
    pids.for_each(|pid| {
        // One that has ended in between ignores it.
        let _ = kill_process(pid, signal);
    });
}

fn children_of(pid: u32) -> Vec<u32> {
    let listed = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    listed.unwrap_or_default().split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}
