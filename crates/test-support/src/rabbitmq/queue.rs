//! A queue of a test, read over a connection of its own.

use std::time::Duration;

use lapin::{
    Channel, Connection, ConnectionProperties,
    options::{BasicAckOptions, BasicGetOptions, QueueBindOptions, QueueDeclareOptions},
    types::FieldTable,
};
use serde_json::Value;
use tokio::time::Instant;

/// A durable queue that survives a kill of the node.
pub struct Queue {
    name: String,
    channel: Channel,
    // The channel dies with it.
    _connection: Connection,
}

/// A message as it came.
#[derive(Clone, Debug)]
pub struct Delivered {
    /// The key that it was published with.
    pub routing_key: String,
    /// Its content type, empty where it has none.
    pub content_type: String,
    /// Its message id, empty where it has none.
    pub message_id: String,
    /// Whether the node keeps it on disk.
    pub persistent: bool,
    /// Who published it, as the node has verified; empty where nobody says.
    pub user_id: String,
    /// Its body.
    pub body: Value,
}

/// Why a queue can't be used.
#[derive(Debug, thiserror::Error)]
pub enum QueueError {
    /// The node does not answer or refuses.
    #[error(transparent)]
    Broker(#[from] lapin::Error),
    /// A body is no JSON.
    #[error("a message's body is no JSON")]
    Body(#[from] serde_json::Error),
    /// It did not fill in time.
    #[error("waited {within:?} for {wanted} messages, and {came} came")]
    TimedOut {
        /// How long the wait was.
        within: Duration,
        /// How many were asked for.
        wanted: usize,
        /// How many came.
        came: usize,
    },
}

impl Queue {
    /// Opens a queue, makes it where it is not there, and binds it to an exchange by a key.
    ///
    /// # Errors
    ///
    /// When the node does not answer or refuses.
    pub async fn bind(
        url: &str,
        name: &str,
        exchange: &str,
        key: &str,
    ) -> Result<Self, QueueError> {
        let connection = Connection::connect(url, ConnectionProperties::default()).await?;
        let channel = connection.create_channel().await?;
        let durable = QueueDeclareOptions { durable: true, ..QueueDeclareOptions::default() };
        channel.queue_declare(name.into(), durable, FieldTable::default()).await?;
        let (options, arguments) = (QueueBindOptions::default(), FieldTable::default());
        channel.queue_bind(name.into(), exchange.into(), key.into(), options, arguments).await?;
        Ok(Self { name: name.to_owned(), channel, _connection: connection })
    }

    /// Takes the next message out of the queue; none when it is empty now.
    ///
    /// # Errors
    ///
    /// When the node does not answer, or the body is no JSON.
    pub async fn take(&self) -> Result<Option<Delivered>, QueueError> {
        let got = self.channel.basic_get(self.name.as_str().into(), BasicGetOptions::default());
        let Some(message) = got.await? else { return Ok(None) };
        message.delivery.ack(BasicAckOptions::default()).await?;
        let delivery = message.delivery;
        let properties = &delivery.properties;
        let text = |text: &Option<lapin::types::ShortString>| {
            text.as_ref().map(ToString::to_string).unwrap_or_default()
        };
        Ok(Some(Delivered {
            routing_key: delivery.routing_key.to_string(),
            content_type: text(properties.content_type()),
            message_id: text(properties.message_id()),
            persistent: *properties.delivery_mode() == Some(2),
            user_id: text(properties.user_id()),
            body: serde_json::from_slice(&delivery.data)?,
        }))
    }

    /// Takes so many messages, in the order in which they stand in the queue.
    ///
    /// # Errors
    ///
    /// When fewer come within a minute, or one can't be taken.
    pub async fn take_many(&self, count: usize) -> Result<Vec<Delivered>, QueueError> {
        let within = Duration::from_secs(60);
        let deadline = Instant::now() + within;
        let mut taken = Vec::new();
        while taken.len() < count {
            match self.take().await? {
                Some(message) => taken.push(message),
                None if Instant::now() > deadline => {
                    return Err(QueueError::TimedOut { within, wanted: count, came: taken.len() });
                }
                None => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
        Ok(taken)
    }
}
