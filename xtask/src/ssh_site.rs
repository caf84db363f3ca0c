//! The SSH access of a Site with everything real: `ssh-access`, `site-api`, `site-agent ssh-keys` behind
//! a network that can fail, and a login node, which is OpenSSH's server with the snippet as it is
//! shipped.

mod key_admin;
mod logins;

use std::{
    error::Error,
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use test_support::{
    DatabaseUrls, Process, Proxy, ProxyHandle, ProxySetup, TestSite, bin,
    openssh::{Sshd, SshdSetup},
    postgres::Cluster,
    process::LastSignal,
};

use crate::step::root;

pub(crate) use key_admin::{AdminError, KeyAdmin};
pub(crate) use logins::{let_in, refused};

pub(crate) const DATABASE: &str = "site_control";

/// Within how long a removal has to be in force: the shortest that the settings allow.
pub(crate) const WINDOW: Duration = Duration::from_secs(60);
/// How long `ssh-access` is not missed: the shortest that the settings allow.
pub(crate) const PROPAGATOR_LEASE: Duration = Duration::from_secs(3);

const READY_WITHIN: Duration = Duration::from_secs(60);

/// What a Site is to be like.
pub(crate) struct SshSiteSetup<'a> {
    /// The Site.
    pub(crate) name: &'a str,
    /// Users of its login node.
    pub(crate) users: &'a [&'a str],
    /// Those who administer it.
    pub(crate) administrators: &'a [&'a str],
    /// How many `ssh-access` it has.
    pub(crate) propagators: usize,
    /// What the network's drawn times follow from.
    pub(crate) seed: u64,
}

/// Everything that runs; all of it ends with the value.
pub(crate) struct SshSite {
    pub(crate) agent: Process,
    pub(crate) propagators: Vec<Process>,
    pub(crate) site_api: Process,
    pub(crate) network: ProxyHandle,
    pub(crate) sshd: Sshd,
    programs: Programs,
    _proxy: Proxy,
}

/// How each program is started.
struct Programs {
    site: TestSite,
    api_url: String,
    process_url: String,
    origin: String,
    keys_folder: PathBuf,
}

impl SshSite {
    /// Sets everything up in a folder, beside a migrated database, and waits until the agent has
    /// attested that nothing is in force.
    pub(crate) async fn set_up(
        folder: &Path,
        cluster: &Cluster,
        setup: &SshSiteSetup<'_>,
    ) -> Result<Self, Box<dyn Error>> {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let sshd = Sshd::start(&SshdSetup {
            snippet: fs::read_to_string(root().join("deploy/ssh/site-agent.conf"))?,
            users: names(setup.users),
            administrators: names(setup.administrators),
        })
        .await?;
        let url = |role: &str| cluster.access().role_url(role, DATABASE);
        let urls = DatabaseUrls {
            api: url("site_coordination_api"),
            producer: url("site_coordination_producer"),
        };
        let site = TestSite::set_up(folder, setup.name, "slurm", urls)?;
        site.issue_bearer("ssh-access", "ssh-bearer")?;
        let proxy = Proxy::start(ProxySetup {
            upstreams: vec![site.listen],
            certificate: site.file("tls/tls.crt"),
            key: site.file("tls/tls.key"),
            seed: setup.seed,
        })
        .await?;
        let programs = Programs {
            site,
            api_url: url("ssh_access_api"),
            process_url: url("ssh_access_process"),
            origin: proxy.origin(),
            keys_folder: sshd.keys_folder(),
        };
        let mut propagators = Vec::new();
        for _ in 0..setup.propagators {
            propagators.push(programs.propagator()?);
        }
        let leads = |line: &str| line.contains("\"ssh_access.leading\"");
        let first = propagators.first().ok_or("a Site without an ssh-access")?;
        // Where there are two, the other one may lead.
        if setup.propagators == 1 {
            first.wait_for_line("that it leads", READY_WITHIN, leads).await?;
        }
        let site_api = programs.site_api().await?;
        let agent = programs.agent()?;
        let attested = |line: &str| line.contains("\"ssh_keys.attested\"");
        agent.wait_for_line("that it attested", READY_WITHIN, attested).await?;
        let network = proxy.handle();
        Ok(Self { agent, propagators, site_api, network, sshd, programs, _proxy: proxy })
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        &self.programs.site.site
    }

    /// Starts the agent again where it ended.
    pub(crate) fn restart_agent(&mut self) -> Result<(), Box<dyn Error>> {
        self.agent = self.programs.agent()?;
        Ok(())
    }

    /// Starts `site-api` again where it ended, and waits until it listens.
    pub(crate) async fn restart_site_api(&mut self) -> Result<(), Box<dyn Error>> {
        self.site_api = self.programs.site_api().await?;
        Ok(())
    }

    /// Starts an `ssh-access` again where it ended.
    pub(crate) fn restart_propagator(&mut self, which: usize) -> Result<(), Box<dyn Error>> {
        self.propagators[which] = self.programs.propagator()?;
        Ok(())
    }

    /// Which `ssh-access` has said last that it leads, and not that another one does.
    pub(crate) fn leader(&self) -> Option<usize> {
        let leads = |process: &Process| {
            let lines = process.lines();
            let said = lines.iter().rev().find_map(|line| {
                let says = |event| line.text.contains(event);
                (says("\"ssh_access.leading\"").then_some(true))
                    .or_else(|| says("\"ssh_access.standby\"").then_some(false))
            });
            process.exit().is_none() && said == Some(true)
        };
        self.propagators.iter().position(leads)
    }

    /// What has ended although nobody ended it, with its last lines.
    pub(crate) fn ended(&self) -> Vec<String> {
        let named = [("site-agent", &self.agent), ("site-api", &self.site_api)];
        let propagators = self.propagators.iter().map(|process| ("ssh-access", process));
        let all = named.into_iter().chain(propagators);
        let ended = all.filter_map(|(name, process)| {
            Some(format!("{name} ended ({}):\n{}", process.exit()?, process.tail()))
        });
        ended.collect()
    }

    /// What everybody said last.
    pub(crate) fn tails(&self) -> String {
        let propagators: Vec<_> = self.propagators.iter().map(Process::tail).collect();
        format!(
            "site-agent of {}:\n{}\nsite-api:\n{}\nssh-access:\n{}",
            self.name(),
            self.agent.tail(),
            self.site_api.tail(),
            propagators.join("\n")
        )
    }
}

impl Programs {
    fn propagator(&self) -> Result<Process, Box<dyn Error>> {
        let mut command = Command::new(bin("ssh-access"));
        command
            .env("SSH_ACCESS_DATABASE_URL", &self.process_url)
            .env("SSH_ACCESS_SITE", &self.site.site)
            .env("SSH_ACCESS_WINDOW_SECONDS", WINDOW.as_secs().to_string())
            .env("SSH_ACCESS_LEASE_SECONDS", PROPAGATOR_LEASE.as_secs().to_string())
            .env("SSH_ACCESS_METRICS_LISTEN", "127.0.0.1:0");
        Ok(Process::start_ending_by(command, LastSignal::Kill)?)
    }

    async fn site_api(&self) -> Result<Process, Box<dyn Error>> {
        let mut command = self.site.site_api_command();
        command
            .env("SSH_ACCESS_SITE", &self.site.site)
            .env("SSH_ACCESS_DATABASE_URL", &self.api_url)
            .env("SSH_ACCESS_WINDOW_SECONDS", WINDOW.as_secs().to_string());
        let process = Process::start_ending_by(command, LastSignal::Kill)?;
        let listens = |line: &str| line.contains("\"site_api.listening\"");
        process.wait_for_line("that it listens", READY_WITHIN, listens).await?;
        Ok(process)
    }

    fn agent(&self) -> Result<Process, Box<dyn Error>> {
        let mut command = Command::new(bin("site-agent"));
        command
            .env("SSH_ACCESS_SITE_API_URL", &self.origin)
            .env("SITE_API_CA_FILE", self.site.file("tls/ca.crt"))
            .env("SITE_API_TOKEN_FILE", self.site.file("ssh-bearer"))
            // It attests at its start and after a snapshot, and not so often that this would mend what a
            // change should have done.
            .args(["ssh-keys", "--folder"])
            .arg(&self.keys_folder)
            .arg("--state")
            .arg(self.site.file("ssh-state"));
        Ok(Process::start_ending_by(command, LastSignal::Kill)?)
    }
}
