//! A member's public key, read so strictly that what is taken can stand in a file for sshd.

mod curve;
mod fields;
mod refusal;
mod wire;

use std::fmt;

use base64::{
    Engine,
    alphabet::STANDARD,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig, general_purpose},
};
use ring::digest::{SHA256, digest};

use self::fields::Fields;
pub use self::refusal::KeyRefusal;

/// A public key that keeps every rule of this crate. It has one text, `<type> <base64>`.
///
/// Keys are public, so that they may be printed; they are compared as texts.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct PublicKey {
    kind: KeyType,
    base64: String,
    fingerprint: Fingerprint,
    rsa_bits: Option<u64>,
}

/// The types of keys that are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyType {
    /// `ssh-ed25519`.
    Ed25519,
    /// `ecdsa-sha2-nistp256`.
    EcdsaP256,
    /// `ecdsa-sha2-nistp384`.
    EcdsaP384,
    /// `ecdsa-sha2-nistp521`.
    EcdsaP521,
    /// `sk-ssh-ed25519@openssh.com`, on a security key.
    SkEd25519,
    /// `sk-ecdsa-sha2-nistp256@openssh.com`, on a security key.
    SkEcdsaP256,
    /// `ssh-rsa`.
    Rsa,
}

/// Something about a key that is taken and that its member should hear.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyWarning {
    /// An RSA key below 3,072 bits.
    #[error("an RSA key should have at least 3072 bits; this one has {bits}")]
    ShortRsa {
        /// Its bits.
        bits: u64,
    },
}

/// The SHA-256 digest of a key, as `ssh-keygen -l` prints it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint([u8; 32]);

/// Takes any spelling; that it is the one spelling is checked by writing it again.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

impl PublicKey {
    /// The bytes of the longest line that is looked at.
    pub const MAX_BYTES: usize = 8192;

    /// From here on an RSA key needs no warning.
    const GOOD_RSA: u64 = 3072;

    /// Takes a line as `ssh-keygen` writes it into a `.pub` file, without its line break. The comment
    /// is dropped.
    ///
    /// # Errors
    ///
    /// The first rule that the line breaks.
    pub fn parse(line: &str) -> Result<Self, KeyRefusal> {
        if line.len() > Self::MAX_BYTES {
            return Err(KeyRefusal::TooLong);
        }
        if !line.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
            return Err(KeyRefusal::NotPrintable);
        }
        let (first, rest) = line.split_once(' ').unwrap_or((line, ""));
        let kind = KeyType::parse(first).ok_or(KeyRefusal::Type)?;
        let base64 = rest.split(' ').next().unwrap_or_default();
        if base64.is_empty() {
            return Err(KeyRefusal::Missing);
        }
        let bytes = LENIENT.decode(base64).map_err(|_| KeyRefusal::Base64)?;
        let fields = Fields::read(kind, &bytes)?;
        let written = general_purpose::STANDARD.encode(fields.write(kind));
        if written != base64 {
            return Err(KeyRefusal::NotCanonical);
        }
        let mut fingerprint = [0; 32];
        fingerprint.copy_from_slice(digest(&SHA256, &bytes).as_ref());
        let rsa_bits = fields.rsa_bits();
        Ok(Self { kind, base64: written, fingerprint: Fingerprint(fingerprint), rsa_bits })
    }

    /// Its type.
    #[must_use]
    pub fn kind(&self) -> KeyType {
        self.kind
    }

    /// The key in base64, without its type.
    #[must_use]
    pub fn base64(&self) -> &str {
        &self.base64
    }

    /// Its fingerprint.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// What its member should hear of it, if anything.
    #[must_use]
    pub fn warning(&self) -> Option<KeyWarning> {
        let bits = self.rsa_bits.filter(|bits| *bits < Self::GOOD_RSA)?;
        Some(KeyWarning::ShortRsa { bits })
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind.as_str(), self.base64)
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({} {})", self.kind.as_str(), self.fingerprint)
    }
}

impl KeyType {
    /// Each type.
    pub const ALL: [Self; 7] = [
        Self::Ed25519,
        Self::EcdsaP256,
        Self::EcdsaP384,
        Self::EcdsaP521,
        Self::SkEd25519,
        Self::SkEcdsaP256,
        Self::Rsa,
    ];

    /// Takes the name of a type.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }

    /// Its name, as it stands before a key and in it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ed25519 => "ssh-ed25519",
            Self::EcdsaP256 => "ecdsa-sha2-nistp256",
            Self::EcdsaP384 => "ecdsa-sha2-nistp384",
            Self::EcdsaP521 => "ecdsa-sha2-nistp521",
            Self::SkEd25519 => "sk-ssh-ed25519@openssh.com",
            Self::SkEcdsaP256 => "sk-ecdsa-sha2-nistp256@openssh.com",
            Self::Rsa => "ssh-rsa",
        }
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SHA256:{}", general_purpose::STANDARD_NO_PAD.encode(self.0))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
