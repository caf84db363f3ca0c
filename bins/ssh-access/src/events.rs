//! The events of the Site's keys, from the outbox of their context to a broker.

use broker::Broker;
use database::{DatabaseError, Pool};
use event_relay::{Event, EventError, EventFields, Outbox, Pace};
use service_kit::Alarms;
use service_start::{ALARM_EVENTS, relay_events};
use ssh_access::{Outbox as KeysOutbox, SiteId};
use tokio::sync::watch;

/// What the relay has to know of the propagator.
pub(crate) struct Occasions {
    /// Whether this process leads.
    pub(crate) leads: watch::Sender<bool>,
    /// There are new events.
    pub(crate) news: watch::Sender<()>,
}

/// Publishes the events of the Site, in the process that leads: it has written most of them, so it
/// knows when there are new ones, and one that waits for the lease would publish them again.
pub(crate) struct EventsRelay {
    outbox: SiteOutbox,
    broker: Broker,
    alarms: Alarms,
    leads: watch::Receiver<bool>,
    news: watch::Receiver<()>,
}

impl Occasions {
    /// Nobody leads yet.
    pub(crate) fn new() -> Self {
        Self { leads: watch::Sender::new(false), news: watch::Sender::new(()) }
    }

    /// The relay that hears of them.
    pub(crate) fn relay(
        &self,
        broker: Broker,
        pool: Pool,
        site: SiteId,
        alarms: Alarms,
    ) -> EventsRelay {
        let outbox = SiteOutbox { keys: KeysOutbox::new(pool, site.clone()), site };
        let (leads, news) = (self.leads.subscribe(), self.news.subscribe());
        EventsRelay { outbox, broker, alarms, leads, news }
    }
}

impl EventsRelay {
    /// Publishes for ever, while this process leads, and keeps the alarm true.
    pub(crate) async fn run(mut self) {
        // An error means that the propagator has ended, and with it the process.
        while self.leads.wait_for(|leads| *leads).await.is_ok() {
            let (outbox, broker) = (self.outbox.clone(), self.broker.clone());
            let (news, alarms) = (self.news.clone(), self.alarms.clone());
            tokio::select! {
                never = relay_events(outbox, broker, news, Pace::default(), alarms) => match never {},
                _ = self.leads.wait_for(|leads| !*leads) => {}
            }
            // Who leads knows better.
            self.alarms.clear(ALARM_EVENTS);
        }
        std::future::pending::<()>().await;
    }
}

#[derive(Clone)]
struct SiteOutbox {
    keys: KeysOutbox,
    site: SiteId,
}

/// Why the outbox does not answer.
#[derive(Debug, thiserror::Error)]
enum OutboxError {
    #[error("the events can't be read, or how far they are published")]
    Database(#[from] DatabaseError),
    #[error("an event can't be published")]
    Event(#[from] EventError),
}

impl Outbox for SiteOutbox {
    type Error = OutboxError;

    async fn position(&self) -> Result<u64, OutboxError> {
        Ok(self.keys.position().await?)
    }

    async fn after(&self, sequence: u64, limit: u16) -> Result<Vec<Event>, OutboxError> {
        let events = self.keys.next(sequence, limit).await?;
        let site = self.site.as_str();
        let published = events.into_iter().map(|event| {
            Event::new(EventFields {
                sequence: event.seq,
                id: event.id,
                // Sequences are of one outbox, and the streams of the Site have another.
                source: format!("/sites/{site}/ssh-access"),
                kind: event.kind,
                site: site.to_owned(),
                subject: None,
                occurred_at: event.occurred_at,
                data: event.data,
            })
        });
        Ok(published.collect::<Result<_, _>>()?)
    }

    async fn published(&self, sequence: u64) -> Result<(), OutboxError> {
        Ok(self.keys.published(sequence).await?)
    }
}
