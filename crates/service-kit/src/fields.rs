//! Reading what comes from outside, so that *every* wrong field is named at once.
//!
//! A handler reads query parameters, headers and the body with one [`WrongFields`] and then asks
//! it for the verdict:
//!
//! ```
//! # use service_kit::fields::{Query, WrongFields};
//! # use service_kit::problem::ProblemReply;
//! # fn page(uri: &http::Uri) -> Result<(u64, u32), ProblemReply> {
//! let mut wrong = WrongFields::new();
//! let mut query = Query::of(uri);
//! let after = query.required("after", &mut wrong, str::parse::<u64>);
//! let limit = query.optional("limit", &mut wrong, str::parse::<u32>).unwrap_or(64);
//! query.finish(&mut wrong);
//! let after = wrong.accept(after)?;
//! # Ok((after, limit))
//! # }
//! # assert_eq!(page(&"/?after=7".parse().unwrap()).unwrap(), (7, 64));
//! # assert!(page(&"/?limit=x&other=1".parse().unwrap()).is_err());
//! ```

mod headers;
mod json;
mod query;

use site_protocol::{Code, FieldError};

use crate::problem::ProblemReply;

pub use headers::Headers;
pub use json::JsonObject;
pub use query::Query;

/// How many wrong fields are named; the rest is counted.
const MOST_NAMED: usize = 32;

/// How many characters of an unknown field's name are repeated.
const LONGEST_NAME: usize = 64;

/// The wrong fields of one request.
#[derive(Debug, Default)]
pub struct WrongFields {
    named: Vec<FieldError>,
    unnamed: usize,
}

impl WrongFields {
    /// Nothing wrong yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Records a wrong field. Of a name that the caller made up, the first 64 characters are kept.
    pub fn push(&mut self, field: &str, detail: impl Into<String>) {
        if self.named.len() == MOST_NAMED {
            self.unnamed += 1;
            return;
        }
        let field = field.chars().take(LONGEST_NAME).collect();
        self.named.push(FieldError { field, detail: detail.into() });
    }

    /// Records what `checked` failed with, and gives its value on.
    pub fn check<T>(&mut self, field: &str, checked: Result<T, impl ToString>) -> Option<T> {
        match checked {
            Ok(value) => Some(value),
            Err(error) => {
                self.push(field, error.to_string());
                None
            }
        }
    }

    /// Takes over what is wrong within a part of the request, such as `results[3]`.
    pub fn nest(&mut self, part: &str, inner: Self) {
        for FieldError { field, detail } in inner.named {
            self.push(&format!("{part}.{field}"), detail);
        }
        self.unnamed += inner.unnamed;
    }

    /// What is wrong, in the order in which it was found, and how much more there is. For who reads
    /// something else than a request in the same way.
    #[must_use]
    pub fn into_named(self) -> (Vec<FieldError>, usize) {
        (self.named, self.unnamed)
    }

    /// Ends the reading.
    ///
    /// # Errors
    ///
    /// 422 `invalid_request` that names every wrong field.
    pub fn finish(mut self) -> Result<(), ProblemReply> {
        if self.named.is_empty() {
            return Ok(());
        }
        let count = self.named.len() + self.unnamed;
        self.named.sort_by(|one, other| one.field.cmp(&other.field));
        let detail = match count {
            1 => "a field, query parameter or header is wrong".to_owned(),
            _ => format!("{count} fields, query parameters or headers are wrong"),
        };
        Err(ProblemReply::new(Code::InvalidRequest, detail).fields(self.named))
    }

    /// Ends the reading and gives `value` back, which is made (with `zip` or `?`) of what the
    /// readers gave: it is `None` only where a wrong field was recorded.
    ///
    /// # Errors
    ///
    /// As [`WrongFields::finish`].
    pub fn accept<T>(self, value: Option<T>) -> Result<T, ProblemReply> {
        self.finish()?;
        value.ok_or_else(|| ProblemReply::internal("a missing field was not recorded"))
    }
}
