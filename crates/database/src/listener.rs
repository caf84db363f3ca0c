//! Hints from other processes.

use std::time::Duration;

use diesel_async::{AsyncPgConnection, SimpleAsyncConnection};
use futures_util::StreamExt;

use crate::{ConnectError, DatabaseUrl};

/// What a [`Listener`] tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hint {
    /// Another process announced this payload.
    Payload(String),
    /// The connection is new: hints may have been lost, so look at everything once.
    Connected,
    /// The connection has ended: none is heard until it is [`Hint::Connected`] again.
    Lost,
}

/// One connection that listens on a channel and is opened again whenever it ends.
pub struct Listener {
    url: DatabaseUrl,
    channel: String,
}

impl Listener {
    const FIRST_PAUSE: Duration = Duration::from_millis(100);
    const LONGEST_PAUSE: Duration = Duration::from_secs(5);

    /// Prepares a listener on `channel`, at most 63 of the characters `a-z`, `0-9` and `_`. With the
    /// URL that [`crate::Pool::url`] gives, PostgreSQL shows its connection under the process's name.
    #[must_use]
    pub fn new(url: &DatabaseUrl, channel: impl Into<String>) -> Self {
        Self { url: url.clone(), channel: channel.into() }
    }

    /// Listens for ever and gives each hint to `tell`, which must be quick.
    pub async fn run(self, tell: impl Fn(Hint)) {
        let mut pause = Self::FIRST_PAUSE;
        loop {
            match self.connect().await {
                Ok(mut connection) => {
                    pause = Self::FIRST_PAUSE;
                    tracing::info!(db.channel = self.channel, "db.listening");
                    tell(Hint::Connected);
                    let mut notifications = std::pin::pin!(connection.notifications_stream());
                    while let Some(Ok(notification)) = notifications.next().await {
                        tell(Hint::Payload(notification.payload));
                    }
                    tell(Hint::Lost);
                    tracing::warn!(db.channel = self.channel, "db.listener_lost");
                }
                Err(error) => {
                    tracing::warn!(db.channel = self.channel, error = %error, "db.listener_failed");
                }
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Self::LONGEST_PAUSE);
        }
    }

    async fn connect(&self) -> Result<AsyncPgConnection, ConnectError> {
        let mut connection = self.url.connect().await?;
        let listen = format!("LISTEN {}", self.channel);
        // A server that stops answering here must not silence the hints for good.
        tokio::time::timeout(DatabaseUrl::CONNECT_TIMEOUT, connection.batch_execute(&listen))
            .await
            .map_err(|_| ConnectError::Unreachable("it did not answer in time".to_owned()))?
            .map_err(|error| ConnectError::Unreachable(error.to_string()))?;
        Ok(connection)
    }
}
