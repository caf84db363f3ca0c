//! Questions that are read, and bodies that are none.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

/// Any question.
pub(crate) fn question() -> impl Strategy<Value = Question> {
    let name = || "[!-~]{1,255}".prop_map(|text| Name::parse(&text).unwrap());
    (prop::sample::select(&Permission::ALL[..]), name(), name(), name()).prop_map(
        |(permission, member, about, site)| {
            Question::in_project(permission, member.clone(), about.clone(), site.clone())
                .unwrap_or_else(|| Question::manages_site(member, about, site))
        },
    )
}

fn usual() -> Value {
    json!({ "version": 1, "permission": "runs.execute", "member": "m", "project": "p", "site": "s" })
}

fn refusal(body: &str) -> QuestionError {
    Question::parse(body.as_bytes()).unwrap_err()
}

#[test]
fn the_question_of_the_page_is_one_and_is_written_like_that() {
    let text = r#"{"version":1,"permission":"runs.execute","member":"m-17","project":"p-4","site":"gpu-lab"}"#;
    let question = Question::parse(text.as_bytes()).unwrap();
    let name = |text: &str| Name::parse(text).unwrap();
    let same =
        Question::in_project(Permission::RunsExecute, name("m-17"), name("p-4"), name("gpu-lab"));
    assert_eq!(Some(&question), same.as_ref());
    assert_eq!(question.to_json().unwrap(), text.as_bytes());
    let page = include_str!("../../../../docs/BETO.md");
    let block = |text: &str| {
        page.split("```json\n").find_map(|part| {
            let block = part.split("\n```").next()?;
            block.contains(text).then(|| block.to_owned())
        })
    };
    assert_eq!(
        Question::parse(block(r#""member": "m-17""#).unwrap().as_bytes()).unwrap(),
        question
    );
}

#[test]
fn a_field_that_is_missing_unknown_null_twice_or_of_another_type_is_refused() {
    for field in ["version", "permission", "member", "site"] {
        let mut missing = usual();
        missing.as_object_mut().unwrap().remove(field);
        assert_eq!(refusal(&missing.to_string()), QuestionError::Json, "{field}");
    }
    for (field, value) in [
        ("more", json!(1)),
        ("member", json!(null)),
        ("member", json!(7)),
        ("project", json!(null)),
        ("tenant", json!(null)),
        ("version", json!("1")),
        ("version", json!(1.0)),
        ("version", json!(-1)),
        ("site", json!(["s"])),
    ] {
        let mut wrong = usual();
        wrong[field] = value;
        assert_eq!(refusal(&wrong.to_string()), QuestionError::Json, "{wrong}");
    }
    let text = usual().to_string();
    let twice = text.replacen('{', r#"{"member":"m","#, 1);
    let list = r#"[1,"runs.execute","m","p",null,"s"]"#;
    for wrong in ["", "{", "null", &twice, list, &format!("{text} 1"), &format!("[{text}]")] {
        assert_eq!(refusal(wrong), QuestionError::Json, "{wrong}");
    }
}

#[test]
fn another_version_permission_or_subject_is_told_apart() {
    let with = |field: &str, value: Value| {
        let mut question = usual();
        question[field] = value;
        refusal(&question.to_string())
    };
    assert_eq!(with("version", json!(2)), QuestionError::Version);
    assert_eq!(with("permission", json!("runs.delete")), QuestionError::Permission);
    assert_eq!(with("permission", json!("compute:sites:manage")), QuestionError::About);
    assert_eq!(with("tenant", json!("t")), QuestionError::About);
    for name in ["", " ", "a b", "ä", "a\n", &"x".repeat(256)] {
        for field in ["member", "project", "site"] {
            assert_eq!(with(field, json!(name)), QuestionError::Name, "{field} {name:?}");
        }
    }
    let neither = r#"{"version":1,"permission":"runs.execute","member":"m","site":"s"}"#;
    assert_eq!(refusal(neither), QuestionError::About);
    let name = || Name::parse("n").unwrap();
    let sites = Question::in_project(Permission::ComputeSitesManage, name(), name(), name());
    assert_eq!(sites, None);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

    #[test]
    fn every_question_is_read_as_it_was_written(question in question()) {
        let body = question.to_json().unwrap();
        prop_assert!(body.len() <= crate::LARGEST);
        prop_assert_eq!(Question::parse(&body).unwrap(), question);
    }

    #[test]
    fn no_bytes_are_too_much_for_the_reader(body in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Question::parse(&body);
    }
}
