//! The lane `authority`: what a Run may do and who may see its output, with everything real around
//! `site-api` but the cluster's API server; then the same with what is needed taken away again and
//! again, and what answers killed.
//!
//! docs/QUALIFICATION.md says how to read it.

mod storm;
mod story;
mod timeline;

use std::{
    error::Error,
    hash::{BuildHasher, RandomState},
    io::stdout,
    time::Duration,
};

use clap::Args;
use test_support::{
    postgres::{Cluster, Machine, Options},
    rabbitmq,
};

use crate::{
    claim::{self, Claim},
    step::{self, command, root},
    stop::Stop,
    surroundings::{BETO_SECONDS, Surroundings},
};

use timeline::{Bounds, Finding, History, Told, check, counts};

/// How many violations of one rule are told.
const MOST_TOLD: usize = 20;

#[derive(Args)]
pub(crate) struct Arguments {
    /// How long things are taken away and killed
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(5..=86_400))]
    seconds: u32,
    /// The seed of their order; without it each run takes another, and prints it
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
    rabbitmq::Search::of_this_process().find_or_install(|what| eprintln!("{what}"))?;
    let folder = tempfile::Builder::new().prefix("site-control-authority-").tempdir()?;
    let options = Options { durable: true, ..Options::default() };
    let cluster = stop.unless(Cluster::start(&installation, options)).await??;
    let mut all = stop.unless(Surroundings::set_up(folder.path(), cluster)).await??;
    let mut claims = stop.unless(story::play(&mut all)).await??;
    if claims.iter().any(|claim| !claim.ok) {
        eprintln!("\nsite-api:\n{}", all.site_api.tail());
    }
    eprintln!("\n== {length:?} of faults by the seed {seed}");
    let history = storm::rage(stop, &mut all, seed, length).await?;
    let bounds = Bounds { unavailable_within: Duration::from_secs(BETO_SECONDS + 3) };
    let findings = check(&history, &bounds);
    claims.extend(findings.iter().map(claim_of));
    claims.extend(totals(&history));
    let ok = claim::write(&mut stdout().lock(), &claims, arguments.json)?;
    tell(&findings);
    all.outside.cluster.stop().await?;
    if ok {
        Ok(())
    } else {
        Err(format!("a promise was broken; --seed {seed} has the same order again").into())
    }
}

fn claim_of(finding: &Finding) -> Claim {
    let figure = format!("{} requests, {} against it", finding.tested, finding.violations.len());
    Claim::new(&finding.rule, figure, finding.tested > 0 && finding.violations.is_empty())
}

/// How often each question was told what; a yes and a no have to be among it.
fn totals(history: &History) -> Vec<Claim> {
    let counts = counts(history);
    let sum = |is: fn(&Told) -> bool| -> usize {
        counts.iter().filter(|((_, told), _)| is(told)).map(|(_, count)| count).sum()
    };
    let (yes, no) = (sum(|told| *told == Told::Yes), sum(|told| matches!(told, Told::No(_))));
    let unavailable = sum(|told| matches!(told, Told::Unavailable(_)));
    let none = sum(|told| *told == Told::NoAnswer);
    let figure = format!("{yes} yes, {no} no, {unavailable} unavailable, {none} without an answer");
    vec![Claim::new(
        "there were answers of each kind",
        figure,
        yes > 0 && no > 0 && unavailable > 0,
    )]
}

fn tell(findings: &[Finding]) {
    for finding in findings.iter().filter(|finding| !finding.violations.is_empty()) {
        eprintln!("\n  VIOLATED: {}", finding.rule);
        finding.violations.iter().take(MOST_TOLD).for_each(|one| eprintln!("    {one}"));
        let more = finding.violations.len().saturating_sub(MOST_TOLD);
        if more > 0 {
            eprintln!("    and {more} more");
        }
    }
}
