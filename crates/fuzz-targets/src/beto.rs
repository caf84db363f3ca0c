//! What goes between Beto and who asks it.

use std::collections::BTreeMap;

use beto::{About, Decision, LARGEST, Name, Permission, Question, parsers};
use serde_json::{Value, value::RawValue};
use site_admin::parsers::Policy;

/// A question that is taken says what another reader finds, prints back, and takes its own answers.
pub(crate) fn question(bytes: &[u8]) {
    let Ok(question) = Question::parse(bytes) else { return };
    crate::taken();
    let read: Value = serde_json::from_slice(bytes).unwrap();
    let text = |field: &str| read.get(field).map(|text| text.as_str().unwrap());
    assert_eq!(read["version"].as_u64(), Some(1));
    assert_eq!(text("permission"), Some(question.permission().as_str()));
    assert_eq!(text("member"), Some(question.member().as_str()));
    assert_eq!(text("site"), Some(question.site().as_str()));
    let about = match question.about() {
        About::Project(project) => (Some(project.as_str()), None),
        About::Tenant(tenant) => (None, Some(tenant.as_str())),
    };
    assert_eq!((text("project"), text("tenant")), about);
    assert_eq!(read.as_object().unwrap().len(), 5, "a field that nobody knows");
    let body = parsers::question_body(&question).unwrap();
    assert!(body.len() <= LARGEST);
    assert_eq!(Question::parse(&body), Ok(question.clone()));
    for decision in [Decision::Allow, Decision::Deny] {
        let body = parsers::answer_body(decision, &question).unwrap();
        assert_eq!(parsers::answer(&body, &question), Ok(decision));
        // What a responder would say of it is no question, and the other way round.
        assert!(Question::parse(&body).is_err());
    }
    assert!(parsers::answer(bytes, &question).is_err());
}

/// Bytes are the answer to a question only where another reader finds its word and the whole question
/// in it. The first line is a question, what follows the answer; without one it is a usual question.
pub(crate) fn answer(bytes: &[u8]) {
    let line = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(0);
    let (question, answer) = match Question::parse(&bytes[..line]) {
        Ok(question) => (question, &bytes[line + 1..]),
        Err(_) => (usual(), bytes),
    };
    let taken = parsers::answer(answer, &question);
    let text = std::str::from_utf8(answer).ok();
    let Some(read) = text.and_then(|text| serde_json::from_str::<Fields<'_>>(text).ok()) else {
        assert!(taken.is_err());
        return;
    };
    // Read again without fields that are there twice, of which this reader keeps the last.
    let once = parsers::answer(serde_json::to_string(&read).unwrap().as_bytes(), &question);
    let repeats = said(&read, &question);
    assert_eq!(once.ok(), repeats, "{read:?}");
    if let Ok(decision) = taken {
        crate::taken();
        assert_eq!(Some(decision), repeats, "{read:?}");
    }
}

/// The fields of an object as they stand there.
type Fields<'a> = BTreeMap<String, &'a RawValue>;

/// What a body decides, where it repeats the question.
fn said(read: &Fields<'_>, question: &Question) -> Option<Decision> {
    let asked = parsers::question_body(question).unwrap();
    let asked: Value = serde_json::from_slice(&asked).unwrap();
    let text =
        |name: &str| read.get(name).map(|raw| serde_json::from_str::<String>(raw.get()).ok());
    let repeated = ["permission", "member", "project", "tenant", "site"];
    let same =
        |name: &&str| text(name) == asked.get(*name).map(|text| text.as_str().map(str::to_owned));
    let version = serde_json::from_str::<u64>(read.get("version")?.get()).ok()?;
    if version != 1 || !repeated.iter().all(same) {
        return None;
    }
    match text("decision")??.as_str() {
        "allow" => Some(Decision::Allow),
        "deny" => Some(Decision::Deny),
        _ => None,
    }
}

fn usual() -> Question {
    let text = r#"{"version":1,"permission":"runs.execute","member":"m","project":"p","site":"s"}"#;
    Question::parse(text.as_bytes()).unwrap()
}

/// A policy that is taken allows what another reader finds in it, and nothing else; a mistake is short
/// and printable.
pub(crate) fn policy(bytes: &[u8]) {
    let policy = match Policy::parse(bytes) {
        Ok(policy) => policy,
        Err(mistakes) => {
            assert!((1..=40).contains(&mistakes.len()), "{mistakes:?}");
            for mistake in mistakes {
                let short = mistake.len() <= 1024;
                assert!(short && !mistake.chars().any(char::is_control), "{mistake:?}");
            }
            return;
        }
    };
    crate::taken();
    let read: Value = serde_json::from_slice(bytes).unwrap();
    let rules = read["rules"].as_array().unwrap();
    let named = |field: &str| {
        let values = rules.iter().filter_map(|rule| rule[field].as_str());
        let values = values.filter(|text| *text != "*").take(4).map(str::to_owned);
        values.chain(["n".to_owned()]).collect::<Vec<_>>()
    };
    let (members, sites) = (named("member"), named("site"));
    let abouts = [named("project"), named("tenant")].concat();
    for permission in Permission::ALL {
        for member in &members {
            for about in &abouts {
                for site in &sites {
                    let of = if permission.is_of_a_tenant() { "tenant" } else { "project" };
                    let fits = |rule: &Value, field: &str, text: &str| {
                        rule[field] == "*" || rule[field] == text
                    };
                    let allowed = rules.iter().any(|rule| {
                        rule["permission"] == permission.as_str()
                            && fits(rule, "member", member)
                            && fits(rule, of, about)
                            && fits(rule, "site", site)
                    });
                    let expected = if allowed { Decision::Allow } else { Decision::Deny };
                    let name = |text: &str| Name::parse(text).unwrap();
                    let (member, about, site) = (name(member), name(about), name(site));
                    let question = Question::in_project(
                        permission,
                        member.clone(),
                        about.clone(),
                        site.clone(),
                    )
                    .unwrap_or_else(|| Question::manages_site(member, about, site));
                    assert_eq!(policy.decide(&question), expected, "{question:?} by {read}");
                }
            }
        }
    }
}
