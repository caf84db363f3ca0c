//! The lane `ssh`: a key from its addition to a real login, and every way in which it ends; with the agent
//! cut off, with everything killed that brings keys to the login node, and after an older database was
//! restored.
//!
//! docs/QUALIFICATION.md says how to read it.

mod acknowledged;
mod cut_off;
mod files;
mod restored;
mod roster;
mod sights;
mod storm;
mod story;
mod told;
mod watch;

use std::{
    error::Error,
    fs,
    hash::{BuildHasher, RandomState},
    io::stdout,
    path::Path,
    time::Duration,
};

use chrono::{DateTime, Utc};
use clap::Args;
use test_support::{
    Random, bin, openssh,
    postgres::{Cluster, Machine, Options, migrated_database},
};
use tokio::time::{Instant, sleep};

use crate::{
    claim::{self, Claim},
    ssh_site::{DATABASE, KeyAdmin, SshSite, SshSiteSetup},
    step::{self, command, root},
    stop::{Stop, Stopped},
};

use acknowledged::{acknowledged, connect, runs_since};
use cut_off::RECOVERS_WITHIN;
use files::UNMANAGED;
use roster::{MEMBERS, Roster};
use sights::Sights;
use storm::Storm;
use story::Story;
use watch::{Watch, Watched};

/// How many violations are told.
const MOST_TOLD: usize = 20;
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(50);

#[derive(Args)]
pub(crate) struct Arguments {
    /// How long keys change while everything is killed and cut
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(5..=86_400))]
    seconds: u32,
    /// The seed of the faults' order and of the changes; without it each run takes another, and prints
    /// it
    #[arg(long)]
    seed: Option<u64>,
    /// One JSON object a claim, on standard output
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(stop: &Stop, arguments: Arguments) -> Result<(), Box<dyn Error>> {
    step::run(stop, command("cargo", &["build", "--workspace", "--bins"])).await?;
    let seed = arguments.seed.unwrap_or_else(|| RandomState::new().hash_one(0) >> 32);
    let length = Duration::from_secs(arguments.seconds.into());
    // Not interrupted: a package is installed whole.
    let machine = Machine::of_this_process(&root().join("target"));
    let installation = machine.postgres(|what| eprintln!("{what}"))?;
    openssh::Search::of_this_process().find_or_install(|what| eprintln!("{what}"))?;
    let folder = tempfile::Builder::new().prefix("site-control-ssh-").tempdir()?;
    let options = Options { durable: true, ..Options::default() };
    let cluster = stop.unless(Cluster::start(&installation, options)).await??;
    let mut lane = stop.unless(Lane::set_up(folder.path(), cluster, seed)).await??;
    eprintln!("\n== a cut-off Site beside {length:?} of faults by the seed {seed}");
    let found = lane.play(stop, folder.path(), seed, length).await;
    let found = found.inspect_err(|error| {
        if !error.is::<Stopped>() {
            eprintln!("\n{}\n{}", lane.site.tails(), lane.cut.tails());
        }
    })?;
    let ok = claim::write(&mut stdout().lock(), &found.claims, arguments.json)?;
    tell(&found.sights, &found.watched);
    if !ok {
        eprintln!("\n{}\n{}", lane.site.tails(), lane.cut.tails());
    }
    let Lane { site, cut, cluster, .. } = lane;
    drop((site, cut));
    cluster.stop().await?;
    if ok {
        Ok(())
    } else {
        Err(format!("a promise was broken; --seed {seed} has the same order again").into())
    }
}

/// Everything that runs.
struct Lane {
    /// Where keys change and programs are killed.
    site: SshSite,
    /// Whose agent is cut off meanwhile.
    cut: SshSite,
    admin: KeyAdmin,
    cluster: Cluster,
}

/// What a run found.
struct Found {
    claims: Vec<Claim>,
    sights: Sights,
    watched: Watched,
}

impl Lane {
    async fn set_up(
        folder: &Path,
        mut cluster: Cluster,
        seed: u64,
    ) -> Result<Self, Box<dyn Error>> {
        migrated_database(&mut cluster, DATABASE, &bin("site-admin")).await?;
        let users = [&story::USERS[..], &MEMBERS, &restored::USERS].concat();
        let setup = SshSiteSetup {
            name: "login-lab",
            users: &users,
            administrators: &story::ADMINISTRATORS,
            propagators: 2,
            seed,
        };
        let site = SshSite::set_up(&folder.join("site"), &cluster, &setup).await?;
        let setup = SshSiteSetup {
            name: "far-lab",
            users: &cut_off::USERS,
            administrators: &cut_off::ADMINISTRATORS,
            propagators: 1,
            seed,
        };
        let cut = SshSite::set_up(&folder.join("cut"), &cluster, &setup).await?;
        let admin = KeyAdmin::of(&cluster);
        Ok(Self { site, cut, admin, cluster })
    }

    /// The two Sites at once: what the one waits for takes nearly a window.
    async fn play(
        &mut self,
        stop: &Stop,
        folder: &Path,
        seed: u64,
        length: Duration,
    ) -> Result<Found, Box<dyn Error>> {
        let keys = folder.join("keys");
        fs::create_dir(&keys)?;
        let Self { site, cut, admin, cluster } = self;
        let watch = Watch::begin(&site.sshd.keys_folder(), now);
        let (far, near) = (folder.join("far-keys"), &keys);
        fs::create_dir(&far)?;
        let of_the_cut = async { stop.unless(cut_off::play(cut, admin, &far, now)).await? };
        let of_the_rest = async {
            let (admin, claims) = (&*admin, Vec::new());
            let untouched = None;
            let mut story =
                Story { site, cluster, admin, keys: near, clock: now, claims, untouched };
            stop.unless(story.play()).await??;
            let (claims, untouched) = (story.claims, story.untouched);
            let mut roster = Roster::set_up(admin, site.name(), near).await?;
            let (random, seen) = (Random::from_seed(seed), Sights::default());
            let mut storm = Storm { site, cluster, admin, random, seen };
            // What was found until then counts, also where nothing goes on.
            if let Err(error) = storm.rage(stop, &mut roster, length).await {
                stopped(error.as_ref())?;
                storm.seen.unsettled.push(error.to_string());
            }
            Ok::<_, Box<dyn Error>>((claims, untouched, roster, storm.seen))
        };
        let (of_the_cut, of_the_rest) = tokio::join!(of_the_cut, of_the_rest);
        let (mut claims, untouched, mut roster, mut sights) = of_the_rest?;
        found(&mut claims, "cut off: everything can be looked at", of_the_cut)?;
        claims.extend(sights.claims(roster.changes));
        let untouched = untouched.ok_or("the story left no key in force")?;
        claims.push(stop.unless(told::renewed(&site.sshd, story::ANN, &untouched)).await??);
        let of_the_copy = async { stop.unless(restored::play(site, cluster, admin, &keys)).await? };
        found(&mut claims, "an older database: everything can be looked at", of_the_copy.await)?;
        claims.push(stop.unless(attested(site, cluster)).await??);
        let roll = stop.unless(roster.call(&site.sshd)).await??;
        let figure = format!("{} let in, {} refused", roll.let_in, roll.refused);
        let claim = "in the end everything in force lets in, and nothing else";
        claims.push(Claim::new(claim, figure, roll.wrong.is_empty()));
        sights.ended.extend(site.ended());
        let figure = format!("{} ended", sights.ended.len());
        claims.push(Claim::new("no program ends by itself", figure, sights.ended.is_empty()));
        let watched = watch.end();
        claims.extend(of_the_files(&watched, &site.sshd.keys_folder())?);
        Ok(Found { claims, sights, watched })
    }
}

/// Takes the claims of a part; where it came to no end, that is one that failed.
fn found(
    claims: &mut Vec<Claim>,
    part: &str,
    of_the_part: Result<Vec<Claim>, Box<dyn Error>>,
) -> Result<(), Stopped> {
    match of_the_part {
        Ok(more) => claims.extend(more),
        Err(error) => {
            stopped(error.as_ref())?;
            claims.push(Claim::new(part, error.to_string(), false));
        }
    }
    Ok(())
}

/// Whether it was the user who ended it.
fn stopped(error: &(dyn Error + 'static)) -> Result<(), Stopped> {
    if error.is::<Stopped>() { Err(Stopped) } else { Ok(()) }
}

/// In the end the Site has attested what is in force in the older database, which runs since it was put
/// back.
async fn attested(site: &SshSite, cluster: &Cluster) -> Result<Claim, Box<dyn Error>> {
    let client = connect(cluster).await?;
    let (since, began) = (runs_since(&client).await?, Instant::now());
    loop {
        let stored = acknowledged(&client, site.name(), &since).await?;
        let matches = stored.matches && stored.seq == stored.head;
        if matches || began.elapsed() > RECOVERS_WITHIN {
            let figure = format!("{} of {} changes acknowledged", stored.seq, stored.head);
            let claim = "in the end the Site attests what is in force";
            return Ok(Claim::new(claim, figure, matches));
        }
        sleep(PAUSE).await;
    }
}

/// What the watch saw, and what is left when everything is quiet.
fn of_the_files(watched: &Watched, folder: &Path) -> Result<Vec<Claim>, Box<dyn Error>> {
    let Watched { looks, files, half_written, faults } = watched;
    let figure = format!("{files} files in {looks} looks, {} not whole", faults.len());
    let claim = "each file is whole at each moment, and ends within the window";
    let whole = Claim::new(claim, figure, faults.is_empty() && *files > 0);
    let left = files::look(folder)?.iter().filter(|file| file.name.starts_with('.')).count();
    let figure = format!("{half_written} were met on the way, {left} are left");
    let nothing = Claim::new("nothing that is half written is left", figure, left == 0);
    let kept = fs::read_to_string(folder.join(UNMANAGED))?;
    let same = kept.starts_with("# kept by hand\n");
    let figure = format!("{} lines", kept.lines().count());
    let kept = Claim::new("the file that is not the agent's is there to the end", figure, same);
    Ok(vec![whole, nothing, kept])
}

fn tell(sights: &Sights, watched: &Watched) {
    let mut violations = sights.violations().chain(&watched.faults).peekable();
    if violations.peek().is_some() {
        eprintln!("\n  VIOLATED:");
        violations.take(MOST_TOLD).for_each(|one| eprintln!("    {one}"));
    }
}

/// The clock that sshd on this machine compares with.
#[expect(clippy::disallowed_methods, reason = "ends are moments of the machine's clock")]
fn now() -> DateTime<Utc> {
    Utc::now()
}
