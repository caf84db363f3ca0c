//! `site-admin keys import`, and how long the keys take from the registry into the feed.

use std::{
    error::Error,
    fs::{self, File},
    io::{BufWriter, Write},
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use serde_json::json;
use ssh_access::{PublicKey, REGISTRY_ROLE};
use test_support::{TestDatabase, bin};
use tokio::task::spawn_blocking;
use tokio_postgres::Client;

use super::{
    Sites, grouped,
    site::{propagated, set_up, start_propagator},
};
use crate::bench::{
    commands::notify::connect,
    figure::{Figure, Part, Round, median},
    world::Bench,
};

/// Lines of the file; fewer in a quick run.
const LINES: u32 = 10_000;
/// Rows of one statement of the floor.
const BATCH: usize = 500;

pub(super) async fn measure(sites: &mut Sites<'_>) -> Result<Part, Box<dyn Error>> {
    let bench = sites.bench;
    let lines = if bench.quick { 700 } else { LINES };
    let file = bench.folder().join("keys.jsonl");
    write(&file, lines)?;
    let (mut imports, mut again, mut feeds) = (Vec::new(), Vec::new(), Vec::new());
    let floor = Floor::new(bench, &file).await?;
    for round in 0..if bench.quick { 1 } else { 3 } {
        let before = floor.run().await?;
        let database = bench.copy().await;
        let first = import(&database, &file, lines, true).await?;
        let floor = f64::midpoint(before, floor.run().await?);
        let rate = |took: Duration| f64::from(lines) / took.as_secs_f64();
        imports.push(Round { floor, value: rate(first) });
        again.push(rate(import(&database, &file, lines, false).await?));
        feeds.push(rate(feed(bench, &database, lines, round).await?));
        eprintln!(
            "round {round}: {:.0}/s, again {:.0}/s",
            imports[imports.len() - 1].value,
            again[again.len() - 1]
        );
    }
    let name = format!("`site-admin keys import` of {} keys, keys", grouped(lines));
    let figures = vec![
        Figure::of_rounds(name, "1/s", &imports),
        Figure::alone("the same file again, keys", median(&again), "1/s"),
        Figure::alone("from the registry into the feed, keys", median(&feeds), "1/s"),
    ];
    Ok(Part { title: "An import", method: METHOD.to_owned(), figures })
}

/// Lines of members with a key each.
fn write(file: &Path, lines: u32) -> Result<(), Box<dyn Error>> {
    let mut text = BufWriter::new(File::create(file)?);
    for number in 0..lines {
        let line =
            json!({ "memberId": format!("m{number}"), "publicKey": key(number)?.to_string() });
        writeln!(text, "{line}")?;
    }
    Ok(text.flush()?)
}

/// The n-th key.
fn key(number: u32) -> Result<PublicKey, Box<dyn Error>> {
    // The type and 32 bytes, each with its length before it, whose last four are the number.
    let mut blob = b"\0\0\0\x0bssh-ed25519\0\0\0\x20".to_vec();
    blob.extend([7; 28]);
    blob.extend(number.to_be_bytes());
    Ok(PublicKey::parse(&format!("ssh-ed25519 {}", base64(&blob)))?)
}

/// Base64 of bytes whose number is a multiple of three.
fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let groups = bytes.chunks_exact(3).flat_map(|group| {
        let bits = u32::from_be_bytes([0, group[0], group[1], group[2]]);
        [18, 12, 6, 0].map(|shift| char::from(ALPHABET[(bits >> shift) as usize & 63]))
    });
    groups.collect()
}

/// Imports the file; each line is to be told as new, or as known.
async fn import(
    database: &TestDatabase,
    file: &Path,
    lines: u32,
    new: bool,
) -> Result<Duration, Box<dyn Error>> {
    let mut command = Command::new(bin("site-admin"));
    command
        .args(["keys", "import"])
        .arg(file)
        .env("SSH_ACCESS_REGISTRY_DATABASE_URL", database.url(REGISTRY_ROLE.name));
    let begun = Instant::now();
    let output = spawn_blocking(move || command.output()).await??;
    let took = begun.elapsed();
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    let word = if new { ", new" } else { ", known" };
    let told = String::from_utf8(output.stdout)?;
    let told = told.lines().filter(|line| line.ends_with(word)).count();
    let stored: i64 = database
        .superuser()
        .await
        .query_one("SELECT count(*) FROM ssh_access.member_key WHERE removed_at IS NULL", &[])
        .await?
        .get(0);
    if told == lines as usize && stored == i64::from(lines) {
        return Ok(took);
    }
    Err(format!("void: {told} of {lines} lines were told{word}, {stored} keys are stored").into())
}

/// Gives each member a user, and has `ssh-access` bring all keys to the feed.
async fn feed(
    bench: &Bench,
    database: &TestDatabase,
    lines: u32,
    round: u32,
) -> Result<Duration, Box<dyn Error>> {
    let files = set_up(bench, database, &format!("bench-ssh-import-{round}"))?;
    let sql = database.superuser().await;
    let accounts = format!(
        "INSERT INTO ssh_access.site_account (site, member_id, unix_user)
         SELECT '{}', member_id, 'u' || substr(member_id, 2) FROM ssh_access.member;
         ANALYZE",
        files.site
    );
    sql.batch_execute(&accounts).await?;
    let begun = Instant::now();
    let propagator = start_propagator(&files.site, database)?;
    propagated(&sql, &propagator, &files.site, i64::from(lines)).await?;
    Ok(begun.elapsed())
}

/// Plain statements on a plain table with the registry's indexes.
struct Floor {
    client: Client,
    rows: Vec<[String; 4]>,
}

const SCHEMA: &str = "
    CREATE TABLE key (
        key_id text COLLATE \"C\" PRIMARY KEY,
        member_id text COLLATE \"C\" NOT NULL,
        public_key text NOT NULL,
        fingerprint text NOT NULL,
        added_at timestamptz NOT NULL DEFAULT clock_timestamp(),
        UNIQUE (member_id, fingerprint)
    );
    CREATE INDEX ON key (member_id, key_id)";
const INSERT: &str = "
    INSERT INTO key (key_id, member_id, public_key, fingerprint)
    SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[])";

impl Floor {
    async fn new(bench: &Bench, file: &Path) -> Result<Self, Box<dyn Error>> {
        let name = "floor_import";
        bench.database(name, SCHEMA).await?;
        let client = connect(bench, name, None).await?;
        let text = fs::read_to_string(file)?;
        let row = |line: &str| -> Result<[String; 4], Box<dyn Error>> {
            let line: serde_json::Value = serde_json::from_str(line)?;
            let text = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
            let key = PublicKey::parse(&text("publicKey"))?;
            let member = text("memberId");
            Ok([
                format!("key_{member:0>26}"),
                member,
                key.to_string(),
                key.fingerprint().to_string(),
            ])
        };
        let rows = text.lines().map(row).collect::<Result<_, _>>()?;
        Ok(Self { client, rows })
    }

    /// Rows a second into the empty table.
    async fn run(&self) -> Result<f64, Box<dyn Error>> {
        self.client.batch_execute("TRUNCATE key").await?;
        let insert = self.client.prepare(INSERT).await?;
        let begun = Instant::now();
        for rows in self.rows.chunks(BATCH) {
            let column = |at: usize| rows.iter().map(|row| row[at].as_str()).collect::<Vec<_>>();
            let columns = [0, 1, 2, 3].map(column);
            let [ids, members, keys, fingerprints] = &columns;
            let stored = self.client.execute(&insert, &[ids, members, keys, fingerprints]).await?;
            if stored != rows.len() as u64 {
                return Err("void: the floor stored another number of rows".into());
            }
        }
        Ok(self.rows.len() as f64 / begun.elapsed().as_secs_f64())
    }
}

const METHOD: &str = "\
A file with one line for each key, each of a member of its own, by `site-admin keys import` from the start
of its process to its end, into an empty registry; then the same file once more, which changes nothing.
The floor is a plain table with the same indexes: 500 rows a statement and commit, by a connection over
verified TLS that is there already. It checks no key, counts no member's keys, and tells nobody.

Then each member gets a user, by SQL, and `ssh-access` starts: from its start until the feed has a change
for each key.";
