//! The events of the Site, from the outbox of its context to a broker.

use std::time::Duration;

use broker::{Broker, BrokerUrl, BrokerUrlError, Trust};
use database::Pool;
use event_relay::{Event, EventError, Health, Outbox, Pace, Relay};
use service_kit::{Alarms, Settings, telemetry::error_chain};
use site_coordination::{Outbox as CommandsOutbox, ReadError, SiteId, Wakeups};

const BROKER_URL: &str = "EVENTS_BROKER_URL";
const BROKER_CA: &str = "EVENTS_BROKER_CA_FILE";

/// Events wait in the outbox and can't be published.
pub(crate) const ALARM_EVENTS: &str = "events_broker";

/// Where events are published; `None` in it where they are only kept. `None` around it where a
/// setting is wrong; every mistake is recorded then.
pub(crate) fn broker(settings: &mut Settings) -> Option<Option<Broker>> {
    let named = settings.is_set(BROKER_URL);
    let url: Option<BrokerUrl> = settings
        .optional_secret_as(BROKER_URL, |text| text.parse().map_err(BrokerUrlError::reason));
    let file = settings.optional_path(BROKER_CA);
    let vouched = file.is_some();
    let trust = file.and_then(|path| {
        let trust = Trust::from_pem_file(&path);
        let wrong = |error| format!("{}: {}", path.display(), error_chain(&error));
        trust.map_err(|error| settings.mistake(BROKER_CA, wrong(error))).ok()
    });
    if !named {
        if vouched {
            settings.mistake(BROKER_CA, format!("is set, but {BROKER_URL} is not"));
        }
        return Some(None);
    }
    let url = url?;
    if vouched && trust.is_none() {
        return None;
    }
    let broker = Broker::new(url, trust);
    broker.map_err(|error| settings.mistake(BROKER_CA, error.to_string())).ok().map(Some)
}

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
) {
    let pace = Pace { spread: SPREAD.mul_f64(fraction), ..Pace::default() };
    let site = wakeups.site().clone();
    let outbox = SiteOutbox { commands: CommandsOutbox::new(pool, site.clone()), site };
    let told = move |health: Health<'_>| match health {
        Health::Well => alarms.clear(ALARM_EVENTS),
        Health::Trouble(reason) => alarms.raise(ALARM_EVENTS, reason),
    };
    match Relay::new(outbox, broker, wakeups.subscribe_events(), pace).run(told).await {}
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
            let site = site.to_owned();
            let (seq, at) = (event.seq, event.occurred_at);
            Event::new(seq, event.id, event.kind, site, event.subject, at, event.data)
        });
        Ok(published.collect::<Result<_, _>>()?)
    }

    async fn published(&self, sequence: u64) -> Result<(), OutboxError> {
        Ok(self.commands.published(sequence).await?)
    }
}
