//! A Site with its real programs, one for each test, and short ways to say what the tests are
//! about.

mod authority;
mod cases;
mod gate;
mod http;
mod kubernetes;
mod ssh_access;

use std::{fs, net::SocketAddr, process::Command, time::Duration};

use ring::digest::{SHA256, digest};
use serde_json::Value;
use tempfile::TempDir;
use test_support::{DatabaseUrls, Process, TestDatabase, TestSite, eventually};
use tokio_postgres::Client;

pub(crate) use authority::{MEMBER, PASSWORD, PROJECT, RUN, changed, run_document};
pub(crate) use cases::{CASES, Caller, Case, SSH_CASES};
pub(crate) use gate::Gate;
pub(crate) use http::{Answer, Connection, Request, Wire, plain, plain_bytes};
pub(crate) use kubernetes::{ADMISSION, Cluster, NAMESPACE, OURS, POD, RUNTIME, STRANGER, subject};

/// Longer than anything takes on a machine that does something else as well.
pub(crate) const LONG: Duration = Duration::from_secs(60);

pub(crate) const SITE: &str = "north-1";

/// Ids as two Runtimes could make them.
pub(crate) const FIRST_SESSION: &str = "the-first-session-0000";
pub(crate) const SECOND_SESSION: &str = "the-second-session-000";

/// A migrated database, a certificate and a native bearer: all that `site-api` needs to start.
pub(crate) struct Place {
    pub(crate) site: TestSite,
    pub(crate) database: TestDatabase,
    _folder: TempDir,
}

/// A running `site-api`.
pub(crate) struct Api {
    // The process ends before its database goes.
    pub(crate) process: Process,
    pub(crate) place: Place,
    /// The way to its callers' listener.
    pub(crate) wire: Wire,
    /// Where its metrics and alarms are.
    pub(crate) admin: SocketAddr,
}

impl Place {
    pub(crate) async fn prepare() -> Self {
        let database = TestDatabase::create().await;
        let folder = tempfile::tempdir().unwrap();
        let urls = DatabaseUrls {
            api: database.url("site_coordination_api"),
            producer: database.url("site_coordination_producer"),
        };
        let site = TestSite::set_up(folder.path(), SITE, "slurm", urls).unwrap();
        Self { site, database, _folder: folder }
    }

    /// `site-api` with its settings, on ports that the system chooses.
    pub(crate) fn command(&self) -> Command {
        let mut command = self.site.site_api_command();
        command.env("SITE_API_LISTEN", "127.0.0.1:0");
        command.env("SITE_API_METRICS_LISTEN", "127.0.0.1:0");
        command
    }

    pub(crate) async fn start(self) -> Api {
        let command = self.command();
        self.start_by(command).await
    }

    /// Starts `site-api` with changed settings and waits until it listens.
    pub(crate) async fn start_by(self, command: Command) -> Api {
        let process = Process::start(command).unwrap();
        let line = process
            .wait_for_line("that it listens", LONG, |line| line.contains("\"site_api.listening\""))
            .await
            .unwrap();
        let event: Value = serde_json::from_str(&line).unwrap();
        let address = |name: &str| event[name].as_str().unwrap().parse().unwrap();
        let wire = Wire::to(address("site_api.listen"), &self.site.file("tls/ca.crt"));
        Api { process, place: self, wire, admin: address("site_api.metrics_listen") }
    }

    /// Changes the grants file as an administrator could by hand.
    pub(crate) fn edit_grants(&self, edit: impl FnOnce(&mut Vec<Value>)) {
        let path = self.site.file("grants.json");
        let mut file: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        edit(file["grants"].as_array_mut().unwrap());
        fs::write(&path, file.to_string()).unwrap();
    }

    /// Issues a bearer with `site-admin` and returns it.
    pub(crate) fn issue(&self, arguments: &[&str]) -> String {
        let grants = self.site.file("grants.json").display().to_string();
        let issue = ["credentials", "issue", "--grants", &grants];
        self.site.admin(&[&issue, arguments].concat()).unwrap().trim().to_owned()
    }

    /// Enqueues a command of the kind `test` for each body, with the keys `k1`, `k2`, …, each of a
    /// Run of its own, and returns the ids.
    pub(crate) fn enqueue(&self, bodies: &[&str]) -> Vec<String> {
        let lines: String = (1..)
            .zip(bodies)
            .map(|(n, body)| {
                format!(
                    "{{\"key\":\"k{n}\",\"kind\":\"test\",\"runId\":\"run-{n}\",\"body\":{body}}}\n"
                )
            })
            .collect();
        let file = self.site.file("lines");
        fs::write(&file, lines).unwrap();
        let file = file.display().to_string();
        let stream = ["commands", "enqueue", "--site", SITE, "--environment", "slurm"];
        let printed = self.site.admin(&[&stream[..], &["--lines", &file]].concat()).unwrap();
        printed.lines().map(|line| line.split(' ').nth(1).unwrap().to_owned()).collect()
    }
}

impl Api {
    /// A running `site-api` whose stream has `commands` commands, and their ids.
    pub(crate) async fn with_commands(commands: usize) -> (Self, Vec<String>) {
        let place = Place::prepare().await;
        let ids = place.enqueue(&vec!["{}"; commands]);
        (place.start().await, ids)
    }

    pub(crate) fn bearer(&self) -> String {
        self.place.site.bearer().unwrap()
    }

    /// A poll of a Runtime, with everything that it must bring.
    pub(crate) fn poll(&self, query: &str) -> Request {
        Request::new("GET", &format!("/v1/site/commands/?{query}"))
            .bearer(&self.bearer())
            .header("runtime-generation", "1")
    }

    /// A Runtime that takes the stream over.
    pub(crate) fn session(&self, id: &str, expected_generation: u64) -> Request {
        let body = format!(r#"{{"sessionId":"{id}","expectedGeneration":{expected_generation}}}"#);
        Request::new("POST", "/v1/site/commands/sessions")
            .bearer(&self.bearer())
            .header("content-type", "application/json")
            .body(body.as_bytes())
    }

    /// Takes the stream over, and returns the answer's body.
    pub(crate) async fn open_session(&self, id: &str, expected_generation: u64) -> Value {
        let answer = self.send(&self.session(id, expected_generation)).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        answer.json()
    }

    /// A result of a Runtime, with everything that it must bring.
    pub(crate) fn result(&self, command_id: &str, body: &[u8]) -> Request {
        Request::new("PUT", &format!("/v1/site/commands/{command_id}/result"))
            .bearer(&self.bearer())
            .header("runtime-generation", "1")
            .header("content-type", "application/json")
            .body(body)
    }

    /// A private output of a Runtime, under its digest.
    pub(crate) fn output(&self, command_id: &str, bytes: &[u8]) -> Request {
        let digest = hex(digest(&SHA256, bytes).as_ref());
        Request::new("PUT", &format!("/v1/site/commands/{command_id}/outputs/{digest}"))
            .bearer(&self.bearer())
            .header("runtime-generation", "1")
            .header("content-type", "application/octet-stream")
            .body(bytes)
    }

    /// A batch of results, each with its command and its exact text.
    pub(crate) fn batch(&self, results: &[(&str, &str)]) -> Request {
        let item = |(id, text): &(&str, &str)| format!(r#"{{"commandId":"{id}","result":{text}}}"#);
        let items: Vec<_> = results.iter().map(item).collect();
        Request::new("PUT", "/v1/site/commands/results")
            .bearer(&self.bearer())
            .header("runtime-generation", "1")
            .header("content-type", "application/json")
            .body(format!(r#"{{"results":[{}]}}"#, items.join(",")).as_bytes())
    }

    pub(crate) async fn send(&self, request: &Request) -> Answer {
        self.wire.send(request).await
    }

    /// The names of the alarms that are raised.
    pub(crate) async fn alarms(&self) -> Vec<String> {
        let answer = plain(self.admin, &Request::new("GET", "/alarms")).await;
        let alarms = answer.json()["alarms"].as_array().unwrap().clone();
        alarms.iter().map(|alarm| alarm["name"].as_str().unwrap().to_owned()).collect()
    }

    /// Takes the tables away from it, so that whoever is answered was not looked up in them.
    pub(crate) async fn without_storage(&self) {
        let sql = self.sql().await;
        let revoke =
            "REVOKE ALL ON ALL TABLES IN SCHEMA site_coordination FROM site_coordination_api";
        sql.batch_execute(revoke).await.unwrap();
        let column = "REVOKE ALL (done_seq) ON site_coordination.stream_progress
                        FROM site_coordination_api";
        sql.batch_execute(column).await.unwrap();
        let good = self.send(&self.poll("after=0")).await;
        assert_eq!(good.code(), "internal", "a caller who is let in meets the storage");
    }

    /// The sum of a metric's series.
    pub(crate) async fn metric(&self, name: &str) -> f64 {
        let metrics = plain(self.admin, &Request::new("GET", "/metrics")).await;
        let lines = metrics.text().lines().filter_map(|line| line.strip_prefix(name));
        let series = lines.filter(|rest| rest.starts_with(['{', ' ']));
        series.map(|rest| rest.rsplit_once(' ').unwrap().1.parse::<f64>().unwrap()).sum()
    }

    pub(crate) async fn sql(&self) -> Client {
        self.place.database.superuser().await
    }

    /// Returns when the process listens for hints: that begins with a wake-up of every poll.
    pub(crate) async fn listening_for_hints(&self) {
        self.process
            .wait_for_line("the listener", LONG, |line| line.contains("\"db.listening\""))
            .await
            .unwrap();
    }

    /// Has a poll wait in a task, and returns when it does.
    pub(crate) async fn parked(&self, request: Request) -> tokio::task::JoinHandle<Answer> {
        // What is prepared now is only executed later: then a session that is idle has read.
        self.send(&self.poll("after=0")).await;
        self.parked_as(request).await
    }

    /// As [`Api::parked`], after a poll was answered already.
    pub(crate) async fn parked_as(&self, request: Request) -> tokio::task::JoinHandle<Answer> {
        let sql = self.sql().await;
        let begun = "SELECT clock_timestamp()::text";
        let begun: String = sql.query_one(begun, &[]).await.unwrap().get(0);
        let wire = self.wire.clone();
        let poll = tokio::spawn(async move { wire.send(&request).await });
        // Its read, or a look at the heads that only a poll that waits can have caused: they are
        // looked at once a second.
        let reads = "SELECT FROM pg_stat_activity
                      WHERE datname = current_database() AND usename = 'site_coordination_api'
                        AND state = 'idle' AND query LIKE '%stream_head%'
                        AND query_start > $1::text::timestamptz
                            + CASE WHEN query LIKE '%chain_digest%' THEN interval '0'
                                   ELSE interval '1 second' END";
        eventually(LONG, "a poll that waits", async || {
            sql.query_opt(&format!("{reads} LIMIT 1"), &[&begun]).await.unwrap()
        })
        .await;
        poll
    }
}

/// The lower-case hexadecimal form.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Every row of every table, as text.
pub(crate) async fn dump(sql: &Client) -> Vec<String> {
    let tables = "SELECT schemaname || '.' || tablename FROM pg_tables
                   WHERE schemaname IN ('site_coordination', 'ssh_access') ORDER BY 1";
    let mut dump = Vec::new();
    for table in sql.query(tables, &[]).await.unwrap() {
        let table: String = table.get(0);
        let rows = format!("SELECT t::text FROM {table} t ORDER BY 1");
        for row in sql.query(&rows, &[]).await.unwrap() {
            dump.push(format!("{table} {}", row.get::<_, String>(0)));
        }
    }
    dump
}
