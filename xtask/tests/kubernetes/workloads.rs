//! What each Pod has, and what it has not.

use test_support::manifest;

use crate::FILES;

/// Manifests with a Pod of their own.
const WORKLOADS: [&str; 3] = ["site-api.yaml", "runtime.yaml", "ssh-access.yaml"];

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

/// Each context's credential has a key of its own in the Secret, by the name of its setting.
#[test]
fn every_credential_comes_from_a_secret_under_the_name_of_its_setting() {
    let mut named = Vec::new();
    for file in FILES {
        let manifest = manifest(file);
        let lines: Vec<_> = manifest.lines().map(str::trim).collect();
        for (place, line) in lines.iter().enumerate() {
            let Some(name) = line.strip_prefix("- name: ").filter(|name| name.ends_with("_URL"))
            else {
                continue;
            };
            if !name.ends_with("_DATABASE_URL") && !name.ends_with("_BROKER_URL") {
                continue;
            }
            assert_eq!(lines[place + 1..place + 3], ["valueFrom:", "secretKeyRef:"], "{file}");
            assert!(lines[place + 3].ends_with("-credentials"), "{file}: {name}");
            assert_eq!(lines[place + 4], format!("key: {name}"), "{file}");
            named.push(name.to_owned());
        }
    }
    named.sort();
    let all = [
        "EXECUTION_CORE_DATABASE_URL",
        "RESOURCE_PROVISIONING_BROKER_URL",
        "RESOURCE_PROVISIONING_DATABASE_URL",
        "SITE_COORDINATION_DATABASE_URL",
        "SSH_ACCESS_DATABASE_URL",
        "SSH_ACCESS_DATABASE_URL",
    ];
    assert_eq!(named, all);
}

/// The Service has the port that the program listens on where nothing else is said.
#[test]
fn the_service_leads_to_the_listener_on_port_8443() {
    let manifest = manifest("site-api.yaml");
    let (service, deployment) = manifest.split_once("\n---\n").unwrap();
    assert!(service.contains("kind: Service\nmetadata:\n  name: site-api\n"));
    assert!(service.contains("  selector:\n    app: site-api\n"));
    assert!(service.ends_with("    - name: https\n      port: 8443\n      targetPort: https"));
    assert!(deployment.contains("        app: site-api\n"));
    assert!(deployment.contains("- name: https\n              containerPort: 8443\n"));
    assert!(!deployment.contains("SITE_API_LISTEN"), "it listens elsewhere");
}

/// A GitOps controller can't give them, so they stand where an administrator applies them.
#[test]
fn rights_for_the_whole_cluster_stand_in_one_manifest_alone() {
    for file in FILES {
        let there = manifest(file).contains("kind: ClusterRole");
        assert_eq!(there, file == "token-review.yaml", "{file}");
    }
}
