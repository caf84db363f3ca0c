//! One connection with its reply queue: questions go out, answers come in.

use std::{sync::Arc, time::Duration};

use broker::{ConnectError, Link, told};
use chrono::{DateTime, Utc};
use futures_util::StreamExt;
use lapin::{
    BasicProperties, Channel, Confirmation, Consumer,
    message::{BasicReturnMessage, Delivery},
    options::{
        BasicAckOptions, BasicConsumeOptions, BasicPublishOptions, BasicQosOptions,
        ConfirmSelectOptions, QueueDeclareOptions,
    },
    types::{AMQPValue, FieldTable},
};
use ring::rand::{SecureRandom, SystemRandom};
use tokio::{
    select,
    sync::watch,
    time::{Instant, timeout, timeout_at},
};

use crate::{
    ANSWER_TYPE, AnswerError, CONTENT_TYPE, CouldNotAsk, Decision, EXCHANGE, LARGEST,
    QUESTION_TYPE, Question, ReplyQueue, Setup,
    message::{FormError, check_form, text},
    waiting::Waiting,
};

/// How many answers the broker sends ahead.
const AHEAD: u16 = 64;
/// How many bytes of answers may wait in the reply queue. The broker refuses more, so that nobody
/// can fill our memory.
const WAITING_BYTES: usize = 16 * LARGEST;
/// AMQP's number for a message that need not survive the broker.
const TRANSIENT: u8 = 1;

/// What questions go over.
pub(crate) struct Line {
    user: String,
    responder: String,
    budget: Duration,
    replies: ReplyQueue,
    channel: Channel,
    random: SystemRandom,
    clock: fn() -> DateTime<Utc>,
    waiting: Waiting,
    /// Why it can't be used any more, where somebody has found that out.
    broken: watch::Sender<Option<String>>,
}

/// A line with what only its keeper has.
pub(crate) struct OpenLine {
    pub(crate) line: Arc<Line>,
    pub(crate) answers: Consumer,
    pub(crate) link: Link,
}

/// Why there is no line.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenError {
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error("the broker refuses the reply queue")]
    Refused(#[from] lapin::Error),
    #[error("the random source failed")]
    NoRandomness,
    #[error("the broker did not answer within {} s", .0.as_secs_f32())]
    Slow(Duration),
}

impl Line {
    /// Connects, makes a reply queue and reads it.
    pub(crate) async fn open(
        setup: &Setup,
        within: Duration,
        random: &SystemRandom,
        clock: fn() -> DateTime<Utc>,
    ) -> Result<OpenLine, OpenError> {
        let caller = setup.caller;
        let suffix = random_bytes(random).map_err(|_| OpenError::NoRandomness)?;
        let replies = ReplyQueue::new(caller, suffix);
        let link = setup.broker.connect(&format!("site-control {caller}"), within).await?;
        let channel = link.connection().create_channel().await?;
        channel.confirm_select(ConfirmSelectOptions::default()).await?;
        channel.basic_qos(AHEAD, BasicQosOptions::default()).await?;
        let (mut bounds, none) = (FieldTable::default(), FieldTable::default());
        let bytes = i64::try_from(WAITING_BYTES).unwrap_or(i64::MAX);
        bounds.insert("x-max-length-bytes".into(), AMQPValue::LongLongInt(bytes));
        bounds.insert("x-overflow".into(), AMQPValue::LongString("reject-publish".into()));
        let own = QueueDeclareOptions { exclusive: true, auto_delete: true, ..Default::default() };
        channel.queue_declare(replies.as_str().into(), own, bounds).await?;
        let exclusive = BasicConsumeOptions { exclusive: true, ..Default::default() };
        let answers =
            channel.basic_consume(replies.as_str().into(), "answers".into(), exclusive, none);
        let answers = answers.await?;
        let line = Self {
            user: caller.user().to_owned(),
            responder: setup.responder.clone(),
            budget: setup.budget,
            replies,
            channel,
            random: random.clone(),
            clock,
            waiting: Waiting::default(),
            broken: watch::Sender::new(None),
        };
        Ok(OpenLine { line: Arc::new(line), answers, link })
    }

    /// Takes answers until the line can't be used any more, and says why.
    pub(crate) async fn serve(&self, answers: Consumer) -> String {
        let mut broken = self.broken.subscribe();
        select! {
            reason = self.hear(answers) => reason,
            told = broken.wait_for(Option::is_some) => {
                told.ok().and_then(|reason| reason.clone()).unwrap_or_default()
            }
        }
    }

    /// Tells every question that waits, and every one that comes, that the line is gone.
    pub(crate) fn lose(&self, why: &CouldNotAsk) {
        self.waiting.lose(why);
    }

    /// Asks, and waits for the answer until the deadline.
    pub(crate) async fn ask(
        self: &Arc<Self>,
        question: &Question,
        deadline: Instant,
    ) -> Result<Decision, CouldNotAsk> {
        let correlation_id = self.random_id()?;
        let properties = self.properties(&correlation_id, deadline)?;
        // Texts and numbers only: writing them to memory can't fail.
        let body = question.to_json().unwrap_or_default();
        let key = question.permission().as_str();
        let mut place = self.waiting.place(correlation_id.clone(), question)?;
        let mut confirmed = self.publish(correlation_id, key, properties, body);
        match timeout_at(deadline, place.heard()).await {
            Ok(Some(outcome)) => outcome,
            Ok(None) => Err(CouldNotAsk::Lost("nobody reads answers any more".to_owned())),
            Err(_) if *confirmed.borrow_and_update() => Err(CouldNotAsk::NoAnswer),
            Err(_) => Err(CouldNotAsk::NotConfirmed),
        }
    }

    fn properties(
        &self,
        correlation_id: &str,
        deadline: Instant,
    ) -> Result<BasicProperties, CouldNotAsk> {
        let left = deadline.saturating_duration_since(Instant::now()).as_millis().max(1);
        let asked_at = u64::try_from((self.clock)().timestamp()).unwrap_or_default();
        Ok(BasicProperties::default()
            .with_content_type(CONTENT_TYPE.into())
            .with_type(QUESTION_TYPE.into())
            .with_delivery_mode(TRANSIENT)
            // The broker verifies it: the responder knows who asks.
            .with_user_id(self.user.as_str().into())
            .with_reply_to(self.replies.as_str().into())
            .with_correlation_id(correlation_id.into())
            .with_message_id(self.random_id()?.as_str().into())
            .with_expiration(left.to_string().as_str().into())
            .with_timestamp(asked_at))
    }

    /// Publishes a question in a task of its own, as who asked may leave and the confirm has to be
    /// heard all the same. What is given back says whether the broker has it.
    fn publish(
        self: &Arc<Self>,
        correlation_id: String,
        key: &'static str,
        properties: BasicProperties,
        body: Vec<u8>,
    ) -> watch::Receiver<bool> {
        let (confirm, confirmed) = watch::channel(false);
        let line = Arc::clone(self);
        tokio::spawn(async move {
            let published = async {
                let options = BasicPublishOptions { mandatory: true, immediate: false };
                let channel = &line.channel;
                let sent =
                    channel.basic_publish(EXCHANGE.into(), key.into(), options, &body, properties);
                sent.await?.await
            };
            match timeout(line.budget, published).await {
                Ok(Ok(confirmation)) => {
                    confirm.send_replace(true);
                    line.confirmed(&correlation_id, confirmation);
                }
                Ok(Err(error)) => line.breaks(told(&error)),
                Err(_) => line.breaks("the broker did not confirm a question in time".to_owned()),
            }
        });
        confirmed
    }

    fn confirmed(&self, correlation_id: &str, confirmation: Confirmation) {
        let refused = !confirmation.is_ack();
        match confirmation.take_message() {
            // The library gives a returned question to the next confirm, whichever it is of.
            Some(returned) => self.returned(&returned),
            None if refused => {
                self.waiting.settle(correlation_id, |_| Err(CouldNotAsk::NotTaken));
            }
            None => {}
        }
    }

    fn returned(&self, returned: &BasicReturnMessage) {
        if let Some(id) = text(returned.delivery.properties.correlation_id()) {
            self.waiting.settle(id, |_| Err(CouldNotAsk::NobodyListens));
        }
    }

    fn breaks(&self, reason: String) {
        self.broken.send_if_modified(|broken| broken.is_none() && broken.replace(reason).is_none());
    }

    /// Takes answers until no more can come, and says why.
    async fn hear(&self, mut answers: Consumer) -> String {
        loop {
            match answers.next().await {
                Some(Ok(delivery)) => {
                    if let Err(error) = delivery.ack(BasicAckOptions::default()).await {
                        return told(&error);
                    }
                    self.answered(&delivery);
                }
                Some(Err(error)) => return told(&error),
                None => return "the broker has ended the reply queue".to_owned(),
            }
        }
    }

    /// Gives an answer to the question that it is an answer to; drops it where there is none.
    fn answered(&self, delivery: &Delivery) {
        let properties = &delivery.properties;
        let id = text(properties.correlation_id()).filter(|id| self.waiting.holds(id));
        let Some(id) = id else {
            // Late, a repetition, or made up: of no meaning, and anybody's to send.
            tracing::debug!("beto.answer_unasked");
            return;
        };
        if text(properties.user_id()) != Some(self.responder.as_str()) {
            tracing::warn!("beto.answer_forged");
            return;
        }
        self.waiting.settle(id, |question| {
            check_form(properties, &delivery.data, ANSWER_TYPE)?;
            Ok(Decision::parse(&delivery.data, question)?)
        });
    }

    fn random_id(&self) -> Result<String, CouldNotAsk> {
        let bytes: [u8; 16] = random_bytes(&self.random).map_err(|_| CouldNotAsk::NoRandomness)?;
        Ok(hex::encode(bytes))
    }
}

impl From<FormError> for CouldNotAsk {
    fn from(error: FormError) -> Self {
        Self::Answer(match error {
            FormError::Large => AnswerError::Form("it is too large"),
            FormError::ContentType => AnswerError::Form("its content type is another"),
            FormError::Type(_) => AnswerError::Form("its type is another"),
        })
    }
}

fn random_bytes<const N: usize>(
    random: &SystemRandom,
) -> Result<[u8; N], ring::error::Unspecified> {
    let mut bytes = [0; N];
    random.fill(&mut bytes)?;
    Ok(bytes)
}
