//! Asking Beto over a real broker, with the credential that docs/BETO.md describes. Who answers is
//! `site-admin beto respond`, and by hand where an answer has to be late.

mod output;

use std::{
    fs,
    process::Command,
    time::{Duration, Instant},
};

use beto::{Decision, Heard, Responder, Rights};
use broker::{Broker as Target, Trust};
use rustix::process::Signal;
use serde_json::{Value, json};
use test_support::{
    Process, bin, eventually,
    rabbitmq::{Broker, BrokerUser},
};

use crate::support::{Answer, Api, LONG, MEMBER, PASSWORD, PROJECT, Place, RUN, SITE};

/// A node with what docs/BETO.md says and nothing else.
async fn node() -> Broker {
    let names = Rights::all().into_iter().map(|rights| rights.user);
    let users: Vec<_> = names.map(|name| BrokerUser::administrator(name, PASSWORD)).collect();
    let user = |user: &BrokerUser| json!({ "name": user.name, "password": PASSWORD, "tags": "" });
    let defined: Vec<Value> = users.iter().map(user).collect();
    let definitions = beto::definitions("/", &defined);
    Broker::start_defined(&users, &definitions.to_string()).await.unwrap()
}

/// A Site with a Run that lacks nothing but the word of Beto, and a broker.
struct Asking {
    api: Api,
    broker: Broker,
    binding: String,
}

/// What is asked about an Attempt.
const EXECUTE: &str = "resource_provisioning asks runs.execute";

/// The budget of a question in these tests.
const BUDGET: Duration = Duration::from_secs(2);

impl Asking {
    async fn start() -> Self {
        Self::start_with(&[]).await
    }

    async fn start_with(settings: &[(&str, &str)]) -> Self {
        let broker = node().await;
        let place = Place::prepare().await;
        place.accept_and_submit(RUN);
        let binding = place.retain();
        let mut command = place.command();
        place.authority(&mut command);
        command
            .env("RESOURCE_PROVISIONING_BROKER_URL", broker.tls_url("resource_provisioning"))
            .env("SITE_API_BETO_CA_FILE", broker.ca_file())
            .env("SITE_API_BETO_SECONDS", BUDGET.as_secs().to_string())
            .env("SITE_API_LOG", "trace");
        command.envs(settings.iter().copied());
        let api = place.start_by(command).await;
        Self { api, broker, binding }
    }

    /// Writes the policy: whether the member may execute.
    fn policy(&self, may: bool) {
        let rule = json!({
            "permission": "runs.execute", "member": MEMBER, "project": PROJECT, "site": SITE
        });
        write_policy(&self.api.place, if may { vec![rule] } else { vec![] });
    }

    async fn responder(&self) -> Process {
        responder(&self.api.place, &self.broker).await
    }

    /// One that answers by hand.
    async fn by_hand(&self) -> Responder {
        let trust = Trust::from_pem_file(&self.broker.ca_file()).unwrap();
        let url = self.broker.tls_url("beto").parse().unwrap();
        Responder::connect(&Target::new(url, Some(trust)).unwrap(), LONG).await.unwrap()
    }

    async fn ask(&self) -> Answer {
        self.api.send(&self.api.may_execute(RUN, 1)).await
    }

    async fn told(&self) -> String {
        let answer = self.ask().await;
        if answer.status == 200 { "authorised".to_owned() } else { answer.code() }
    }

    async fn has_alarm(&self) -> bool {
        self.api.alarms().await.iter().any(|name| name == "beto")
    }

    /// Nothing but yes is a yes, and it takes no longer than the budget and what surrounds it.
    async fn is_refused_in_time(&self, why: &str) {
        let began = Instant::now();
        let problem = self.ask().await.problem();
        assert_eq!(
            (problem.code.as_str(), problem.retryable),
            ("authority_unavailable", true),
            "{why}"
        );
        assert!(began.elapsed() < BUDGET + Duration::from_secs(2), "{why}: {:?}", began.elapsed());
    }
}

/// Writes the policy of a responder, whole at once: it is read at each question.
fn write_policy(place: &Place, rules: Vec<Value>) {
    let policy = json!({ "version": 1, "rules": rules }).to_string();
    let file = place.site.file("policy.json");
    fs::write(file.with_extension("new"), policy).unwrap();
    fs::rename(file.with_extension("new"), file).unwrap();
}

/// Starts the responder with the policy of a place, and returns when it answers questions.
async fn responder(place: &Place, broker: &Broker) -> Process {
    let mut command = Command::new(bin("site-admin"));
    command
        .args(["beto", "respond", "--policy"])
        .arg(place.site.file("policy.json"))
        .env("BETO_RESPONDER_BROKER_URL", broker.tls_url("beto"))
        .env("BETO_RESPONDER_BROKER_CA_FILE", broker.ca_file());
    let responder = Process::start(command).unwrap();
    let answers = |line: &str| line.contains("answers questions");
    responder.wait_for_line("that it answers", LONG, answers).await.unwrap();
    responder
}

/// What is left of a problem that belongs to every request of its kind.
fn told_without_id(answer: &Answer) -> Value {
    answer.problem();
    let mut body = answer.json();
    body.as_object_mut().unwrap().remove("requestId").unwrap();
    body
}

/// A responder has answered a question so many times and no more. It tells of each a moment later.
async fn has_answered(responder: &Process, question: &str, times: usize) {
    let all = async || (answered(responder, question) >= times).then_some(());
    eventually(LONG, "the responder to tell what it answered", all).await;
    assert_eq!(answered(responder, question), times);
}

/// How many answers to a question a responder has told of so far.
fn answered(responder: &Process, question: &str) -> usize {
    let asks = format!(": {question} for ");
    responder.lines().iter().filter(|line| line.text.contains(&asks)).count()
}

#[tokio::test]
async fn an_attempt_is_authorised_while_everything_holds_and_asked_about_each_time() {
    let site = Asking::start().await;
    site.policy(true);
    let responder = site.responder().await;
    let answer = site.ask().await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let body = answer.json();
    let time = body["serverTime"].clone();
    assert_eq!(
        body,
        json!({ "runId": RUN, "attempt": 1, "action": "execute", "serverTime": time })
    );
    assert!(time.as_str().unwrap().parse::<chrono::DateTime<chrono::Utc>>().is_ok());
    assert_eq!(site.told().await, "authorised");
    has_answered(&responder, EXECUTE, 2).await;
    let event = |line: &str| line.contains("\"execution.authorised\"");
    let line = site.api.process.wait_for_line("the event", LONG, event).await.unwrap();
    for part in ["\"run.id\":\"run-7\"", "\"run.attempt\":1", "\"run.action\":\"execute\""] {
        assert!(line.contains(part), "{part}: {line}");
    }

    site.policy(false);
    let denied = site.ask().await;
    assert_eq!((denied.code().as_str(), denied.status), ("permission_denied", 403));
    site.policy(true);
    assert_eq!(site.told().await, "authorised");
    let asked = 4;
    has_answered(&responder, EXECUTE, asked).await;

    // What is against it without Beto is not asked about.
    let place = &site.api.place;
    place.release(&site.binding);
    assert_eq!(site.told().await, "binding_not_retained");
    place.retain();
    assert_eq!(site.told().await, "authorised");
    place.submit(RUN, 2);
    assert_eq!(site.told().await, "attempt_not_current");
    let second = site.api.may_execute(RUN, 2);
    assert_eq!(site.api.send(&second).await.status, 200);
    place.control(&["runs", "cancel", RUN]);
    assert_eq!(site.api.send(&second).await.code(), "run_cancelled");
    has_answered(&responder, EXECUTE, asked + 2).await;
    assert_eq!(site.api.metric("beto_questions_total").await, 6.0);

    let told = site.api.process.lines();
    assert!(!told.iter().any(|line| line.text.contains(PASSWORD)), "the broker's password is told");
}

#[tokio::test]
async fn nothing_is_authorised_without_an_answer_in_time_and_the_next_question_after_it_is() {
    let mut site = Asking::start().await;
    site.policy(true);
    site.is_refused_in_time("nobody has ever listened").await;
    let responder = site.responder().await;
    assert_eq!(site.told().await, "authorised");

    responder.kill();
    responder.wait_exit(LONG).await.unwrap();
    site.is_refused_in_time("the responder was killed").await;
    // The question that nobody took has expired: it is not answered now.
    let responder = site.responder().await;
    assert_eq!(site.told().await, "authorised");
    has_answered(&responder, EXECUTE, 1).await;

    site.broker.stop().await.unwrap();
    site.is_refused_in_time("the broker is away").await;
    eventually(LONG, "the alarm", async || site.has_alarm().await.then_some(())).await;
    // Nobody else notices it.
    assert_eq!(site.api.send(&site.api.poll("after=0")).await.status, 200);
    assert_eq!(site.api.send(&site.api.read_run(RUN)).await.status, 200);

    site.broker.restart().await.unwrap();
    let back = |line: &str| line.contains("answers questions");
    eventually(LONG, "the responder", async || {
        (responder.lines().iter().filter(|line| back(&line.text)).count() == 2).then_some(())
    })
    .await;
    assert_eq!(site.told().await, "authorised", "the first question after the return");
    eventually(LONG, "the end of the alarm", async || (!site.has_alarm().await).then_some(()))
        .await;
}

#[tokio::test]
async fn a_late_yes_is_none_neither_to_its_question_nor_to_the_next() {
    let site = Asking::start().await;
    let mut responder = site.by_hand().await;
    let api = &site.api;
    let (wire, request) = (api.wire.clone(), api.may_execute(RUN, 1));
    let late = tokio::spawn(async move { wire.send(&request).await });
    let Heard::Question(first) = responder.next().await.unwrap() else { panic!("no question") };
    assert_eq!(late.await.unwrap().code(), "authority_unavailable");

    let (wire, request) = (api.wire.clone(), api.may_execute(RUN, 1));
    let next = tokio::spawn(async move { wire.send(&request).await });
    let Heard::Question(second) = responder.next().await.unwrap() else { panic!("no question") };
    responder.answer(first, Some(Decision::Allow)).await.unwrap();
    responder.answer(second, Some(Decision::Deny)).await.unwrap();
    assert_eq!(next.await.unwrap().code(), "permission_denied");
}

#[tokio::test]
async fn the_answer_of_another_user_than_the_responder_is_none() {
    let site = Asking::start_with(&[("SITE_API_BETO_RESPONDER", "another")]).await;
    site.policy(true);
    let responder = site.responder().await;
    site.is_refused_in_time("another user has answered").await;
    has_answered(&responder, EXECUTE, 1).await;
    let told = |line: &str| line.contains("\"beto.answer_forged\"");
    site.api.process.wait_for_line("that it was told", LONG, told).await.unwrap();
}

#[tokio::test]
async fn a_caller_that_hangs_up_while_beto_is_asked_harms_nobody() {
    let site = Asking::start().await;
    let mut responder = site.by_hand().await;
    let mut gone = Vec::new();
    for _ in 0..8 {
        let mut connection = site.api.wire.open().await;
        connection.write(&site.api.may_execute(RUN, 1).bytes()).await;
        let Heard::Question(asked) = responder.next().await.unwrap() else { panic!("no question") };
        gone.push(asked);
        drop(connection);
    }
    eventually(LONG, "the end of the requests", async || {
        let lines = site.api.process.lines();
        let hung_up = lines.iter().filter(|line| line.text.contains("\"http.status\":499"));
        (hung_up.count() == 8).then_some(())
    })
    .await;
    for asked in gone {
        responder.answer(asked, Some(Decision::Allow)).await.unwrap();
    }
    let (wire, request) = (site.api.wire.clone(), site.api.may_execute(RUN, 1));
    let next = tokio::spawn(async move { wire.send(&request).await });
    let Heard::Question(asked) = responder.next().await.unwrap() else { panic!("no question") };
    responder.answer(asked, Some(Decision::Allow)).await.unwrap();
    assert_eq!(next.await.unwrap().status, 200);
    let lines = site.api.process.lines();
    assert!(
        !lines
            .iter()
            .any(|line| line.text.contains("execution.authorised") && line.text.contains("499"))
    );
    assert!(!lines.iter().any(|line| line.text.contains("panicked")));
}

/// A revocation while Beto is asked: the caller that is no longer let in is told nothing.
#[tokio::test]
async fn a_bearer_that_is_revoked_while_beto_is_asked_gets_no_yes() {
    let site = Asking::start_with(&[("SITE_API_BETO_SECONDS", "10")]).await;
    let mut responder = site.by_hand().await;
    let (wire, request) = (site.api.wire.clone(), site.api.may_execute(RUN, 1));
    let asking = tokio::spawn(async move { wire.send(&request).await });
    let Heard::Question(asked) = responder.next().await.unwrap() else { panic!("no question") };
    site.api.place.edit_grants(|grants| grants[0]["revokedAt"] = json!("2026-01-03T00:00:00Z"));
    assert_eq!(asking.await.unwrap().code(), "unauthenticated");
    responder.answer(asked, Some(Decision::Allow)).await.unwrap();
}

#[tokio::test]
async fn a_stop_while_beto_is_asked_waits_for_the_answer_and_ends_in_order() {
    let site = Asking::start().await;
    let mut responder = site.by_hand().await;
    let (wire, request) = (site.api.wire.clone(), site.api.may_execute(RUN, 1));
    let asking = tokio::spawn(async move { wire.send(&request).await });
    let Heard::Question(asked) = responder.next().await.unwrap() else { panic!("no question") };
    site.api.process.signal(Signal::TERM);
    site.api
        .process
        .wait_for_line("that it stops", LONG, |line| line.contains("service.draining"))
        .await
        .unwrap();
    responder.answer(asked, Some(Decision::Allow)).await.unwrap();
    assert_eq!(asking.await.unwrap().status, 200);
    let exit = site.api.process.wait_exit(LONG).await.unwrap();
    assert_eq!(exit, test_support::process::Exit::Code(0));
}
