//! The manifests of deploy/kubernetes, read as text.

use std::{collections::BTreeMap, fs, path::Path};

/// A manifest without its comments.
///
/// # Panics
///
/// When there is none of this name.
#[must_use]
pub fn manifest(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/kubernetes").join(file);
    let text = fs::read_to_string(path).expect("a manifest of this name");
    let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    lines.map(|line| format!("{line}\n")).collect()
}

/// What a manifest with one ConfigMap, and `data` at its end, holds; nothing of any other.
///
/// # Panics
///
/// When a value is none of one line.
#[must_use]
pub fn config_map(manifest: &str) -> BTreeMap<String, String> {
    let Some((_, data)) = manifest.split_once("\ndata:\n") else { return BTreeMap::new() };
    let pairs = data.lines().map(|line| line.trim().split_once(": ").expect("a value of one line"));
    pairs.map(|(name, value)| (name.to_owned(), value.trim_matches('"').to_owned())).collect()
}
