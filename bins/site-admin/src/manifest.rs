//! Manifests of Kubernetes, for `kubectl create -f -` or `kubectl apply -f -`.

use std::fmt;

use serde::{
    Serialize,
    ser::{SerializeMap, Serializer},
};

/// A Secret or a ConfigMap. It has no `Debug`: it may hold a key.
pub(crate) struct Manifest {
    kind: Kind,
    name: &'static str,
    namespace: Option<String>,
    /// File names and their texts of visible ASCII and line breaks.
    data: Vec<(&'static str, String)>,
}

#[derive(Clone, Copy)]
enum Kind {
    ConfigMap,
    /// With the `type` of the Secret.
    Secret(&'static str),
}

impl Manifest {
    /// The Secret `site-api-grants` with the text of `grants.json`.
    pub(crate) fn grants(text: String, namespace: Option<String>) -> Self {
        let data = vec![("grants.json", text)];
        Self { kind: Kind::Secret("Opaque"), name: "site-api-grants", namespace, data }
    }

    /// The Secret `site-api-tls` with a certificate and its key, in PEM.
    pub(crate) fn tls(certificate: String, key: String, namespace: Option<String>) -> Self {
        let data = vec![("tls.crt", certificate), ("tls.key", key)];
        Self { kind: Kind::Secret("kubernetes.io/tls"), name: "site-api-tls", namespace, data }
    }

    /// The ConfigMap `site-api-trust` with the certificate of the CA, in PEM.
    pub(crate) fn trust(ca: String, namespace: Option<String>) -> Self {
        Self {
            kind: Kind::ConfigMap,
            name: "site-api-trust",
            namespace,
            data: vec![("ca.crt", ca)],
        }
    }

    fn kind(&self) -> &'static str {
        match self.kind {
            Kind::ConfigMap => "ConfigMap",
            Kind::Secret(_) => "Secret",
        }
    }

    /// The field that holds texts as they are.
    fn field(&self) -> &'static str {
        match self.kind {
            Kind::ConfigMap => "data",
            Kind::Secret(_) => "stringData",
        }
    }
}

/// As a document of YAML. Names and namespaces need no quotes, and a block keeps each line of a
/// text as it is.
impl fmt::Display for Manifest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "---\napiVersion: v1\nkind: {}\nmetadata:\n  name: {}",
            self.kind(),
            self.name
        )?;
        if let Some(namespace) = &self.namespace {
            // A namespace may look like a number.
            writeln!(f, "  namespace: \"{namespace}\"")?;
        }
        if let Kind::Secret(kind) = self.kind {
            writeln!(f, "type: {kind}")?;
        }
        write!(f, "{}:", self.field())?;
        for (name, text) in &self.data {
            // Where the first line that says something begins with a space, a reader has to be told
            // how far the block is indented.
            let told = if text.trim_start_matches('\n').starts_with(' ') { "2" } else { "" };
            write!(f, "\n  {name}: |{told}")?;
            for line in text.lines() {
                write!(f, "\n    {line}")?;
            }
        }
        Ok(())
    }
}

/// As JSON, which `kubectl` reads as well.
impl Serialize for Manifest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Metadata<'a> {
            name: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            namespace: Option<&'a str>,
        }
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("apiVersion", "v1")?;
        map.serialize_entry("kind", self.kind())?;
        let namespace = self.namespace.as_deref();
        map.serialize_entry("metadata", &Metadata { name: self.name, namespace })?;
        if let Kind::Secret(kind) = self.kind {
            map.serialize_entry("type", kind)?;
        }
        let data: std::collections::BTreeMap<_, _> =
            self.data.iter().map(|(k, v)| (k, v)).collect();
        map.serialize_entry(self.field(), &data)?;
        map.end()
    }
}

/// The Secret of a grants file in both of its forms, YAML and JSON, for tests.
///
/// # Errors
///
/// None that is known: texts can be written.
pub fn both(text: &str, namespace: Option<&str>) -> serde_json::Result<(String, String)> {
    let manifest = Manifest::grants(text.to_owned(), namespace.map(str::to_owned));
    Ok((manifest.to_string(), serde_json::to_string(&manifest)?))
}

/// Takes the name of a namespace: a label of RFC 1123.
pub(crate) fn namespace(text: &str) -> Result<String, &'static str> {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let label = (1..=63).contains(&text.len()) && text.bytes().all(inner);
    if label && !text.starts_with('-') && !text.ends_with('-') {
        return Ok(text.to_owned());
    }
    Err("a namespace is 1 to 63 lower-case letters, digits and '-', not at its ends")
}
