//! The part of `cargo metadata --no-deps` that the rules need.

use std::collections::BTreeSet;

use serde::Deserialize;

/// The members of a workspace and what their manifests name.
#[derive(Debug, Deserialize)]
pub(crate) struct Workspace {
    packages: Vec<Package>,
    workspace_root: String,
    #[serde(skip)]
    contexts: BTreeSet<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Package {
    pub(super) name: String,
    pub(super) dependencies: Vec<Dependency>,
    manifest_path: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct Dependency {
    /// The package's own name, also where the manifest renames it.
    pub(super) name: String,
    #[serde(default, deserialize_with = "kind")]
    pub(super) kind: Kind,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Kind {
    #[default]
    Normal,
    Build,
    Dev,
}

impl Workspace {
    /// Reads what `cargo metadata --no-deps` prints. `contexts` are the crates that own tables.
    pub(crate) fn parse(
        text: &str,
        contexts: impl IntoIterator<Item = String>,
    ) -> serde_json::Result<Self> {
        let contexts = contexts.into_iter().collect();
        Ok(Self { contexts, ..serde_json::from_str(text)? })
    }

    pub(super) fn packages(&self) -> impl Iterator<Item = &Package> {
        self.packages.iter()
    }

    pub(super) fn holds(&self, name: &str) -> bool {
        self.packages.iter().any(|package| package.name == name)
    }

    /// Whether a crate owns tables and rules of the domain.
    pub(super) fn is_context(&self, name: &str) -> bool {
        self.contexts.contains(name)
    }

    /// Whether a member stands in bins/, or is xtask.
    pub(super) fn is_program(&self, name: &str) -> bool {
        let bins = format!("{}/bins/", self.workspace_root);
        let mut found = self.packages.iter().filter(|package| package.name == name);
        found.any(|package| package.manifest_path.starts_with(&bins) || name == "xtask")
    }
}

/// Cargo writes `null` for a normal dependency.
fn kind<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Kind, D::Error> {
    match Option::<String>::deserialize(from)?.as_deref() {
        None => Ok(Kind::Normal),
        Some("build") => Ok(Kind::Build),
        Some("dev") => Ok(Kind::Dev),
        Some(other) => Err(serde::de::Error::custom(format!("no kind of dependency: {other}"))),
    }
}
