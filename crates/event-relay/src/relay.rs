//! From the outbox to the broker, for ever.

use std::{convert::Infallible, error::Error, time::Duration};

use broker::{Broker, told};
use tokio::{
    sync::watch,
    time::{Instant, sleep},
};

use crate::{Outbox, PublishError, publisher::Publisher};

/// Publishes the events of one outbox.
pub struct Relay<O> {
    outbox: O,
    broker: Broker,
    news: watch::Receiver<()>,
    pace: Pace,
    publisher: Option<Publisher>,
    /// When nothing was left to publish; none where that may have changed.
    done_at: Option<Instant>,
}

/// How often, and how long.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Between two looks at whether the broker is still there.
    pub check_every: Duration,
    /// How long after news the outbox is read. All listeners of a Site hear of an event at once; where
    /// each waits for another time, one has published it when the next looks.
    pub spread: Duration,
    /// How long an outbox is left alone of which nobody told news.
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

impl Default for Pace {
    fn default() -> Self {
        Self {
            check_every: Duration::from_secs(3),
            spread: Duration::ZERO,
            look_every: Duration::from_secs(60),
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
    /// A relay that has not begun. `news` tells that the outbox may have more; nothing is lost where
    /// it does not, as the outbox is looked at now and then.
    pub fn new(outbox: O, broker: Broker, news: watch::Receiver<()>, pace: Pace) -> Self {
        Self { outbox, broker, news, pace, publisher: None, done_at: None }
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
            match self.publish_all().await {
                Ok(()) => {
                    (well_at, pause) = (Instant::now(), self.pace.first_pause);
                    tell(Health::Well);
                    self.rest().await;
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
                    self.done_at = None;
                    sleep(pause).await;
                    pause = (pause * 2).min(self.pace.longest_pause);
                }
            }
        }
    }

    /// Waits for news, or until the broker is to be looked at.
    async fn rest(&mut self) {
        tokio::select! {
            () = sleep(self.pace.check_every) => {}
            told = self.news.changed() => match told {
                Ok(()) => {
                    sleep(self.pace.spread).await;
                    self.done_at = None;
                }
                // Nobody tells any more.
                Err(_) => sleep(self.pace.check_every).await,
            },
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
        if self.done_at.is_some_and(|done_at| done_at.elapsed() < self.pace.look_every) {
            return Ok(());
        }
        loop {
            // Asked for each time: another listener of the Site may have been faster, and a restored
            // database may be behind what we know.
            let position = self.outbox.position().await.map_err(Failure::Outbox)?;
            let events = self.outbox.after(position, AT_ONCE).await.map_err(Failure::Outbox)?;
            if events.is_empty() {
                self.done_at = Some(Instant::now());
                return Ok(());
            }
            for event in events {
                // One in flight: an event that the broker could not keep must not come after one that
                // it kept.
                publisher.publish(&event).await?;
                let published = self.outbox.published(event.sequence()).await;
                published.map_err(Failure::Outbox)?;
            }
        }
    }
}

impl<E: Error> Failure<E> {
    /// The error and its causes on one line.
    fn reason(&self) -> String {
        match self {
            Self::Outbox(error) => told(error),
            Self::Broker(error) => told(error),
        }
    }
}

impl<E> From<PublishError> for Failure<E> {
    fn from(error: PublishError) -> Self {
        Self::Broker(error)
    }
}
