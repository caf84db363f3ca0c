//! Each rule with a made-up workspace that breaks it, and one that keeps them all.

use serde_json::{Value, json};

use super::*;

/// A workspace of folders under /w and what they name: `"dev x"`, `"build x"` or `"x"`.
fn workspace(members: &[(&str, &[&str])]) -> Workspace {
    let dependency = |line: &&str| -> Value {
        let (kind, name) = line.split_once(' ').map_or((None, *line), |(k, name)| (Some(k), name));
        json!({ "name": name, "kind": kind, "rename": null })
    };
    let packages: Vec<_> = members
        .iter()
        .map(|(folder, dependencies)| {
            json!({
                "name": folder.rsplit('/').next(),
                "manifest_path": format!("/w/{folder}/Cargo.toml"),
                "dependencies": dependencies.iter().map(dependency).collect::<Vec<_>>(),
            })
        })
        .collect();
    let metadata = json!({ "packages": packages, "workspace_root": "/w", "version": 1 });
    Workspace::parse(&metadata.to_string(), ["one-context", "other-context"].map(str::to_owned))
        .unwrap()
}

fn broken(members: &[(&str, &[&str])]) -> Vec<Violation> {
    violations(&workspace(members))
}

#[test]
fn a_workspace_that_keeps_every_rule_is_clean() {
    let members: &[(&str, &[&str])] = &[
        ("crates/database", &["diesel"]),
        ("crates/service-kit", &["hyper", "site-protocol", "dev test-support"]),
        ("crates/one-context", &["database", "ring", "dev test-support", "dev proptest"]),
        ("crates/other-context", &["database", "ssh-keys"]),
        ("crates/ssh-keys", &["ring", "dev test-support"]),
        ("crates/site-protocol", &["serde"]),
        ("crates/broker", &["lapin"]),
        ("crates/event-relay", &["broker", "lapin", "dev test-support"]),
        ("crates/beto", &["broker", "lapin", "dev test-support"]),
        ("crates/test-support", &["tokio", "lapin"]),
        (
            "bins/site-api",
            &["event-relay", "one-context", "other-context", "service-kit", "dev test-support"],
        ),
        ("crates/fuzz-targets", &["site-api", "one-context", "dev proptest"]),
        ("xtask", &["test-support", "clap"]),
    ];
    assert_eq!(broken(members), []);
}

#[test]
fn a_context_on_another_context_is_found_also_in_its_tests() {
    for line in ["other-context", "dev other-context", "build other-context"] {
        let found = broken(&[("crates/one-context", &[line]), ("crates/other-context", &["ring"])]);
        let expected = ["one-context", "other-context"];
        assert_eq!(found, [Violation::new(&expected, Rule::ContextToContext)], "{line}");
    }
}

#[test]
fn a_context_on_the_wire_or_the_service_is_found() {
    for name in ["site-protocol", "service-kit", "site-client", "callers"] {
        let folder = format!("crates/{name}");
        let found = broken(&[("crates/one-context", &[name]), (&folder, &["serde"])]);
        assert_eq!(found, [Violation::new(&["one-context", name], Rule::ContextToOurs)]);
    }
}

#[test]
fn hyper_is_found_in_a_context_and_in_its_companions() {
    for name in ["hyper", "hyper-util", "hyper-rustls"] {
        let found = broken(&[("crates/one-context", &[name])]);
        assert_eq!(found, [Violation::new(&["one-context", name], Rule::ContextToHyper)]);
    }
    assert_eq!(broken(&[("crates/one-context", &["dev hyper", "hyperloglog"])]), []);
}

#[test]
fn hyper_is_found_through_crates_of_ours() {
    let found = broken(&[
        ("crates/one-context", &["database", "serde"]),
        ("crates/database", &["deep"]),
        ("crates/deep", &["serde", "database", "hyper"]),
    ]);
    let path = ["one-context", "database", "deep", "hyper"];
    assert_eq!(found, [Violation::new(&path, Rule::ContextToHyper)]);
}

#[test]
fn a_broker_is_found_in_a_context_and_through_crates_of_ours() {
    let found = broken(&[("crates/one-context", &["database", "lapin"]), ("crates/database", &[])]);
    let expected = ["one-context", "lapin"];
    assert_eq!(found, [Violation::new(&expected, Rule::ContextToBroker)]);
    let found = broken(&[("crates/one-context", &["database"]), ("crates/database", &["lapin"])]);
    let expected = ["one-context", "database", "lapin"];
    assert_eq!(found, [Violation::new(&expected, Rule::ContextToBroker)]);
}

#[test]
fn who_speaks_to_a_broker_and_uses_another_crate_of_ours_is_found() {
    for from in ["event-relay", "beto", "broker"] {
        for name in ["one-context", "database", "service-kit"] {
            let (ours, folder) = (format!("crates/{from}"), format!("crates/{name}"));
            let found = broken(&[(&ours, &[name, "lapin"]), (&folder, &[])]);
            assert_eq!(found, [Violation::new(&[from, name], Rule::MessagesToOurs)]);
        }
    }
    let found = broken(&[("crates/beto", &["event-relay"]), ("crates/event-relay", &["broker"])]);
    assert_eq!(found, [Violation::new(&["beto", "event-relay"], Rule::MessagesToOurs)]);
}

#[test]
fn the_wire_on_a_crate_of_ours_is_found() {
    let found = broken(&[("crates/site-protocol", &["callers"]), ("crates/callers", &[])]);
    assert_eq!(found, [Violation::new(&["site-protocol", "callers"], Rule::ProtocolToOurs)]);
}

#[test]
fn ssh_keys_on_a_crate_of_ours_is_found() {
    for name in ["database", "site-protocol", "one-context"] {
        let folder = format!("crates/{name}");
        let found = broken(&[("crates/ssh-keys", &[name]), (&folder, &[])]);
        assert_eq!(found, [Violation::new(&["ssh-keys", name], Rule::KeysToOurs)]);
    }
}

#[test]
fn test_support_as_a_normal_dependency_is_found() {
    for line in ["test-support", "build test-support"] {
        let found = broken(&[("crates/callers", &[line]), ("crates/test-support", &[])]);
        let expected = ["callers", "test-support"];
        assert_eq!(found, [Violation::new(&expected, Rule::TestSupportIsForTests)], "{line}");
    }
}

#[test]
fn a_program_that_is_depended_on_is_found() {
    let found = broken(&[
        ("crates/callers", &["dev site-api", "xtask"]),
        ("bins/site-api", &[]),
        ("xtask", &[]),
    ]);
    let expected = [
        Violation::new(&["callers", "site-api"], Rule::NobodyOnPrograms),
        Violation::new(&["callers", "xtask"], Rule::NobodyOnPrograms),
    ];
    assert_eq!(found, expected);
}

#[test]
fn whoever_depends_on_fuzz_targets_is_found_and_they_depend_on_no_xtask() {
    let found = broken(&[
        ("crates/callers", &["dev fuzz-targets"]),
        ("crates/fuzz-targets", &["xtask", "site-api"]),
        ("bins/site-api", &[]),
        ("xtask", &[]),
    ]);
    let expected = [
        Violation::new(&["callers", "fuzz-targets"], Rule::NobodyOnFuzzTargets),
        Violation::new(&["fuzz-targets", "xtask"], Rule::NobodyOnPrograms),
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_violation_names_the_way_the_rule_and_the_reason() {
    let found = broken(&[("crates/site-protocol", &["callers"]), ("crates/callers", &[])]);
    assert_eq!(
        found[0].to_string(),
        "site-protocol → callers: site-protocol depends on no crate of ours\n    it is shared with \
         programs outside this repository and holds no logic"
    );
}

#[test]
fn an_unknown_kind_of_dependency_is_refused() {
    let text = json!({ "packages": [{ "name": "a", "manifest_path": "/w/a", "dependencies": [
        { "name": "b", "kind": "new" } ] }], "workspace_root": "/w" });
    let refused = Workspace::parse(&text.to_string(), []).unwrap_err();
    assert!(refused.to_string().contains("no kind of dependency: new"), "{refused}");
}
