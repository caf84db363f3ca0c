//! The query string of a request.

use std::{borrow::Cow, fmt};

use http::Uri;
use url::form_urlencoded;

use super::WrongFields;

/// The query parameters of a request, percent-decoded (`+` is a space).
pub struct Query<'a> {
    parameters: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    known: Vec<&'static str>,
}

impl<'a> Query<'a> {
    /// The parameters of a request's target.
    #[must_use]
    pub fn of(uri: &'a Uri) -> Self {
        let text = uri.query().unwrap_or_default();
        Self { parameters: form_urlencoded::parse(text.as_bytes()).collect(), known: Vec::new() }
    }

    /// Whether a parameter is there, whatever it says.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.parameters.iter().any(|(key, _)| key == name)
    }

    /// A parameter that may be absent. `None` when it is absent, wrong or there twice.
    pub fn optional<T, E: fmt::Display>(
        &mut self,
        name: &'static str,
        wrong: &mut WrongFields,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<T> {
        self.known.push(name);
        let mut values = self.parameters.iter().filter(|(key, _)| key == name);
        let (_, value) = values.next()?;
        if values.next().is_some() {
            wrong.push(name, "is there more than once");
            return None;
        }
        wrong.check(name, parse(value).map_err(|error| error.to_string()))
    }

    /// A parameter that must be there. `None` when it is absent or wrong.
    pub fn required<T, E: fmt::Display>(
        &mut self,
        name: &'static str,
        wrong: &mut WrongFields,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<T> {
        if !self.parameters.iter().any(|(key, _)| key == name) {
            self.known.push(name);
            wrong.push(name, "is missing");
            return None;
        }
        self.optional(name, wrong, parse)
    }

    /// Ends the reading: a parameter that nobody asked for is wrong.
    pub fn finish(self, wrong: &mut WrongFields) {
        for (name, _) in &self.parameters {
            if !self.known.iter().any(|known| known == name) {
                wrong.push(name, "is not a parameter of this route");
            }
        }
    }
}
