//! `cargo xtask bench ssh`: members' keys on their way to a Site, measured on everything that is real:
//! a durable PostgreSQL, `ssh-access`, `site-api`, TLS, `site-agent ssh-keys` and its files.

mod agent;
mod changes;
mod copy;
mod files;
mod import;
mod memory;
mod site;
mod snapshot;

use std::error::Error;

use clap::{Args, ValueEnum};

use self::site::SshSite;
use super::{figure::Part, report::Report, world::Bench};
use crate::stop::Stop;

/// What the figures are about.
const KEYS: u32 = 100_000;
/// What the memory for them is held against, and the cost of a change.
const THOUSAND: u32 = 1_000;
const FEW: u32 = 10;

#[derive(Args)]
pub(crate) struct Ssh {
    /// One object a line, `{"figure", "value", "unit", "floor", "ratio"}`, in place of tables
    #[arg(long)]
    json: bool,
    /// Few keys, with the programs as they are built: shows that it works and measures nothing
    #[arg(long, conflicts_with = "keys")]
    quick: bool,
    /// Keys that are in force. With another number than 100,000 no page is written
    #[arg(long, default_value_t = KEYS, value_parser = clap::value_parser!(u32).range(2_000..=1_000_000))]
    keys: u32,
    /// Measures these parts only, and writes no page
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Subject>,
}

/// What is measured, in the order of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Subject {
    /// `site-admin keys import`, and how long its keys take into the feed
    Import,
    /// Everything that is in force, from the database into the files of a new agent
    Snapshot,
    /// The memory that a snapshot takes on both sides
    Memory,
    /// From the registry's call to the file, and to its acknowledgement
    Changes,
}

impl Ssh {
    pub(crate) fn quick(&self) -> bool {
        self.quick
    }
}

pub(crate) async fn run(stop: &Stop, ssh: &Ssh) -> Result<(), Box<dyn Error>> {
    // Ended like this, everything that was started ends with its values.
    stop.unless(measure(ssh)).await?
}

async fn measure(ssh: &Ssh) -> Result<(), Box<dyn Error>> {
    let bench = Bench::start(ssh.quick).await?;
    let mut report = Report::new(ssh.json);
    let mut sites = Sites {
        bench: &bench,
        keys: if ssh.quick { 2 * THOUSAND } else { ssh.keys },
        known: Vec::new(),
    };
    for subject in Subject::value_variants() {
        if !ssh.only.is_empty() && !ssh.only.contains(subject) {
            continue;
        }
        report.tell(subject.measure(&mut sites).await?)?;
    }
    if !ssh.quick && ssh.only.is_empty() && ssh.keys == KEYS {
        report.write("ssh", INTRODUCTION, &bench).await?;
    }
    Ok(())
}

impl Subject {
    async fn measure(self, sites: &mut Sites<'_>) -> Result<Part, Box<dyn Error>> {
        match self {
            Self::Import => import::measure(sites).await,
            Self::Snapshot => snapshot::measure(sites).await,
            Self::Memory => memory::measure(sites).await,
            Self::Changes => changes::measure(sites).await,
        }
    }
}

/// The Sites of a run, each made when it is first asked for. What a Site has in force costs time to
/// make, so that all subjects share it.
struct Sites<'b> {
    bench: &'b Bench,
    /// How many keys the largest has in force.
    keys: u32,
    known: Vec<SshSite>,
}

impl Sites<'_> {
    /// The Site with so many keys in force.
    async fn with(&mut self, keys: u32) -> Result<&SshSite, Box<dyn Error>> {
        if !self.known.iter().any(|site| site.keys == keys) {
            self.known.push(SshSite::start(self.bench, keys).await?);
        }
        self.known(keys)
    }

    /// The same, of one that was asked for before.
    fn known(&self, keys: u32) -> Result<&SshSite, Box<dyn Error>> {
        let known = self.known.iter().find(|site| site.keys == keys);
        known.ok_or_else(|| format!("no Site has {keys} keys in force").into())
    }
}

/// A number as a person reads it: `100,000`.
fn grouped(number: u32) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

const INTRODUCTION: &str = "\
Only ratios carry over to another machine. A figure stands beside its floor where it has one, measured in
turns with it in the same minutes. The ratio of rounds is their median; the lowest and the highest say how
quiet the machine was. Each key is an ed25519 key of a member of its own with a user of its own, so that
there are as many files as keys: the most work that so many keys can be. They came into the feed by
`ssh-access` itself. After each run every file is compared with what the database has in force, and one
key more, less or different makes the run void. Each Site has a database of its own, in one cluster, on
the disk that the files are on. Targets are for the ratio, or for the value where there is no floor.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_a_comma_before_each_three_digits() {
        assert_eq!(
            [7, 999, 1_000, 100_000, 1_234_567].map(grouped).join(" "),
            "7 999 1,000 100,000 1,234,567"
        );
    }
}
