//! An outbox in memory, and a relay that runs beside the test.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use broker::Broker;
use chrono::DateTime;
use event_relay::{Event, EventFields, Health, Outbox, Pace, Relay};
use tokio::{sync::watch, task::JoinHandle};

/// Clones share what is in it.
#[derive(Clone, Default)]
pub(crate) struct MemoryOutbox(Arc<Mutex<Content>>);

#[derive(Default)]
struct Content {
    events: Vec<Event>,
    published: u64,
    failing: bool,
    /// How often it was asked for events.
    looks: u32,
}

#[derive(Debug, thiserror::Error)]
#[error("the store is away")]
pub(crate) struct Away;

impl MemoryOutbox {
    /// Adds an event of a type about a Site; its id is made of its sequence.
    pub(crate) fn add(&self, kind: &str, site: &str) -> u64 {
        let mut content = self.0.lock().unwrap();
        let sequence = content.events.len() as u64 + 1;
        let event = Event::new(EventFields {
            sequence,
            id: format!("id-{sequence}"),
            source: format!("/sites/{site}"),
            kind: kind.to_owned(),
            site: site.to_owned(),
            subject: Some("subject".to_owned()),
            occurred_at: DateTime::from_timestamp_micros(1_893_456_000_000_000).unwrap(),
            data: format!(r#"{{"n": {sequence}}}"#),
        });
        content.events.push(event.unwrap());
        sequence
    }

    pub(crate) fn published_up_to(&self) -> u64 {
        self.0.lock().unwrap().published
    }

    pub(crate) fn looks(&self) -> u32 {
        self.0.lock().unwrap().looks
    }

    pub(crate) fn set_failing(&self, failing: bool) {
        self.0.lock().unwrap().failing = failing;
    }

    fn answer<T>(&self, answer: impl FnOnce(&mut Content) -> T) -> Result<T, Away> {
        let mut content = self.0.lock().unwrap();
        if content.failing { Err(Away) } else { Ok(answer(&mut content)) }
    }
}

impl Outbox for MemoryOutbox {
    type Error = Away;

    async fn position(&self) -> Result<u64, Away> {
        self.answer(|content| content.published)
    }

    async fn after(&self, sequence: u64, limit: u16) -> Result<Vec<Event>, Away> {
        self.answer(|content| {
            content.looks += 1;
            let after = content.events.iter().filter(|event| event.sequence() > sequence);
            after.take(limit.into()).cloned().collect()
        })
    }

    async fn published(&self, sequence: u64) -> Result<(), Away> {
        self.answer(|content| content.published = content.published.max(sequence))
    }
}

/// What a relay has told, and its end with the value.
pub(crate) struct Running {
    told: Arc<Mutex<Vec<Option<String>>>>,
    news: watch::Sender<()>,
    task: JoinHandle<()>,
}

impl Running {
    /// A relay that looks at its outbox all the time.
    pub(crate) fn start(outbox: &MemoryOutbox, broker: Broker) -> Self {
        Self::start_looking(outbox, broker, Duration::from_millis(10))
    }

    /// The same with another time for which it leaves an outbox alone.
    pub(crate) fn start_looking(
        outbox: &MemoryOutbox,
        broker: Broker,
        look_every: Duration,
    ) -> Self {
        Self::start_spread(outbox, broker, look_every, Duration::ZERO)
    }

    /// The same, and it waits after news.
    pub(crate) fn start_spread(
        outbox: &MemoryOutbox,
        broker: Broker,
        look_every: Duration,
        spread: Duration,
    ) -> Self {
        let pace = Pace {
            check_every: Duration::from_millis(10),
            spread,
            look_every,
            patience: Duration::from_millis(100),
            first_pause: Duration::from_millis(20),
            longest_pause: Duration::from_millis(200),
        };
        let told = Arc::new(Mutex::new(Vec::new()));
        let (news, hears) = watch::channel(());
        let (relay, tells) = (Relay::new(outbox.clone(), broker, hears, pace), Arc::clone(&told));
        let task = tokio::spawn(async move {
            relay
                .run(move |health| {
                    let reason = match health {
                        Health::Well => None,
                        Health::Trouble(reason) => Some(reason.to_owned()),
                    };
                    tells.lock().unwrap().push(reason);
                })
                .await;
        });
        Self { told, news, task }
    }

    /// Says that the outbox may have more.
    pub(crate) fn tell_news(&self) {
        self.news.send_replace(());
    }

    /// How often it was told how the relay is.
    pub(crate) fn times_told(&self) -> usize {
        self.told.lock().unwrap().len()
    }

    /// The last thing that was told: well, or the reason.
    pub(crate) fn last(&self) -> Option<Option<String>> {
        self.told.lock().unwrap().last().cloned()
    }

    /// The reason of trouble, where it was the last thing told.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.last().flatten()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}
