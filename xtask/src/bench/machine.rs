//! The machine that the figures belong to.

use std::{
    error::Error,
    fmt, fs,
    fs::File,
    io::{self, Seek, Write},
    path::Path,
    time::{Duration, Instant},
};

use super::world::Bench;

/// How long the disk is measured.
const DISK: Duration = Duration::from_secs(2);

/// What a reader needs to know of it.
pub(crate) struct Machine {
    processor: String,
    cores: usize,
    memory_mib: u64,
    kernel: String,
    postgres: String,
    settings: Vec<(String, String)>,
    syncs: f64,
}

impl Machine {
    /// Reads `/proc` and asks the cluster, and measures the disk that the cluster is on.
    pub(crate) async fn of(bench: &Bench) -> Result<Self, Box<dyn Error>> {
        let cpu = fs::read_to_string("/proc/cpuinfo")?;
        let memory = fs::read_to_string("/proc/meminfo")?;
        let database = bench.superuser().await?;
        let version: String = database.query_one("SHOW server_version", &[]).await?.get(0);
        // Those that decide about commits, memory and the writing of the log.
        let names = "SELECT name, current_setting(name) FROM pg_settings WHERE name IN (
            'fsync', 'synchronous_commit', 'full_page_writes', 'wal_sync_method', 'shared_buffers',
            'max_wal_size', 'checkpoint_timeout', 'max_connections') ORDER BY name";
        let rows = database.query(names, &[]).await?;
        let kibibytes =
            field(&memory, "MemTotal").and_then(|text| text.split(' ').next()?.parse().ok());
        Ok(Self {
            processor: field(&cpu, "model name").unwrap_or("unknown").to_owned(),
            cores: std::thread::available_parallelism()?.get(),
            memory_mib: kibibytes.unwrap_or(0_u64) / 1024,
            kernel: fs::read_to_string("/proc/sys/kernel/osrelease")?.trim().to_owned(),
            postgres: version,
            settings: rows.iter().map(|row| (row.get(0), row.get(1))).collect(),
            syncs: syncs_a_second(bench.folder())?,
        })
    }
}

/// The value of the first line `name : value`.
fn field<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim())
    })
}

/// How often a second a block of 8 KiB is written over and durable, as `pg_test_fsync` measures
/// `fdatasync`.
fn syncs_a_second(folder: &Path) -> io::Result<f64> {
    let mut file = tempfile::tempfile_in(folder)?;
    let block = [0x5a; 8192];
    let write = |file: &mut File| {
        file.rewind()?;
        file.write_all(&block)?;
        file.sync_data()
    };
    write(&mut file)?;
    let (begun, mut count) = (Instant::now(), 0_u32);
    while begun.elapsed() < DISK {
        write(&mut file)?;
        count += 1;
    }
    Ok(f64::from(count) / begun.elapsed().as_secs_f64())
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| | |\n|---|---|")?;
        writeln!(f, "| processor | {}, {} cores seen |", self.processor, self.cores)?;
        writeln!(f, "| memory | {} MiB |", self.memory_mib)?;
        writeln!(f, "| kernel | Linux {} |", self.kernel)?;
        writeln!(
            f,
            "| disk | {:.0} writes of 8 KiB a second, each durable by `fdatasync` |",
            self.syncs
        )?;
        write!(f, "| PostgreSQL | {}", self.postgres)?;
        for (name, value) in &self.settings {
            write!(f, ", `{name}={value}`")?;
        }
        writeln!(f, " |")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_of_proc_is_found_by_its_whole_name() {
        let text = "model\t\t: 106\nmodel name\t: Some CPU @ 2 GHz\n";
        assert_eq!(field(text, "model name"), Some("Some CPU @ 2 GHz"));
        assert_eq!(field(text, "name"), None);
    }
}
