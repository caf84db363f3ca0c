//! A hostile caller takes nothing from another Runtime: not its time, and not its way in.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};

use database::{DatabaseUrl, Pool, PoolLimits};
use site_coordination::{
    CommandKind, Environment, JsonText, NewCommand, Producer, ProducerKey, SiteId, Stream,
};
use test_support::{Process, Random};
use tokio::{net::TcpStream, sync::watch, task::JoinSet, time::timeout};

use crate::support::{Api, LONG, Place, Request, SITE, Wire};

/// How long deliveries are measured, with and without the attack.
const MEASURED: Duration = Duration::from_secs(8);
/// Between two deliveries, so that the poll waits when its command comes.
const PAUSE: Duration = Duration::from_millis(10);
/// So many places the listener has, and the attack wants three times as many.
const PLACES: usize = 400;

/// A Runtime that keeps its connection and has a poll under way at all times.
struct Runtime<'a> {
    api: &'a Api,
    connection: crate::support::Connection,
    after: u64,
}

impl<'a> Runtime<'a> {
    async fn connect(api: &'a Api) -> Self {
        Self { api, connection: api.wire.open().await, after: 0 }
    }

    async fn ask(&mut self) {
        let poll = self.api.poll(&format!("after={}&wait=25", self.after));
        self.connection.write(&poll.without("connection").bytes()).await;
    }

    /// Waits for the answer that has the command with this place.
    async fn receive(&mut self, seq: u64) {
        let answer = self.connection.answer().await.expect("its connection is kept");
        let page = answer.json();
        assert_eq!(answer.status, 200, "{page}");
        self.after = page["nextAfter"].as_u64().unwrap();
        assert_eq!(self.after, seq, "{page}");
    }
}

/// Puts commands into the stream as a process of its own would.
struct Enqueuer {
    producer: Producer,
    stream: Stream,
    next: AtomicU64,
}

impl Enqueuer {
    fn of(place: &Place) -> Self {
        let url: DatabaseUrl =
            place.database.url("site_coordination_producer").parse().ok().unwrap();
        let pool = Pool::new(&url, "test", PoolLimits::default());
        let stream = Stream { site: SiteId::parse(SITE).unwrap(), environment: Environment::Slurm };
        Self { producer: Producer::new(pool), stream, next: AtomicU64::new(1) }
    }

    async fn enqueue(&self) -> u64 {
        let key = format!("k{}", self.next.fetch_add(1, Ordering::Relaxed));
        let command = NewCommand {
            key: ProducerKey::parse(&key).unwrap(),
            kind: CommandKind::parse("test").unwrap(),
            run_id: None,
            not_after: None,
            body: JsonText::parse("{}").unwrap(),
        };
        self.producer.enqueue(&self.stream, command).await.unwrap().seq.to_u64()
    }
}

/// How long deliveries take, from before the enqueue to the whole answer.
#[derive(Debug)]
struct Deliveries {
    median: Duration,
    worst: Duration,
}

async fn measure(runtime: &mut Runtime<'_>, enqueuer: &Enqueuer) -> Deliveries {
    let mut times = Vec::new();
    let start = Instant::now();
    while start.elapsed() < MEASURED {
        runtime.ask().await;
        tokio::time::sleep(PAUSE).await;
        let began = Instant::now();
        let seq = enqueuer.enqueue().await;
        runtime.receive(seq).await;
        times.push(began.elapsed());
    }
    times.sort_unstable();
    Deliveries { median: times[times.len() / 2], worst: times[times.len() - 1] }
}

/// What the hostile callers know.
#[derive(Clone)]
struct Target {
    wire: Wire,
    /// Another listener on the same database, for a Site whose bearer they have.
    neighbour: Wire,
    /// The bearer of that Site, and a bearer of this one for another purpose.
    bearers: [String; 2],
}

/// Runs the attack on a thread of its own until it is dropped.
struct Attack {
    stop: Option<watch::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
    done: [&'static AtomicU64; 4],
}

impl Attack {
    fn begin(target: Target, random: &mut Random) -> Self {
        let seeds: Vec<Random> = (0..4).map(|_| random.split()).collect();
        let counter = || -> &'static AtomicU64 { Box::leak(Box::new(AtomicU64::new(0))) };
        let done = [counter(), counter(), counter(), counter()];
        let (stop, mut stopped) = watch::channel(());
        let thread = thread::spawn(move || {
            // Real ones have machines of their own: this thread takes what the others leave.
            rustix::process::nice(19).unwrap();
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async move {
                let mut attackers = JoinSet::new();
                for _ in 0..2 * PLACES {
                    attackers.spawn(half_open(target.wire.clone(), done[0]));
                }
                for _ in 0..PLACES {
                    attackers.spawn(slow_heads(target.wire.clone(), done[1]));
                }
                for bearer in target.bearers.clone() {
                    attackers.spawn(slow_bodies(target.wire.clone(), bearer, done[2]));
                }
                for (random, wire) in seeds.into_iter().zip([
                    &target.wire,
                    &target.neighbour,
                    &target.neighbour,
                    &target.neighbour,
                ]) {
                    let bearer = target.bearers[0].clone();
                    attackers.spawn(cut_polls(wire.clone(), bearer, random, done[3]));
                }
                let _gone = stopped.changed().await;
            });
        });
        Self { stop: Some(stop), thread: Some(thread), done }
    }

    fn done(&self) -> Vec<u64> {
        self.done.iter().map(|count| count.load(Ordering::Relaxed)).collect()
    }
}

impl Drop for Attack {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ended = thread.join();
        }
    }
}

/// Connects, says nothing, and connects again when it is cut.
async fn half_open(wire: Wire, done: &AtomicU64) {
    loop {
        if let Ok(stream) = TcpStream::connect(wire.address()).await {
            done.fetch_add(1, Ordering::Relaxed);
            let _cut = timeout(LONG, stream.readable()).await;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

/// Sends a head one byte a second.
async fn slow_heads(wire: Wire, done: &AtomicU64) {
    loop {
        if let Ok(mut connection) = wire.try_open().await {
            done.fetch_add(1, Ordering::Relaxed);
            for byte in b"GET /v1/site/commands/" {
                connection.write(&[*byte]).await;
                if timeout(Duration::from_secs(1), connection.maybe_answer()).await.is_ok() {
                    break;
                }
            }
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

/// Announces a body and does not send it.
async fn slow_bodies(wire: Wire, bearer: String, done: &AtomicU64) {
    loop {
        if let Ok(mut connection) = wire.try_open().await {
            done.fetch_add(1, Ordering::Relaxed);
            let target = format!("/v1/site/commands/cmd_{}/result", "0".repeat(32));
            let request = Request::new("PUT", &target)
                .bearer(&bearer)
                .header("runtime-generation", "1")
                .header("content-type", "application/json")
                .body(&[b' '; 1000]);
            connection.write(&request.body_left_out()).await;
            let _refused = timeout(Duration::from_secs(5), connection.maybe_answer()).await;
        }
    }
}

/// Polls, hangs up at a random moment, and polls again.
async fn cut_polls(wire: Wire, bearer: String, mut random: Random, done: &AtomicU64) {
    loop {
        if let Ok(mut connection) = wire.try_open().await {
            done.fetch_add(1, Ordering::Relaxed);
            let poll = Request::new("GET", "/v1/site/commands/?after=0&wait=25")
                .bearer(&bearer)
                .header("runtime-generation", "1");
            connection.write(&poll.bytes()).await;
            let patience = random.duration(Duration::from_millis(30));
            let _answer = timeout(patience, connection.maybe_answer()).await;
        }
    }
}

/// A second Site on the same database, with a listener of its own.
async fn neighbour(api: &Api) -> (Process, Wire) {
    let mut command = api.place.command();
    command.env("SITE_API_SITE_ID", "south-1");
    let process = Process::start(command).unwrap();
    let line = process
        .wait_for_line("that it listens", LONG, |line| line.contains("\"site_api.listening\""))
        .await
        .unwrap();
    let event: serde_json::Value = serde_json::from_str(&line).unwrap();
    let address = event["site_api.listen"].as_str().unwrap().parse().unwrap();
    (process, Wire::to(address, &api.place.site.file("tls/ca.crt")))
}

/// It needs the machine for itself: what is measured are milliseconds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kills_no_time_of_another_runtime() {
    let mut random = Random::of_this_test();
    let place = Place::prepare().await;
    let south =
        place.issue(&["--scope", "commands", "--site", "south-1", "--environment", "slurm"]);
    let agent = place.issue(&["--scope", "ssh-access", "--site", "north-1"]);
    let mut command = place.command();
    command.env("SITE_API_MAX_CONNECTIONS", PLACES.to_string());
    let api = place.start_by(command).await;
    api.listening_for_hints().await;
    let (_process, neighbour) = neighbour(&api).await;
    let enqueuer = Enqueuer::of(&api.place);
    let mut runtime = Runtime::connect(&api).await;

    let alone = measure(&mut runtime, &enqueuer).await;
    let target = Target { wire: api.wire.clone(), neighbour, bearers: [south, agent] };
    let attack = Attack::begin(target, &mut random);
    until_full(&api).await;
    let attacked = measure(&mut runtime, &enqueuer).await;
    let told = format!("alone {alone:?}, attacked {attacked:?}, attack {:?}", attack.done());
    show(&told);
    // The floor of what is compared keeps a quick machine from failing for nothing. A hint that is
    // lost costs a second, and so does a connection that has to be made anew.
    let floor = |measured: Duration, least_ms| measured.max(Duration::from_millis(least_ms));
    assert!(attacked.median < 8 * floor(alone.median, 3), "{told}");
    assert!(attacked.worst < 8 * floor(alone.worst, 60), "{told}");
    // It went on all the time, and beyond what the listener has places for.
    let done = attack.done();
    assert!(done[0] > PLACES as u64 && done.iter().all(|count| *count > 0), "{told}");

    // One whose connection broke gets in as well.
    for _ in 0..10 {
        let began = Instant::now();
        let answer = api.send(&api.poll("after=0&limit=1")).await;
        assert_eq!(answer.status, 200);
        assert!(began.elapsed() < Duration::from_secs(3), "it took {:?}", began.elapsed());
    }
}

#[expect(clippy::print_stdout, reason = "figures for whoever runs the test by hand")]
fn show(figures: &str) {
    println!("{figures}");
}

/// Returns when the listener has had to cut somebody.
async fn until_full(api: &Api) {
    test_support::eventually(LONG, "a full listener", async || {
        let metrics = crate::support::plain(api.admin, &Request::new("GET", "/metrics")).await;
        metrics.text().contains("connections_ended_total{end=\"evicted\"}").then_some(())
    })
    .await;
}
