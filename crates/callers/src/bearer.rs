//! Native bearers: `scnb_<id>.<secret>`.
//!
//! The id has 16 characters (80 bits) and finds the grant; the secret has 32 (160 bits) and proves
//! it. Both are lower-case Crockford base32. Only the digest of a bearer is ever stored.

use std::fmt;

use base32::Alphabet::Crockford;
use ring::{
    digest::{self, SHA256},
    error::Unspecified,
    rand::SecureRandom,
};
use secrecy::{ExposeSecret, SecretString, zeroize::Zeroizing};

/// What every native bearer begins with.
pub(crate) const PREFIX: &str = "scnb_";

const ID_BYTES: usize = 10;
const SECRET_BYTES: usize = 20;

/// What the digest covers before the bearer, so that it is no digest of anything else.
const DIGEST_DOMAIN: &[u8] = b"site-control/native-bearer\0";

/// A whole bearer. It can't be printed by accident and is wiped when it is dropped.
pub struct NativeBearer {
    id: BearerId,
    text: SecretString,
}

/// The part of a bearer that is no secret: 16 lower-case Crockford base32 characters.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct BearerId(String);

/// A text that is not a native bearer, or not the id of one. It does not repeat the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not of the form that native bearers have")]
pub struct Malformed;

impl NativeBearer {
    /// Reads a bearer in its only spelling.
    ///
    /// # Errors
    ///
    /// [`Malformed`] for everything that [`NativeBearer::expose`] would not give.
    pub fn parse(text: &str) -> Result<Self, Malformed> {
        let (id, secret) =
            text.strip_prefix(PREFIX).and_then(|rest| rest.split_once('.')).ok_or(Malformed)?;
        let id = BearerId::parse(id)?;
        require_base32(secret, SECRET_BYTES)?;
        Ok(Self { id, text: text.into() })
    }

    /// Makes a new one.
    ///
    /// # Errors
    ///
    /// When the random source fails.
    pub fn generate(random: &dyn SecureRandom) -> Result<Self, Unspecified> {
        let mut id = [0; ID_BYTES];
        let mut secret = Zeroizing::new([0; SECRET_BYTES]);
        random.fill(&mut id)?;
        random.fill(secret.as_mut())?;
        let id = BearerId(encode(&id));
        let secret = Zeroizing::new(encode(secret.as_ref()));
        let text = Zeroizing::new(format!("{PREFIX}{id}.{}", secret.as_str()));
        Ok(Self { id, text: text.as_str().into() })
    }

    /// The part that is no secret.
    #[must_use]
    pub fn id(&self) -> &BearerId {
        &self.id
    }

    /// The whole text, for the one moment in which it is handed over.
    #[must_use]
    pub fn expose(&self) -> &str {
        self.text.expose_secret()
    }

    /// What is stored of it: SHA-256 of `site-control/native-bearer`, a zero byte, and the text.
    #[must_use]
    pub fn digest(&self) -> [u8; 32] {
        let mut context = digest::Context::new(&SHA256);
        context.update(DIGEST_DOMAIN);
        context.update(self.expose().as_bytes());
        let mut bytes = [0; 32];
        bytes.copy_from_slice(context.finish().as_ref());
        bytes
    }
}

impl fmt::Debug for NativeBearer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NativeBearer").field("id", &self.id).finish_non_exhaustive()
    }
}

impl BearerId {
    /// Reads an id in its only spelling.
    ///
    /// # Errors
    ///
    /// [`Malformed`].
    pub fn parse(text: &str) -> Result<Self, Malformed> {
        require_base32(text, ID_BYTES)?;
        Ok(Self(text.to_owned()))
    }

    /// The id.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for BearerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for BearerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn encode(bytes: &[u8]) -> String {
    let mut text = base32::encode(Crockford, bytes);
    text.make_ascii_lowercase();
    text
}

/// The library reads leniently (upper case, `i` for `1`, impossible lengths): what it has read
/// must come out the same when it is written again.
fn require_base32(text: &str, bytes: usize) -> Result<(), Malformed> {
    let in_alphabet = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'h' | b'j' | b'k' | b'm' | b'n' | b'p'..=b't' | b'v'..=b'z');
    if text.len() != bytes * 8 / 5 || !text.bytes().all(in_alphabet) {
        return Err(Malformed);
    }
    let decoded = Zeroizing::new(base32::decode(Crockford, text).ok_or(Malformed)?);
    let again = Zeroizing::new(encode(&decoded));
    if decoded.len() == bytes && again.as_str() == text { Ok(()) } else { Err(Malformed) }
}
