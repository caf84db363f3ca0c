//! The headers of a request. Unknown ones are nobody's mistake: proxies add them.

use std::fmt;

use http::HeaderMap;

use super::WrongFields;

/// The headers of a request.
pub struct Headers<'a>(&'a HeaderMap);

impl<'a> Headers<'a> {
    /// The given headers.
    #[must_use]
    pub fn of(headers: &'a HeaderMap) -> Self {
        Self(headers)
    }

    /// A header that may be absent. `None` when it is absent, wrong, there twice or not visible
    /// ASCII.
    pub fn optional<T, E: fmt::Display>(
        &self,
        name: &'static str,
        wrong: &mut WrongFields,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<T> {
        let mut values = self.0.get_all(name).iter();
        let value = values.next()?;
        if values.next().is_some() {
            wrong.push(name, "is there more than once");
            return None;
        }
        let Ok(text) = value.to_str() else {
            wrong.push(name, "is not visible ASCII");
            return None;
        };
        wrong.check(name, parse(text).map_err(|error| error.to_string()))
    }

    /// A header that must be there. `None` when it is absent or wrong.
    pub fn required<T, E: fmt::Display>(
        &self,
        name: &'static str,
        wrong: &mut WrongFields,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<T> {
        if !self.0.contains_key(name) {
            wrong.push(name, "is missing");
            return None;
        }
        self.optional(name, wrong, parse)
    }
}
