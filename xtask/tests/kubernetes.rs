//! The manifests in deploy/kubernetes and the page to them name what the programs have. They are read
//! as text.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use test_support::{config_map, manifest};

const FILES: [&str; 6] = [
    "token-review.yaml",
    "site-api.yaml",
    "execution-authority.yaml",
    "runtime.yaml",
    "ssh-access-settings.yaml",
    "ssh-access.yaml",
];

/// Those with a Pod of their own.
const WORKLOADS: [&str; 3] = ["site-api.yaml", "runtime.yaml", "ssh-access.yaml"];

#[test]
fn the_page_names_each_manifest_and_there_is_no_other() {
    let mut there: Vec<_> = fs::read_dir(root().join("deploy/kubernetes"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    there.sort();
    let mut files = FILES.map(str::to_owned).to_vec();
    files.sort();
    assert_eq!(there, files);
    let page = page();
    for file in FILES {
        assert!(page.contains(&format!("| `{file}` |")), "{file}");
    }
}

#[test]
fn every_setting_of_a_manifest_and_of_the_page_is_one() {
    let known = text("docs/OPERATIONS.md");
    let known: BTreeSet<_> = quoted(&known).filter(|name| is_setting(name)).collect();
    let mut named = BTreeSet::new();
    for file in FILES {
        let manifest = manifest(file);
        let names = manifest.lines().filter_map(|line| line.trim().strip_prefix("- name: "));
        named.extend(names.filter(|name| is_setting(name)).map(str::to_owned));
        named.extend(config_map(&manifest).into_keys().filter(|name| is_setting(name)));
    }
    assert!(named.len() > 12, "{named:?}");
    named.extend(quoted(&page()).filter(|name| is_setting(name)));
    let unknown: Vec<_> = named.difference(&known).collect();
    assert!(unknown.is_empty(), "no settings: {unknown:?}");
}

#[test]
fn the_page_says_of_each_setting_what_the_manifest_has() {
    let page = page();
    let manifest = manifest("site-api.yaml");
    for name in ["SITE_API_GRANTS_JSON", "SITE_API_TOKEN_REVIEW_URL"] {
        let value = value(&manifest, name);
        assert!(page.contains(&format!("| `{name}` | `{value}` |")), "{name} is {value}");
    }
}

/// Every file that a setting or an argument names is below a mount of the same container.
#[test]
fn every_file_that_is_named_is_mounted() {
    for (file, count) in [
        ("site-api.yaml", 5),
        ("execution-authority.yaml", 1),
        ("runtime.yaml", 3),
        ("ssh-access.yaml", 0),
    ] {
        let manifest = manifest(file);
        let lines: Vec<_> = manifest.lines().map(str::trim).collect();
        let after = |mark: &str| -> Vec<&str> {
            lines.iter().filter_map(|line| line.strip_prefix(mark)).collect()
        };
        let mounts = after("mountPath: ");
        let mut files: Vec<_> = after("value: /").iter().map(|path| format!("/{path}")).collect();
        if let [arguments] = after("args: ")[..] {
            let state = arguments.split("\"--state\", \"").nth(1).unwrap();
            files.push(state.split('"').next().unwrap().to_owned());
        }
        assert_eq!(files.len(), count, "{file}: {files:?}");
        for path in files {
            let below = mounts.iter().any(|mount| path.starts_with(&format!("{mount}/")));
            assert!(below, "{file}: {path} is below none of {mounts:?}");
        }
        // Each mount is of a volume that is there.
        let pairs = lines.iter().zip(&lines[1..]);
        for (name, _) in pairs.filter(|(_, next)| next.starts_with("mountPath: ")) {
            let times = lines.iter().filter(|line| line.trim_start_matches("- ") == &name[2..]);
            assert!(times.count() > 1, "{file}: no volume {name}");
        }
    }
}

#[test]
fn no_default_token_is_mounted() {
    for file in FILES {
        for document in manifest(file).split("\n---\n") {
            let kind = document.lines().find_map(|line| line.strip_prefix("kind: ")).unwrap();
            if ["ServiceAccount", "Deployment", "StatefulSet"].contains(&kind) {
                let off = document.contains("automountServiceAccountToken: false");
                assert!(off, "{file}: {kind}");
            }
        }
    }
}

/// No Pod may more than its program needs.
#[test]
fn every_workload_runs_as_nobody_with_nothing() {
    for file in WORKLOADS {
        let manifest = manifest(file);
        for line in [
            "runAsNonRoot: true",
            "runAsUser: 10001",
            "type: RuntimeDefault",
            "allowPrivilegeEscalation: false",
            r#"drop: ["ALL"]"#,
        ] {
            assert_eq!(manifest.matches(line).count(), 1, "{file}: {line}");
        }
        // A Runtime's handler writes where it likes.
        let read_only = manifest.contains("readOnlyRootFilesystem: true");
        assert_eq!(read_only, file != "runtime.yaml", "{file}");
    }
}

/// The ConfigMap has the Site of both, and neither manifest says it once more.
#[test]
fn both_processes_have_their_site_from_one_configmap() {
    let settings = config_map(&manifest("ssh-access-settings.yaml"));
    let names: Vec<_> = settings.keys().map(String::as_str).collect();
    assert_eq!(names, ["SITE_API_SITE_ID", "SSH_ACCESS_SITE", "SSH_ACCESS_WINDOW_SECONDS"]);
    assert_eq!(settings["SITE_API_SITE_ID"], settings["SSH_ACCESS_SITE"]);
    for (file, source) in [
        ("site-api.yaml", "- configMapRef: name: ssh-access-settings optional: true"),
        ("ssh-access.yaml", "- configMapRef: name: ssh-access-settings"),
    ] {
        let manifest = manifest(file);
        let (_, from) = manifest.split_once("          envFrom:\n").unwrap();
        let (from, _) = from.split_once("          env:\n").unwrap();
        let words: Vec<_> = from.split_whitespace().collect();
        assert_eq!(words.join(" "), source, "{file}");
        for name in &names {
            assert!(!manifest.contains(&format!("- name: {name}\n")), "{file} says {name} itself");
        }
    }
    let page = page();
    for (name, value) in settings {
        assert!(page.contains(&format!("| `{name}` | `{value}` |")), "{name} is {value}");
    }
}

/// Each process has the credential of its own role: two Secrets, and no key of the other one.
#[test]
fn each_process_has_a_secret_of_its_own() {
    let (api, ssh) = (manifest("site-api.yaml"), manifest("ssh-access.yaml"));
    for (manifest, credentials) in [
        (&api, "name: site-api-credentials\nkey: SSH_ACCESS_DATABASE_URL\noptional: true"),
        (&ssh, "name: ssh-access-credentials\nkey: SSH_ACCESS_DATABASE_URL"),
    ] {
        let (_, after) = manifest.split_once("- name: SSH_ACCESS_DATABASE_URL\n").unwrap();
        let lines = after.lines().map(str::trim).skip(2).take(credentials.lines().count());
        assert_eq!(lines.collect::<Vec<_>>(), credentials.lines().collect::<Vec<_>>());
    }
    assert!(!ssh.contains("site-api-credentials") && !api.contains("ssh-access-credentials"));
    assert!(!ssh.contains("serviceAccountName"), "it asks nothing of the cluster");
    let file = "--from-file=SSH_ACCESS_DATABASE_URL=urls/ssh_access_process.url";
    assert!(page().contains(file), "the page makes it otherwise");
}

/// The kubelet asks where the process answers.
#[test]
fn the_probes_of_ssh_access_are_at_its_health_listener() {
    let manifest = manifest("ssh-access.yaml");
    let address = value(&manifest, "SSH_ACCESS_METRICS_LISTEN");
    let port = address.strip_prefix("0.0.0.0:").unwrap();
    assert!(manifest.contains(&format!("- name: admin\n              containerPort: {port}\n")));
    for probe in ["readinessProbe", "livenessProbe"] {
        let (_, probe) = manifest.split_once(&format!("{probe}:\n")).unwrap();
        let lines: Vec<_> = probe.lines().map(str::trim).take(3).collect();
        assert_eq!(lines, ["httpGet:", "path: /healthz", "port: admin"]);
    }
    // The fenced lease lets two of them run.
    assert!(manifest.contains("\n  replicas: 2\n"));
}

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

/// The value of a variable of a container.
fn value(manifest: &str, name: &str) -> String {
    let (_, after) = manifest.split_once(&format!("- name: {name}\n")).unwrap();
    let value = after.lines().next().unwrap().trim().strip_prefix("value: ").unwrap();
    value.trim_matches('\'').to_owned()
}

fn is_setting(name: &str) -> bool {
    let prefixes = ["SITE_API_", "SITE_COORDINATION_", "SITE_AGENT_", "SSH_ACCESS_"];
    let character = |byte: u8| byte.is_ascii_uppercase() || byte == b'_';
    prefixes.iter().any(|prefix| name.starts_with(prefix)) && name.bytes().all(character)
}

/// What stands between backquotes.
fn quoted(text: &str) -> impl Iterator<Item = String> {
    text.split('`').skip(1).step_by(2).map(str::to_owned)
}

fn page() -> String {
    text("docs/KUBERNETES.md")
}

fn text(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}
