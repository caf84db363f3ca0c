//! A SHA-256 digest as it stands on the wire.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use utoipa::ToSchema;

/// 32 bytes, written as 64 lower-case hexadecimal characters.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, ToSchema)]
#[schema(value_type = String, pattern = "^[0-9a-f]{64}$")]
pub struct Digest([u8; 32]);

/// A text that is not 64 lower-case hexadecimal characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DigestError;

impl Digest {
    /// The chain digest before the first command of a stream.
    pub const ZERO: Self = Self([0; 32]);

    /// Takes the 32 bytes of a digest.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The 32 bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl FromStr for Digest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, DigestError> {
        let mut bytes = [0; 32];
        if text.bytes().any(|byte| byte.is_ascii_uppercase()) {
            return Err(DigestError);
        }
        hex::decode_to_slice(text, &mut bytes).map_err(|_| DigestError)?;
        Ok(Self(bytes))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

impl fmt::Display for DigestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a digest is 64 lower-case hexadecimal characters")
    }
}

impl std::error::Error for DigestError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_read_as_it_is_written() {
        let digest = Digest::from_bytes([0xab; 32]);
        assert_eq!(digest.to_string().parse(), Ok(digest));
        assert_eq!(digest.to_string(), "ab".repeat(32));
    }

    #[test]
    fn other_spellings_are_refused() {
        for text in ["", "ab", &"AB".repeat(32), &"ab".repeat(33), &"zz".repeat(32)] {
            assert_eq!(text.parse::<Digest>(), Err(DigestError), "{text:?}");
        }
    }
}
