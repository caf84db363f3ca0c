//! What reads bytes from outside, for tests without a broker. No promise is made to anybody else.

use crate::{AnswerError, Decision, Question};

/// Reads the body of an answer to a question.
///
/// # Errors
///
/// What is wrong with it.
pub fn answer(body: &[u8], question: &Question) -> Result<Decision, AnswerError> {
    Decision::parse(body, question)
}

/// The body of a question.
///
/// # Errors
///
/// None that is known: texts and numbers can be written.
pub fn question_body(question: &Question) -> serde_json::Result<Vec<u8>> {
    question.to_json()
}

/// The body of the answer to a question.
///
/// # Errors
///
/// As [`question_body`].
pub fn answer_body(decision: Decision, question: &Question) -> serde_json::Result<Vec<u8>> {
    decision.to_json(question)
}
