//! The events of a context, from its outbox to a broker.

use std::convert::Infallible;

use broker::{Broker, BrokerUrl, BrokerUrlError, Trust};
use event_relay::{Health, Outbox, Pace, Relay};
use service_kit::{Alarms, Settings, error_chain};
use tokio::sync::watch;

const BROKER_URL: &str = "EVENTS_BROKER_URL";
const BROKER_CA: &str = "EVENTS_BROKER_CA_FILE";

/// Events wait in the outbox and can't be published.
pub const ALARM_EVENTS: &str = "events_broker";

/// Reads `EVENTS_BROKER_URL` and `EVENTS_BROKER_CA_FILE`: where events are published, `None` in it
/// where they are only kept. `None` around it where a setting is wrong; every mistake is recorded then.
pub fn events_broker(settings: &mut Settings) -> Option<Option<Broker>> {
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

/// Publishes the events of an outbox for ever, and keeps the alarm [`ALARM_EVENTS`] true. It may be
/// dropped at any moment; the alarm then stays as it is.
pub async fn relay_events(
    outbox: impl Outbox,
    broker: Broker,
    news: watch::Receiver<()>,
    pace: Pace,
    alarms: Alarms,
) -> Infallible {
    let told = move |health: Health<'_>| match health {
        Health::Well => alarms.clear(ALARM_EVENTS),
        Health::Trouble(reason) => alarms.raise(ALARM_EVENTS, reason),
    };
    Relay::new(outbox, broker, news, pace).run(told).await
}
