use std::fs;

use service_kit::tls::{TlsError, server_config};
use test_support::TestCa;

#[test]
fn a_certificate_and_key_that_go_together_are_taken() {
    let folder = tempfile::tempdir().unwrap();
    let (cert, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
    TestCa::new().issue(&["localhost"]).write_to(&cert, &key).unwrap();
    let config = server_config(&cert, &key).unwrap();
    assert_eq!(config.alpn_protocols, [b"http/1.1"]);
}

#[test]
fn anything_else_is_refused_with_its_reason() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let ca = TestCa::new();
    ca.issue(&["localhost"]).write_to(&path("cert.pem"), &path("key.pem")).unwrap();
    ca.issue(&["localhost"]).write_to(&path("other.pem"), &path("other-key.pem")).unwrap();
    fs::write(path("empty.pem"), "").unwrap();
    fs::write(path("torn.pem"), "-----BEGIN CERTIFICATE-----\nAA").unwrap();

    let refused = |cert: &str, key: &str| server_config(&path(cert), &path(key)).unwrap_err();
    assert!(matches!(refused("none.pem", "key.pem"), TlsError::Certificate(_)));
    assert!(matches!(refused("torn.pem", "key.pem"), TlsError::Certificate(_)));
    assert!(matches!(refused("empty.pem", "key.pem"), TlsError::NoCertificate));
    assert!(matches!(refused("key.pem", "key.pem"), TlsError::NoCertificate));
    assert!(matches!(refused("cert.pem", "none.pem"), TlsError::Key(_)));
    assert!(matches!(refused("cert.pem", "cert.pem"), TlsError::Key(_)));
    assert!(matches!(refused("cert.pem", "other-key.pem"), TlsError::Pair(_)));
}
