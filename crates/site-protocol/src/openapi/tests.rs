use std::collections::BTreeSet;

use super::*;
use crate::paths;

#[test]
fn the_document_has_every_route_and_no_other() {
    let listed: Vec<_> = ROUTES.iter().map(|route| (route.method, route.path)).collect();
    let known: Vec<_> = paths::ALL.iter().chain(paths::SSH_ACCESS).copied().collect();
    assert_eq!(listed, known);
    let document = document();
    let mut count = 0;
    for (method, path) in known {
        assert!(
            document["paths"][path][method.to_ascii_lowercase()].is_object(),
            "{method} {path}"
        );
        count += 1;
    }
    let methods = document["paths"].as_object().unwrap().values();
    assert_eq!(methods.map(|path| path.as_object().unwrap().len()).sum::<usize>(), count);
}

#[test]
fn every_reference_leads_to_a_schema_and_every_schema_is_referred_to() {
    let document = document();
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let mut referred = BTreeSet::new();
    references(&document, &mut referred);
    for reference in &referred {
        let name = reference.strip_prefix("#/components/schemas/").unwrap();
        assert!(schemas.contains_key(name), "{reference}");
    }
    for name in schemas.keys() {
        assert!(referred.contains(&format!("#/components/schemas/{name}")), "{name}");
    }
}

fn references(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            if let Some(Value::String(reference)) = fields.get("$ref") {
                found.insert(reference.clone());
            }
            fields.values().for_each(|value| references(value, found));
        }
        Value::Array(items) => items.iter().for_each(|value| references(value, found)),
        _ => {}
    }
}

#[test]
fn every_part_of_a_path_is_a_parameter_of_it() {
    for route in ROUTES {
        let named = route.path.split(['{', '}']).skip(1).step_by(2).collect::<Vec<_>>();
        let listed: Vec<_> = route.path_parts.iter().map(|part| part.name).collect();
        assert_eq!(named, listed, "{}", route.path);
    }
}

#[test]
fn every_code_is_answered_by_a_route_under_its_own_status() {
    let document = document();
    for route in ROUTES {
        let operation = &document["paths"][route.path][route.method.to_ascii_lowercase()];
        for code in route.codes() {
            let response = &operation["responses"][code.status().to_string()];
            let parts = &response["content"][PROBLEM_CONTENT_TYPE]["schema"]["allOf"];
            let words = parts[1]["properties"]["code"]["enum"].as_array().unwrap();
            assert!(words.contains(&code.as_str().into()), "{} {}", route.id, code.as_str());
            for member in code.members() {
                assert!(parts[1]["properties"][member.name].is_object(), "{}", member.name);
            }
        }
        for success in route.answers {
            assert!(operation["responses"][success.status.to_string()].is_object());
        }
    }
}

#[test]
fn a_request_has_no_other_fields_and_an_answer_may() {
    let document = document();
    for (name, closed) in [("ResultBody", true), ("ResultBatch", true), ("CommandPage", false)] {
        let schema = &document["components"]["schemas"][name];
        assert_eq!(schema["additionalProperties"] == false, closed, "{name}: {schema}");
    }
}

#[test]
fn an_absent_field_is_not_null() {
    fn nulls(value: &Value, path: &str) {
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    nulls(value, &format!("{path}/{name}"));
                }
            }
            Value::Array(items) => items.iter().for_each(|value| nulls(value, path)),
            value => assert_ne!(value, "null", "{path}"),
        }
    }
    nulls(&document(), "");
}

#[test]
fn no_code_is_left_that_no_route_answers() {
    for code in Code::ALL {
        let answered = ROUTES.iter().any(|route| route.codes().any(|answered| answered == *code));
        assert!(answered, "{}", code.as_str());
    }
}
