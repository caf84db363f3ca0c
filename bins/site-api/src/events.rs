//! The events of the Site's streams, from the outbox of their context to a broker.

use std::{convert::Infallible, time::Duration};

use broker::Broker;
use database::Pool;
use event_relay::{Event, EventError, EventFields, Outbox, Pace};
use service_kit::Alarms;
use service_start::relay_events;
use site_coordination::{Outbox as CommandsOutbox, ReadError, SiteId, Wakeups};

/// How long after its listeners have heard of an event the last of them looks for it.
const SPREAD: Duration = Duration::from_secs(1);

/// Publishes the events of a Site for ever, and keeps the alarm true. `fraction` is this listener's
/// own part of [`SPREAD`], from 0 up to 1.
pub(crate) async fn relay(
    broker: Broker,
    pool: Pool,
    wakeups: Wakeups,
    alarms: Alarms,
    fraction: f64,
) -> Infallible {
    let pace = Pace { spread: SPREAD.mul_f64(fraction), ..Pace::default() };
    let site = wakeups.site().clone();
    let outbox = SiteOutbox { commands: CommandsOutbox::new(pool, site.clone()), site };
    relay_events(outbox, broker, wakeups.subscribe_events(), pace, alarms).await
}

struct SiteOutbox {
    commands: CommandsOutbox,
    site: SiteId,
}

/// Why the outbox does not answer.
#[derive(Debug, thiserror::Error)]
enum OutboxError {
    #[error("the events can't be read")]
    Read(#[from] ReadError),
    #[error("how far events are published can't be read or recorded")]
    Position(#[from] database::DatabaseError),
    #[error("an event can't be published")]
    Event(#[from] EventError),
}

impl Outbox for SiteOutbox {
    type Error = OutboxError;

    async fn position(&self) -> Result<u64, OutboxError> {
        Ok(self.commands.position().await?)
    }

    async fn after(&self, sequence: u64, limit: u16) -> Result<Vec<Event>, OutboxError> {
        let events = self.commands.next(sequence, limit).await?;
        let site = self.site.as_str();
        let published = events.into_iter().map(|event| {
            Event::new(EventFields {
                sequence: event.seq,
                id: event.id,
                source: format!("/sites/{site}"),
                kind: event.kind,
                site: site.to_owned(),
                subject: Some(event.subject),
                occurred_at: event.occurred_at,
                data: event.data,
            })
        });
        Ok(published.collect::<Result<_, _>>()?)
    }

    async fn published(&self, sequence: u64) -> Result<(), OutboxError> {
        Ok(self.commands.published(sequence).await?)
    }
}
