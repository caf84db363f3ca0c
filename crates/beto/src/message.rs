//! What both sides know of the messages, as docs/BETO.md says it.

use lapin::{BasicProperties, types::ShortString};

/// The durable topic exchange of the questions; a question's routing key is its permission.
pub const EXCHANGE: &str = "beto.query";
/// The durable queue of the questions, bound to the exchange.
pub const QUESTIONS: &str = "beto.questions";
/// The content type of every message.
pub const CONTENT_TYPE: &str = "application/json";
/// The type of a question.
pub const QUESTION_TYPE: &str = "beto.question.v1";
/// The type of an answer.
pub const ANSWER_TYPE: &str = "beto.answer.v1";
/// The largest body, in bytes.
pub const LARGEST: usize = 64 * 1024;

/// The version in each body.
pub(crate) const VERSION: u64 = 1;

/// Why a message can't be one of these, whatever its body says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FormError {
    #[error("it has more than {LARGEST} bytes")]
    Large,
    #[error("its content type is not {CONTENT_TYPE}")]
    ContentType,
    #[error("its type is not {0}")]
    Type(&'static str),
}

/// Checks what surrounds a body.
pub(crate) fn check_form(
    properties: &BasicProperties,
    body: &[u8],
    kind: &'static str,
) -> Result<(), FormError> {
    if body.len() > LARGEST {
        return Err(FormError::Large);
    }
    if text(properties.content_type()) != Some(CONTENT_TYPE) {
        return Err(FormError::ContentType);
    }
    if text(properties.kind()) != Some(kind) {
        return Err(FormError::Type(kind));
    }
    Ok(())
}

/// A property, where it is there and UTF-8.
pub(crate) fn text(property: &Option<ShortString>) -> Option<&str> {
    property.as_ref().map(ShortString::as_str)
}
