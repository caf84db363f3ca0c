//! The memory that a snapshot takes on both sides: it must not grow with what is in force.

use std::{error::Error, fs, io};

use super::{
    Sites, THOUSAND,
    agent::{Agent, Folders, check},
    copy, grouped,
    site::SshSite,
};
use crate::bench::{
    figure::{Figure, Part, Target},
    world::Bench,
};

/// Peaks of fresh processes, in MiB.
struct Peaks {
    listener: f64,
    agent: f64,
}

pub(super) async fn measure(sites: &mut Sites<'_>) -> Result<Part, Box<dyn Error>> {
    let (bench, keys) = (sites.bench, sites.keys);
    let few = Peaks::of(bench, sites.with(THOUSAND).await?).await?;
    let many = Peaks::of(bench, sites.with(keys).await?).await?;
    let beside = |side: &str, many, few| {
        let name = format!("{side}, peak with {} keys beside {}", grouped(keys), grouped(THOUSAND));
        Figure::beside(name, many, "MiB", few).aiming_at(Target::AtMost(BOUNDED))
    };
    let figures = vec![
        beside("`site-api`", many.listener, few.listener),
        beside("`site-agent ssh-keys`", many.agent, few.agent),
    ];
    Ok(Part { title: "Memory", method: METHOD.to_owned(), figures })
}

/// A hundred times the keys, and no more than so much of the memory.
const BOUNDED: f64 = 2.0;

impl Peaks {
    async fn of(bench: &Bench, site: &SshSite) -> Result<Self, Box<dyn Error>> {
        let (_, rows) = copy::rows(bench, site).await?;
        let folders = Folders::new(bench.folder(), &format!("memory-{}", site.keys))?;
        let (listener, files) = site.another_listener().await?;
        let agent = Agent::start(&files, &folders)?;
        agent.attested().await?;
        let peaks = Self { listener: peak(listener.pid())?, agent: peak(agent.process.pid())? };
        drop(agent);
        check(&folders.read()?, &rows)?;
        folders.remove()?;
        Ok(peaks)
    }
}

/// The most resident memory that a process ever had, in MiB.
fn peak(pid: u32) -> io::Result<f64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes = line.and_then(|rest| rest.split_whitespace().next()?.parse::<f64>().ok());
    kibibytes.map(|kibibytes| kibibytes / 1024.0).ok_or_else(|| io::Error::other("no VmHWM"))
}

const METHOD: &str = "\
The highest resident memory (`VmHWM`) of a fresh `site-api` and a fresh agent, from their starts until a
snapshot is applied and attested: `site-api` has streamed it and read the set once more to compare, the
agent has written every file and read it back. Pages of the programs' own files count. Beside it stands
the same with a hundredth of the keys.";

#[cfg(test)]
mod tests {
    #[test]
    fn the_peak_of_a_process_is_read() {
        assert!(super::peak(std::process::id()).unwrap() > 1.0);
    }
}
