//! The two processes of SSH access: one Site, two credentials.

use test_support::{config_map, manifest};

use crate::{page, value};

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
