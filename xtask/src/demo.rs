//! `cargo xtask demo`: a Site's commands pulled, run and answered for real, with the API killed in
//! between, from whatever the machine has.

mod all;
mod load;
mod login;
mod report;

use std::{
    error::Error,
    fs,
    io::{IsTerminal, Write, stdout},
    os::unix::fs::PermissionsExt,
    path::PathBuf,
    time::Duration,
};

use clap::Args;
use database::{Pool, PoolLimits};
use site_coordination::{Environment, Producer, SiteId, Stream};
use tempfile::TempDir;
use test_support::{
    DatabaseUrls, Process, TestSite, bin,
    postgres::{Cluster, Machine, Options, migrated_database},
};

use crate::{
    step::{self, command, root},
    stop::Stop,
};

const DATABASE: &str = "site_control";
const SITE: &str = "gpu-lab";

/// How often the progress is looked at.
const PROGRESS: Duration = Duration::from_millis(100);
/// How long no result may come before the demo gives up.
const STUCK: Duration = Duration::from_secs(60);

#[derive(Args)]
pub(crate) struct Demo {
    /// How many commands
    #[arg(long, default_value_t = 300, value_parser = clap::value_parser!(u32).range(10..=10_000))]
    commands: u32,
    /// Keep everything running afterwards, until Ctrl-C, and show how to call it
    #[arg(long)]
    keep: bool,
    /// Then show the rest too: a Run with authority and its private output, and a login with a
    /// member's key. It may need RabbitMQ, Node and OpenSSH, and root for a login node
    #[arg(long, conflicts_with = "keep")]
    all: bool,
}

/// Everything that runs; all of it ends with the value.
struct Running {
    agent: Process,
    site_api: Process,
    site: TestSite,
    producer: Producer,
    folder: TempDir,
    cluster: Cluster,
}

pub(crate) async fn run(stop: &Stop, demo: Demo) -> Result<(), Box<dyn Error>> {
    step::run(stop, command("cargo", &["build", "--workspace", "--bins"])).await?;
    // Not interrupted: a package is installed whole.
    let machine = Machine::of_this_process(&root().join("target"));
    let installation = machine.postgres(|what| println!("{what}"))?;
    println!("\n== PostgreSQL {}: a private cluster", installation.major());
    let options = Options { durable: true, ..Options::default() };
    let cluster = stop.unless(Cluster::start(&installation, options)).await??;
    let mut running = stop.unless(start(cluster)).await??;
    let outcome = match stop.unless(play(&mut running, demo.commands)).await {
        Ok(outcome) => outcome,
        Err(stopped) => {
            // In good order: the handler of an agent that is killed would go on for a moment, and write
            // into the folder while it is removed.
            running.end().await?;
            return Err(stopped.into());
        }
    };
    if outcome.is_err() {
        println!("\nsite-api:\n{}\nagent:\n{}", running.site_api.tail(), running.agent.tail());
    }
    outcome?;
    if demo.keep {
        show(&running).await?;
        stop.requested().await;
    }
    running.end().await?;
    if demo.all {
        all::play(stop, &installation).await?;
        login::play(stop, &installation).await?;
    }
    Ok(())
}

async fn start(mut cluster: Cluster) -> Result<Running, Box<dyn Error>> {
    let folder = tempfile::Builder::new().prefix("site-control-demo-").tempdir()?;
    println!("   migrated by its owner, with restricted roles");
    migrated_database(&mut cluster, DATABASE, &bin("site-admin")).await?;
    let url = |role| cluster.access().role_url(role, DATABASE);
    let urls = DatabaseUrls {
        api: url("site_coordination_api"),
        producer: url("site_coordination_producer"),
    };
    println!("== certificate and bearer issued, site-api started");
    let site = TestSite::set_up(folder.path(), SITE, "slurm", urls.clone())?;
    let site_api = site.start_site_api().await?;
    println!("   {}", site.origin());

    println!("== site-agent runtime started; it runs examples/checksum-handler for each command");
    let mut agent = site.agent_command(&root().join("examples/checksum-handler"));
    agent.env("HANDLER_LOG", site.file("handler.log"));
    let agent = Process::start(agent)?;
    let pool = Pool::new(&urls.producer.parse()?, "xtask demo", PoolLimits::default());
    let producer = Producer::new(pool);
    Ok(Running { agent, site_api, site, producer, folder, cluster })
}

/// Enqueues, watches, kills the API half-way and reports.
async fn play(running: &mut Running, count: u32) -> Result<(), Box<dyn Error>> {
    let stream = Stream { site: SiteId::parse(SITE)?, environment: Environment::Slurm };
    println!("== {count} commands into the stream slurm of {SITE}");
    let load = tokio::spawn(load::enqueue(running.producer.clone(), stream.clone(), count));
    let mut progress = Progress::new(count);
    let mut killed = false;
    let mut ticks = tokio::time::interval(PROGRESS);
    while progress.done < count {
        ticks.tick().await;
        if let Some(exit) = running.agent.exit() {
            return Err(format!("the agent ended: {exit}").into());
        }
        progress.see(report::answered(&running.agent))?;
        if !killed && progress.done >= count / 2 {
            killed = true;
            running.site_api.kill();
            progress.note("site-api killed (SIGKILL)");
            running.site_api = running.site.start_site_api().await?;
            progress.note("site-api started again");
        }
    }
    progress.finish();
    load.await?.map_err(|error| format!("enqueueing failed: {error}"))?;
    let handler_log = fs::read_to_string(running.site.file("handler.log"))?;
    let report =
        report::Report::make(&running.producer, &stream, count, &handler_log, &running.agent);
    let report = report.await?;
    println!("{report}");
    if report.is_good() { Ok(()) } else { Err("a promise was broken, see the table".into()) }
}

/// Says how to call what is running. Secrets stay in files, not on the lines.
async fn show(running: &Running) -> Result<(), Box<dyn Error>> {
    let site = &running.site;
    let private = |name: &str, text: String| -> Result<PathBuf, std::io::Error> {
        let path = site.file(name);
        fs::write(&path, text)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
        Ok(path)
    };
    // A caller that is not the current session is refused: these lines speak as the agent does.
    let streams = running.producer.status(Some(&SiteId::parse(SITE)?)).await?;
    let stream = streams.first().ok_or("the stream is gone")?;
    let session = stream.session.as_ref().ok_or("the agent has opened no session")?;
    let headers = format!(
        "Authorization: Bearer {}\nRuntime-Generation: {}\nRuntime-Session: {}\n",
        site.bearer()?,
        stream.generation.get(),
        session.id.as_str()
    );
    let headers = private("headers", headers)?;
    let url = running.cluster.access().role_url("site_coordination_producer", DATABASE);
    let url = private("producer-url", url)?;
    let curl = format!("curl --cacert {}", site.file("tls/ca.crt").display());
    let (headers, origin) = (headers.display(), site.origin());
    println!("\nEverything keeps running. Paste a line:");
    println!("  {curl} {origin}/healthz");
    println!("  {curl} -H @{headers} '{origin}/v1/site/commands/?after=0&limit=2'");
    println!("  curl http://{}/metrics", site.metrics);
    println!("  curl http://{}/alarms", site.metrics);
    println!(
        "  SITE_COORDINATION_PRODUCER_DATABASE_URL_FILE={} {} commands list --site {SITE} --environment slurm --limit 5",
        url.display(),
        bin("site-admin").display()
    );
    println!(
        "Files are in {}. Ctrl-C stops and removes everything.",
        running.folder.path().display()
    );
    Ok(())
}

impl Running {
    /// Ends everything in good order: the agent first, the database last.
    async fn end(self) -> Result<(), Box<dyn Error>> {
        let within = Duration::from_secs(30);
        for process in [&self.agent, &self.site_api] {
            process.signal(rustix::process::Signal::TERM);
            process.wait_exit(within).await?;
        }
        self.cluster.stop().await?;
        Ok(())
    }
}

/// A line on a terminal, or one line every tenth.
struct Progress {
    count: u32,
    done: u32,
    terminal: bool,
    moved: tokio::time::Instant,
}

impl Progress {
    fn new(count: u32) -> Self {
        let moved = tokio::time::Instant::now();
        Self { count, done: 0, terminal: stdout().is_terminal(), moved }
    }

    fn see(&mut self, done: u32) -> Result<(), String> {
        if done == self.done {
            if self.moved.elapsed() > STUCK {
                return Err(format!("no result for {STUCK:?}"));
            }
            return Ok(());
        }
        let tenth = |number: u32| number * 10 / self.count;
        let (before, now) = (tenth(self.done), tenth(done));
        self.done = done;
        self.moved = tokio::time::Instant::now();
        if self.terminal {
            print!("\r   {done} of {} answered", self.count);
            // A terminal that is gone shows nothing; the demo goes on.
            let _ = stdout().flush();
        } else if now > before {
            println!("   {done} of {} answered", self.count);
        }
        Ok(())
    }

    fn note(&self, text: &str) {
        self.finish();
        println!("   {text}");
    }

    fn finish(&self) {
        if self.terminal {
            println!();
        }
    }
}
