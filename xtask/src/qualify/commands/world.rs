//! Sites on one database, each with its listeners, its proxy and its Runtime.

use std::{error::Error, fs, io, path::Path, time::Duration};

use site_coordination::{Environment, Producer, SiteId, Stream};
use tempfile::TempDir;
use test_support::{
    DatabaseUrls, Faketime, Proxy, ProxySetup, TestSite, bin,
    postgres::{Access, Cluster, Installation, Options, migrated_database},
};
use tokio::sync::{Mutex, watch};

use super::{
    cluster::{DATABASE, Postgres},
    history::{History, Program, Recorder, StreamName},
    linked::LinkedSetup,
    read::{self, AgentFiles},
    supervisor::Supervised,
};

/// Where the handler of a Site notes its runs, in the Site's folder.
const HANDLER_LOG: &str = "handler.log";

const HANDLER: &str = include_str!("handler.sh");

/// How long a program may take to say that it serves; builds may be running beside it.
const READY_WITHIN: Duration = Duration::from_secs(60);

/// Who pulls the stream of a Site.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Runtime {
    Agent,
    /// One that links `site-client`.
    Linked,
}

/// Site, environment, listeners, Runtime. A Site has one native bearer for commands, so one stream.
const SITES: [(&str, &str, u32, Runtime); 4] = [
    ("lab-a", "slurm", 2, Runtime::Agent),
    ("lab-b", "slurm", 1, Runtime::Agent),
    ("lab-c", "k8s", 1, Runtime::Agent),
    ("lab-d", "k8s", 2, Runtime::Linked),
];

/// Everything that is broken in a run.
pub(crate) struct World {
    pub(crate) sites: Vec<Site>,
    pub(crate) postgres: Mutex<Postgres>,
    pub(crate) access: Access,
    pub(crate) faketime: Option<Faketime>,
    pub(crate) recorder: Recorder,
    /// Whether the faults have to end.
    enough: watch::Sender<bool>,
    // Dropped last: what runs above uses it.
    _folder: TempDir,
}

pub(crate) struct Site {
    site: TestSite,
    pub(crate) stream: Stream,
    pub(crate) name: StreamName,
    pub(crate) listeners: Vec<Supervised>,
    /// None where the Runtime is the linked one.
    agent: Option<Supervised>,
    pub(crate) proxy: Proxy,
}

impl World {
    pub(crate) async fn start(
        installation: &Installation,
        faketime: Option<Faketime>,
        recorder: Recorder,
        seed: u64,
    ) -> Result<Self, Box<dyn Error>> {
        let options = Options { durable: true, ..Options::default() };
        let mut cluster = Cluster::start(installation, options).await?;
        migrated_database(&mut cluster, DATABASE, &bin("site-admin")).await?;
        let access = cluster.access().clone();
        let folder = tempfile::Builder::new().prefix("site-control-qualify-").tempdir()?;
        let handler = folder.path().join("handler.sh");
        fs::write(&handler, HANDLER)?;
        let mut world = Self {
            sites: Vec::new(),
            postgres: Mutex::new(Postgres::new(cluster, recorder.clone(), faketime.clone())),
            access,
            faketime,
            recorder,
            enough: watch::Sender::new(false),
            _folder: folder,
        };
        for row in SITES {
            let site = world.site(row, &handler, seed).await?;
            world.sites.push(site);
        }
        for listener in world.sites.iter().flat_map(|site| &site.listeners) {
            listener.wait_for_line("\"site_api.listening\"", READY_WITHIN).await?;
        }
        Ok(world)
    }

    async fn site(
        &self,
        (name, environment, listeners, runtime): (&str, &'static str, u32, Runtime),
        handler: &Path,
        seed: u64,
    ) -> Result<Site, Box<dyn Error>> {
        let url = |role| self.access.role_url(role, DATABASE);
        let urls = DatabaseUrls {
            api: url("site_coordination_api"),
            producer: url("site_coordination_producer"),
        };
        let folder = handler.with_file_name(name);
        let site = TestSite::set_up(&folder, name, environment, urls)?;
        let stream =
            Stream { site: SiteId::parse(name)?, environment: Environment::parse(environment)? };
        let mut addresses = Vec::new();
        let mut supervised = Vec::new();
        for number in 1..=listeners {
            let replica = if number == 1 { site.clone() } else { site.another_listener()? };
            addresses.push(replica.listen);
            supervised.push(Supervised::start(
                Program::Listener { site: name.to_owned(), number },
                move || replica.site_api_command(),
                self.recorder.clone(),
                self.faketime.clone(),
            ));
        }
        let (certificate, key) = (site.file("tls/tls.crt"), site.file("tls/tls.key"));
        let proxy =
            Proxy::start(ProxySetup { upstreams: addresses, certificate, key, seed }).await?;
        let name = StreamName::new(name, environment);
        let agent = (runtime == Runtime::Agent).then(|| {
            let (site, origin, handler) = (site.clone(), proxy.origin(), handler.to_owned());
            let command = move || {
                let mut command = site.agent_command("/bin/sh".as_ref());
                command.arg(&handler).env("SITE_API_URL", &origin);
                command.env("LANE_LOG", site.file(HANDLER_LOG));
                command
            };
            let program = Program::Agent(name.clone());
            Supervised::start(program, command, self.recorder.clone(), self.faketime.clone())
        });
        Ok(Site { site, stream, name, listeners: supervised, agent, proxy })
    }

    /// The agents and the listeners.
    pub(crate) fn programs(&self) -> impl Iterator<Item = &Supervised> {
        self.sites.iter().flat_map(|site| site.listeners.iter().chain(&site.agent))
    }

    /// The Runtimes that are no programs, to be started.
    pub(crate) fn linked(&self, seed: u64) -> impl Iterator<Item = LinkedSetup> {
        let without = self.sites.iter().filter(|site| site.agent.is_none());
        without.map(move |site| LinkedSetup {
            stream: site.name.clone(),
            origin: site.proxy.origin(),
            ca_file: site.site.file("tls/ca.crt"),
            token_file: site.site.file("bearer"),
            seed,
        })
    }

    /// Whether a handler of this agent has begun, by its notes, and not ended. Of a listener, true.
    pub(crate) fn runs_a_handler(&self, program: &Supervised) -> bool {
        let Program::Agent(stream) = program.program() else { return true };
        let site = self.sites.iter().find(|site| site.name == *stream);
        let notes = site.and_then(|site| fs::read_to_string(site.site.file(HANDLER_LOG)).ok());
        notes
            .is_some_and(|notes| notes.lines().last().is_some_and(|line| line.starts_with("start")))
    }

    /// What has not ended yet, or can't be asked.
    pub(crate) async fn missing(&self, producer: &Producer) -> Vec<String> {
        let ended = self.programs().filter(|program| !program.is_kept_running());
        let mut missing: Vec<_> =
            ended.map(|program| format!("the {} has ended for good", program.name())).collect();
        for site in &self.sites {
            match producer.status(Some(&site.stream.site)).await {
                Err(error) => missing.push(format!("{}: {error}", site.name)),
                Ok(streams) => {
                    let left = streams.iter().filter(|stream| stream.done_seq < stream.last_seq);
                    missing.extend(left.map(|stream| {
                        let (done, last) = (stream.done_seq.get(), stream.last_seq.get());
                        format!("{}: {done} of {last} commands have ended", site.name)
                    }));
                }
            }
        }
        missing
    }

    /// Lets the time of a fault pass, or what is left of it until the faults have to end.
    pub(crate) async fn lasts(&self, time: Duration) {
        let mut enough = self.enough.subscribe();
        tokio::select! {
            () = tokio::time::sleep(time) => {}
            // The sender lives in self.
            _ = enough.wait_for(|enough| *enough) => {}
        }
    }

    /// Ends all faults that still last.
    pub(crate) fn lift_faults(&self) {
        self.enough.send_replace(true);
    }

    /// Ends the programs in good order: the Runtimes first.
    pub(crate) async fn stop_programs(&self) -> io::Result<()> {
        for agent in self.sites.iter().filter_map(|site| site.agent.as_ref()) {
            agent.stop().await?;
        }
        for listener in self.sites.iter().flat_map(|site| &site.listeners) {
            listener.stop().await?;
        }
        Ok(())
    }

    /// Everything that was noted, and what the programs have left. They must have ended.
    pub(crate) async fn history(&self) -> Result<History, Box<dyn Error>> {
        let files = |site: &Site| AgentFiles {
            stream: site.name.clone(),
            state: site.site.file("state"),
            handler_log: site.site.file(HANDLER_LOG),
        };
        let with_agents = self.sites.iter().filter(|site| site.agent.is_some());
        let files: Vec<_> = with_agents.map(files).collect();
        let superuser = self.access.superuser(DATABASE).await?;
        let history = read::history(&self.recorder, &superuser, &files).await;
        history.map_err(|error| error as Box<dyn Error>)
    }

    /// Ends everything in good order: the database last.
    pub(crate) async fn end(&self) -> Result<(), Box<dyn Error>> {
        let programs = self.stop_programs().await;
        self.postgres.lock().await.stop().await;
        Ok(programs?)
    }
}
