//! Who calls from a cluster, and who asks the cluster about it.

use test_support::manifest;

use crate::{text, value};

#[test]
fn the_right_of_site_api_is_to_create_tokenreviews_and_nothing_else() {
    let manifest = manifest("token-review.yaml");
    let role = manifest.split("\n---\n").find(|part| part.contains("kind: ClusterRole\n")).unwrap();
    let (_, rules) = role.split_once("\nrules:\n").unwrap();
    let rules: Vec<_> = rules.lines().map(str::trim).collect();
    assert_eq!(
        rules,
        [
            r#"- apiGroups: ["authentication.k8s.io"]"#,
            r#"resources: ["tokenreviews"]"#,
            r#"verbs: ["create"]"#,
        ]
    );
    assert_eq!(manifest.matches("kind: ClusterRoleBinding").count(), 1);
    assert!(
        manifest.ends_with("  - kind: ServiceAccount\n    name: site-api\n    namespace: pharos\n")
    );
    assert!(test_support::manifest("site-api.yaml").contains("serviceAccountName: site-api\n"));
}

#[test]
fn the_reviewers_token_is_projected_for_600_seconds_and_for_the_api_server() {
    let manifest = manifest("site-api.yaml");
    let (_, source) = manifest.split_once("- serviceAccountToken:\n").unwrap();
    let lines: Vec<_> = source.lines().map(str::trim).take(3).collect();
    assert_eq!(lines, ["path: token", "expirationSeconds: 600", "- configMap:"]);
    assert!(source.contains("name: kube-root-ca.crt\n"));
    assert!(value(&manifest, "SITE_API_TOKEN_REVIEW_TOKEN_FILE").ends_with("/token"));
    assert!(value(&manifest, "SITE_API_TOKEN_REVIEW_CA_FILE").ends_with("/ca.crt"));
}

#[test]
fn a_runtimes_token_is_projected_for_our_audience() {
    let settings = text("bins/site-api/src/service_accounts/settings.rs");
    let (_, default) = settings.split_once("DEFAULT_AUDIENCE: &str = \"").unwrap();
    let default = default.split('"').next().unwrap();
    let runtime = manifest("runtime.yaml");
    assert_eq!(runtime.matches("audience: ").count(), 1);
    assert!(runtime.contains(&format!("audience: {default}\n")), "{default}");
    // The listener of the other manifest does not ask for another one.
    assert!(!manifest("site-api.yaml").contains("SITE_API_RUNTIME_AUDIENCE"));
}

#[test]
fn the_default_grant_is_that_of_the_runtime_in_the_other_manifest() {
    let runtime = manifest("runtime.yaml");
    let account = runtime.split("\n---\n").find(|part| part.contains("kind: ServiceAccount\n"));
    let field = |name: &str| {
        let line = account.unwrap().lines().find_map(|line| line.trim().strip_prefix(name));
        line.unwrap().to_owned()
    };
    let subject = format!("system:serviceaccount:{}:{}", field("namespace: "), field("name: "));
    let map: serde_json::Value =
        serde_json::from_str(&value(&manifest("site-api.yaml"), "SITE_API_GRANTS_JSON")).unwrap();
    assert_eq!(map, serde_json::json!({ subject: "k8s" }));
}
