//! An event of the outbox, and the CloudEvent that is made of it.

use chrono::{DateTime, SecondsFormat, Utc};
use serde::Serialize;
use serde_json::value::RawValue;

/// An event of the outbox.
#[derive(Clone, Debug)]
pub struct Event {
    sequence: u64,
    id: String,
    kind: String,
    site: String,
    subject: String,
    occurred_at: DateTime<Utc>,
    data: Box<RawValue>,
}

/// Why an event can't be published as it is: a fault of who wrote it.
#[derive(Debug, thiserror::Error)]
pub enum EventError {
    /// Its data are no JSON.
    #[error("the data of event {sequence} are no JSON")]
    Data {
        /// Which event.
        sequence: u64,
        /// What is wrong with them.
        #[source]
        source: serde_json::Error,
    },
    /// Its type and Site make a routing key that AMQP has no room for.
    #[error("the routing key of event {sequence} is longer than 255 bytes")]
    RoutingKey {
        /// Which event.
        sequence: u64,
    },
}

/// The JSON format of CloudEvents 1.0.
#[derive(Serialize)]
struct CloudEvent<'a> {
    specversion: &'static str,
    id: &'a str,
    source: String,
    #[serde(rename = "type")]
    kind: &'a str,
    subject: &'a str,
    time: String,
    /// The extension `sequence`: texts that stand in the order of the events.
    sequence: String,
    datacontenttype: &'static str,
    data: &'a RawValue,
}

impl Event {
    /// An event as the outbox keeps it. `sequence` grows by one from event to event of a Site, `id`
    /// is the event's own for ever, `kind` is its type in words with dots between them, and `data`
    /// are JSON.
    ///
    /// # Errors
    ///
    /// When it can't be published.
    pub fn new(
        sequence: u64,
        id: String,
        kind: String,
        site: String,
        subject: String,
        occurred_at: DateTime<Utc>,
        data: String,
    ) -> Result<Self, EventError> {
        let data =
            RawValue::from_string(data).map_err(|source| EventError::Data { sequence, source })?;
        let event = Self { sequence, id, kind, site, subject, occurred_at, data };
        if event.routing_key().len() > 255 {
            return Err(EventError::RoutingKey { sequence });
        }
        Ok(event)
    }

    /// Its place in the outbox.
    #[must_use]
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    pub(crate) fn occurred_at(&self) -> DateTime<Utc> {
        self.occurred_at
    }

    /// The type and then the Site, which may have dots of its own.
    pub(crate) fn routing_key(&self) -> String {
        format!("{}.{}", self.kind, self.site)
    }

    /// The CloudEvent, JSON.
    pub(crate) fn to_json(&self) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec(&CloudEvent {
            specversion: "1.0",
            id: &self.id,
            source: format!("/sites/{}", self.site),
            kind: &self.kind,
            subject: &self.subject,
            time: self.occurred_at.to_rfc3339_opts(SecondsFormat::Micros, true),
            sequence: format!("{:020}", self.sequence),
            datacontenttype: "application/json",
            data: &self.data,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn event(sequence: u64, site: &str, data: &str) -> Result<Event, EventError> {
        Event::new(
            sequence,
            "7b0c6e0e-0a3c-4c7e-9c41-3a1f5a0e7d11".to_owned(),
            "commands.session.opened".to_owned(),
            site.to_owned(),
            "0123456789abcdef".to_owned(),
            DateTime::from_timestamp_micros(1_893_456_000_000_001).unwrap(),
            data.to_owned(),
        )
    }

    #[test]
    fn an_event_is_a_cloud_event_of_version_1_0() {
        let json = event(7, "gpu-lab", r#"{"generation": 2}"#).unwrap().to_json().unwrap();
        assert_eq!(
            serde_json::from_slice::<Value>(&json).unwrap(),
            json!({
                "specversion": "1.0",
                "id": "7b0c6e0e-0a3c-4c7e-9c41-3a1f5a0e7d11",
                "source": "/sites/gpu-lab",
                "type": "commands.session.opened",
                "subject": "0123456789abcdef",
                "time": "2030-01-01T00:00:00.000001Z",
                "sequence": "00000000000000000007",
                "datacontenttype": "application/json",
                "data": { "generation": 2 },
            })
        );
    }

    #[test]
    fn the_texts_of_the_sequence_stand_in_the_order_of_the_events() {
        let text = |sequence| {
            let json = event(sequence, "s", "1").unwrap().to_json().unwrap();
            serde_json::from_slice::<Value>(&json).unwrap()["sequence"].as_str().unwrap().to_owned()
        };
        let texts = [1, 9, 10, 11, u64::from(u32::MAX), u64::MAX].map(text);
        assert!(texts.is_sorted(), "{texts:?}");
    }

    #[test]
    fn the_routing_key_is_the_type_and_then_the_site() {
        let key = event(1, "gpu.lab", "{}").unwrap().routing_key();
        assert_eq!(key, "commands.session.opened.gpu.lab");
    }

    #[test]
    fn what_can_never_be_published_is_refused() {
        assert!(matches!(event(1, "s", "{"), Err(EventError::Data { sequence: 1, .. })));
        let long = "s".repeat(232);
        assert!(matches!(event(2, &long, "{}"), Err(EventError::RoutingKey { sequence: 2 })));
        event(2, &long[1..], "{}").unwrap();
    }
}
