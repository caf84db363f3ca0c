//! An event of the outbox, and the CloudEvent that is made of it.

use chrono::{DateTime, SecondsFormat, Utc};
use serde::Serialize;
use serde_json::value::RawValue;

/// An event as an outbox keeps it.
#[derive(Clone, Debug)]
pub struct EventFields {
    /// Its place in the outbox. It grows by one from event to event of a Site.
    pub sequence: u64,
    /// Its own id, for ever.
    pub id: String,
    /// The outbox, as a path: CloudEvents wants sequences and ids to be those of a source.
    pub source: String,
    /// Its type, in words with dots between them.
    pub kind: String,
    /// The Site that it is about.
    pub site: String,
    /// What of the Site it is about, where it is about a part.
    pub subject: Option<String>,
    /// When it happened.
    pub occurred_at: DateTime<Utc>,
    /// What its type says beyond that: JSON.
    pub data: String,
}

/// An event that can be published.
#[derive(Clone, Debug)]
pub struct Event {
    fields: EventFields,
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
    source: &'a str,
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<&'a str>,
    time: String,
    /// The extension `sequence`: texts that stand in the order of the events.
    sequence: String,
    datacontenttype: &'static str,
    data: &'a RawValue,
}

impl Event {
    /// An event of an outbox.
    ///
    /// # Errors
    ///
    /// When it can't be published.
    pub fn new(mut fields: EventFields) -> Result<Self, EventError> {
        let sequence = fields.sequence;
        let data = RawValue::from_string(std::mem::take(&mut fields.data))
            .map_err(|source| EventError::Data { sequence, source })?;
        let event = Self { fields, data };
        if event.routing_key().len() > 255 {
            return Err(EventError::RoutingKey { sequence });
        }
        Ok(event)
    }

    /// Its place in the outbox.
    #[must_use]
    pub fn sequence(&self) -> u64 {
        self.fields.sequence
    }

    pub(crate) fn id(&self) -> &str {
        &self.fields.id
    }

    pub(crate) fn occurred_at(&self) -> DateTime<Utc> {
        self.fields.occurred_at
    }

    /// The type and then the Site, which may have dots of its own.
    pub(crate) fn routing_key(&self) -> String {
        format!("{}.{}", self.fields.kind, self.fields.site)
    }

    /// The CloudEvent, JSON.
    pub(crate) fn to_json(&self) -> serde_json::Result<Vec<u8>> {
        let fields = &self.fields;
        serde_json::to_vec(&CloudEvent {
            specversion: "1.0",
            id: &fields.id,
            source: &fields.source,
            kind: &fields.kind,
            subject: fields.subject.as_deref(),
            time: fields.occurred_at.to_rfc3339_opts(SecondsFormat::Micros, true),
            sequence: format!("{:020}", fields.sequence),
            datacontenttype: "application/json",
            data: &self.data,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn fields(sequence: u64, site: &str, data: &str) -> EventFields {
        EventFields {
            sequence,
            id: "7b0c6e0e-0a3c-4c7e-9c41-3a1f5a0e7d11".to_owned(),
            source: "/sites/gpu-lab".to_owned(),
            kind: "commands.session.opened".to_owned(),
            site: site.to_owned(),
            subject: Some("0123456789abcdef".to_owned()),
            occurred_at: DateTime::from_timestamp_micros(1_893_456_000_000_001).unwrap(),
            data: data.to_owned(),
        }
    }

    fn event(sequence: u64, site: &str, data: &str) -> Result<Event, EventError> {
        Event::new(fields(sequence, site, data))
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
    fn an_event_about_the_whole_site_has_no_subject() {
        let whole = EventFields { subject: None, ..fields(7, "gpu-lab", "{}") };
        let json = Event::new(whole).unwrap().to_json().unwrap();
        let json = serde_json::from_slice::<Value>(&json).unwrap();
        assert_eq!(json.get("subject"), None);
        assert_eq!(json["source"], "/sites/gpu-lab");
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
