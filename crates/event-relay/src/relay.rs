//! From the outbox to the broker, for ever.

use std::{convert::Infallible, error::Error, time::Duration};

use tokio::time::{Instant, sleep};

use crate::{Broker, Outbox, PublishError, publisher::Publisher};

/// Publishes the events of one outbox.
pub struct Relay<O> {
    outbox: O,
    broker: Broker,
    pace: Pace,
    publisher: Option<Publisher>,
    position: Option<Position>,
}

/// Up to where everything is published, and when the outbox said so.
struct Position {
    sequence: u64,
    read_at: Instant,
}

/// How often, and how long.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Between two looks at an outbox that had nothing new.
    pub look_every: Duration,
    /// How long trouble may last before it is told.
    pub patience: Duration,
    /// The first wait after a failure. It doubles with each.
    pub first_pause: Duration,
    /// The longest wait after a failure.
    pub longest_pause: Duration,
}

/// How the relay is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health<'a> {
    /// Everything that it knows of is published.
    Well,
    /// It has not been well for longer than its patience, with the last reason. Never a secret.
    Trouble(&'a str),
}

/// Events in one read.
const AT_ONCE: u16 = 64;
/// How long the position is not asked for again while nothing is published.
const REMEMBERED: Duration = Duration::from_secs(60);

impl Default for Pace {
    fn default() -> Self {
        Self {
            look_every: Duration::from_secs(3),
            patience: Duration::from_secs(10),
            first_pause: Duration::from_millis(500),
            longest_pause: Duration::from_secs(10),
        }
    }
}

enum Failure<E> {
    Outbox(E),
    Broker(PublishError),
}

impl<O: Outbox> Relay<O> {
    /// A relay that has not begun.
    pub fn new(outbox: O, broker: Broker, pace: Pace) -> Self {
        Self { outbox, broker, pace, publisher: None, position: None }
    }

    /// Publishes what is there and what comes, in the order of the outbox; after a failure it begins
    /// again at the first event that is not known to be published. `tell` hears when trouble has
    /// lasted, and each time that all is well.
    ///
    /// It may be dropped at any moment: what was not recorded is published again by the next one.
    pub async fn run(mut self, mut tell: impl FnMut(Health<'_>)) -> Infallible {
        let mut well_at = Instant::now();
        let mut pause = self.pace.first_pause;
        loop {
            let wait = match self.publish_all().await {
                Ok(()) => {
                    (well_at, pause) = (Instant::now(), self.pace.first_pause);
                    tell(Health::Well);
                    self.pace.look_every
                }
                Err(failure) => {
                    let reason = failure.reason();
                    tracing::warn!(error = reason, "events.not_published");
                    if well_at.elapsed() >= self.pace.patience {
                        tell(Health::Trouble(&reason));
                    }
                    if matches!(failure, Failure::Broker(_)) {
                        self.publisher = None;
                    }
                    self.position = None;
                    let wait = pause;
                    pause = (pause * 2).min(self.pace.longest_pause);
                    wait
                }
            };
            sleep(wait).await;
        }
    }

    /// Connects where it has to, and publishes until there is nothing new.
    async fn publish_all(&mut self) -> Result<(), Failure<O::Error>> {
        let open = match self.publisher.take().filter(Publisher::is_open) {
            Some(publisher) => publisher,
            // Also where nothing is to be published: that the broker is away is known before it is.
            None => Publisher::connect(&self.broker).await?,
        };
        let publisher = self.publisher.insert(open);
        // A restored database may be behind what we remember.
        let fresh = self.position.take().filter(|known| known.read_at.elapsed() < REMEMBERED);
        let position = self.position.insert(match fresh {
            Some(position) => position,
            None => read_position(&self.outbox).await?,
        });
        loop {
            let after = self.outbox.after(position.sequence, AT_ONCE);
            let events = after.await.map_err(Failure::Outbox)?;
            if events.is_empty() {
                return Ok(());
            }
            // Another listener of the Site may have been faster.
            let published = read_position(&self.outbox).await?.sequence;
            for event in events {
                let sequence = event.sequence();
                if sequence > published {
                    // One in flight: an event that the broker could not keep must not come after
                    // one that it kept.
                    publisher.publish(&event).await?;
                    self.outbox.published(sequence).await.map_err(Failure::Outbox)?;
                }
                position.sequence = sequence;
            }
        }
    }
}

async fn read_position<O: Outbox>(outbox: &O) -> Result<Position, Failure<O::Error>> {
    let sequence = outbox.position().await.map_err(Failure::Outbox)?;
    Ok(Position { sequence, read_at: Instant::now() })
}

impl<E: Error> Failure<E> {
    /// The error and its causes on one line.
    fn reason(&self) -> String {
        let error: &dyn Error = match self {
            Self::Outbox(error) => error,
            Self::Broker(error) => error,
        };
        let mut chain = error.to_string();
        let mut source = error.source();
        while let Some(error) = source {
            chain.push_str(": ");
            chain.push_str(&error.to_string());
            source = error.source();
        }
        chain
    }
}

impl<E> From<PublishError> for Failure<E> {
    fn from(error: PublishError) -> Self {
        Self::Broker(error)
    }
}
