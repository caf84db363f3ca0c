//! What a listener costs while nothing happens, and how soon it answers after its start.

use std::{
    error::Error,
    net::SocketAddr,
    path::Path,
    process::Command,
    sync::Arc,
    time::{Duration, Instant},
};

use rustls::{ClientConfig, pki_types::ServerName};
use site_client::roots_from_pem_file;
use site_coordination::Environment;
use test_support::process::{LastSignal, Process, free_port};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinHandle,
    time::{sleep, timeout},
};
use tokio_rustls::{TlsConnector, client::TlsStream};

use super::{
    bare_server,
    cost::{self, Cost},
    linked::LinkedRuntime,
};
use crate::bench::{
    figure::{Figure, Part, Round, Target, median},
    world::{Bench, BenchSite},
};

/// How long a process may take to its first answer before the run fails.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);

pub(crate) async fn measure(bench: &Bench) -> Result<Part, Box<dyn Error>> {
    let site = bench.site("bench-footprint", Environment::Slurm).await?;
    let trust = Trust::in_file(&site.site.file("tls/ca.crt"))?;
    let mut figures = starts(bench, &site, &trust).await?;

    let bare = bare(&site)?;
    let mut held = trust.first_answer(bare.listen, "/").await?;
    let floor = cost::memory(bare.process.pid(), "Rss:")?;
    let alone = cost::measure(bench, &[&site.listener]).await?;
    let polling = Polling::start(LinkedRuntime::new(site.client().await?));
    let polled = cost::measure(bench, &[&site.listener]).await?;
    polling.still()?;
    held.shutdown().await?;

    figures.push(
        Figure::alone("an idle listener with a waiting poll, resident", polled.resident_mib, "MiB")
            .aiming_at(Target::AtMost(15.0)),
    );
    figures.push(Figure::beside(
        "resident memory beside a bare TLS server",
        polled.resident_mib,
        "MiB",
        floor,
    ));
    figures.extend(of_cost("an idle listener with a waiting poll", polled));
    figures.extend(of_cost("an idle listener without a poll", alone));
    Ok(Part { title: "An idle listener", method: METHOD.to_owned(), figures })
}

fn of_cost(name: &str, cost: Cost) -> [Figure; 4] {
    let alone = |what: &str, value, unit| Figure::alone(format!("{name}, {what}"), value, unit);
    [
        alone("memory without a file behind", cost.anonymous_mib, "MiB"),
        alone("database connections", cost.connections, "").aiming_at(Target::AtMost(2.0)),
        alone("transactions", cost.transactions_a_second, "1/s").aiming_at(Target::AtMost(1.0)),
        alone("processor", cost.seconds_a_minute, "s/min"),
    ]
}

/// From the start of a process to its first answer, in turns with the bare server.
async fn starts(
    bench: &Bench,
    site: &BenchSite,
    trust: &Trust,
) -> Result<Vec<Figure>, Box<dyn Error>> {
    let poll = format!(
        "/v1/site/commands/?after=0 HTTP/1.1\r\nauthorization: Bearer {}\r\nruntime-generation: 1",
        site.site.bearer()?
    );
    let (mut probes, mut polls) = (Vec::new(), Vec::new());
    for _ in 0..if bench.quick { 1 } else { 15 } {
        let begun = Instant::now();
        let bare = bare(site)?;
        trust.first_answer(bare.listen, "/").await?;
        let floor = milliseconds(begun);

        let listen = SocketAddr::from(([127, 0, 0, 1], free_port()?));
        let mut command = site.site.site_api_command();
        command.env("SITE_API_LISTEN", listen.to_string());
        command.env("SITE_API_METRICS_LISTEN", "127.0.0.1:0");
        let begun = Instant::now();
        let process = started(command)?;
        let mut stream = trust.first_answer(listen, "/healthz").await?;
        probes.push(Round { floor, value: milliseconds(begun) });
        ask(&mut stream, &poll).await?;
        polls.push(milliseconds(begun));
        drop(process);
    }
    let values: Vec<f64> = probes.iter().map(|round| round.value).collect();
    let target = Target::AtMost(300.0);
    Ok(vec![
        Figure::alone("from the start to the first answer", median(&values), "ms")
            .aiming_at(target),
        Figure::of_rounds("the first answer beside a bare TLS server", "ms", &probes),
        Figure::alone("from the start to the first poll's answer", median(&polls), "ms")
            .aiming_at(target),
    ])
}

fn milliseconds(begun: Instant) -> f64 {
    begun.elapsed().as_secs_f64() * 1000.0
}

/// A running bare server.
struct Bare {
    process: Process,
    listen: SocketAddr,
}

fn bare(site: &BenchSite) -> Result<Bare, Box<dyn Error>> {
    let listen = SocketAddr::from(([127, 0, 0, 1], free_port()?));
    let (certificate, key) = (site.site.file("tls/tls.crt"), site.site.file("tls/tls.key"));
    let process = started(bare_server::command(listen, &certificate, &key)?)?;
    Ok(Bare { process, listen })
}

fn started(command: Command) -> std::io::Result<Process> {
    Process::start_ending_by(command, LastSignal::Kill)
}

/// What vouches for the servers.
struct Trust(TlsConnector);

impl Trust {
    fn in_file(path: &Path) -> Result<Self, Box<dyn Error>> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots_from_pem_file(path)?)
            .with_no_client_auth();
        Ok(Self(TlsConnector::from(Arc::new(config))))
    }

    /// Asks a process that is starting, as soon as it listens; its connection stays open.
    async fn first_answer(
        &self,
        address: SocketAddr,
        path: &str,
    ) -> Result<TlsStream<TcpStream>, Box<dyn Error>> {
        let tcp = async {
            loop {
                match TcpStream::connect(address).await {
                    Ok(stream) => return stream,
                    Err(_) => sleep(Duration::from_millis(1)).await,
                }
            }
        };
        let tcp = timeout(ANSWER_WITHIN, tcp).await?;
        let mut stream = self.0.connect(ServerName::try_from("localhost")?, tcp).await?;
        ask(&mut stream, &format!("{path} HTTP/1.1")).await?;
        Ok(stream)
    }
}

/// Sends a GET and reads the answer, which has to be a 200.
async fn ask(stream: &mut TlsStream<TcpStream>, request: &str) -> Result<(), Box<dyn Error>> {
    stream.write_all(format!("GET {request}\r\nhost: localhost\r\n\r\n").as_bytes()).await?;
    stream.flush().await?;
    let mut answer = Vec::new();
    while !is_whole(&answer) {
        if stream.read_buf(&mut answer).await? == 0 {
            return Err("the connection ended before the answer".into());
        }
    }
    if answer.starts_with(b"HTTP/1.1 200 ") {
        return Ok(());
    }
    Err(format!("not answered: {}", String::from_utf8_lossy(&answer)).into())
}

/// Whether an answer with a `content-length` is all there.
fn is_whole(answer: &[u8]) -> bool {
    let text = String::from_utf8_lossy(answer).to_ascii_lowercase();
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.split("\r\n").find_map(|line| line.strip_prefix("content-length:"));
    length.and_then(|length| length.trim().parse().ok()).is_none_or(|length| body.len() >= length)
}

/// A Runtime whose poll always waits.
pub(crate) struct Polling(JoinHandle<String>);

impl Polling {
    pub(crate) fn start(mut runtime: LinkedRuntime) -> Self {
        Self(tokio::spawn(async move {
            loop {
                match runtime.poll(64).await {
                    Ok(page) => runtime.read(page),
                    Err(error) => return error.to_string(),
                }
            }
        }))
    }

    /// Fails where it did not go well.
    pub(crate) fn still(&self) -> Result<(), Box<dyn Error>> {
        if self.0.is_finished() { Err("a poll that should wait has failed".into()) } else { Ok(()) }
    }
}

impl Drop for Polling {
    fn drop(&mut self) {
        self.0.abort();
    }
}

const METHOD: &str = "\
One `site-api` for one Site, on a warm database over verified TLS. From the start to the first answer:
from the moment before the process is started to the whole answer to `/healthz`, and to a poll right
after it, over a TLS connection of its own; the port is tried each millisecond. The floor is a server of
`tokio-rustls` that knows one answer and asks nobody anything, started and asked in the same way, in
turns.

Idle is 45 seconds in which nothing happens, once the connections that the start needed are closed
again, without anybody who polls and with a Runtime's poll that waits. Resident memory counts all pages
of the process, those of its program's file too; the floor for it is the same bare server with one
connection. Transactions are those that PostgreSQL counts for the whole database, while its own upkeep
(autovacuum) rests; processor is user and system time of all threads.";
