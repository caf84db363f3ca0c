//! The agent, the Site API and PostgreSQL, each the real one.

use std::{
    fs,
    time::{Duration, Instant},
};

use chrono::{DateTime, Utc};
use database::{Pool, PoolLimits};
use rustix::process::Signal;
use serde_json::Value;
use site_coordination::{
    CommandId, CommandKind, CommandSummary, Environment, JsonText, NewCommand, Producer,
    ProducerKey, RunId, Seq, SiteId, Stream, VoidNote, VoidReason,
};
use test_support::{DatabaseUrls, Process, TestDatabase, TestSite, eventually};

use crate::{
    LONG,
    agent::{exit_code, wait_for_event, wait_for_receipt},
};

struct Real {
    site: TestSite,
    site_api: Option<Process>,
    producer: Producer,
    database: TestDatabase,
    folder: tempfile::TempDir,
}

impl Real {
    async fn start() -> Self {
        let database = TestDatabase::create().await;
        let urls = DatabaseUrls {
            api: database.url("site_coordination_api"),
            producer: database.url("site_coordination_producer"),
        };
        let folder = tempfile::tempdir().unwrap();
        let site = TestSite::set_up(folder.path(), "lab", "slurm", urls.clone()).unwrap();
        let site_api = Some(site.start_site_api().await.unwrap());
        let producer = producer(&urls.producer);
        Self { site, site_api, producer, database, folder }
    }

    /// An agent with a state folder of this name, whose handler is a shell script with `$SEQ`,
    /// `$TRY` and `$DIR`.
    fn agent(&self, state: &str, script: &str) -> Process {
        let handler = self.folder.path().join("handler.sh");
        let script = format!(
            "#!/bin/sh\n\
             IFS= read -r INPUT || exit 1\n\
             SEQ=${{INPUT#*'\"seq\":'}}; SEQ=${{SEQ%%,*}}\n\
             TRY=${{INPUT#*'\"try\":'}}; TRY=${{TRY%%,*}}\n{script}\n"
        );
        fs::write(&handler, script).unwrap();
        let mut command = self.site.agent_command("/bin/sh".as_ref());
        command.arg(handler).arg("--state").arg(self.folder.path().join(state));
        // The one of the test's site goes first.
        let arguments: Vec<_> = command.get_args().map(std::ffi::OsStr::to_owned).collect();
        let place = arguments.iter().position(|argument| argument == "--state").unwrap();
        let kept = arguments.iter().enumerate();
        let kept = kept.filter(|(at, _)| !(place..place + 2).contains(at)).map(|(_, kept)| kept);
        let mut agent = std::process::Command::new(command.get_program());
        agent.args(kept).envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        agent.env("DIR", self.folder.path());
        Process::start(agent).unwrap()
    }

    /// Enqueues a command of a Run.
    async fn enqueue(&self, key: &str, not_after: Option<DateTime<Utc>>) -> CommandId {
        let command = NewCommand {
            key: ProducerKey::parse(key).unwrap(),
            kind: CommandKind::parse("job.submit").unwrap(),
            run_id: Some(RunId::parse("run-1").unwrap()),
            not_after,
            body: JsonText::parse("{}").unwrap(),
        };
        self.producer.enqueue(&stream(), command).await.unwrap().id
    }

    async fn show(&self, id: &CommandId) -> CommandSummary {
        self.producer.show(&stream(), id).await.unwrap().unwrap()
    }

    /// Waits for the result of a command and gives it.
    async fn result(&self, id: &CommandId) -> Value {
        eventually(LONG, "a result", async || {
            let result = self.show(id).await.result?;
            serde_json::from_str(result.body?.as_str()).ok()
        })
        .await
    }

    /// The outcome of every command, in order.
    async fn outcomes(&self) -> Vec<Option<String>> {
        let commands = self.producer.list(&stream(), Seq::ZERO, 1_000).await.unwrap();
        let outcome = |command: CommandSummary| {
            command.result.map(|result| result.outcome.as_str().to_owned())
        };
        commands.into_iter().map(outcome).collect()
    }

    fn lines(&self, name: &str) -> Vec<String> {
        let text = fs::read_to_string(self.folder.path().join(name)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    async fn wait_for_lines(&self, name: &str, count: usize) {
        let there = async || (self.lines(name).len() >= count).then_some(());
        eventually(LONG, &format!("{count} lines in {name}"), there).await;
    }

    async fn stop_site_api(&mut self) {
        let site_api = self.site_api.take().unwrap();
        site_api.signal(Signal::TERM);
        site_api.wait_exit(LONG).await.unwrap();
    }

    async fn start_site_api(&mut self) {
        self.site_api = Some(self.site.start_site_api().await.unwrap());
    }
}

fn stream() -> Stream {
    Stream { site: SiteId::parse("lab").unwrap(), environment: Environment::Slurm }
}

fn producer(url: &str) -> Producer {
    Producer::new(Pool::new(&url.parse().unwrap(), "agent tests", PoolLimits::default()))
}

#[tokio::test]
async fn a_second_agent_takes_the_stream_over_and_nothing_is_lost_or_run_twice_as_one_try() {
    let real = Real::start().await;
    let mut ids = Vec::new();
    for number in 1..=30 {
        ids.push(real.enqueue(&format!("key-{number}"), None).await);
    }
    // A handler that is ended has not run.
    let script = "sleep 0.05; echo $SEQ $TRY >> $DIR/runs; echo $SEQ";
    let first = real.agent("first", script);
    real.wait_for_lines("runs", 5).await;
    let second = real.agent("second", script);
    assert_eq!(exit_code(&first).await, Some(76), "{}", first.tail());
    wait_for_event(&first, "alarm.name", "taken_over").await;
    for (id, seq) in ids.iter().zip(1..) {
        assert_eq!(real.result(id).await["output"], seq);
    }
    // The last of the first agent may have been done and not stored: then it ran in both.
    let runs = real.lines("runs");
    let repeated = runs.len() - 30;
    assert!(repeated <= 1, "{runs:?}\n{}\n{}", first.tail(), second.tail());
    let mut distinct = runs.clone();
    distinct.dedup();
    assert_eq!(distinct, (1..=30).map(|seq| format!("{seq} 1")).collect::<Vec<_>>());
    assert!(second.exit().is_none());
}

#[tokio::test]
async fn a_parked_agent_that_is_taken_over_learns_it_at_once() {
    let real = Real::start().await;
    let first = real.agent("first", "echo 1");
    let id = real.enqueue("key-1", None).await;
    real.result(&id).await;
    wait_for_event(&first, "message", "command.answered").await;
    let since = Instant::now();
    let _second = real.agent("second", "echo 2");
    assert_eq!(exit_code(&first).await, Some(76));
    assert!(since.elapsed() < Duration::from_secs(15), "a poll is parked for 25 s");
}

#[tokio::test]
async fn a_restored_older_database_does_not_stop_the_agent_nor_run_a_handler_again() {
    let mut real = Real::start().await;
    let agent = real.agent(
        "state",
        "echo $SEQ >> $DIR/runs; printf secret-$SEQ > $SITE_AGENT_OUTPUT_FILE; echo $$",
    );
    for key in ["key-1", "key-2"] {
        let id = real.enqueue(key, None).await;
        real.result(&id).await;
    }
    real.stop_site_api().await;
    let backup = real.database.backup().await;
    real.start_site_api().await;
    let mut since = Vec::new();
    for key in ["key-3", "key-4", "key-5"] {
        let id = real.enqueue(key, None).await;
        since.push((id.clone(), real.result(&id).await));
    }
    wait_for_receipt(&agent, 5).await;
    real.stop_site_api().await;
    real.database.restore(&backup).await;
    real.start_site_api().await;
    // The producer enqueues again what it had enqueued since, in another order, and more.
    for key in ["key-4", "key-3", "key-7", "key-5"] {
        real.enqueue(key, None).await;
    }
    for (id, result) in since {
        assert_eq!(real.result(&id).await, result, "it is from the journal");
    }
    let new = real.enqueue("key-8", None).await;
    real.result(&new).await;
    assert_eq!(real.outcomes().await, vec![Some("succeeded".to_owned()); 7]);
    // The first five and, at later places, the two that are new.
    assert_eq!(real.lines("runs"), ["1", "2", "3", "4", "5", "5", "7"]);
    assert!(agent.exit().is_none(), "{}", agent.tail());
    wait_for_event(&agent, "message", "runtime.recovering").await;
}

#[tokio::test]
async fn a_running_handler_is_cancelled_long_before_its_watch_would_ask_again() {
    let real = Real::start().await;
    let script = "[ $SEQ = 2 ] && { echo 2; exit; }
        echo up > $DIR/up; sleep 1000 & wait";
    let _agent = real.agent("state", script);
    let id = real.enqueue("key-1", None).await;
    let next = real.enqueue("key-2", None).await;
    real.wait_for_lines("up", 1).await;
    let since = Instant::now();
    real.producer.cancel(&stream(), &id).await.unwrap();
    let result = real.result(&id).await;
    assert_eq!((&result["outcome"], &result["detail"]), (&"failed".into(), &"cancelled".into()));
    // A watch waits 25 s for a cancel; without a wake-up it would learn of it only then.
    assert!(since.elapsed() < Duration::from_secs(5), "{:?}", since.elapsed());
    assert_eq!(real.result(&next).await["outcome"], "succeeded");
}

#[tokio::test]
async fn a_void_under_a_running_handler_is_taken_for_its_ending() {
    let real = Real::start().await;
    let script = "[ $SEQ = 2 ] && { echo 2; exit; }
        echo up > $DIR/up; while [ ! -e $DIR/go ]; do sleep 0.05; done";
    let agent = real.agent("state", script);
    let id = real.enqueue("key-1", None).await;
    let next = real.enqueue("key-2", None).await;
    real.wait_for_lines("up", 1).await;
    let note = VoidNote::parse("it hangs").unwrap();
    real.producer.void(&stream(), &id, &note).await.unwrap();
    fs::write(real.folder.path().join("go"), "").unwrap();
    assert_eq!(real.result(&next).await["outcome"], "succeeded");
    wait_for_event(&agent, "message", "command.voided").await;
    assert!(real.show(&id).await.result.is_none());
}

#[tokio::test]
async fn a_command_that_expires_before_its_turn_is_not_run() {
    let real = Real::start().await;
    let _agent = real.agent("state", "echo $SEQ >> $DIR/runs; [ $SEQ = 1 ] && sleep 2; echo 1");
    let first = real.enqueue("key-1", None).await;
    let created_at = real.show(&first).await.created_at;
    let soon = created_at + chrono::Duration::seconds(1);
    let late = real.enqueue("key-2", Some(soon)).await;
    let last = real.enqueue("key-3", Some(created_at + chrono::Duration::hours(1))).await;
    real.result(&last).await;
    let late = real.show(&late).await;
    assert_eq!(late.voided.unwrap().reason, VoidReason::Expired);
    assert_eq!(real.lines("runs"), ["1", "3"]);
}

#[tokio::test]
async fn a_private_output_is_stored_before_the_result_that_names_it() {
    let real = Real::start().await;
    let _agent = real.agent("state", "printf secret > $SITE_AGENT_OUTPUT_FILE; echo 1");
    let id = real.enqueue("key-1", None).await;
    let named = real.result(&id).await["privateOutput"].as_str().unwrap().to_owned();
    assert_eq!(named, site_client::output_digest(b"secret").to_string());
    let stored = real.database.superuser().await;
    let sql = "SELECT bytes, encode(digest, 'hex') FROM site_coordination.private_output";
    let rows = stored.query(sql, &[]).await.unwrap();
    let [row] = &rows[..] else { panic!("{rows:?}") };
    assert_eq!((row.get::<_, &[u8]>(0), row.get::<_, String>(1)), (&b"secret"[..], named));
}
