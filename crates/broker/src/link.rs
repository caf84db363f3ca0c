//! A broker, and a connection to it that is logged in.

use std::time::Duration;

use lapin::{AsyncTcpStream, Connection, ConnectionProperties};
use tokio::time::timeout;

use crate::{
    BrokerUrl, Trust,
    transport::{self, Hold, Transport},
};

/// How long a broker may take to answer a goodbye.
const CLOSE_WITHIN: Duration = Duration::from_secs(5);
/// AMQP's number for a connection that ends because nobody needs it any more.
const NO_FAULT: u16 = 200;

/// A broker: where it is, and what vouches for it.
#[derive(Clone, Debug)]
pub struct Broker {
    url: BrokerUrl,
    trust: Option<Trust>,
}

/// Why a URL and a trust don't go together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BrokerError {
    /// `amqps` without anything that vouches for the broker.
    #[error("an amqps:// URL needs a CA file")]
    NoTrust,
    /// `amqp`, which is not verified, with a CA file.
    #[error("a CA file is given, but an amqp:// URL is plain text")]
    TrustUnused,
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// No connection could be had, or the broker refused the credential.
    #[error("the broker can't be reached")]
    Refused(#[source] lapin::Error),
    /// The broker accepted a connection and did not finish the login.
    #[error("the broker did not finish the login within {} s", within.as_secs_f32())]
    NoLogin {
        /// How long it had.
        within: Duration,
    },
}

/// A connection that is logged in. Its stream ends with the value.
pub struct Link {
    // Dropped in this order: first the library's side, then the stream below it.
    connection: Connection,
    hold: Hold,
}

impl Broker {
    /// Puts a URL and a trust together.
    ///
    /// # Errors
    ///
    /// When an `amqps` URL has no trust, or an `amqp` one has.
    pub fn new(url: BrokerUrl, trust: Option<Trust>) -> Result<Self, BrokerError> {
        match (url.is_tls(), &trust) {
            (true, None) => Err(BrokerError::NoTrust),
            (false, Some(_)) => Err(BrokerError::TrustUnused),
            _ => Ok(Self { url, trust }),
        }
    }

    /// The broker's user, who is in each message that names its sender.
    #[must_use]
    pub fn user(&self) -> &str {
        self.url.user()
    }

    /// Connects and logs in, all of it within a time. `name` is what the broker shows.
    ///
    /// It may be dropped at any moment, and takes the stream with it.
    ///
    /// # Errors
    ///
    /// When the broker is away, can't be verified, refuses the credential, or takes too long.
    pub async fn connect(&self, name: &str, within: Duration) -> Result<Link, ConnectError> {
        let (owned, hold) = (self.clone(), Hold::begin());
        let watched = hold.watched();
        let connect = async move |_, _| {
            let stream = Transport::connect(&owned.url, owned.trust.as_ref(), &watched).await?;
            Ok(AsyncTcpStream::Plain(stream))
        };
        let properties = ConnectionProperties::default().with_connection_name(name.into());
        let uri = self.url.uri.clone();
        let connecting = Connection::connector(uri, transport::runtime(), connect, properties);
        let connection =
            timeout(within, connecting).await.map_err(|_| ConnectError::NoLogin { within })?;
        Ok(Link { connection: connection.map_err(ConnectError::Refused)?, hold })
    }
}

impl Link {
    /// The connection, for channels.
    #[must_use]
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Leaves the end of the stream to the AMQP library.
    #[must_use]
    pub fn release(self) -> Connection {
        self.hold.release();
        self.connection
    }

    /// Says goodbye, and ends the stream when the broker has answered or took too long.
    pub async fn close(self) {
        // Whether it could be said or not, the stream ends.
        let _ = timeout(CLOSE_WITHIN, self.connection.close(NO_FAULT, "done".into())).await;
    }
}
