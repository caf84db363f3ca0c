//! What `site-admin broker definitions` prints, in a real broker, and `site-admin beto respond`.

use std::{fs, path::Path, process::Command, time::Duration};

use beto::{
    Beto, Caller, CouldNotAsk, Decision, EXCHANGE, Name, Permission, QUESTIONS, Question, Setup,
};
use broker::{Broker as Target, Trust};
use lapin::{
    BasicProperties, Channel, Connection, ConnectionProperties, ExchangeKind,
    options::{
        BasicConsumeOptions, BasicGetOptions, BasicPublishOptions, ConfirmSelectOptions,
        ExchangeDeclareOptions, QueueBindOptions, QueueDeclareOptions, QueueDeleteOptions,
        QueuePurgeOptions,
    },
    types::FieldTable,
};
use ring::rand::SystemRandom;
use serde_json::{Value, json};
use tempfile::TempDir;
use test_support::{Process, bin, eventually, process::Exit, rabbitmq::Broker};

use crate::{
    broker::{RESPONDER_CA, RESPONDER_URL, USERS, definitions, url},
    support::{files, password},
};

const LONG: Duration = Duration::from_secs(120);
const VHOST: &str = "site/one";
/// Something else of the same virtual host.
const OTHER_QUEUE: &str = "execution_core.projections";
const OTHER_EXCHANGE: &str = "site-control.events";

/// A node that knows what was printed and something of others.
async fn node(folder: &Path, vhost: &str) -> Broker {
    let printed = definitions(folder, &["--vhost", vhost]).run().ok();
    let mut defined: Value = serde_json::from_str(&printed).unwrap();
    let durable = json!({
        "vhost": vhost, "durable": true, "auto_delete": false, "internal": false, "arguments": {},
    });
    for (kind, name) in [("queues", OTHER_QUEUE), ("exchanges", OTHER_EXCHANGE)] {
        let mut one = durable.clone();
        one["name"] = name.into();
        if kind == "exchanges" {
            one["type"] = "topic".into();
        } else {
            one.as_object_mut().unwrap().remove("internal");
        }
        defined[kind].as_array_mut().unwrap().push(one);
    }
    Broker::start_defined(&[], &defined.to_string()).await.unwrap()
}

/// The URL of a file, for the node and its plain port.
fn plain(broker: &Broker, folder: &Path, user: &str) -> String {
    let (plain, _) = broker.ports();
    let url = url(folder, user).replace("amqps://", "amqp://");
    url.replace("rabbitmq.example:5671", &format!("127.0.0.1:{plain}"))
}

fn verified(broker: &Broker, folder: &Path, user: &str) -> String {
    let (_, tls) = broker.ports();
    url(folder, user).replace("rabbitmq.example:5671", &format!("127.0.0.1:{tls}"))
}

fn reply_queue(user: &str) -> String {
    format!("{user}.reply.{}", "0".repeat(32))
}

async fn declare(channel: &Channel, queue: &str) -> lapin::Result<()> {
    let exclusive = QueueDeclareOptions { exclusive: true, ..Default::default() };
    channel.queue_declare(queue.into(), exclusive, FieldTable::default()).await.map(|_| ())
}

async fn consume(channel: &Channel, queue: &str) -> lapin::Result<()> {
    let (options, none) = (BasicConsumeOptions::default(), FieldTable::default());
    channel.basic_consume(queue.into(), "".into(), options, none).await.map(|_| ())
}

async fn get(channel: &Channel, queue: &str) -> lapin::Result<()> {
    channel.basic_get(queue.into(), BasicGetOptions { no_ack: true }).await.map(|_| ())
}

async fn publish(channel: &Channel, exchange: &str, key: &str) -> lapin::Result<()> {
    let (options, properties) = (BasicPublishOptions::default(), BasicProperties::default());
    let sent = channel.basic_publish(exchange.into(), key.into(), options, b"{}", properties);
    sent.await?.await.map(|_| ())
}

async fn bind(channel: &Channel, queue: &str, exchange: &str) -> lapin::Result<()> {
    let (options, none) = (QueueBindOptions::default(), FieldTable::default());
    channel.queue_bind(queue.into(), exchange.into(), "#".into(), options, none).await
}

async fn declare_exchange(channel: &Channel, exchange: &str) -> lapin::Result<()> {
    let (options, none) = (ExchangeDeclareOptions::default(), FieldTable::default());
    channel.exchange_declare(exchange.into(), ExchangeKind::Topic, options, none).await
}

async fn purge(channel: &Channel, queue: &str) -> lapin::Result<()> {
    channel.queue_purge(queue.into(), QueuePurgeOptions::default()).await.map(|_| ())
}

async fn delete(channel: &Channel, queue: &str) -> lapin::Result<()> {
    channel.queue_delete(queue.into(), QueueDeleteOptions::default()).await.map(|_| ())
}

/// One user of the broker. What is refused ends the channel, so each attempt has its own.
struct User {
    name: &'static str,
    connection: Connection,
}

impl User {
    async fn connect(broker: &Broker, folder: &Path, name: &'static str) -> Self {
        let url = plain(broker, folder, name);
        let connection = Connection::connect(&url, ConnectionProperties::default()).await;
        Self { name, connection: connection.unwrap() }
    }

    async fn channel(&self) -> Channel {
        let channel = self.connection.create_channel().await.unwrap();
        channel.confirm_select(ConfirmSelectOptions::default()).await.unwrap();
        channel
    }

    async fn may(&self, what: &str, attempt: impl AsyncFnOnce(&Channel) -> lapin::Result<()>) {
        let done = attempt(&self.channel().await).await;
        assert!(done.is_ok(), "{} may not {what}: {done:?}", self.name);
    }

    async fn may_not(&self, what: &str, attempt: impl AsyncFnOnce(&Channel) -> lapin::Result<()>) {
        let refused = attempt(&self.channel().await).await;
        let told = refused.map_err(|error| error.to_string());
        let is_refusal = told.as_ref().is_err_and(|told| told.contains("ACCESS_REFUSED"));
        assert!(is_refusal, "{} may {what}: {told:?}", self.name);
    }
}

#[tokio::test]
async fn a_caller_may_ask_for_its_own_and_read_its_own_replies_and_nothing_else() {
    let folder = TempDir::new().unwrap();
    let folder = folder.path();
    let broker = node(folder, VHOST).await;
    let mut users = Vec::new();
    for name in USERS {
        users.push(User::connect(&broker, folder, name).await);
    }
    // What each may; the queues stay while the others try to reach them.
    for user in &users[..4] {
        let own = reply_queue(user.name);
        user.may("make its reply queue", async |channel| declare(channel, &own).await).await;
        user.may("read it", async |channel| consume(channel, &own).await).await;
        for permission in Caller::of_user(user.name).unwrap().permissions() {
            let key = permission.as_str();
            user.may(key, async |channel| publish(channel, EXCHANGE, key).await).await;
        }
    }
    for user in &users[..4] {
        let others = USERS.into_iter().filter(|other| *other != user.name);
        for queue in others.map(reply_queue).chain([QUESTIONS, OTHER_QUEUE].map(str::to_owned)) {
            user.may_not("read", async |channel| consume(channel, &queue).await).await;
            user.may_not("take", async |channel| get(channel, &queue).await).await;
            user.may_not("make", async |channel| declare(channel, &queue).await).await;
            user.may_not("empty", async |channel| purge(channel, &queue).await).await;
            user.may_not("delete", async |channel| delete(channel, &queue).await).await;
        }
        let strangers =
            ["", "amq.gen-x", "reply", &reply_queue("x"), &format!("{}x", reply_queue(user.name))];
        for queue in strangers {
            user.may_not("make", async |channel| declare(channel, queue).await).await;
        }
        let own = reply_queue(user.name);
        // It hears no questions, not even those of its own kind.
        for exchange in [EXCHANGE, OTHER_EXCHANGE, "amq.topic"] {
            user.may_not("bind", async |channel| bind(channel, &own, exchange).await).await;
            user.may_not("make", async |channel| declare_exchange(channel, exchange).await).await;
        }
        for (exchange, key) in [
            ("", &*own),
            ("", QUESTIONS),
            ("amq.topic", "x"),
            ("amq.direct", "x"),
            (OTHER_EXCHANGE, "x"),
        ] {
            user.may_not("publish", async |channel| publish(channel, exchange, key).await).await;
        }
        let own_permissions = Caller::of_user(user.name).unwrap().permissions();
        let keys = Permission::ALL.into_iter().filter(|one| !own_permissions.contains(one));
        let keys: Vec<_> = keys.map(Permission::as_str).chain(["", "x", "runs.executed"]).collect();
        for key in keys {
            user.may_not(key, async |channel| publish(channel, EXCHANGE, key).await).await;
        }
    }

    let responder = &users[4];
    let reply = reply_queue("source_control");
    responder.may("read questions", async |channel| consume(channel, QUESTIONS).await).await;
    responder.may("answer", async |channel| publish(channel, "", &reply).await).await;
    for queue in [&*reply, OTHER_QUEUE] {
        responder.may_not("read", async |channel| consume(channel, queue).await).await;
    }
    for queue in [QUESTIONS, &reply_queue("beto"), ""] {
        responder.may_not("make", async |channel| declare(channel, queue).await).await;
    }
    responder.may_not("delete", async |channel| delete(channel, QUESTIONS).await).await;
    for exchange in [EXCHANGE, OTHER_EXCHANGE, "amq.topic"] {
        let key = "runs.execute";
        responder.may_not("ask", async |channel| publish(channel, exchange, key).await).await;
    }
}

#[expect(clippy::disallowed_methods, reason = "a test stands for the binary")]
fn caller(broker: &Broker, folder: &Path, caller: Caller, budget: Duration) -> Beto {
    let trust = Trust::from_pem_file(&broker.ca_file()).unwrap();
    let url = verified(broker, folder, caller.user()).parse().unwrap();
    let target = Target::new(url, Some(trust)).unwrap();
    let setup = Setup::new(caller, target).unwrap().with_budget(budget);
    Beto::start(setup, SystemRandom::new(), chrono::Utc::now)
}

fn execute(member: &str) -> Question {
    let name = |text: &str| Name::parse(text).unwrap();
    let permission = Permission::RunsExecute;
    Question::in_project(permission, name(member), name("p-4"), name("gpu-lab")).unwrap()
}

fn rule(member: &str) -> String {
    let rule = json!({
        "permission": "runs.execute", "member": member, "project": "p-4", "site": "*",
    });
    json!({ "version": 1, "rules": [rule] }).to_string()
}

#[tokio::test]
async fn a_responder_answers_by_its_policy_as_it_is_at_this_moment() {
    let folder = TempDir::new().unwrap();
    let (urls, policy) = (folder.path().join("urls"), folder.path().join("policy.json"));
    let mut broker = node(&urls, "/").await;
    fs::write(&policy, rule("m-1")).unwrap();
    let mut command = Command::new(bin("site-admin"));
    command.args(["--json", "beto", "respond", "--policy"]).arg(&policy);
    command.env(RESPONDER_URL, verified(&broker, &urls, "beto"));
    command.env(RESPONDER_CA, broker.ca_file());
    let responder = Process::start(command).unwrap();
    let ready = async |times: usize| {
        let said = |line: &&test_support::process::Line| line.text.contains("answers questions");
        let now = async || (responder.lines().iter().filter(said).count() >= times).then_some(());
        eventually(LONG, "the responder", now).await;
    };
    ready(1).await;
    let budget = Duration::from_secs(20);
    let beto = caller(&broker, &urls, Caller::ResourceProvisioning, budget);
    assert_eq!(beto.ask(&execute("m-1")).await, Ok(Decision::Allow));
    assert_eq!(beto.ask(&execute("m-2")).await, Ok(Decision::Deny));

    // A permission that is taken away is refused at the next question.
    fs::write(&policy, rule("m-2")).unwrap();
    assert_eq!(beto.ask(&execute("m-1")).await, Ok(Decision::Deny));
    assert_eq!(beto.ask(&execute("m-2")).await, Ok(Decision::Allow));

    // Nothing is answered while nobody knows what is allowed.
    let hurried = caller(&broker, &urls, Caller::ResourceProvisioning, Duration::from_secs(4));
    assert_eq!(hurried.ask(&execute("m-2")).await, Ok(Decision::Allow));
    fs::write(&policy, rule("m-2") + "x").unwrap();
    assert_eq!(hurried.ask(&execute("m-2")).await, Err(CouldNotAsk::NoAnswer));
    fs::remove_file(&policy).unwrap();
    assert_eq!(hurried.ask(&execute("m-2")).await, Err(CouldNotAsk::NoAnswer));
    fs::write(&policy, rule("m-2")).unwrap();
    assert_eq!(beto.ask(&execute("m-2")).await, Ok(Decision::Allow));

    // It comes back with the broker.
    broker.restart().await.unwrap();
    ready(2).await;
    assert_eq!(beto.ask(&execute("m-2")).await, Ok(Decision::Allow));

    responder.signal(rustix::process::Signal::TERM);
    let ended = responder.wait_exit(LONG).await.unwrap();
    assert_eq!(ended, Exit::Code(0));
    let lines = responder.lines();
    let wrong = lines.iter().filter(|line| line.text.contains("nothing is answered"));
    assert_eq!(wrong.count(), 2, "{lines:#?}");
    let told = lines.iter().filter_map(|line| serde_json::from_str::<Value>(&line.text).ok());
    let told: Vec<_> = told.filter(Value::is_object).collect();
    assert_eq!(
        told[1],
        json!({
            "decision": "deny", "caller": "resource_provisioning", "permission": "runs.execute",
            "member": "m-2", "project": "p-4", "tenant": null, "site": "gpu-lab",
        })
    );
    for name in files(&urls) {
        let url = fs::read_to_string(urls.join(name)).unwrap();
        assert!(!lines.iter().any(|line| line.text.contains(password(&url))), "{lines:#?}");
    }
}
