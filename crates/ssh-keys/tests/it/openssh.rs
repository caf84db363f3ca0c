//! Against the real `ssh-keygen`: what is taken is what OpenSSH reads.

use std::{fs, path::Path, process::Command};

use proptest::{
    strategy::{Strategy, ValueTree},
    test_runner::{Config, TestRunner},
};
use ssh_keys::{KeyType, PublicKey};
use test_support::ssh_keygen;

use crate::{made::one_of_each_type, properties::lines};

/// What it prints of each key of a file: the bits and the fingerprint.
fn listed(file: &Path) -> Vec<(u64, String)> {
    let output = ssh_keygen().unwrap().arg("-l").arg("-f").arg(file).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let words = text.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    words.map(|words| (words[0].parse().unwrap(), words[1].to_owned())).collect()
}

fn generated(folder: &Path, kind: &str, bits: &str) -> String {
    let file = folder.join(format!("{kind}-{bits}"));
    let mut command: Command = ssh_keygen().unwrap();
    command
        .args(["-q", "-N", "", "-C", "alice at north 1", "-t", kind, "-b", bits, "-f"])
        .arg(&file);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    fs::read_to_string(file.with_extension("pub")).unwrap()
}

#[test]
fn a_generated_key_of_each_type_is_taken_with_the_fingerprint_that_it_prints() {
    let folder = tempfile::tempdir().unwrap();
    for (kind, bits, expected) in [
        ("ed25519", "256", KeyType::Ed25519),
        ("ecdsa", "256", KeyType::EcdsaP256),
        ("ecdsa", "384", KeyType::EcdsaP384),
        ("ecdsa", "521", KeyType::EcdsaP521),
        ("rsa", "2048", KeyType::Rsa),
        ("rsa", "3072", KeyType::Rsa),
    ] {
        let text = generated(folder.path(), kind, bits);
        let line = text.strip_suffix('\n').unwrap();
        let key = PublicKey::parse(line).unwrap();
        assert_eq!(key.kind(), expected);
        assert_eq!(line, format!("{key} alice at north 1"));
        let file = folder.path().join(format!("{kind}-{bits}.pub"));
        assert_eq!(listed(&file), [(bits.parse().unwrap(), key.fingerprint().to_string())]);
        assert_eq!(key.warning().is_some(), bits == "2048");
    }
}

#[test]
fn a_generated_rsa_key_that_is_too_short_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let text = generated(folder.path(), "rsa", "1024");
    let refusal = PublicKey::parse(text.trim_end()).unwrap_err();
    assert_eq!(refusal, ssh_keys::KeyRefusal::RsaTooSmall { bits: 1024 });
}

#[test]
fn whatever_is_taken_it_reads_with_the_same_fingerprint() {
    let mut runner = TestRunner::new(Config::default());
    let mut taken: Vec<_> =
        one_of_each_type().iter().map(|line| PublicKey::parse(line).unwrap()).collect();
    let strategy = lines();
    while taken.len() < 300 {
        let line = strategy.new_tree(&mut runner).unwrap().current();
        taken.extend(PublicKey::parse(&line).ok());
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("authorized_keys");
    let text: String = taken.iter().map(|key| format!("{key}\n")).collect();
    fs::write(&file, text).unwrap();
    let listed: Vec<_> = listed(&file).into_iter().map(|(_, fingerprint)| fingerprint).collect();
    let unread = taken.iter().find(|key| !listed.contains(&key.fingerprint().to_string()));
    assert_eq!(unread.map(ToString::to_string), None);
    assert_eq!(listed.len(), taken.len());
    for kind in KeyType::ALL {
        assert!(taken.iter().filter(|key| key.kind() == kind).count() > 1, "{kind:?}");
    }
}

#[test]
fn it_prints_the_length_of_an_rsa_key_as_we_count_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("keys");
    let bits = [2048, 2049, 2055, 3071];
    let keys = bits.map(|bits| {
        crate::made::line(&[b"ssh-rsa", crate::made::EXPONENT, &crate::made::modulus(bits)])
    });
    fs::write(&file, keys.join("\n")).unwrap();
    let listed: Vec<_> = listed(&file).into_iter().map(|(bits, _)| bits).collect();
    assert_eq!(listed, bits);
    for (bits, key) in bits.into_iter().zip(&keys) {
        let warning = PublicKey::parse(key).unwrap().warning();
        assert_eq!(warning, Some(ssh_keys::KeyWarning::ShortRsa { bits }));
    }
}
