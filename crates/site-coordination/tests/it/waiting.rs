//! Long polls: woken by a hint, released, and without a connection meanwhile. `tick.rs` has the tick.

use std::{future::pending, sync::Arc, time::Duration};

use chrono::{DateTime, Utc};
use database::{Pool, PoolLimits};
use site_coordination::{
    API_ROLE, Environment, Page, PollError, PollRequest, Producer, RuntimeSide, SiteId, Wakeups,
};
use test_support::eventually;
use tokio::{
    sync::oneshot,
    task::JoinHandle,
    time::{Instant, timeout},
};
use tokio_postgres::Client;

use crate::support::{
    Fixture, LONG, SITE, SLURM, after, command, count, seq, slurm, store, stream, taken_over,
    writer,
};

/// A tick that no test lives to see: only hints wake.
const NEVER: Duration = Duration::from_secs(86_400);

const LISTENER: &str = "SELECT pid FROM pg_stat_activity
    WHERE datname = current_database() AND query LIKE 'LISTEN %' AND state = 'idle'";

/// When the newest read of a page that is over began.
const NEWEST_READ: &str = "SELECT max(query_start) FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = $1 AND state = 'idle'
      AND query LIKE '%-- The commands after a sequence%'";

pub(crate) type Poll = JoinHandle<Result<Page, PollError>>;

/// A Runtimes' side whose wake-ups are fed.
pub(crate) struct Fed {
    runtime: Arc<RuntimeSide>,
    wakeups: Wakeups,
    /// The name of the runtime's pool.
    name: &'static str,
    pub(crate) sql: Client,
    feeding: JoinHandle<()>,
}

impl Fed {
    /// Its pool has `connections`; feeding takes another and one that listens.
    pub(crate) async fn start(fixture: &Fixture, tick: Duration, connections: usize) -> Self {
        let wakeups = Wakeups::new(SiteId::parse(SITE).unwrap()).with_tick(tick);
        // The tick has a pool of its own, so that `NEWEST_READ` stays visible.
        let feeding = tokio::spawn(wakeups.clone().run(fixture.api_pool(1)));
        let runtime = Arc::new(RuntimeSide::new(fixture.api_pool(connections), wakeups.clone()));
        let fed = Self { runtime, wakeups, name: "test", feeding, sql: fixture.sql().await };
        fed.listener_besides(0).await;
        fed
    }

    /// Another one with the same wake-ups, whose reads are told apart.
    async fn beside(&self, fixture: &Fixture) -> Self {
        let name = "beside";
        let pool = Pool::new(&fixture.url(API_ROLE.name), name, PoolLimits::default());
        let runtime = Arc::new(RuntimeSide::new(pool, self.wakeups.clone()));
        let (wakeups, feeding) = (self.wakeups.clone(), tokio::spawn(async {}));
        Self { runtime, wakeups, name, feeding, sql: fixture.sql().await }
    }

    /// Waits for a listening backend that is not `old`, and returns its process id.
    pub(crate) async fn listener_besides(&self, old: i32) -> i32 {
        eventually(LONG, "a backend that listens", async || {
            let found = self.sql.query_opt(LISTENER, &[]).await.unwrap();
            found.map(|row| row.get(0)).filter(|pid| *pid != old)
        })
        .await
    }

    async fn newest_read(&self) -> Option<DateTime<Utc>> {
        let row = self.sql.query_one(NEWEST_READ, &[&self.name]).await.unwrap();
        row.get::<_, Option<std::time::SystemTime>>(0).map(DateTime::from)
    }

    /// Starts a poll that waits twice `LONG` after `number`, and returns once its first read is
    /// over: what is enqueued from now on has to wake it.
    pub(crate) async fn parked(&self, environment: Environment, number: i64) -> Poll {
        self.parked_until(environment, number, pending()).await
    }

    /// The same, with what releases it.
    async fn parked_until(
        &self,
        environment: Environment,
        number: i64,
        release: impl Future<Output = ()> + Send + 'static,
    ) -> Poll {
        self.parked_with(environment, PollRequest { wait: LONG * 2, ..after(number) }, release)
            .await
    }

    /// The same of any question.
    async fn parked_with(
        &self,
        environment: Environment,
        request: PollRequest,
        release: impl Future<Output = ()> + Send + 'static,
    ) -> Poll {
        let before = self.newest_read().await;
        let runtime = Arc::clone(&self.runtime);
        let parked = tokio::spawn(async move { runtime.poll(environment, request, release).await });
        eventually(LONG, "the poll's first read", async || {
            (self.newest_read().await > before).then_some(())
        })
        .await;
        assert!(!parked.is_finished());
        parked
    }
}

impl Drop for Fed {
    fn drop(&mut self) {
        self.feeding.abort();
    }
}

/// The page of a poll that ends before its wait.
async fn page(poll: impl Future<Output = <Poll as Future>::Output>) -> Page {
    timeout(LONG, poll).await.expect("the poll is still parked").unwrap().unwrap()
}

/// Enqueues `key` and lets the poll that is parked before its place answer with it.
pub(crate) async fn enqueue_reaches(producer: &Producer, poll: Poll, key: &str) {
    let enqueued = producer.enqueue(&slurm(), command(key)).await.unwrap();
    let page = page(poll).await;
    assert_eq!(page.commands.len(), 1);
    assert_eq!(page.commands[0].id, enqueued.id);
}

#[tokio::test]
async fn a_hint_wakes_a_parked_poll() {
    let fixture = Fixture::create().await;
    let fed = Fed::start(&fixture, NEVER, 2).await;
    let producer = fixture.producer(2);
    // The first may also be woken by the listener's start; the others by nothing but their hint.
    for number in 0..5 {
        let poll = fed.parked(SLURM, number).await;
        enqueue_reaches(&producer, poll, &format!("k{number}")).await;
    }
}

#[tokio::test]
async fn what_was_enqueued_while_nobody_listened_is_found_by_the_new_listener() {
    let fixture = Fixture::create().await;
    let fed = Fed::start(&fixture, NEVER, 2).await;
    let producer = fixture.producer(2);
    let poll = fed.parked(SLURM, 0).await;
    let listener = fed.listener_besides(0).await;
    let database = fixture.database.name();
    let sql = &fed.sql;
    let lock = format!("REVOKE CONNECT ON DATABASE {database} FROM site_coordination_api");
    sql.batch_execute(&lock).await.unwrap();
    sql.execute("SELECT pg_terminate_backend($1, 60000)", &[&listener]).await.unwrap();

    producer.enqueue(&slurm(), command("unheard")).await.unwrap();
    producer.flush_hints().await;
    assert_eq!(sql.query(LISTENER, &[]).await.unwrap().len(), 0);
    assert!(!poll.is_finished());

    let unlock = format!("GRANT CONNECT ON DATABASE {database} TO site_coordination_api");
    sql.batch_execute(&unlock).await.unwrap();
    assert_eq!(page(poll).await.commands.len(), 1);
    fed.listener_besides(listener).await;
    let poll = fed.parked(SLURM, 1).await;
    enqueue_reaches(&producer, poll, "heard").await;
}

#[tokio::test]
async fn hints_of_other_streams_and_other_sites_leave_a_poll_parked() {
    let fixture = Fixture::create().await;
    let fed = Fed::start(&fixture, NEVER, 1).await;
    let producer = fixture.producer(1);
    let k8s = fed.beside(&fixture).await;
    // The start of the listener wakes everybody once; when a second hint got through, it is over.
    for number in 0..2 {
        let poll = fed.parked(SLURM, number).await;
        enqueue_reaches(&producer, poll, &format!("k{number}")).await;
    }
    producer.flush_hints().await;
    let mut parked = None;
    for number in 0..4 {
        // Hints arrive in order: those before it have arrived when this poll was woken by its own.
        let poll = k8s.parked(Environment::K8s, number).await;
        for other in [stream("north-2", SLURM), stream(SITE, Environment::K8s)] {
            producer.enqueue(&other, command(&format!("k{number}"))).await.unwrap();
            producer.flush_hints().await;
        }
        assert_eq!(page(poll).await.commands.len(), 1);
        match &parked {
            None => parked = Some((fed.parked(SLURM, 2).await, fed.newest_read().await)),
            Some((_, read)) => {
                assert_eq!(fed.newest_read().await, *read, "the poll was woken for nothing");
            }
        }
    }
    enqueue_reaches(&producer, parked.unwrap().0, "mine").await;
}

#[tokio::test]
async fn a_parked_poll_holds_no_connection() {
    let fixture = Fixture::create().await;
    let ids = fixture.filled(1).await;
    let fed = Fed::start(&fixture, NEVER, 1).await;
    let slurm_poll = fed.parked(SLURM, 1).await;
    let k8s_poll = fed.parked(Environment::K8s, 0).await;
    let busy = "SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND usename = 'site_coordination_api'
          AND (state <> 'idle' OR xact_start IS NOT NULL)";
    assert_eq!(count(&fed.sql, busy).await, 0);
    // The pool's only connection serves others meanwhile.
    for _ in 0..3 {
        store(&fed.runtime, &ids[0], "1").await.unwrap();
    }
    let connections = "SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND usename = 'site_coordination_api'";
    assert_eq!(count(&fed.sql, connections).await, 2, "the pool's and the listener's");
    assert!(!slurm_poll.is_finished() && !k8s_poll.is_finished());
    slurm_poll.abort();
    k8s_poll.abort();
}

#[tokio::test]
async fn a_release_ends_a_parked_poll_with_an_empty_page() {
    let fixture = Fixture::create().await;
    fixture.filled(1).await;
    let fed = Fed::start(&fixture, NEVER, 2).await;
    let (release, released) = oneshot::channel::<()>();
    let poll = fed.parked_until(SLURM, 1, async { released.await.unwrap() }).await;
    release.send(()).unwrap();
    let page = page(poll).await;
    assert!(page.commands.is_empty() && !page.superseded);
    assert_eq!((page.next_after, page.last_seq), (seq(1), seq(1)));
}

#[tokio::test]
async fn a_later_poll_of_the_stream_supersedes_the_parked_one() {
    let fixture = Fixture::create().await;
    let fed = Fed::start(&fixture, NEVER, 2).await;
    let other_stream = fed.parked(Environment::K8s, 0).await;
    let mut first = fed.parked(SLURM, 0).await;
    let mut second = fed.parked(SLURM, 0).await;
    // Both have asked the database; either may have its answer first, and the other is the later.
    let (superseded, last) = tokio::select! {
        ended = page(&mut first) => (ended, second),
        ended = page(&mut second) => (ended, first),
    };
    assert!(superseded.superseded && superseded.commands.is_empty());
    // A read without a wait is a later poll as well.
    let third = fed.runtime.poll(SLURM, after(0), pending()).await.unwrap();
    assert!(!third.superseded);
    assert!(page(last).await.superseded);
    assert!(!other_stream.is_finished());
    other_stream.abort();
}

#[tokio::test]
async fn a_refused_poll_supersedes_nobody() {
    let fixture = Fixture::create().await;
    let fed = Fed::start(&fixture, NEVER, 2).await;
    let parked = fed.parked(SLURM, 0).await;
    for request in [after(999), PollRequest { writer: writer(7), ..after(0) }] {
        fed.runtime.poll(SLURM, request, pending()).await.unwrap_err();
    }
    // Were it released, it would be before this enqueue, and without a command.
    fixture.producer(1).enqueue(&slurm(), command("k1")).await.unwrap();
    let page = page(parked).await;
    assert!(page.commands.len() == 1 && !page.superseded);
}

#[tokio::test]
async fn a_poll_that_has_commands_is_not_superseded() {
    let fixture = Fixture::create().await;
    fixture.filled(1).await;
    let runtime = Arc::new(fixture.runtime());
    let polls: Vec<Poll> = (0..8)
        .map(|_| {
            let runtime = Arc::clone(&runtime);
            let request = PollRequest { wait: LONG, ..after(0) };
            tokio::spawn(async move { runtime.poll(SLURM, request, pending()).await })
        })
        .collect();
    for poll in polls {
        let page = page(poll).await;
        assert!(page.commands.len() == 1 && !page.superseded);
    }
}

#[tokio::test]
async fn a_wait_ends_with_an_empty_page() {
    let fixture = Fixture::create().await;
    fixture.filled(1).await;
    let wait = Duration::from_millis(200);
    let begun = Instant::now();
    let page =
        fixture.runtime().poll(SLURM, PollRequest { wait, ..after(1) }, pending()).await.unwrap();
    assert!(begun.elapsed() >= wait);
    assert!(page.commands.is_empty() && !page.superseded);
    assert_eq!(page.last_seq, seq(1));
}

#[tokio::test]
async fn a_take_over_is_told_at_once_to_a_parked_poll() {
    let fixture = Fixture::create().await;
    fixture.filled(1).await;
    let fed = Fed::start(&fixture, NEVER, 1).await;
    let other_stream = fed.parked(Environment::K8s, 0).await;
    // At this process, and at another, of which only a hint tells.
    for (number, elsewhere) in [(2, false), (3, true)] {
        let request = PollRequest { writer: writer(number - 1), wait: LONG * 2, ..after(1) };
        let parked = fed.parked_with(SLURM, request, pending()).await;
        if elsewhere {
            taken_over(&fixture.runtime(), number).await;
        } else {
            taken_over(&fed.runtime, number).await;
        }
        let refusal =
            timeout(LONG, parked).await.expect("it is still parked").unwrap().unwrap_err();
        assert!(
            matches!(refusal, PollError::StaleGeneration { current } if current.get() == number),
            "{refusal:?}"
        );
    }
    assert!(!other_stream.is_finished());
    other_stream.abort();
}

#[tokio::test]
async fn a_cancel_wakes_a_poll_that_waits_for_cancels_alone_and_a_command_does_not() {
    let fixture = Fixture::create().await;
    let ids = fixture.filled(1).await;
    let fed = Fed::start(&fixture, NEVER, 1).await;
    let producer = fixture.producer(1);
    let request = PollRequest { limit: 0, wait: LONG * 2, ..after(0) };
    let parked = fed.parked_with(SLURM, request, pending()).await;
    let read = fed.newest_read().await;
    producer.enqueue(&slurm(), command("k2")).await.unwrap();
    eventually(LONG, "another read", async || (fed.newest_read().await > read).then_some(())).await;
    assert!(!parked.is_finished());
    producer.cancel(&slurm(), &ids[0]).await.unwrap();
    let page = page(parked).await;
    assert_eq!((page.cancelled.len(), page.cancel_rev), (1, 1));
    assert!(page.commands.is_empty());
}
