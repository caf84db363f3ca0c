//! The algorithms by which a token may be signed: public keys alone.

/// One of the list. What is not on it is refused, above all `none` and everything with a shared
/// secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Algorithm {
    /// RSASSA-PKCS1-v1_5 with SHA-256.
    Rs256,
    /// RSASSA-PSS with SHA-256.
    Ps256,
    /// ECDSA on P-256 with SHA-256.
    Es256,
    /// ECDSA on P-384 with SHA-384.
    Es384,
    /// Ed25519; of the curves that the name stands for, that one alone.
    EdDsa,
}

impl Algorithm {
    /// By its name in a header or a key (RFC 7518, section 3.1; RFC 8037), exactly.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "RS256" => Self::Rs256,
            "PS256" => Self::Ps256,
            "ES256" => Self::Es256,
            "ES384" => Self::Es384,
            "EdDSA" => Self::EdDsa,
            _ => return None,
        })
    }
}
