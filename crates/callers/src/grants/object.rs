//! A JSON object, taken apart field by field, with every mistake named.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;

/// An object of the file. Its fields are taken out one after the other; what is left is unknown.
pub(super) struct Object<'a, 'm> {
    place: String,
    fields: Vec<(String, &'a RawValue)>,
    mistakes: &'m mut Vec<String>,
}

impl<'a, 'm> Object<'a, 'm> {
    /// Opens the object at `place`, such as `grants[2]`; the whole file's place is empty.
    pub(super) fn open(
        place: String,
        text: &'a str,
        mistakes: &'m mut Vec<String>,
    ) -> Option<Object<'a, 'm>> {
        // The library's message for another type would repeat the value.
        if let Ok(Entries(fields)) = serde_json::from_str(text) {
            return Some(Object { place, fields, mistakes });
        }
        let what = if place.is_empty() { "the file" } else { &place };
        mistakes.push(format!("{what}: must be a JSON object"));
        None
    }

    /// The exact text of a field. `None` when it is absent or there twice.
    pub(super) fn raw(&mut self, name: &str) -> Option<&'a RawValue> {
        let mut values = self.fields.extract_if(.., |(key, _)| key == name);
        let first = values.next().map(|(_, value)| value);
        if values.count() > 0 {
            self.wrong(name, "is there more than once");
            return None;
        }
        if first.is_none() {
            self.wrong(name, "is missing");
        }
        first
    }

    /// A field that must be there, as `parse` reads its string.
    pub(super) fn required<T>(
        &mut self,
        name: &str,
        parse: impl FnOnce(&str) -> Option<T>,
        rule: &str,
    ) -> Option<T> {
        let text = serde_json::from_str::<String>(self.raw(name)?.get()).ok();
        let value = text.and_then(|text| parse(&text));
        if value.is_none() {
            self.wrong(name, rule);
        }
        value
    }

    /// A field that may be absent: `Some(None)` when it is, `None` when it is wrong.
    pub(super) fn optional<T>(
        &mut self,
        name: &str,
        parse: impl FnOnce(&str) -> Option<T>,
        rule: &str,
    ) -> Option<Option<T>> {
        if self.fields.iter().any(|(key, _)| key == name) {
            self.required(name, parse, rule).map(Some)
        } else {
            Some(None)
        }
    }

    /// Records what is wrong with a field.
    pub(super) fn wrong(&mut self, name: &str, reason: &str) {
        let dot = if self.place.is_empty() { "" } else { "." };
        self.mistakes.push(format!("{}{dot}{name}: {reason}", self.place));
    }

    /// Ends the reading: a field that nobody took is wrong.
    pub(super) fn finish(mut self) {
        for (name, _) in std::mem::take(&mut self.fields) {
            if looks_like_a_field(&name) {
                self.wrong(&name, "is not a field that is known here");
            } else {
                self.wrong("a field", "is not known here");
            }
        }
    }
}

/// Whether a name may be told. A bearer or a digest in the wrong place is longer, and nobody means a
/// field by a name of other characters.
fn looks_like_a_field(name: &str) -> bool {
    let usual = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    (1..=24).contains(&name.len()) && name.bytes().all(usual)
}

/// Every field in order, those that are there twice included. `service_kit::fields` reads bodies in
/// the same way; this crate decides who calls and stands on no HTTP server, so it has its own.
pub(crate) struct Entries<'a>(pub(crate) Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Entries<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = Entries<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    fields.push(entry);
                }
                Ok(Entries(fields))
            }
        }
        deserializer.deserialize_map(Fields)
    }
}
