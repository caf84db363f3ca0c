//! `site-admin tls`: a certificate that clients can verify, whose CA can sign no other.

use std::{fs, os::unix::fs::symlink, path::Path, sync::Arc};

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_rustls::{
    TlsAcceptor, TlsConnector,
    rustls::{
        ClientConfig, RootCertStore, ServerConfig, crypto,
        pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
    },
};

use crate::support::{Done, admin, admin_on_a_full_disk, files, mode};

const FILES: [&str; 3] = ["ca.crt", "tls.crt", "tls.key"];

fn issue(folder: &Path, more: &[&str]) -> Done {
    let folder = folder.display().to_string();
    admin(&[&["tls", "issue", "--directory", &folder], more].concat()).run()
}

fn server(certificate: &Path, key: &Path) -> Result<ServerConfig, tokio_rustls::rustls::Error> {
    let certificate = CertificateDer::from_pem_file(certificate).unwrap();
    let key = PrivateKeyDer::from_pem_file(key).unwrap();
    ServerConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
}

/// Whether a client that trusts `ca.crt` accepts the server under this name.
async fn accepted(folder: &Path, name: &str) -> bool {
    let server = server(&folder.join("tls.crt"), &folder.join("tls.key")).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(folder.join("ca.crt")).unwrap()).unwrap();
    let client = ClientConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let (near, far) = tokio::io::duplex(64 * 1024);
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let connector = TlsConnector::from(Arc::new(client));
    let acceptor = TlsAcceptor::from(Arc::new(server));
    let (client, _server) = tokio::join!(connector.connect(name, near), acceptor.accept(far));
    client.is_ok()
}

#[tokio::test]
async fn the_certificate_has_the_four_names_of_the_service_and_no_other() {
    let folder = TempDir::new().unwrap();
    issue(folder.path(), &["--namespace", "pharos"]).ok();
    for name in
        ["site-api", "site-api.pharos", "site-api.pharos.svc", "site-api.pharos.svc.cluster.local"]
    {
        assert!(accepted(folder.path(), name).await, "{name}");
    }
    for name in ["localhost", "127.0.0.1", "site-api.other", "x.site-api.pharos.svc", "pharos"] {
        assert!(!accepted(folder.path(), name).await, "{name}");
    }
}

#[tokio::test]
async fn further_names_may_be_dns_names_and_addresses() {
    let folder = TempDir::new().unwrap();
    let names = ["site.example.org", "127.0.0.1", "::1", "localhost"];
    let arguments: Vec<_> = names.iter().flat_map(|name| ["--name", name]).collect();
    issue(folder.path(), &arguments).ok();
    for name in names {
        assert!(accepted(folder.path(), name).await, "{name}");
    }
    assert!(!accepted(folder.path(), "site-api").await, "no namespace, no Service");
}

#[test]
fn the_three_files_are_printed_and_only_the_owner_reads_the_key() {
    let folder = TempDir::new().unwrap();
    let made = folder.path().join("new/tls");
    let printed = issue(&made, &["--namespace", "pharos"]).ok();
    assert_eq!(files(&made), FILES);
    let mut lines: Vec<_> = printed.lines().map(Path::new).collect();
    lines.sort();
    assert_eq!(lines, FILES.map(|file| made.join(file)));
    assert_eq!(mode(&made.join("tls.key")), 0o600);
    assert_eq!(mode(&made.join("ca.crt")) & 0o700, 0o600);
}

#[test]
fn the_key_of_the_ca_is_in_no_file_and_no_message() {
    let folder = TempDir::new().unwrap();
    let done = issue(folder.path(), &["--namespace", "pharos"]);
    assert_eq!(files(folder.path()), FILES);
    let texts = FILES.map(|file| fs::read_to_string(folder.path().join(file)).unwrap());
    let keys = texts.iter().flat_map(|text| text.match_indices("PRIVATE KEY-----\n"));
    assert_eq!(keys.count(), 2, "the beginning and the end of one key");
    // That one key is the server's.
    let key = folder.path().join("tls.key");
    assert!(server(&folder.path().join("tls.crt"), &key).is_ok());
    assert!(server(&folder.path().join("ca.crt"), &key).is_err());
    assert!(!format!("{}{}", done.out, done.err).contains("PRIVATE"));
}

#[test]
fn existing_material_is_never_replaced_whichever_file_there_is() {
    for existing in FILES {
        for link in [false, true] {
            let folder = TempDir::new().unwrap();
            let path = folder.path().join(existing);
            if link {
                symlink("nowhere", &path).unwrap();
            } else {
                fs::write(&path, "mine").unwrap();
            }
            let done = issue(folder.path(), &["--namespace", "pharos"]);
            done.refused(73, "existing material is never replaced");
            assert!(done.err.contains(existing), "{done:?}");
            assert_eq!(files(folder.path()), [existing], "nothing is made beside it");
            assert!(link || fs::read_to_string(&path).unwrap() == "mine");
        }
    }
}

#[test]
fn a_second_issue_changes_nothing() {
    let folder = TempDir::new().unwrap();
    let read = || FILES.map(|file| fs::read(folder.path().join(file)).unwrap());
    issue(folder.path(), &["--name", "localhost"]).ok();
    let before = read();
    issue(folder.path(), &["--name", "localhost"]).refused(73, "exists");
    assert_eq!(read(), before);
}

#[test]
fn an_issue_that_failed_half_way_leaves_nothing_and_may_be_run_again() {
    let folder = TempDir::new().unwrap();
    let made = folder.path().join("tls").display().to_string();
    // The key is small, the certificate of so many names is not.
    let names: Vec<_> = (0..60).map(|n| format!("name-{n}.example.org")).collect();
    let names: Vec<_> = names.iter().flat_map(|name| ["--name", name]).collect();
    let issue = [&["tls", "issue", "--directory", &made], &names[..]].concat();
    admin_on_a_full_disk(&issue).run().refused(73, &made);
    assert_eq!(files(Path::new(&made)), [""; 0]);
    admin(&issue).run().ok();
    assert_eq!(files(Path::new(&made)), FILES);
}

#[test]
fn a_folder_that_can_not_be_made_is_refused() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    let below = folder.path().join("file/tls");
    issue(&below, &["--name", "localhost"]).refused(73, "file/tls");
}

fn show(folder: &Path, more: &[&str]) -> Done {
    let folder = folder.display().to_string();
    admin(&[&["tls", "show", "--directory", &folder], more].concat()).run()
}

#[test]
fn names_dates_and_fingerprints_of_both_certificates_are_shown() {
    let folder = TempDir::new().unwrap();
    issue(folder.path(), &["--namespace", "pharos", "--name", "::1", "--days", "30"]).ok();
    let shown = show(folder.path(), &["--json"]).ok();
    let shown: Vec<Value> = shown.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(shown.len(), 2);
    for (certificate, file) in shown.iter().zip(["tls.crt", "ca.crt"]) {
        let path = folder.path().join(file);
        assert_eq!(certificate["file"], path.display().to_string());
        let der = CertificateDer::from_pem_file(&path).unwrap();
        let digest = ring::digest::digest(&ring::digest::SHA256, &der);
        assert_eq!(certificate["fingerprint"], hex::encode(digest));
        assert_eq!(certificate["issuer"], "CN=Site Control private CA");
        // The last day begins at midnight.
        assert!([29, 30].contains(&certificate["daysLeft"].as_i64().unwrap()), "{certificate}");
        assert!(certificate["notBefore"].as_str() < certificate["notAfter"].as_str());
    }
    let names = [
        "site-api",
        "site-api.pharos",
        "site-api.pharos.svc",
        "site-api.pharos.svc.cluster.local",
        "::1",
    ];
    assert_eq!(shown[0]["names"], json!(names));
    assert_eq!((&shown[0]["subject"], &shown[1]["names"]), (&json!("CN=site-api"), &json!([])));
    let text = show(folder.path(), &[]).ok();
    for said in names.iter().chain(&[shown[1]["fingerprint"].as_str().unwrap(), "days left"]) {
        assert!(text.contains(said), "{said}: {text}");
    }
}

#[test]
fn what_can_not_be_shown_is_named() {
    let folder = TempDir::new().unwrap();
    show(folder.path(), &[]).refused(66, "tls.crt");
    for (text, said) in [
        ("", "it is no PEM"),
        ("mine", "it is no PEM"),
        ("\u{e9}", "it is no PEM"),
        ("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "no certificate"),
        ("-----BEGIN CERTIFICATE-----\nAAAA\n", "no"),
        ("-----BEGIN X-----\nAAAA\n-----END X-----\n", "it holds no certificate"),
    ] {
        fs::write(folder.path().join("tls.crt"), text).unwrap();
        show(folder.path(), &[]).refused(65, said);
    }
}

/// The texts in a manifest by their names, as a block of YAML holds them.
fn texts(manifest: &Value, field: &str) -> Vec<(String, String)> {
    let texts = manifest[field].as_object().unwrap().iter();
    texts.map(|(name, text)| (name.clone(), text.as_str().unwrap().to_owned())).collect()
}

#[test]
fn the_manifests_hold_the_files_and_the_key_only_where_it_belongs() {
    let folder = TempDir::new().unwrap();
    let both = ["--namespace", "pharos", "--secret", "--configmap", "--json"];
    let issued = issue(folder.path(), &both).ok();
    let manifests: Vec<Value> =
        issued.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let file =
        |name: &str| (name.to_owned(), fs::read_to_string(folder.path().join(name)).unwrap());
    let metadata = |name: &str| json!({"name": name, "namespace": "pharos"});
    assert_eq!(manifests[0]["kind"], "Secret");
    assert_eq!(manifests[0]["type"], "kubernetes.io/tls");
    assert_eq!(manifests[0]["metadata"], metadata("site-api-tls"));
    assert_eq!(texts(&manifests[0], "stringData"), [file("tls.crt"), file("tls.key")]);
    assert_eq!(manifests[1]["kind"], "ConfigMap");
    assert_eq!(manifests[1]["metadata"], metadata("site-api-trust"));
    assert_eq!(texts(&manifests[1], "data"), [file("ca.crt")]);
    assert_eq!(show(folder.path(), &both).ok(), issued, "they can be had again");

    let trust = show(folder.path(), &["--configmap"]).ok();
    let indented = file("ca.crt").1.replace('\n', "\n    ");
    let head = "---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: site-api-trust\n";
    assert_eq!(trust.trim_end(), format!("{head}data:\n  ca.crt: |\n    {}", indented.trim_end()));
    let secret = show(folder.path(), &["--secret"]).ok();
    assert!(secret.contains("\n  tls.key: |\n    -----BEGIN PRIVATE KEY-----\n"), "{secret}");
}
