//! One key that is added or removed while others are in force: how long until the file is there, or
//! gone, and until that is acknowledged.

use std::{
    error::Error,
    fs, io,
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::{Duration, Instant},
};

use ring::rand::SystemRandom;
use ssh_access::{MemberId, NewKey, PublicKey, REGISTRY_ROLE, Registry, SiteId, UnixUser};
use test_support::bin;
use tokio::{task::spawn_blocking, time::sleep};
use tokio_postgres::Client;

use super::{
    FEW, Sites,
    agent::{Agent, Folders},
    files, grouped,
    site::SshSite,
};
use crate::bench::{
    commands::notify::Notify,
    figure::{Figure, Part, Target, quantile},
    world::Bench,
};

/// Between two changes: longer than the agent needs until its poll waits again.
const PACE: Duration = Duration::from_millis(50);
/// Between two looks at a file.
const LOOK: Duration = Duration::from_micros(100);
/// A change that takes longer is no figure.
const WITHIN: Duration = Duration::from_secs(60);

/// What counts as the same cost: two runs of one thing differ by as much.
const SAME: f64 = 1.1;

/// The key that comes and goes, and its member's user.
const KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcH";
const MEMBER: &str = "bench";
const USER: &str = "bench";

/// How long changes took, in milliseconds from the registry's call.
#[derive(Default)]
struct Times {
    written: Vec<f64>,
    write_acknowledged: Vec<f64>,
    removed: Vec<f64>,
    removal_acknowledged: Vec<f64>,
}

/// One kind of them.
type Of = fn(&Times) -> &Vec<f64>;

pub(super) async fn measure(sites: &mut Sites<'_>) -> Result<Part, Box<dyn Error>> {
    let (bench, keys) = (sites.bench, sites.keys);
    let (turns, changes) = if bench.quick { (1, 2) } else { (6, 25) };
    sites.with(FEW).await?;
    sites.with(keys).await?;
    let mut few = Moving::start(bench, sites.known(FEW)?).await?;
    let mut many = Moving::start(bench, sites.known(keys)?).await?;
    let mut floor = Floor::new(bench).await?;
    // The first of everything opens connections and prepares statements.
    few.turn(2).await?;
    many.turn(2).await?;
    floor.turn(2).await?;
    (few.times, many.times) = Default::default();
    (floor.written, floor.removed) = Default::default();
    for _ in 0..turns {
        floor.turn(changes).await?;
        few.turn(changes).await?;
        many.turn(changes).await?;
    }
    let command = many.by_command(if bench.quick { 1 } else { 20 }).await?;
    let mut figures = Vec::new();
    let (few, many) = (few.times, many.times);
    let parts: [(&str, Of, Option<&Vec<f64>>); 4] = [
        ("a key added until its file is there", |times| &times.written, Some(&floor.written)),
        ("a key added until it is acknowledged", |times| &times.write_acknowledged, None),
        ("a key removed until its file is gone", |times| &times.removed, Some(&floor.removed)),
        ("a key removed until that is acknowledged", |times| &times.removal_acknowledged, None),
    ];
    for (what, of, floor) in parts {
        let half = |of: &Vec<f64>| quantile(of, 0.5);
        let name = format!("{what}, {FEW} keys in force, p50");
        figures.push(match floor {
            Some(floor) => Figure::beside(name, half(of(&few)), "ms", half(floor)),
            None => Figure::alone(name, half(of(&few)), "ms"),
        });
        let many_keys = format!("{} keys in force beside {FEW}", grouped(keys));
        let name = format!("{what}, {many_keys}, p50");
        let beside = Figure::beside(name, half(of(&many)), "ms", half(of(&few)));
        figures.push(beside.aiming_at(Target::AtMost(SAME)));
        let name = format!("{what}, {many_keys}, p95");
        let late = |of: &Vec<f64>| quantile(of, 0.95);
        figures.push(Figure::beside(name, late(of(&many)), "ms", late(of(&few))));
    }
    let name = "from the start of `site-admin keys add` until the file is there, p50";
    figures.push(Figure::alone(name, quantile(&command, 0.5), "ms"));
    Ok(Part { title: "A change", method: METHOD.to_owned(), figures })
}

/// A Site whose agent is at the head, and a member of it whose key comes and goes.
struct Moving<'s> {
    site: &'s SshSite,
    agent: Agent,
    place: PathBuf,
    registry: Registry,
    random: SystemRandom,
    sql: Client,
    key: NewKey,
    times: Times,
}

impl<'s> Moving<'s> {
    async fn start(bench: &Bench, site: &'s SshSite) -> Result<Self, Box<dyn Error>> {
        let folders = Folders::new(bench.folder(), &format!("changes-{}", site.keys))?;
        let agent = Agent::start(&site.files, &folders)?;
        agent.attested().await?;
        let registry = Registry::new(site.pool(REGISTRY_ROLE)?);
        let member = MemberId::parse(MEMBER)?;
        let here = SiteId::parse(&site.files.site)?;
        registry.add_account(&here, &member, &UnixUser::parse(USER)?).await?;
        #[expect(clippy::disallowed_methods, reason = "ids of keys that a benchmark adds")]
        let random = SystemRandom::new();
        let key = NewKey { member, key: PublicKey::parse(KEY)?, end: None };
        let sql = site.database.superuser().await;
        let (place, times) = (folders.file(USER), Times::default());
        Ok(Self { site, agent, place, registry, random, sql, key, times })
    }

    /// Adds and removes the key so many times.
    async fn turn(&mut self, changes: u32) -> Result<(), Box<dyn Error>> {
        for _ in 0..changes {
            let head = self.rest().await?;
            let seen = self.seen(true);
            let begun = Instant::now();
            let added = self.registry.add_key(&self.key, &self.random).await?.value;
            self.times.written.push(milliseconds(seen.await?? - begun));
            self.acknowledged(head + 1).await?;
            self.times.write_acknowledged.push(milliseconds(begun.elapsed()));
            let text = fs::read_to_string(&self.place)?;
            if !text.ends_with(&format!("{KEY} {}\n", added.id.as_str())) {
                return Err("void: another key is in the file".into());
            }

            let head = self.rest().await?;
            let seen = self.seen(false);
            let begun = Instant::now();
            self.registry.remove_key(&added.id, None).await?;
            self.times.removed.push(milliseconds(seen.await?? - begun));
            self.acknowledged(head + 1).await?;
            self.times.removal_acknowledged.push(milliseconds(begun.elapsed()));
        }
        Ok(())
    }

    /// The same by `site-admin keys add`, from the start of its process.
    async fn by_command(&mut self, changes: u32) -> Result<Vec<f64>, Box<dyn Error>> {
        let file = self.site.files.file("key.pub");
        fs::write(&file, KEY)?;
        let mut took = Vec::new();
        for _ in 0..changes {
            let head = self.rest().await?;
            let mut command = Command::new(bin("site-admin"));
            command.args(["keys", "add", "--json", "--member", MEMBER]).arg(&file).env(
                "SSH_ACCESS_REGISTRY_DATABASE_URL",
                self.site.database.url(REGISTRY_ROLE.name),
            );
            let seen = self.seen(true);
            let begun = Instant::now();
            let output = spawn_blocking(move || command.output()).await??;
            if !output.status.success() {
                return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
            }
            took.push(milliseconds(seen.await?? - begun));
            self.acknowledged(head + 1).await?;
            let added = self.registry.add_key(&self.key, &self.random).await?;
            if added.new {
                return Err("void: the command added another key".into());
            }
            let head = self.rest().await?;
            self.registry.remove_key(&added.value.id, None).await?;
            self.acknowledged(head + 1).await?;
        }
        Ok(took)
    }

    /// Lets the agent's poll wait, and says where everybody is: at the head.
    async fn rest(&self) -> Result<i64, Box<dyn Error>> {
        sleep(PACE).await;
        if self.agent.process.exit().is_some() {
            return Err(format!("the agent has ended:\n{}", self.agent.process.tail()).into());
        }
        let sql = "SELECT f.head, a.seq FROM ssh_access.site_feed f
                     JOIN ssh_access.site_ack a USING (site) WHERE site = $1";
        let row = self.sql.query_one(sql, &[&self.site.files.site]).await?;
        let (head, acknowledged): (i64, i64) = (row.get(0), row.get(1));
        if head == acknowledged {
            return Ok(head);
        }
        Err(format!("void: {acknowledged} of {head} are acknowledged though all was told").into())
    }

    /// When the file is there, or is not, seen by a thread of its own.
    fn seen(&self, there: bool) -> tokio::task::JoinHandle<io::Result<Instant>> {
        let place = self.place.clone();
        spawn_blocking(move || wait_for(&place, there))
    }

    /// Waits until so many changes are acknowledged.
    async fn acknowledged(&self, seq: i64) -> Result<(), Box<dyn Error>> {
        let by = Instant::now() + WITHIN;
        let sql = "SELECT seq FROM ssh_access.site_ack WHERE site = $1";
        loop {
            let row = self.sql.query_one(sql, &[&self.site.files.site]).await?;
            match row.get::<_, i64>(0) {
                found if found == seq => return Ok(()),
                found if found > seq || Instant::now() > by => {
                    return Err(format!("void: {found} is acknowledged and not {seq}").into());
                }
                _ => sleep(Duration::from_millis(1)).await,
            }
        }
    }
}

fn wait_for(place: &Path, there: bool) -> io::Result<Instant> {
    let by = Instant::now() + WITHIN;
    loop {
        let (found, now) = (place.try_exists()?, Instant::now());
        if found == there {
            return Ok(now);
        }
        if now > by {
            return Err(io::Error::other("void: a change did not reach the file"));
        }
        thread::sleep(LOOK);
    }
}

fn milliseconds(took: Duration) -> f64 {
    took.as_secs_f64() * 1000.0
}

/// What has to happen for any change: two commits, each told to a listener that reads it, and a file.
struct Floor {
    notify: Notify,
    folder: PathBuf,
    written: Vec<f64>,
    removed: Vec<f64>,
}

impl Floor {
    async fn new(bench: &Bench) -> Result<Self, Box<dyn Error>> {
        let folder = bench.folder().join("one-file");
        fs::create_dir(&folder)?;
        let notify = Notify::new(bench).await?;
        Ok(Self { notify, folder, written: Vec::new(), removed: Vec::new() })
    }

    async fn turn(&mut self, changes: u32) -> Result<(), Box<dyn Error>> {
        for _ in 0..changes {
            sleep(PACE).await;
            let mut told = Duration::ZERO;
            for _ in 0..2 {
                told += self.notify.once(KEY).await?;
            }
            let (written, removed) = files::one(&self.folder, KEY)?;
            self.written.push(milliseconds(told + written));
            self.removed.push(milliseconds(told + removed));
        }
        Ok(())
    }
}

const METHOD: &str = "\
A member's only key is added and removed, again and again, while nothing else happens and the agent's poll
waits: from the begin of the registry's call in this process until the user's file is there, or gone, as
another thread sees it ten times a millisecond, and until the acknowledgement is stored. It goes through
the registry's commit, `NOTIFY`, `ssh-access`, its commit, `NOTIFY`, `site-api`, HTTPS, the agent, the
file and its folder made durable, HTTPS, the stored acknowledgement.

The two Sites, one with few keys in force and one with many, are measured in turns; a change should cost
the same at both. The floor, in turns with them: two commits one after the other, each a plain statement
whose `NOTIFY` wakes another connection that reads the row, over verified TLS, and one file written,
renamed, and made durable with its folder, or removed. Its folder has no other file.";
