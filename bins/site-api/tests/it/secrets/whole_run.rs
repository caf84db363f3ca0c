//! A whole run of all three programs, with everything going wrong that can be made to.

use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf, process::Command};

use rustix::process::Signal;
use test_support::{Process, eventually};

use super::{BROKEN, COMMAND, DATABASE, RESULT, STRANGER, Told, password, secret};
use crate::support::{Api, Gate, LONG, Place, Request, SITE, dump, plain};

const PRODUCER: &str = "SITE_COORDINATION_PRODUCER_DATABASE_URL";
const WRONG: &str = "the-wrong-password";
const OUTPUT: &str = "the-secret-of-a-private-output";

impl Told {
    /// Runs `site-admin`, keeps what it says, and returns whether it succeeded.
    fn admin(&mut self, mut command: Command, arguments: &[&str]) -> bool {
        let output = command.args(arguments).output().unwrap();
        for bytes in [&output.stdout, &output.stderr] {
            let what = format!("site-admin {}", arguments.join(" "));
            self.places.push((what, String::from_utf8_lossy(bytes).into_owned()));
        }
        output.status.success()
    }
}

/// The base64 of a private key, line by line.
fn key_lines(file: PathBuf) -> Vec<String> {
    let key = fs::read_to_string(file).unwrap();
    let lines: Vec<_> = key.lines().filter(|line| !line.starts_with('-')).collect();
    assert!(!lines.is_empty());
    lines.into_iter().map(str::to_owned).collect()
}

/// Mistakes of an administrator, with secrets in the middle of them.
fn mistakes_of_an_administrator(told: &mut Told, place: &Place) {
    let stream = ["--site", SITE, "--environment", "slurm"];
    let file = place.site.file("mistakes");
    let lines = file.display().to_string();
    for text in [
        format!("{{\"key\":\"k1\",\"kind\":\"test\",\"body\":\"{BROKEN}\"}}\n"),
        format!("{{\"key\":\"k9\",\"kind\":\"test\",\"body\":\"{BROKEN}\n"),
        format!("{{\"key\":\"k9\",\"kind\":\"test\",\"body\":1,\"more\":\"{BROKEN}\"}}\n"),
        format!("{{\"key\":\"k9\",\"kind\":[\"{BROKEN}\"],\"body\":1}}\n"),
        BROKEN.to_owned(),
    ] {
        fs::write(&file, text).unwrap();
        let enqueue = [&["commands", "enqueue"], &stream[..], &["--lines", &lines]].concat();
        assert!(!told.admin(place.site.admin_command(), &enqueue));
    }
    let good = place.database.url("site_coordination_producer");
    let list = [&["commands", "list"], &stream[..]].concat();
    for url in
        [good.replace(&password(&good), WRONG), good.replace('@', ""), good + "&password=" + WRONG]
    {
        let mut command = place.site.admin_command();
        command.env(PRODUCER, url);
        assert!(!told.admin(command, &list));
    }
    let mut owner = place.site.admin_command();
    owner.env(DATABASE, place.database.url("site_coordination_owner"));
    assert!(!told.admin(owner, &["database", "check"]), "too many rights");
    let mut check = place.site.admin_command();
    check.env(DATABASE, place.database.url("site_coordination_api"));
    assert!(told.admin(check, &["database", "check"]));
}

/// What the administrator does with bearers and certificates; the last bearer is revoked.
fn life_of_credentials(told: &mut Told, place: &Place) {
    let grants = place.site.file("grants.json").display().to_string();
    let bearer = place.site.file("bearer").display().to_string();
    let stranger = place.site.file("stranger");
    fs::write(&stranger, STRANGER).unwrap();
    let stranger = stranger.display().to_string();
    let certificate = place.site.file("tls").display().to_string();
    for (succeeds, arguments) in [
        (true, vec!["credentials", "list", "--grants", &grants]),
        (true, vec!["credentials", "verify", "--grants", &grants, "--bearer", &bearer]),
        (false, vec!["credentials", "verify", "--grants", &grants, "--bearer", &stranger]),
        (false, vec!["credentials", "verify", "--grants", &bearer, "--bearer", &bearer]),
        (false, vec!["credentials", "list", "--grants", &bearer]),
        (false, vec!["tls", "issue", "--directory", &certificate, "--name", "localhost"]),
        (
            true,
            vec![
                "credentials",
                "revoke",
                "--grants",
                &grants,
                "--scope",
                "commands",
                "--site",
                SITE,
            ],
        ),
    ] {
        assert_eq!(told.admin(place.site.admin_command(), &arguments), succeeds, "{arguments:?}");
    }
}

/// An agent whose handler answers with secrets, once with what is no JSON.
fn start_agent(api: &Api) -> Process {
    let handler = api.place.site.file("handler");
    let script = format!(
        "#!/bin/sh\nINPUT=$(cat)\ncase \"$INPUT\" in\n*'\"seq\":2,'*) echo '{RESULT}' ;;\n\
         *) echo '\"{RESULT}\"' ;;\nesac\n"
    );
    fs::write(&handler, script).unwrap();
    fs::set_permissions(&handler, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = api.place.site.agent_command(&handler);
    command
        .env("SITE_API_URL", format!("https://{}", api.wire.address()))
        .env("SITE_AGENT_LOG", "trace");
    Process::start(command).unwrap()
}

async fn says(process: &Process, part: &str) {
    process.wait_for_line(part, LONG, |line| line.contains(part)).await.unwrap();
}

#[tokio::test]
async fn a_whole_run_of_every_program_tells_nobody_a_secret_or_a_body() {
    let mut told = Told::default();
    let place = Place::prepare().await;
    let first = place.site.bearer().unwrap();
    told.secrets.extend([&first, STRANGER].map(secret));
    told.secrets.extend([COMMAND, RESULT, BROKEN, OUTPUT, WRONG].map(str::to_owned));
    for role in ["api", "producer", "owner"] {
        told.secrets.push(password(&place.database.url(&format!("site_coordination_{role}"))));
    }
    told.secrets.extend(key_lines(place.site.file("tls/tls.key")));
    let body = format!("\"{COMMAND}\"");
    let ids = place.enqueue(&[&body, &body, &body]);
    mistakes_of_an_administrator(&mut told, &place);

    let url = place.database.url("site_coordination_api");
    let mut gate = Gate::open_before(&url);
    let mut command = place.command();
    command.env(DATABASE, gate.url(&url)).env("SITE_API_LOG", "trace");
    let api = place.start_by(command).await;
    let token = api.place.site.file("bearer");

    // The agent is refused, then let in, answers everything, and meets an outage.
    fs::write(&token, STRANGER).unwrap();
    let agent = start_agent(&api);
    says(&agent, "\"call_refused\"").await;
    fs::write(&token, &first).unwrap();
    let sql = api.sql().await;
    let answered = "SELECT FROM site_coordination.stream_progress WHERE done_seq = 3";
    eventually(LONG, "three results", async || sql.query_opt(answered, &[]).await.unwrap()).await;
    gate.shut().await;
    says(&agent, "\"database_unavailable\"").await;
    told.answer("a poll in an outage", &api.send(&api.poll("after=0")).await);
    gate.open();

    // Somebody else sends what contradicts the stream.
    let conflict = format!(r#"{{"outcome":"failed","detail":"{BROKEN}"}}"#);
    let conflict = api.send(&api.result(&ids[0], conflict.as_bytes())).await;
    assert_eq!(conflict.status, 409);
    told.answer("another result", &conflict);
    let path = format!("/v1/site/commands/{}/outputs/{}", ids[0], "0".repeat(64));
    let output = Request::new("PUT", &path)
        .bearer(&first)
        .header("runtime-generation", "1")
        .header("content-type", "application/octet-stream")
        .body(OUTPUT.as_bytes());
    told.answer("a private output", &api.send(&output).await);
    let batch = Request::new("PUT", "/v1/site/commands/results")
        .bearer(&first)
        .header("runtime-generation", "1")
        .header("content-type", "application/json")
        .body(
            format!(r#"{{"results":[{{"commandId":"{BROKEN}","result":"{BROKEN}"}}]}}"#).as_bytes(),
        );
    told.answer("a broken batch", &api.send(&batch).await);

    // A take-over ends the agent; its event is in the database.
    let opened = eventually(LONG, "the database's return", async || {
        let generation = "SELECT generation FROM site_coordination.stream_progress";
        let generation: i64 = sql.query_one(generation, &[]).await.unwrap().get(0);
        let take_over = api.session("a-session-of-the-whole-run", generation.unsigned_abs());
        let answer = api.send(&take_over).await;
        (answer.status == 201).then_some(answer)
    });
    told.answer("a take-over", &opened.await);
    agent.wait_exit(LONG).await.unwrap();
    told.process(&agent);

    // The files go wrong under the running process, then everybody loses the grant.
    let (grants, key) = (api.place.site.file("grants.json"), api.place.site.file("tls/tls.key"));
    let (good, good_key) =
        (fs::read_to_string(&grants).unwrap(), fs::read_to_string(&key).unwrap());
    fs::write(&grants, format!("{{\"version\":1,\"grants\":[\"{first}\"],\"{first}\":1")).unwrap();
    fs::write(&key, &good_key[..good_key.len() / 2]).unwrap();
    eventually(LONG, "both alarms", async || {
        let alarms = plain(api.admin, &Request::new("GET", "/alarms")).await;
        let both = ["native_grants", "certificate"].iter().all(|name| alarms.text().contains(name));
        both.then(|| told.answer("/alarms", &alarms))
    })
    .await;
    fs::write(&key, good_key).unwrap();
    fs::write(&grants, good).unwrap();
    life_of_credentials(&mut told, &api.place);
    eventually(LONG, "the refusal", async || {
        let answer = api.send(&api.poll("after=0")).await;
        (answer.status == 401).then(|| told.answer("a revoked caller", &answer))
    })
    .await;
    for path in ["/metrics", "/alarms"] {
        told.answer(path, &plain(api.admin, &Request::new("GET", path)).await);
    }
    api.process.signal(Signal::TERM);
    api.process.wait_exit(LONG).await.unwrap();
    told.process(&api.process);

    // Bodies are in their tables and nowhere else; events name things and quote nothing.
    let rows = dump(&sql).await;
    for canary in [COMMAND, RESULT] {
        assert!(rows.iter().any(|row| row.contains(canary)), "{canary} went through");
    }
    let events: Vec<_> =
        rows.into_iter().filter(|row| row.starts_with("site_coordination.event ")).collect();
    assert!(events.iter().any(|row| row.contains("commands.session.opened")), "{events:#?}");
    told.places.extend(events.into_iter().map(|row| ("an event".to_owned(), row)));
    // The journal holds results, and must not hold the bearer.
    let journal = fs::read_to_string(api.place.site.file("state/journal")).unwrap();
    assert!(!journal.contains(&secret(&first)));
    told.holds_no_secret();
}
