//! One connection to the broker, and one event at a time over it.

use std::time::Duration;

use broker::{Broker, ConnectError};
use lapin::{
    BasicProperties, Channel, Confirmation, Connection,
    options::{BasicPublishOptions, ConfirmSelectOptions},
};
use tokio::time::timeout;

use crate::Event;

/// The durable topic exchange that events are published to. The relay never declares it.
pub const EXCHANGE: &str = "site-control.events";

/// How long the broker may take to confirm an event, or to open a channel.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);
/// How long everything up to the end of the login may take.
const LOGIN_WITHIN: Duration = Duration::from_secs(20);
/// AMQP's number for a message that the broker keeps on disk.
const PERSISTENT: u8 = 2;

/// Why an event is not known to be published.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// There is no connection.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The connection broke, or the broker refused to take the event.
    #[error("the broker did not take an event")]
    Refused(#[source] lapin::Error),
    /// The broker says that it could not keep the event.
    #[error("the broker could not keep an event")]
    NotKept,
    /// No answer in time, such as from a broker without memory or disk.
    #[error("the broker did not answer within {} s", ANSWER_WITHIN.as_secs())]
    Silent,
    /// The event can't be written as JSON: a fault of ours.
    #[error("an event can't be written as JSON")]
    Json(#[from] serde_json::Error),
}

/// An open channel with confirms.
pub(crate) struct Publisher {
    user: String,
    channel: Channel,
    connection: Connection,
}

impl Publisher {
    /// Connects, logs in and asks for confirms. Declares nothing.
    pub(crate) async fn connect(broker: &Broker) -> Result<Self, PublishError> {
        let connection = broker.connect("site-control", LOGIN_WITHIN).await?.release();
        let channel = in_time(async {
            let channel = connection.create_channel().await?;
            channel.confirm_select(ConfirmSelectOptions::default()).await?;
            Ok(channel)
        });
        let channel = channel.await?;
        Ok(Self { user: broker.user().to_owned(), channel, connection })
    }

    /// Whether the connection and the channel are open, as far as is known.
    pub(crate) fn is_open(&self) -> bool {
        self.connection.status().connected() && self.channel.status().connected()
    }

    /// Publishes an event and waits until the broker has it.
    pub(crate) async fn publish(&self, event: &Event) -> Result<(), PublishError> {
        let json = event.to_json()?;
        let seconds = u64::try_from(event.occurred_at().timestamp()).unwrap_or_default();
        let properties = BasicProperties::default()
            .with_content_type("application/cloudevents+json".into())
            .with_delivery_mode(PERSISTENT)
            .with_message_id(event.id().into())
            .with_timestamp(seconds)
            // The broker verifies it: who reads the event knows who published it.
            .with_user_id(self.user.as_str().into());
        let confirmed = in_time(async {
            // Not mandatory: that nobody has bound a queue is no fault, the outbox is the record.
            let options = BasicPublishOptions::default();
            let key = event.routing_key();
            self.channel
                .basic_publish(EXCHANGE.into(), key.as_str().into(), options, &json, properties)
                .await?
                .await
        });
        match confirmed.await? {
            Confirmation::Ack(_) => Ok(()),
            Confirmation::Nack(_) | Confirmation::NotRequested => Err(PublishError::NotKept),
        }
    }
}

async fn in_time<T>(work: impl Future<Output = lapin::Result<T>>) -> Result<T, PublishError> {
    match timeout(ANSWER_WITHIN, work).await {
        Ok(result) => result.map_err(PublishError::Refused),
        Err(_) => Err(PublishError::Silent),
    }
}
