//! A Site as its administrator sets it up: certificate, bearer, `site-api`, a Runtime's agent. The
//! real programs do all of it.

use std::{
    fs, io,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use crate::process::{LastSignal, Process, WaitError, bin, free_port};

/// How long a program may take to say that it serves; builds may be running beside it.
const READY_WITHIN: Duration = Duration::from_secs(60);

/// The settings that reach the database, one URL for each role.
#[derive(Clone, Debug)]
pub struct DatabaseUrls {
    /// For `site-api`.
    pub api: String,
    /// For `site-admin commands`.
    pub producer: String,
}

/// The files and settings of one Site with one stream, in a folder of the caller's.
#[derive(Clone, Debug)]
pub struct TestSite {
    /// The Site.
    pub site: String,
    /// The environment of its stream.
    pub environment: &'static str,
    /// Where `site-api` listens.
    pub listen: SocketAddr,
    /// Where its metrics are.
    pub metrics: SocketAddr,
    folder: PathBuf,
    urls: DatabaseUrls,
}

/// Why a Site could not be set up or a program of it not started.
#[derive(Debug, thiserror::Error)]
pub enum SiteError {
    /// A file or a program.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// A program ended, or did not get ready.
    #[error(transparent)]
    Wait(#[from] WaitError),
    /// `site-admin` refused.
    #[error("`site-admin {arguments}` failed:\n{stderr}")]
    Admin {
        /// What it was asked for.
        arguments: String,
        /// What it said.
        stderr: String,
    },
}

impl TestSite {
    /// Issues a certificate for 127.0.0.1 and `localhost` and a native bearer for the stream, with
    /// `site-admin`, into `folder`.
    ///
    /// # Errors
    ///
    /// When `site-admin` refuses or a file can't be written.
    pub fn set_up(
        folder: &Path,
        site: &str,
        environment: &'static str,
        urls: DatabaseUrls,
    ) -> Result<Self, SiteError> {
        let site = Self {
            site: site.to_owned(),
            environment,
            listen: free_address()?,
            metrics: free_address()?,
            folder: folder.to_owned(),
            urls,
        };
        fs::create_dir_all(folder)?;
        let tls = site.file("tls").display().to_string();
        site.admin(&[
            "tls",
            "issue",
            "--directory",
            &tls,
            "--name",
            "127.0.0.1",
            "--name",
            "localhost",
        ])?;
        site.issue_bearer("commands", "bearer")?;
        Ok(site)
    }

    /// The same Site with a listener of its own: another replica of its `site-api`.
    ///
    /// # Errors
    ///
    /// When the machine has no free port.
    pub fn another_listener(&self) -> io::Result<Self> {
        Ok(Self { listen: free_address()?, metrics: free_address()?, ..self.clone() })
    }

    /// Issues a bearer of a scope into a file of the folder, in the place of one that is there.
    ///
    /// # Errors
    ///
    /// When `site-admin` refuses or the file can't be put there.
    pub fn issue_bearer(&self, scope: &str, file: &str) -> Result<(), SiteError> {
        let grants = self.file("grants.json").display().to_string();
        let new = self.file(&format!("{file}.new"));
        let out = new.display().to_string();
        let mut arguments = vec![
            "credentials",
            "issue",
            "--grants",
            &grants,
            "--scope",
            scope,
            "--site",
            &self.site,
            "--out",
            &out,
        ];
        if scope == "commands" {
            arguments.extend(["--environment", self.environment]);
        }
        self.admin(&arguments)?;
        Ok(fs::rename(new, self.file(file))?)
    }

    /// The path of a file in the folder.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The origin of the Site API.
    #[must_use]
    pub fn origin(&self) -> String {
        format!("https://{}", self.listen)
    }

    /// The bearer that was issued last for commands.
    ///
    /// # Errors
    ///
    /// When the file can't be read.
    pub fn bearer(&self) -> io::Result<String> {
        Ok(fs::read_to_string(self.file("bearer"))?.trim().to_owned())
    }

    /// Runs `site-admin` and returns what it printed.
    ///
    /// # Errors
    ///
    /// When it can't be started or fails.
    pub fn admin(&self, arguments: &[&str]) -> Result<String, SiteError> {
        let output = self.admin_command().args(arguments).output()?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        Err(SiteError::Admin {
            arguments: arguments.join(" "),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        })
    }

    /// `site-admin` with the settings of a producer.
    #[must_use]
    pub fn admin_command(&self) -> Command {
        let mut command = Command::new(bin("site-admin"));
        command.env("SITE_COORDINATION_PRODUCER_DATABASE_URL", &self.urls.producer);
        command
    }

    /// `site-api` with its settings, not started.
    #[must_use]
    pub fn site_api_command(&self) -> Command {
        let mut command = Command::new(bin("site-api"));
        command
            .env("SITE_API_LISTEN", self.listen.to_string())
            .env("SITE_API_METRICS_LISTEN", self.metrics.to_string())
            .env("SITE_API_TLS_CERT_FILE", self.file("tls/tls.crt"))
            .env("SITE_API_TLS_KEY_FILE", self.file("tls/tls.key"))
            .env("SITE_API_SITE_ID", &self.site)
            .env("SITE_API_NATIVE_GRANTS_FILE", self.file("grants.json"))
            .env("SITE_COORDINATION_DATABASE_URL", &self.urls.api);
        command
    }

    /// Starts `site-api` and waits until it listens.
    ///
    /// # Errors
    ///
    /// When it ends, or is not ready in time.
    pub async fn start_site_api(&self) -> Result<Process, SiteError> {
        let process = Process::start_ending_by(self.site_api_command(), LastSignal::Kill)?;
        process
            .wait_for_line("that it listens", READY_WITHIN, |line| {
                line.contains("\"site_api.listening\"")
            })
            .await?;
        Ok(process)
    }

    /// `site-agent runtime` with its settings, not started. Its state is in the folder `state`.
    #[must_use]
    pub fn agent_command(&self, handler: &Path) -> Command {
        let mut command = Command::new(bin("site-agent"));
        command
            .env("SITE_API_URL", self.origin())
            .env("SITE_API_CA_FILE", self.file("tls/ca.crt"))
            .env("SITE_API_TOKEN_FILE", self.file("bearer"))
            .arg("runtime")
            .arg("--state")
            .arg(self.file("state"))
            .arg("--handler")
            .arg(handler);
        command
    }

    /// Starts `site-agent runtime`.
    ///
    /// # Errors
    ///
    /// When it can't be started.
    pub fn start_agent(&self, handler: &Path) -> Result<Process, SiteError> {
        Ok(Process::start_ending_by(self.agent_command(handler), LastSignal::Kill)?)
    }
}

/// Restarts listen on it again, so its port can't be 0.
fn free_address() -> io::Result<SocketAddr> {
    Ok((Ipv4Addr::LOCALHOST, free_port()?).into())
}
