//! What is answered, and how it is written and read.

use serde::{Deserialize, Serialize};

use crate::{
    Question,
    message::VERSION,
    question::{Fields, there},
};

/// What was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The member may.
    Allow,
    /// The member may not.
    Deny,
}

/// Why bytes are no answer to a question. It repeats none of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// Not a JSON object with the fields of an answer, each of its type and there once.
    #[error("it is no JSON object with the fields of an answer")]
    Json,
    /// Another version.
    #[error("its version is not {VERSION}")]
    Version,
    /// Neither of the two words.
    #[error("its decision is neither allow nor deny")]
    Decision,
    /// It repeats another question.
    #[error("it is an answer to another question")]
    AnotherQuestion,
    /// Too large, or with another type: see the message that [`std::fmt::Display`] gives.
    #[error("{0}")]
    Form(&'static str),
}

impl Decision {
    /// The word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
        }
    }

    /// Reads the body of an answer to this question.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub(crate) fn parse(body: &[u8], question: &Question) -> Result<Self, AnswerError> {
        // In fields that it ignores, the library takes any bytes.
        let body = str::from_utf8(body).map_err(|_| AnswerError::Json)?;
        // And it takes a list of the values as well.
        if !body.trim_ascii_start().starts_with('{') {
            return Err(AnswerError::Json);
        }
        let wire: Wire = serde_json::from_str(body).map_err(|_| AnswerError::Json)?;
        if wire.version != VERSION {
            return Err(AnswerError::Version);
        }
        let Wire { version: _, decision, permission, member, project, tenant, site } = wire;
        if (Fields { permission, member, project, tenant, site }) != question.fields() {
            return Err(AnswerError::AnotherQuestion);
        }
        [Self::Allow, Self::Deny]
            .into_iter()
            .find(|known| known.as_str() == decision)
            .ok_or(AnswerError::Decision)
    }

    /// The body of the answer to a question.
    pub(crate) fn to_json(self, question: &Question) -> serde_json::Result<Vec<u8>> {
        let Fields { permission, member, project, tenant, site } = question.fields();
        let (version, decision) = (VERSION, self.as_str().to_owned());
        serde_json::to_vec(&Wire { version, decision, permission, member, project, tenant, site })
    }
}

/// Fields that are not known are ignored: what changes the meaning of an answer has another version.
#[derive(Deserialize, Serialize)]
struct Wire {
    version: u64,
    decision: String,
    permission: String,
    member: String,
    #[serde(default, deserialize_with = "there", skip_serializing_if = "Option::is_none")]
    project: Option<String>,
    #[serde(default, deserialize_with = "there", skip_serializing_if = "Option::is_none")]
    tenant: Option<String>,
    site: String,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::question::tests::question;

    fn asked() -> Question {
        let text = r#"{"version":1,"permission":"runs.execute","member":"m-17","project":"p-4","site":"gpu-lab"}"#;
        Question::parse(text.as_bytes()).unwrap()
    }

    fn usual() -> Value {
        let body = Decision::Allow.to_json(&asked()).unwrap();
        serde_json::from_slice(&body).unwrap()
    }

    /// The text without its last character, for more fields.
    fn text_of(answer: &Value) -> String {
        let text = answer.to_string();
        text[..text.len() - 1].to_owned()
    }

    fn read(body: &str) -> Result<Decision, AnswerError> {
        Decision::parse(body.as_bytes(), &asked())
    }

    #[test]
    fn the_answer_of_the_page_is_one() {
        let page = include_str!("../../../docs/BETO.md");
        let answer = page.lines().find(|line| line.contains(r#""decision": "allow""#)).unwrap();
        assert_eq!(read(answer), Ok(Decision::Allow));
        assert_eq!(read(&answer.replace("allow", "deny")), Ok(Decision::Deny));
    }

    #[test]
    fn nothing_but_the_two_words_is_a_decision() {
        for (decision, error) in [
            (json!("ALLOW"), AnswerError::Decision),
            (json!("Allow"), AnswerError::Decision),
            (json!("allow "), AnswerError::Decision),
            (json!("allow\0"), AnswerError::Decision),
            (json!("yes"), AnswerError::Decision),
            (json!(""), AnswerError::Decision),
            (json!(true), AnswerError::Json),
            (json!(1), AnswerError::Json),
            (json!(null), AnswerError::Json),
            (json!(["allow"]), AnswerError::Json),
            (json!({ "allow": null }), AnswerError::Json),
        ] {
            let mut answer = usual();
            answer["decision"] = decision;
            assert_eq!(read(&answer.to_string()), Err(error), "{answer}");
        }
        let text = usual().to_string();
        let both = text.replacen('{', r#"{"decision":"allow","#, 1);
        let list = r#"[1,"allow","runs.execute","m-17","p-4",null,"gpu-lab"]"#;
        for wrong in ["", "{}", "null", "allow", &both, list, &text[1..], &format!("{text}{text}")]
        {
            assert_eq!(read(wrong), Err(AnswerError::Json), "{wrong}");
        }
    }

    #[test]
    fn an_answer_to_anything_else_is_none() {
        for (field, value) in [
            ("permission", "runs.output.view"),
            ("permission", "x"),
            ("member", "m-18"),
            ("member", ""),
            ("project", "p-5"),
            ("site", "gpu-lab2"),
            ("tenant", "t"),
        ] {
            let mut answer = usual();
            answer[field] = value.into();
            assert_eq!(read(&answer.to_string()), Err(AnswerError::AnotherQuestion), "{answer}");
        }
        let mut answer = usual();
        answer.as_object_mut().unwrap().remove("project");
        assert_eq!(read(&answer.to_string()), Err(AnswerError::AnotherQuestion));
        answer["version"] = 2.into();
        assert_eq!(read(&answer.to_string()), Err(AnswerError::Version));
        let unreadable = [text_of(&usual()).as_bytes(), b",\"more\":\"\xff\"}"].concat();
        assert_eq!(Decision::parse(&unreadable, &asked()), Err(AnswerError::Json));
        // What is not known says nothing.
        let mut answer = usual();
        answer["reason"] = json!({ "rule": 7 });
        assert_eq!(read(&answer.to_string()), Ok(Decision::Allow));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

        #[test]
        fn an_answer_is_read_by_who_asked_and_by_nobody_else(one in question(), other in question()) {
            for decision in [Decision::Allow, Decision::Deny] {
                let body = decision.to_json(&one).unwrap();
                prop_assert!(body.len() <= crate::LARGEST);
                prop_assert_eq!(Decision::parse(&body, &one), Ok(decision));
                prop_assert_eq!(Decision::parse(&body, &other).is_ok(), one == other);
            }
        }
    }
}
