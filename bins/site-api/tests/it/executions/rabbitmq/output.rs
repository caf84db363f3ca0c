//! The private output of a Run, for a member of a real login issuer, by the word of Beto.

use std::{fs, time::Instant};

use serde_json::{Value, json};
use test_support::{AccessRequest, OidcProvider, Process, TestCa, eventually};

use super::{BUDGET, has_answered, node, responder, told_without_id, write_policy};
use crate::support::{
    Answer, Api, Connection, LONG, MEMBER, PASSWORD, PROJECT, Place, Request, SITE, hex, plain,
    run_document,
};
use test_support::rabbitmq::Broker;
use tokio::io::AsyncReadExt;

const AUDIENCE: &str = "site-control-api";
/// Who may see the outputs: not the member whose Run it is.
const VIEWER: &str = "member-9";
/// Who may besides.
const MORE_VIEWERS: [&str; 4] = ["member-10", "member-11", "member-12", "member-13"];
/// The Run of the first command of the stream.
const RUN: &str = "run-1";
const BYTES: &[u8] = b"\0\xff private {\"bytes\":1}\r\n";
/// SHA-256 of [`BYTES`], computed by `sha256sum`.
const DIGEST: &str = "4e08985a248b2b154d4bab1185da99728d728cbc6b560531985a0ecb728b3f2a";

/// What is asked about an output.
const VIEW: &str = "site_coordination asks runs.output.view";

/// A Site with Runs that have outputs, its broker and its login issuer.
struct Viewing {
    api: Api,
    ids: Vec<String>,
    broker: Broker,
    issuer: OidcProvider,
}

impl Viewing {
    async fn start() -> Self {
        let ca = TestCa::new();
        let (broker, issuer) = tokio::join!(node(), OidcProvider::start(&ca));
        let issuer = issuer.unwrap();
        let place = Place::prepare().await;
        let ids = place.enqueue(&["{}", "{}"]);
        place.accept(&run_document(RUN).to_string());
        let mut command = place.command();
        place.authority(&mut command);
        let ca_file = place.site.file("login-ca.pem");
        ca.write_to(&ca_file).unwrap();
        command
            .env("RESOURCE_PROVISIONING_BROKER_URL", broker.tls_url("resource_provisioning"))
            .env("SITE_COORDINATION_VIEWS_BROKER_URL", broker.tls_url("site_coordination"))
            .env("SITE_API_BETO_CA_FILE", broker.ca_file())
            .env("SITE_API_BETO_SECONDS", BUDGET.as_secs().to_string())
            .env("SITE_API_LOGIN_ISSUER", issuer.issuer())
            .env("SITE_API_LOGIN_AUDIENCE", AUDIENCE)
            .env("SITE_API_LOGIN_CA_FILE", ca_file);
        let api = place.start_by(command).await;
        Self { api, ids, broker, issuer }
    }

    /// Writes the policy: whether the viewers may see the outputs of the Project.
    fn policy(&self, may: bool) {
        let rule = |member: &str| {
            json!({
                "permission": "runs.output.view", "member": member, "project": PROJECT, "site": SITE
            })
        };
        let viewers = MORE_VIEWERS.iter().chain([&VIEWER]).filter(|_| may);
        write_policy(&self.api.place, viewers.map(|member| rule(member)).collect());
    }

    async fn responder(&self) -> Process {
        responder(&self.api.place, &self.broker).await
    }

    /// Has the command that is due end with an output.
    async fn finish(&self, command: usize, bytes: &[u8]) {
        let id = &self.ids[command];
        let stored = self.api.send(&self.api.output(id, bytes)).await;
        assert_eq!(stored.status, 201, "{stored:?}");
        let digest = stored.json()["digest"].clone();
        let result = json!({ "outcome": "succeeded", "privateOutput": digest }).to_string();
        assert_eq!(self.api.send(&self.api.result(id, result.as_bytes())).await.status, 201);
    }

    async fn token(&self, member: &str) -> String {
        self.issuer.member(member, AccessRequest::new(&[AUDIENCE])).await.access_token
    }

    /// The request of a member.
    async fn request(&self, member: &str, run: &str) -> Request {
        Request::new("GET", &format!("/v1/site/executions/{run}/output"))
            .bearer(&self.token(member).await)
    }

    /// The request of the viewer, and of each who may see it besides.
    async fn requests(&self, run: &str) -> Vec<Request> {
        let mut requests = vec![self.request(VIEWER, run).await];
        for member in MORE_VIEWERS {
            requests.push(self.request(member, run).await);
        }
        requests
    }

    async fn read(&self, member: &str, run: &str) -> Answer {
        self.api.send(&self.request(member, run).await).await
    }
}

#[tokio::test]
async fn a_member_reads_the_output_while_beto_says_so_and_is_asked_about_each_time() {
    let site = Viewing::start().await;
    site.policy(true);
    let responder = site.responder().await;
    let nothing = site.read(VIEWER, RUN).await;
    assert_eq!(nothing.code(), "not_found");
    assert!(nothing.problem().detail.contains("names a private output"), "{nothing:?}");
    site.finish(0, BYTES).await;
    let answer = site.read(VIEWER, RUN).await;
    assert_eq!((answer.status, answer.body.as_slice()), (200, BYTES));
    assert_eq!(answer.header("content-type"), Some("application/octet-stream"));
    assert_eq!(answer.header("content-length"), Some(BYTES.len().to_string().as_str()));
    let tag = format!("\"{DIGEST}\"");
    assert_eq!(answer.header("etag"), Some(tag.as_str()));
    has_answered(&responder, VIEW, 2).await;

    // Who has it already is asked about as well.
    let known = site.request(VIEWER, RUN).await.header("if-none-match", &tag);
    let answer = site.api.send(&known).await;
    assert_eq!((answer.status, answer.body.len()), (304, 0));
    has_answered(&responder, VIEW, 3).await;

    // Who may not see it is told what is told of a Run that is not there: each was asked about.
    let denied = site.read(MEMBER, RUN).await;
    assert_eq!(denied.code(), "not_found");
    for run in ["run-absent", "run-2"] {
        for member in [MEMBER, VIEWER] {
            let absent = site.read(member, run).await;
            assert_eq!(told_without_id(&absent), told_without_id(&denied), "{member} {run}");
        }
    }
    has_answered(&responder, VIEW, 8).await;
    site.policy(false);
    assert_eq!(told_without_id(&site.read(VIEWER, RUN).await), told_without_id(&denied));
    assert_eq!(told_without_id(&site.api.send(&known).await), told_without_id(&denied));
    site.policy(true);
    assert_eq!(site.read(VIEWER, RUN).await.body, BYTES);
    has_answered(&responder, VIEW, 11).await;
    assert_eq!(site.api.metric("outputs_read_total").await, 2.0);

    // Another Run's command is another Run's.
    site.finish(1, b"of another Run").await;
    assert_eq!(site.read(VIEWER, RUN).await.body, BYTES);
}

#[tokio::test]
async fn without_an_answer_there_is_not_one_byte_and_nobody_learns_whether_there_is_a_run() {
    let mut site = Viewing::start().await;
    site.policy(true);
    site.finish(0, BYTES).await;
    let silent = async |site: &Viewing, why: &str| {
        let mut told = Vec::new();
        for run in [RUN, "run-absent"] {
            let request = site.request(VIEWER, run).await;
            let began = Instant::now();
            let answer = site.api.send(&request).await;
            assert_eq!(answer.code(), "authority_unavailable", "{why}: {run}");
            assert!(began.elapsed() < BUDGET * 2, "{why}: {:?}", began.elapsed());
            told.push(told_without_id(&answer));
        }
        assert_eq!(told[0], told[1], "{why}");
    };
    silent(&site, "nobody has ever listened").await;
    let responder = site.responder().await;
    assert_eq!(site.read(VIEWER, RUN).await.body, BYTES);
    responder.kill();
    responder.wait_exit(LONG).await.unwrap();
    silent(&site, "the responder was killed").await;
    site.broker.stop().await.unwrap();
    silent(&site, "the broker is away").await;
    let reason = async |site: &Viewing| {
        let alarms = crate::support::plain(site.api.admin, &Request::new("GET", "/alarms")).await;
        let alarms = alarms.json()["alarms"].clone();
        let beto = alarms.as_array().unwrap().iter().find(|alarm| alarm["name"] == "beto").cloned();
        beto.map(|alarm: Value| alarm["reason"].as_str().unwrap().to_owned())
    };
    eventually(LONG, "the alarm of both callers", async || {
        let reason = reason(&site).await?;
        (reason.contains("site_coordination can't ask: ")
            && reason.contains("resource_provisioning can't ask: "))
        .then_some(())
    })
    .await;
    site.broker.restart().await.unwrap();
    let _responder = site.responder().await;
    assert_eq!(site.read(VIEWER, RUN).await.body, BYTES);
    let lines = site.api.process.lines();
    assert!(!lines.iter().any(|line| line.text.contains(PASSWORD)));
}

#[tokio::test]
async fn nobody_but_a_member_with_a_token_for_us_is_let_in() {
    let site = Viewing::start().await;
    site.policy(true);
    site.finish(0, BYTES).await;
    let responder = site.responder().await;
    let good = site.issuer.member(VIEWER, AccessRequest::new(&[AUDIENCE])).await;
    let of_an_action = AccessRequest::new(&["https://gitlab.example"]);
    let of_an_action = site.issuer.member(VIEWER, of_an_action).await.access_token;
    let bare = site.request(VIEWER, RUN).await.without("authorization");
    for (what, token) in [
        ("a Runtime's bearer", site.api.bearer()),
        ("an ID token", good.id_token),
        ("a token for an action of a Runtime", of_an_action),
        ("a token that was changed", format!("{}A", good.access_token)),
    ] {
        let answer = site.api.send(&bare.clone().bearer(&token)).await;
        assert_eq!(answer.code(), "unauthenticated", "{what}");
    }
    assert_eq!(site.api.send(&bare).await.code(), "unauthenticated");
    // A member is no Runtime either.
    for request in [site.api.read_run(RUN), site.api.may_execute(RUN, 1), site.api.poll("after=0")]
    {
        let request = request.without("authorization").bearer(&good.access_token);
        assert_eq!(site.api.send(&request).await.code(), "unauthenticated");
    }
    let wrong = bare.clone().bearer(&good.access_token).query("command=1&nonsense=2");
    let problem = site.api.send(&wrong).await.problem();
    let named: Vec<_> = problem.fields.iter().map(|field| field.field.as_str()).collect();
    assert_eq!(named, ["command", "nonsense"]);
    has_answered(&responder, VIEW, 0).await;
    assert_eq!(site.api.send(&bare.bearer(&good.access_token)).await.body, BYTES);
}

/// Has the kernel forget what the process has had in memory at the most.
fn forget_peak(api: &Api) {
    fs::write(format!("/proc/{}/clear_refs", api.process.pid()), "5").unwrap();
}

/// What it has had since then, in bytes.
fn peak(api: &Api) -> usize {
    let status = fs::read_to_string(format!("/proc/{}/status", api.process.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<usize>().unwrap() * 1024
}

const LARGE: usize = 16 * 1024 * 1024;
/// As many as may be read at once, and by one member.
const PLACES: usize = 16;
const PLACES_OF_A_MEMBER: usize = 4;

#[tokio::test]
async fn large_outputs_go_to_many_readers_in_little_memory() {
    let site = Viewing::start().await;
    site.policy(true);
    let large: Vec<u8> =
        (0..LARGE).map(|at| (at >> 12).to_le_bytes()[0] ^ at.to_le_bytes()[0]).collect();
    site.finish(0, &large).await;
    let _responder = site.responder().await;
    let requests = site.requests(RUN).await;
    let [request, others @ ..] = &requests[..] else { panic!("no viewer") };
    assert_eq!(site.api.send(request).await.body, large);
    forget_peak(&site.api);
    let before = peak(&site.api);

    // They take the head, and then nothing: each has its place.
    let mut readers: Vec<(Connection, Answer)> = Vec::new();
    let overloaded = async |request: &Request| {
        let answer = site.api.send(request).await;
        assert_eq!((answer.status, answer.code().as_str()), (503, "overloaded"));
    };
    for of_a_member in others {
        for _ in 0..PLACES_OF_A_MEMBER {
            let mut reader = site.api.wire.open().await;
            reader.write(&of_a_member.bytes()).await;
            let head = reader.head().await;
            assert_eq!(head.status, 200, "{head:?}");
            readers.push((reader, head));
        }
        // Also where there are places for others.
        overloaded(of_a_member).await;
    }
    assert_eq!(readers.len(), PLACES);
    overloaded(request).await;
    // The stream is served all the while.
    assert_eq!(site.api.send(&site.api.poll("after=0")).await.status, 200);
    for (reader, head) in &mut readers {
        let body = reader.body(head).await;
        assert!(body == large, "{}", hex(&body[..16]));
    }
    drop(readers);
    // 256 MiB went out.
    let more = peak(&site.api).saturating_sub(before);
    assert!(more < 48 * 1024 * 1024, "{more} bytes more");
    for request in others {
        assert_eq!(site.api.send(request).await.body.len(), LARGE, "the places are free again");
    }
}

/// Half a minute more is for clocks that are apart.
#[tokio::test]
async fn a_reading_ends_with_its_token_however_slow_its_reader_is() {
    let site = Viewing::start().await;
    site.policy(true);
    site.finish(0, &vec![7; LARGE]).await;
    let _responder = site.responder().await;
    let short = AccessRequest::new(&[AUDIENCE]).life(2);
    let token = site.issuer.member(VIEWER, short).await.access_token;
    let request = Request::new("GET", &format!("/v1/site/executions/{RUN}/output")).bearer(&token);
    let mut reader = site.api.wire.open().await;
    reader.write(&request.bytes()).await;
    assert_eq!(reader.head().await.status, 200);
    // It takes a little now and then: who takes nothing at all is given up sooner.
    let mut reader = reader.into_stream();
    let mut little = [0; 4096];
    eventually(LONG, "the end of the reading", async || {
        reader.read_exact(&mut little).await.unwrap();
        let metrics = plain(site.api.admin, &Request::new("GET", "/metrics")).await;
        let ended = "connections_ended_total{end=\"overdue_answer\"} 1";
        metrics.text().contains(ended).then_some(())
    })
    .await;
    let mut rest = Vec::new();
    let _broken_off = reader.read_to_end(&mut rest).await;
    assert!(rest.len() < LARGE);
}

/// What was stored is given whole or not as a whole.
#[tokio::test]
async fn an_output_that_goes_away_or_is_another_breaks_the_answer_off() {
    let site = Viewing::start().await;
    site.policy(true);
    let _responder = site.responder().await;
    site.finish(0, &vec![7; LARGE]).await;
    let sql = site.api.sql().await;
    let request = site.request(VIEWER, RUN).await;
    let broken_off = async |at_most: usize| {
        let mut reader = site.api.wire.open().await;
        reader.write(&request.bytes()).await;
        assert!(reader.answer().await.is_none(), "it came whole");
        // The log comes by another way than the end of the connection.
        let told = || {
            let lines = site.api.process.lines();
            lines.iter().filter(|line| line.text.contains("\"output.broken_off\"")).count()
        };
        eventually(LONG, "it to be told", async || (told() >= at_most).then_some(())).await;
        assert_eq!(told(), at_most);
    };
    let change = "UPDATE site_coordination.private_output
                     SET bytes = overlay(bytes placing '\\x08' from octet_length(bytes))";
    sql.batch_execute(change).await.unwrap();
    broken_off(1).await;
    let shorten =
        "UPDATE site_coordination.private_output SET bytes = substring(bytes for 1000000)";
    let mut reader = site.api.wire.open().await;
    reader.write(&request.bytes()).await;
    let begun = |line: &str| {
        line.contains("executions/{runId}/output\"") && line.contains("\"http.status\":200")
    };
    eventually(LONG, "the beginning", async || {
        let lines = site.api.process.lines();
        (lines.iter().filter(|line| begun(&line.text)).count() == 2).then_some(())
    })
    .await;
    sql.batch_execute(shorten).await.unwrap();
    assert!(reader.answer().await.is_none(), "it came whole");
    sql.batch_execute("DELETE FROM site_coordination.private_output").await.unwrap();
    assert_eq!(site.api.send(&request).await.code(), "not_found");
}
