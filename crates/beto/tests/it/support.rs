//! A broker with the four callers and the responder, and who answers by hand.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use beto::{
    About, Beto, Caller, CouldNotAsk, Decision, Name, Pace, Permission, QUESTIONS, Question,
    RESPONDER, Rights, Setup,
};
use broker::{Broker as Target, Trust};
use chrono::{DateTime, Utc};
use futures_util::StreamExt;
use lapin::{
    BasicProperties, Channel, Confirmation, Connection, ConnectionProperties, Consumer,
    message::Delivery,
    options::{BasicAckOptions, BasicConsumeOptions, BasicPublishOptions, ConfirmSelectOptions},
    types::{FieldTable, ShortString},
};
use ring::rand::SystemRandom;
use serde_json::{Value, json};
use test_support::rabbitmq::{Broker, BrokerUser};
use tokio::{task::JoinHandle, time::timeout};

pub(crate) const LONG: Duration = Duration::from_secs(120);
/// Enough on a slow machine.
pub(crate) const AMPLE: Duration = Duration::from_secs(20);
/// The password of each user.
pub(crate) const PASSWORD: &str = "hunter2";
/// Somebody who may do everything.
pub(crate) const ADMIN: &str = "admin";

/// A node with what docs/BETO.md says, and an administrator.
pub(crate) async fn node() -> Broker {
    let names = Rights::all().into_iter().map(|rights| rights.user).chain([ADMIN]);
    let users: Vec<_> = names.map(|name| BrokerUser::administrator(name, PASSWORD)).collect();
    let user = |user: &BrokerUser| json!({ "name": user.name, "password": PASSWORD, "tags": "" });
    let users_defined: Vec<Value> = users.iter().map(user).collect();
    let mut defined = beto::definitions("/", &users_defined);
    let all =
        json!({ "user": ADMIN, "vhost": "/", "configure": ".*", "write": ".*", "read": ".*" });
    defined["permissions"].as_array_mut().unwrap().push(all);
    Broker::start_defined(&users, &defined.to_string()).await.unwrap()
}

/// A caller that does not try again by itself: only a question makes it.
pub(crate) fn setup(broker: &Broker, caller: Caller) -> Setup {
    let trust = Trust::from_pem_file(&broker.ca_file()).unwrap();
    let url = broker.tls_url(caller.user()).parse().unwrap();
    let target = Target::new(url, Some(trust)).unwrap();
    let day = Duration::from_secs(86_400);
    let pace = Pace { first_pause: day, longest_pause: day, ..Pace::default() };
    Setup::new(caller, target).unwrap().with_budget(AMPLE).with_pace(pace)
}

pub(crate) fn start(setup: Setup) -> Arc<Beto> {
    Arc::new(Beto::start(setup, random(), clock))
}

#[expect(clippy::disallowed_methods, reason = "a test stands for the binary")]
fn random() -> SystemRandom {
    SystemRandom::new()
}

#[expect(clippy::disallowed_methods, reason = "a test stands for the binary")]
fn clock() -> DateTime<Utc> {
    Utc::now()
}

/// May this member have a Run executed?
pub(crate) fn execute(member: &str) -> Question {
    let name = |text: &str| Name::parse(text).unwrap();
    let permission = Permission::RunsExecute;
    Question::in_project(permission, name(member), name("p-4"), name("gpu-lab")).unwrap()
}

pub(crate) type Asking = JoinHandle<Result<Decision, CouldNotAsk>>;

/// Asks in the background.
pub(crate) fn ask(beto: &Arc<Beto>, question: Question) -> Asking {
    let beto = Arc::clone(beto);
    tokio::spawn(async move { beto.ask(&question).await })
}

/// The outcome of a question, and how long it took to come from now.
pub(crate) async fn outcome(asking: Asking) -> (Result<Decision, CouldNotAsk>, Duration) {
    let began = Instant::now();
    let outcome = timeout(LONG, asking).await.unwrap().unwrap();
    (outcome, began.elapsed())
}

pub(crate) async fn connect(broker: &Broker, user: &str) -> (Connection, Channel) {
    let url = broker.url(user);
    let connection = Connection::connect(&url, ConnectionProperties::default()).await.unwrap();
    let channel = connection.create_channel().await.unwrap();
    channel.confirm_select(ConfirmSelectOptions::default()).await.unwrap();
    (connection, channel)
}

/// The responder's user, answering by hand.
pub(crate) struct Answerer {
    pub(crate) channel: Channel,
    questions: Consumer,
    _connection: Connection,
}

impl Answerer {
    pub(crate) async fn start(broker: &Broker) -> Self {
        let (connection, channel) = connect(broker, RESPONDER).await;
        let (options, none) = (BasicConsumeOptions::default(), FieldTable::default());
        let questions = channel.basic_consume(QUESTIONS.into(), "".into(), options, none);
        let questions = questions.await.unwrap();
        Self { channel, questions, _connection: connection }
    }

    /// The next question.
    pub(crate) async fn question(&mut self) -> Asked {
        let next = timeout(LONG, self.questions.next()).await;
        let delivery = next.unwrap().unwrap().unwrap();
        delivery.ack(BasicAckOptions::default()).await.unwrap();
        Asked(delivery)
    }

    /// Answers as docs/BETO.md says.
    pub(crate) async fn answer(&self, asked: &Asked, decision: &str) {
        let body = asked.answer(decision).to_string();
        let taken = self.send(asked, asked.properties(), body.as_bytes()).await;
        assert_eq!(taken, Confirmation::Ack(None));
    }

    /// Answers the next question.
    pub(crate) async fn answer_next(&mut self, decision: &str) {
        let asked = self.question().await;
        self.answer(&asked, decision).await;
    }

    /// Sends anything to who asked.
    pub(crate) async fn send(
        &self,
        asked: &Asked,
        properties: BasicProperties,
        body: &[u8],
    ) -> Confirmation {
        send(&self.channel, asked, properties, body).await.unwrap()
    }
}

/// Sends anything to who asked.
pub(crate) async fn send(
    channel: &Channel,
    asked: &Asked,
    properties: BasicProperties,
    body: &[u8],
) -> lapin::Result<Confirmation> {
    let options = BasicPublishOptions::default();
    let queue = asked.reply_to();
    channel.basic_publish("".into(), queue.into(), options, body, properties).await?.await
}

/// A question as it came.
pub(crate) struct Asked(pub(crate) Delivery);

impl Asked {
    pub(crate) fn body(&self) -> Value {
        serde_json::from_slice(&self.0.data).unwrap()
    }

    pub(crate) fn question(&self) -> Question {
        Question::parse(&self.0.data).unwrap()
    }

    pub(crate) fn reply_to(&self) -> &str {
        property(self.0.properties.reply_to())
    }

    pub(crate) fn correlation_id(&self) -> &str {
        property(self.0.properties.correlation_id())
    }

    /// The body of an answer.
    pub(crate) fn answer(&self, decision: &str) -> Value {
        let mut answer = self.body();
        answer["decision"] = decision.into();
        answer
    }

    /// The properties of an answer.
    pub(crate) fn properties(&self) -> BasicProperties {
        BasicProperties::default()
            .with_content_type("application/json".into())
            .with_type("beto.answer.v1".into())
            .with_user_id(RESPONDER.into())
            .with_correlation_id(self.correlation_id().into())
    }
}

pub(crate) fn property(text: &Option<ShortString>) -> &str {
    text.as_ref().unwrap().as_str()
}

/// The project of a question.
pub(crate) fn project(question: &Question) -> &str {
    match question.about() {
        About::Project(project) => project.as_str(),
        About::Tenant(_) => panic!("it is about a tenant"),
    }
}
