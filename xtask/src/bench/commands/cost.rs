//! What processes cost while nothing happens: memory, processor, connections and transactions.

use std::{error::Error, fs, io, time::Duration};

use test_support::process::Process;
use tokio::time::{Instant, sleep};
use tokio_postgres::Client;

use crate::bench::world::{Bench, DATABASE};

/// Connections that a busy moment opened are closed after a minute.
const SETTLED_WITHIN: Duration = Duration::from_secs(80);

/// The cost of some processes together, over a window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    /// Resident memory, in MiB: what is shared with others counts in each.
    pub(crate) resident_mib: f64,
    /// Of it what no file is behind.
    pub(crate) anonymous_mib: f64,
    /// Resident memory, in MiB, where what is shared counts once.
    pub(crate) shared_once_mib: f64,
    /// Of the processor.
    pub(crate) seconds_a_minute: f64,
    /// To the database.
    pub(crate) connections: f64,
    /// Of the database.
    pub(crate) transactions_a_second: f64,
}

/// Waits until the processes hold no more than two connections each, and then measures them.
///
/// The database's own upkeep counts as transactions too, so it rests meanwhile.
pub(crate) async fn measure(bench: &Bench, processes: &[&Process]) -> Result<Cost, Box<dyn Error>> {
    // From beside the database: what we ask counts elsewhere.
    let admin = bench.cluster().superuser("postgres").await?;
    rest(&admin, "SET autovacuum = off").await?;
    let measured = measure_now(bench, &admin, processes).await;
    rest(&admin, "RESET autovacuum").await?;
    measured
}

async fn rest(admin: &Client, setting: &str) -> Result<(), tokio_postgres::Error> {
    // Each by itself: the first can't stand in a transaction.
    admin.execute(&format!("ALTER SYSTEM {setting}"), &[]).await?;
    admin.execute("SELECT pg_reload_conf()", &[]).await?;
    Ok(())
}

async fn measure_now(
    bench: &Bench,
    admin: &Client,
    processes: &[&Process],
) -> Result<Cost, Box<dyn Error>> {
    let window = if bench.quick { Duration::from_secs(2) } else { Duration::from_secs(45) };
    let settled_by = Instant::now() + if bench.quick { Duration::ZERO } else { SETTLED_WITHIN };
    while connections(admin).await? > 2 * processes.len() as i64 && Instant::now() < settled_by {
        sleep(Duration::from_secs(1)).await;
    }
    let (begun, before) = (Instant::now(), transactions(admin).await?);
    let busy_before = total(processes, busy)?;
    sleep(window).await;
    let (took, after) = (begun.elapsed().as_secs_f64(), transactions(admin).await?);
    let busy = total(processes, busy)? - busy_before;
    let rollup = |field| total(processes, |pid| memory(pid, field));
    Ok(Cost {
        resident_mib: rollup("Rss:")?,
        anonymous_mib: rollup("Anonymous:")?,
        shared_once_mib: rollup("Pss:")?,
        seconds_a_minute: busy / took * 60.0,
        connections: connections(admin).await? as f64,
        transactions_a_second: (after - before) as f64 / took,
    })
}

/// Of listeners, to the database of the product.
async fn connections(admin: &Client) -> Result<i64, tokio_postgres::Error> {
    let sql = "SELECT count(*) FROM pg_stat_activity
                WHERE datname = $1 AND application_name = 'site-api'";
    Ok(admin.query_one(sql, &[&DATABASE]).await?.get(0))
}

async fn transactions(admin: &Client) -> Result<i64, tokio_postgres::Error> {
    let sql = "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = $1";
    Ok(admin.query_one(sql, &[&DATABASE]).await?.get(0))
}

fn total(processes: &[&Process], of: impl Fn(u32) -> io::Result<f64>) -> io::Result<f64> {
    processes.iter().map(|process| of(process.pid())).sum()
}

/// A field of `smaps_rollup`, in MiB.
pub(crate) fn memory(pid: u32, field: &str) -> io::Result<f64> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))?;
    let line = text.lines().find_map(|line| line.strip_prefix(field));
    let kibibytes = line.and_then(|rest| rest.split_whitespace().next()?.parse::<f64>().ok());
    kibibytes
        .map(|kibibytes| kibibytes / 1024.0)
        .ok_or_else(|| io::Error::other(format!("smaps_rollup of {pid} has no {field}")))
}

/// How long all threads of a process have run on a processor, in seconds. The clock of `stat` counts
/// hundredths only.
fn busy(pid: u32) -> io::Result<f64> {
    let mut nanoseconds = 0.0;
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        // A thread may have ended since; an idle one had nothing to do.
        let Ok(text) = fs::read_to_string(task?.path().join("schedstat")) else { continue };
        nanoseconds += text.split(' ').next().and_then(|first| first.parse().ok()).unwrap_or(0.0);
    }
    Ok(nanoseconds / 1e9)
}
