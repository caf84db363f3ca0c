//! That secrets of the settings are wiped, seen in the memory of this process.

use std::{
    fs::{self, File},
    os::unix::fs::FileExt,
};

use ring::rand::SecureRandom;
use secrecy::{ExposeSecret, zeroize::Zeroizing};
use service_kit::Settings;

/// A secret that only [`Masked::text`] has in the clear.
struct Masked(Vec<u8>);

const MASK: u8 = 0x15;

/// Regions above this are not the heap of a small process.
const REGION_LIMIT_BYTES: u64 = 256 * 1024 * 1024;

impl Masked {
    /// 64 random letters.
    fn random() -> Self {
        let mut bytes = vec![0; 64];
        crate::support::random().fill(&mut bytes).unwrap();
        Self(bytes.iter().map(|byte| (b'a' + byte % 16) ^ MASK).collect())
    }

    fn text(&self) -> Zeroizing<String> {
        let mut text = Zeroizing::new(String::with_capacity(self.0.len()));
        text.extend(self.0.iter().map(|byte| char::from(byte ^ MASK)));
        text
    }

    /// Whether the last half of it is in memory that can be written. The first half of a piece that
    /// was given back may be overwritten by the allocator.
    fn is_in_memory(&self) -> bool {
        let memory = File::open("/proc/self/mem").unwrap();
        let maps = fs::read_to_string("/proc/self/maps").unwrap();
        maps.lines().filter_map(writable).any(|(from, to)| {
            let length = usize::try_from(to - from).unwrap();
            let mut bytes = Zeroizing::new(vec![0; length]);
            // A region may have gone since it was listed.
            memory.read_exact_at(&mut bytes, from).is_ok() && self.is_in(&bytes)
        })
    }

    fn is_in(&self, bytes: &[u8]) -> bool {
        let half = &self.0[self.0.len() / 2..];
        let same =
            |piece: &[u8]| piece.iter().zip(half).all(|(byte, masked)| byte ^ MASK == *masked);
        bytes.windows(half.len()).any(same)
    }
}

/// The ends of a region that can be written, from its line of `/proc/self/maps`.
fn writable(line: &str) -> Option<(u64, u64)> {
    let (ends, rest) = line.split_once(' ')?;
    let (from, to) = ends.split_once('-')?;
    let end = |text| u64::from_str_radix(text, 16).ok();
    let (from, to) = (end(from)?, end(to)?);
    (rest.starts_with("rw") && to - from < REGION_LIMIT_BYTES).then_some((from, to))
}

#[test]
fn a_secret_of_the_environment_is_nowhere_once_it_is_dropped() {
    // So often that not each piece that was given back is in use again.
    let names = ["A", "B", "C", "D", "E", "F", "G", "H"];
    let secret = Masked::random();
    let text = secret.text();
    let mut settings = Settings::from_pairs(names.map(|name| (name, text.as_str())));
    let held = names.map(|name| settings.required_secret(name).unwrap());
    let length = settings.required_secret_as("A", |text| Ok(text.len()));
    assert_eq!(settings.accept(length), Ok(64));
    assert!(held.iter().all(|held| held.expose_secret() == text.as_str()));
    drop(text);
    assert!(secret.is_in_memory());
    drop(held);
    assert!(!secret.is_in_memory());
}

#[test]
fn a_secret_of_a_file_is_nowhere_once_it_is_dropped() {
    let folder = tempfile::tempdir().unwrap();
    for ending in ["", "\n", "\r\n"] {
        let secret = Masked::random();
        let path = folder.path().join("secret");
        let content = Zeroizing::new(format!("{}{ending}", secret.text().as_str()));
        fs::write(&path, content.as_bytes()).unwrap();
        drop(content);
        let mut settings = Settings::from_pairs([("A_FILE", &path)]);
        let held = settings.required_secret("A").unwrap();
        assert_eq!(settings.finish(), Ok(()));
        assert!(secret.is_in_memory());
        assert_eq!(held.expose_secret(), secret.text().as_str());
        drop(held);
        assert!(!secret.is_in_memory(), "{ending:?}");
    }
}

#[test]
fn a_secret_that_is_refused_is_nowhere() {
    let folder = tempfile::tempdir().unwrap();
    let secret = Masked::random();
    let path = folder.path().join("secret");
    let mut content = Zeroizing::new(secret.text().as_bytes().to_vec());
    // Not UTF-8, behind what must not stay.
    content.insert(0, 0xff);
    fs::write(&path, &*content).unwrap();
    drop(content);
    let text = secret.text();
    let pairs = [("A_FILE", path.as_os_str()), ("B", text.as_str().as_ref())];
    let mut settings = Settings::from_pairs(pairs);
    drop(text);
    assert!(settings.required_secret("A").is_none());
    let refuse = |_: &str| Err::<(), _>("is refused");
    assert_eq!(settings.required_secret_as("B", refuse), None);
    assert_eq!(settings.finish().unwrap_err().mistakes().len(), 2);
    assert!(!secret.is_in_memory());
}
