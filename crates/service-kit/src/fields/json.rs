//! A JSON object, read strictly: no field twice, none that the route does not know.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{self, DeserializeOwned, MapAccess, Visitor},
};
use serde_json::value::RawValue;
use site_protocol::Code;

use super::WrongFields;
use crate::problem::ProblemReply;

/// The fields of a body, each as the exact text that came.
pub struct JsonObject<'a> {
    fields: Vec<(String, &'a RawValue)>,
    known: Vec<&'static str>,
}

impl<'a> JsonObject<'a> {
    /// Takes a body apart. The values are checked to be JSON and not looked into.
    ///
    /// # Errors
    ///
    /// 400 `malformed_body` when the body is not JSON in UTF-8, or not an object of at most 256
    /// fields.
    pub fn parse(body: &'a [u8]) -> Result<Self, ProblemReply> {
        match serde_json::from_slice(body) {
            Ok(Entries(fields)) => Ok(Self { fields, known: Vec::new() }),
            Err(error) => {
                let detail = match error.classify() {
                    serde_json::error::Category::Data => {
                        format!("the body is not a JSON object of at most {MOST_FIELDS} fields")
                    }
                    _ => format!(
                        "the body is not JSON: line {}, column {}",
                        error.line(),
                        error.column()
                    ),
                };
                Err(ProblemReply::new(Code::MalformedBody, detail))
            }
        }
    }

    /// The exact text of a field that may be absent. `None` when it is absent or there twice.
    pub fn optional_raw(
        &mut self,
        name: &'static str,
        wrong: &mut WrongFields,
    ) -> Option<&'a RawValue> {
        self.known.push(name);
        let mut values = self.fields.iter().filter(|(key, _)| key == name);
        let (_, value) = values.next()?;
        if values.next().is_some() {
            wrong.push(name, "is there more than once");
            return None;
        }
        Some(value)
    }

    /// The exact text of a field that must be there.
    pub fn required_raw(
        &mut self,
        name: &'static str,
        wrong: &mut WrongFields,
    ) -> Option<&'a RawValue> {
        if !self.fields.iter().any(|(key, _)| key == name) {
            self.known.push(name);
            wrong.push(name, "is missing");
            return None;
        }
        self.optional_raw(name, wrong)
    }

    /// A field that may be absent. `null` is not absent. Where the value is not a `T`, the caller
    /// is told that it must be `expected`, such as "a whole number from 1 to 64".
    pub fn optional<T: DeserializeOwned>(
        &mut self,
        name: &'static str,
        wrong: &mut WrongFields,
        expected: &str,
    ) -> Option<T> {
        let raw = self.optional_raw(name, wrong)?;
        typed(name, raw, wrong, expected)
    }

    /// A field that must be there.
    pub fn required<T: DeserializeOwned>(
        &mut self,
        name: &'static str,
        wrong: &mut WrongFields,
        expected: &str,
    ) -> Option<T> {
        let raw = self.required_raw(name, wrong)?;
        typed(name, raw, wrong, expected)
    }

    /// The names of the fields that nobody has asked for so far.
    pub fn unknown(&self) -> impl Iterator<Item = &str> {
        let names = self.fields.iter().map(|(name, _)| name.as_str());
        names.filter(|name| !self.known.contains(name))
    }

    /// Ends the reading: a field that nobody asked for is wrong.
    pub fn finish(self, wrong: &mut WrongFields) {
        for name in self.unknown() {
            wrong.push(name, "is not a field of this route");
        }
    }
}

fn typed<T: DeserializeOwned>(
    name: &str,
    raw: &RawValue,
    wrong: &mut WrongFields,
    expected: &str,
) -> Option<T> {
    let value = serde_json::from_str(raw.get());
    wrong.check(name, value.map_err(|_| format!("must be {expected}")))
}

/// Every field in order, those that are there twice included.
struct Entries<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Entries<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Entries<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    fields.push(entry);
                    if fields.len() > MOST_FIELDS {
                        return Err(de::Error::custom("too many fields"));
                    }
                }
                Ok(Entries(fields))
            }
        }
        deserializer.deserialize_map(Object)
    }
}

/// More top-level fields than any route has: a body of a million tiny ones must cost nothing.
const MOST_FIELDS: usize = 256;
