use callers::{Environment, ServiceAccount, SubjectErrors, SubjectGrant, SubjectGrants};
use proptest::prelude::*;

const A: &str = "system:serviceaccount:site-a:runtime";
const B: &str = "system:serviceaccount:site-a:bridge";

fn account(subject: &str) -> ServiceAccount {
    ServiceAccount::parse(subject).unwrap()
}

fn parse(runtimes: &str, admissions: &str) -> Result<SubjectGrants, SubjectErrors> {
    SubjectGrants::parse(Some(runtimes), Some(admissions))
}

fn mistakes(runtimes: &str) -> Vec<String> {
    let errors = parse(runtimes, "{}").unwrap_err();
    assert!(errors.admissions.is_empty());
    let moved = parse("{}", runtimes).unwrap_err();
    assert_eq!((&moved.runtimes, &moved.admissions), (&Vec::new(), &errors.runtimes));
    errors.runtimes
}

#[test]
fn a_subject_is_granted_what_its_map_says_and_no_other_subject_is() {
    let grants = parse(
        &format!(r#"{{"{A}":"k8s","{B}":"k8s"}}"#),
        r#" {"system:serviceaccount:site-a:admission" : "slurm"} "#,
    )
    .unwrap();
    let k8s = SubjectGrant::Runtime(Environment::K8s);
    // Two Runtimes of one environment.
    assert_eq!((grants.of(&account(A)), grants.of(&account(B))), (Some(k8s), Some(k8s)));
    let admission = grants.of(&account("system:serviceaccount:site-a:admission"));
    assert_eq!(admission, Some(SubjectGrant::Admission(Environment::Slurm)));
    for other in [
        "system:serviceaccount:site-a:runtime-2",
        "system:serviceaccount:site-a:runtim",
        "system:serviceaccount:site-b:runtime",
    ] {
        assert_eq!(grants.of(&account(other)), None, "{other}");
    }
    assert_eq!((grants.len(), grants.is_empty()), (3, false));
}

#[test]
fn maps_that_are_empty_or_not_there_grant_nothing() {
    for (runtimes, admissions) in [(None, None), (Some("{}"), None), (None, Some(" {} "))] {
        let grants = SubjectGrants::parse(runtimes, admissions).unwrap();
        assert!(grants.is_empty() && grants.of(&account(A)).is_none());
    }
}

#[test]
fn every_mistake_is_named_with_its_map() {
    let object = "must be a JSON object from subjects to environments";
    for text in ["", "[]", "null", "\"a\"", "{", r#"{"a":}"#, "{} {}"] {
        assert_eq!(mistakes(text), [object], "{text:?}");
    }
    let environment = format!("{A}: must be \"k8s\" or \"slurm\"");
    for value in ["\"K8S\"", "\"\"", "null", "1", "[\"k8s\"]", "\"k8s \""] {
        assert_eq!(mistakes(&format!(r#"{{"{A}":{value}}}"#)), [&*environment], "{value}");
    }
    let subject = |number| {
        format!("entry {number}: the subject must be system:serviceaccount:<namespace>:<name>")
    };
    let text = format!(r#"{{"s3cret":"k8s","{A}":"x","system:serviceaccount:a:b:c":"s3cret"}}"#);
    assert_eq!(mistakes(&text), [subject(1), environment, subject(3)]);
    let large = format!("{{{}}}", " ".repeat(64 * 1024));
    assert_eq!(mistakes(&large), ["has more than 65536 bytes"]);
}

#[test]
fn a_subject_that_is_there_twice_is_a_mistake_however_it_is_spelled() {
    let twice = [format!("{A}: is there more than once")];
    for (second, environment) in [(A.to_owned(), "slurm"), (A.replace("run", "\\u0072un"), "k8s")] {
        let text = format!(r#"{{"{A}":"k8s","{second}":"{environment}"}}"#);
        assert_eq!(mistakes(&text), twice, "{text}");
    }
}

#[test]
fn a_subject_of_both_maps_is_told_whatever_it_is_granted_there() {
    for environment in ["\"k8s\"", "\"slurm\"", "1"] {
        let errors = parse(
            &format!(r#"{{"{A}":"k8s","{B}":"slurm"}}"#),
            &format!(r#"{{"{B}":{environment}}}"#),
        )
        .unwrap_err();
        assert!(errors.runtimes.is_empty());
        let told = format!("{B}: is granted as a Runtime already");
        assert_eq!(errors.admissions.last(), Some(&told));
    }
    let errors = parse(r#"{"x":"k8s"}"#, "[]").unwrap_err();
    assert_eq!((errors.runtimes.len(), errors.admissions.len()), (1, 1));
}

fn rows() -> impl Strategy<Value = Vec<(String, bool)>> {
    prop::collection::vec(("[a-c]", "[a-c]", any::<bool>()), 0..6).prop_map(|rows| {
        let subject =
            |(namespace, name, k8s)| (format!("system:serviceaccount:{namespace}:{name}"), k8s);
        rows.into_iter().map(subject).collect()
    })
}

fn map(rows: &[(String, bool)]) -> String {
    let row = |(subject, k8s): &(String, bool)| {
        format!(r#""{subject}":"{}""#, if *k8s { "k8s" } else { "slurm" })
    };
    format!("{{{}}}", rows.iter().map(row).collect::<Vec<_>>().join(","))
}

proptest! {
    #[test]
    fn maps_are_taken_exactly_where_no_subject_is_there_twice(runtimes in rows(), admissions in rows()) {
        let all: Vec<_> = runtimes.iter().chain(&admissions).map(|(subject, _)| subject).collect();
        let different: std::collections::HashSet<_> = all.iter().collect();
        let parsed = parse(&map(&runtimes), &map(&admissions));
        prop_assert_eq!(parsed.is_ok(), different.len() == all.len());
        let Ok(grants) = parsed else { return Ok(()) };
        let environment = |k8s| if k8s { Environment::K8s } else { Environment::Slurm };
        for (subject, k8s) in &runtimes {
            prop_assert_eq!(grants.of(&account(subject)), Some(SubjectGrant::Runtime(environment(*k8s))));
        }
        for (subject, k8s) in &admissions {
            prop_assert_eq!(grants.of(&account(subject)), Some(SubjectGrant::Admission(environment(*k8s))));
        }
        prop_assert_eq!(grants.len(), all.len());
    }

    #[test]
    fn any_text_is_a_map_or_has_a_mistake(one in "\\PC{0,30}", other in "\\PC{0,30}") {
        if let Err(errors) = parse(&one, &other) {
            prop_assert!(!errors.runtimes.is_empty() || !errors.admissions.is_empty());
        }
    }
}
