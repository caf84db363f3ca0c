//! A Site that works while it is being broken.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use database::{DatabaseError, Pool, PoolLimits};
use site_coordination::{
    CommandKind, EnqueueError, Environment, JsonText, NewCommand, Producer, ProducerKey, Seq,
    SiteId, Stream,
};
use tempfile::TempDir;
use test_support::{
    DatabaseUrls, Process, Random, TestSite, bin, eventually,
    postgres::{Cluster, Machine, Options, migrated_database},
};
use tokio::task::JoinHandle;

use crate::history::History;

const DATABASE: &str = "site_control";
/// How long the next result may take while things are being killed and come back.
const RESULT_WITHIN: Duration = Duration::from_secs(90);
/// One enqueue each so long, about as fast as the agent answers.
const PACE: Duration = Duration::from_millis(25);

pub(crate) struct Scenario {
    pub(crate) site: TestSite,
    pub(crate) site_api: Process,
    pub(crate) agent: Process,
    /// How often an agent was started: each start opens one session at the most.
    starts: u64,
    producer: Producer,
    enough: Arc<AtomicBool>,
    load: JoinHandle<u32>,
    // Dropped last: what runs above uses them.
    folder: TempDir,
    cluster: Cluster,
}

impl Scenario {
    pub(crate) async fn start() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
        let machine = Machine::of_this_process(&root.join("target"));
        let installation = machine.postgres(|what| eprintln!("{what}")).unwrap();
        let options = Options { durable: true, ..Options::default() };
        let mut cluster = Cluster::start(&installation, options).await.unwrap();
        migrated_database(&mut cluster, DATABASE, &bin("site-admin")).await.unwrap();
        let url = |role| cluster.access().role_url(role, DATABASE);
        let urls = DatabaseUrls {
            api: url("site_coordination_api"),
            producer: url("site_coordination_producer"),
        };
        let folder = tempfile::tempdir().unwrap();
        let site = TestSite::set_up(folder.path(), "lab", "slurm", urls.clone()).unwrap();
        let site_api = site.start_site_api().await.unwrap();
        let agent = start_agent(&site);
        let pool = Pool::new(&urls.producer.parse().unwrap(), "kills", PoolLimits::default());
        let producer = Producer::new(pool);
        let enough = Arc::new(AtomicBool::new(false));
        let load = tokio::spawn(enqueue(producer.clone(), enough.clone()));
        Self { site, site_api, agent, starts: 1, producer, enough, load, folder, cluster }
    }

    pub(crate) fn start_agent(&mut self) -> Process {
        self.starts += 1;
        start_agent(&self.site)
    }

    /// Waits for a few more runs of the handler, then a random moment longer.
    pub(crate) async fn some_results_and_a_moment(&self, random: &mut Random, longest: Duration) {
        let target = self.runs() + usize::try_from(random.within(1..5)).unwrap();
        eventually(RESULT_WITHIN, "more runs of the handler", async || {
            self.assert_alive();
            (self.runs() >= target).then_some(())
        })
        .await;
        // The moment of the kill is what is random here; nothing waits for this time to pass.
        tokio::time::sleep(random.duration(longest)).await;
    }

    /// The process ids of the backends of the Site API and of the producer.
    pub(crate) async fn backends(&self) -> Option<Vec<i32>> {
        let admin = self.cluster.superuser(DATABASE).await.ok()?;
        let sql = "SELECT pid FROM pg_stat_activity WHERE usename LIKE 'site_coordination_%'";
        let rows = admin.query(sql, &[]).await.ok()?;
        Some(rows.iter().map(|row| row.get(0)).collect())
    }

    /// Ends the load, waits for the last result and reads the whole history.
    pub(crate) async fn finish(mut self) -> History {
        self.enough.store(true, Ordering::Relaxed);
        let enqueued = (&mut self.load).await.unwrap();
        let stream = stream();
        let commands = eventually(RESULT_WITHIN, "the last results", async || {
            assert_eq!(self.agent.exit(), None, "{}", self.agent.tail());
            let mut commands = Vec::new();
            loop {
                let after = commands.last().map_or(Seq::ZERO, |command: &_| seq_of(command));
                let page = self.producer.list(&stream, after, 1000).await.ok()?;
                if page.is_empty() {
                    break;
                }
                commands.extend(page);
            }
            commands.iter().all(|command| command.result.is_some()).then_some(commands)
        })
        .await;
        let mut bodies = Vec::new();
        for command in &commands {
            let shown = self.producer.show(&stream, &command.id).await.unwrap().unwrap();
            bodies.push(shown.result.unwrap().body.unwrap().into_string());
        }
        let log = fs::read_to_string(handler_log(&self.site)).unwrap();
        self.agent.signal(rustix::process::Signal::TERM);
        self.agent.wait_exit(RESULT_WITHIN).await.unwrap();
        let generations = self.generations().await;
        let history =
            History::new(enqueued, &commands, &bodies, &log, generations, 1 + self.starts);
        drop(self.folder);
        history
    }

    /// The generation that stored each result, in the order of the stream.
    async fn generations(&self) -> Vec<u64> {
        let admin = self.cluster.superuser(DATABASE).await.unwrap();
        let sql = "SELECT generation FROM site_coordination.command_result ORDER BY seq";
        let rows = admin.query(sql, &[]).await.unwrap();
        rows.iter().map(|row| u64::try_from(row.get::<_, i64>(0)).unwrap()).collect()
    }

    fn runs(&self) -> usize {
        fs::read_to_string(handler_log(&self.site)).map_or(0, |log| log.lines().count())
    }

    fn assert_alive(&self) {
        assert_eq!(self.agent.exit(), None, "{}", self.agent.tail());
        assert_eq!(self.site_api.exit(), None, "{}", self.site_api.tail());
        assert!(!self.load.is_finished(), "the producer gave up");
    }
}

fn seq_of(command: &site_coordination::CommandSummary) -> Seq {
    command.seq
}

fn stream() -> Stream {
    Stream { site: SiteId::parse("lab").unwrap(), environment: Environment::Slurm }
}

fn handler_log(site: &TestSite) -> PathBuf {
    site.file("handler.log")
}

fn start_agent(site: &TestSite) -> Process {
    let handler = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/checksum-handler");
    let mut command = site.agent_command(&handler);
    command.env("HANDLER_LOG", handler_log(site));
    Process::start(command).unwrap()
}

/// Enqueues until it is told that it is enough; the same command again where the database did not
/// answer. Returns how many.
async fn enqueue(producer: Producer, enough: Arc<AtomicBool>) -> u32 {
    let mut ticks = tokio::time::interval(PACE);
    let mut count = 0;
    let mut unsure = false;
    while unsure || !enough.load(Ordering::Relaxed) {
        ticks.tick().await;
        let number = count + 1;
        let command = NewCommand {
            key: ProducerKey::parse(&format!("key-{number}")).unwrap(),
            kind: CommandKind::parse("job.submit").unwrap(),
            run_id: None,
            not_after: None,
            body: JsonText::parse(&format!(r#"{{"number":{number}}}"#)).unwrap(),
        };
        match producer.enqueue(&stream(), command).await {
            Ok(_) => (count, unsure) = (number, false),
            Err(EnqueueError::Database(DatabaseError::Unavailable(_))) => unsure = true,
            Err(error) => panic!("{error}"),
        }
    }
    count
}
