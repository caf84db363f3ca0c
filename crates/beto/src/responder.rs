//! The answering side: takes questions, refuses what must not be answered, and answers.

use std::time::Duration;

use broker::{Broker, ConnectError, Link};
use futures_util::StreamExt;
use lapin::{
    Acker, BasicProperties, Channel, Consumer,
    message::Delivery,
    options::{BasicAckOptions, BasicConsumeOptions, BasicPublishOptions, BasicQosOptions},
    types::FieldTable,
};
use tokio::time::timeout;

use crate::{
    ANSWER_TYPE, CONTENT_TYPE, Caller, Decision, QUESTION_TYPE, QUESTIONS, Question, QuestionError,
    ReplyQueue,
    message::{FormError, check_form, text},
};

/// How many questions the broker sends ahead.
const AHEAD: u16 = 16;

/// Answers questions over one connection.
pub struct Responder {
    user: String,
    questions: Consumer,
    channel: Channel,
    // The channel dies with it.
    _link: Link,
}

/// What came.
pub enum Heard {
    /// A question that may be answered.
    Question(Asked),
    /// A message that is not answered, and why. It repeats nothing of it.
    Dropped(Refusal),
}

/// A question, and where its answer goes.
pub struct Asked {
    /// Who asks, as the broker has verified.
    pub caller: Caller,
    /// What it asks.
    pub question: Question,
    reply_to: ReplyQueue,
    correlation_id: String,
    acker: Acker,
}

/// Why a message is not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// No verified user, or none of the four callers.
    #[error("no caller has asked it")]
    Caller,
    /// Its answer would go to somebody else, or nowhere.
    #[error("its answer would not go to who asked")]
    ReplyTo,
    /// No correlation id.
    #[error("it has no correlation id")]
    CorrelationId,
    /// Too large, or of another type.
    #[error("it has not the form of a question")]
    Form,
    /// A body that is no question.
    #[error(transparent)]
    Body(#[from] QuestionError),
    /// A permission that is another caller's, or not that of the routing key.
    #[error("its caller may not ask for this permission")]
    Permission,
}

/// Why no more questions can be answered over this connection.
#[derive(Debug, thiserror::Error)]
pub enum ResponderError {
    /// There is no connection.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The broker refuses, or the connection broke.
    #[error("the broker refuses")]
    Broker(#[from] lapin::Error),
    /// The broker did not answer in time.
    #[error("the broker did not answer in time")]
    Slow,
    /// The queue of the questions is gone.
    #[error("the queue {QUESTIONS} is gone")]
    Gone,
}

impl Responder {
    /// Connects and begins to take questions. Declares nothing.
    ///
    /// # Errors
    ///
    /// When the broker is away, refuses, or takes longer than `within`.
    pub async fn connect(broker: &Broker, within: Duration) -> Result<Self, ResponderError> {
        let user = broker.user().to_owned();
        let connecting = async {
            let link = broker.connect("site-control beto", within).await?;
            let channel = link.connection().create_channel().await?;
            channel.basic_qos(AHEAD, BasicQosOptions::default()).await?;
            let (options, none) = (BasicConsumeOptions::default(), FieldTable::default());
            let questions = channel.basic_consume(QUESTIONS.into(), "".into(), options, none);
            let questions = questions.await?;
            Ok(Self { user, questions, channel, _link: link })
        };
        timeout(within, connecting).await.unwrap_or(Err(ResponderError::Slow))
    }

    /// Waits for the next message.
    ///
    /// # Errors
    ///
    /// When no more can come.
    pub async fn next(&mut self) -> Result<Heard, ResponderError> {
        let delivery = self.questions.next().await.ok_or(ResponderError::Gone)??;
        match Asked::of(&delivery) {
            Ok(asked) => Ok(Heard::Question(asked)),
            Err(refusal) => {
                delivery.ack(BasicAckOptions::default()).await?;
                Ok(Heard::Dropped(refusal))
            }
        }
    }

    /// Answers a question, or, without a decision, leaves it unanswered.
    ///
    /// # Errors
    ///
    /// When the broker does not take it. Another responder may be given the question then.
    pub async fn answer(
        &self,
        asked: Asked,
        decision: Option<Decision>,
    ) -> Result<(), ResponderError> {
        if let Some(decision) = decision {
            let properties = BasicProperties::default()
                .with_content_type(CONTENT_TYPE.into())
                .with_type(ANSWER_TYPE.into())
                .with_user_id(self.user.as_str().into())
                .with_correlation_id(asked.correlation_id.as_str().into());
            // Texts and a number only: writing them to memory can't fail.
            let body = decision.to_json(&asked.question).unwrap_or_default();
            let (queue, options) = (asked.reply_to.as_str(), BasicPublishOptions::default());
            let sent =
                self.channel.basic_publish("".into(), queue.into(), options, &body, properties);
            sent.await?;
        }
        Ok(asked.acker.ack(BasicAckOptions::default()).await.map(|_| ())?)
    }
}

impl Asked {
    /// Takes a message that may be answered, by the rules of docs/BETO.md.
    fn of(delivery: &Delivery) -> Result<Self, Refusal> {
        let properties = &delivery.properties;
        let user = text(properties.user_id()).ok_or(Refusal::Caller)?;
        let caller = Caller::of_user(user).ok_or(Refusal::Caller)?;
        let reply_to = text(properties.reply_to()).and_then(|name| ReplyQueue::of(caller, name));
        let reply_to = reply_to.ok_or(Refusal::ReplyTo)?;
        let correlation_id = text(properties.correlation_id()).filter(|id| !id.is_empty());
        let correlation_id = correlation_id.ok_or(Refusal::CorrelationId)?.to_owned();
        let form = check_form(properties, &delivery.data, QUESTION_TYPE);
        form.map_err(|_: FormError| Refusal::Form)?;
        let question = Question::parse(&delivery.data)?;
        let permission = question.permission();
        let is_key = delivery.routing_key.as_str() == permission.as_str();
        if !is_key || !caller.permissions().contains(&permission) {
            return Err(Refusal::Permission);
        }
        let acker = delivery.acker.clone();
        Ok(Self { caller, question, reply_to, correlation_id, acker })
    }
}
