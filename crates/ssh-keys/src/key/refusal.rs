//! Why a text is no key that is taken.

/// The first rule that a text broke. It never repeats the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum KeyRefusal {
    /// Longer than a line may be.
    #[error("a key's line has at most 8192 bytes")]
    TooLong,
    /// A line break, a tab, another control character, or no ASCII.
    #[error("a key is one line of printable ASCII")]
    NotPrintable,
    /// The first word is no type that is taken: perhaps an option, a certificate or a DSA key.
    #[error(
        "a key's line begins with its type, one of ssh-ed25519, ecdsa-sha2-nistp256, \
         ecdsa-sha2-nistp384, ecdsa-sha2-nistp521, sk-ssh-ed25519@openssh.com, \
         sk-ecdsa-sha2-nistp256@openssh.com and ssh-rsa; nothing stands before it"
    )]
    Type,
    /// Nothing follows the type and one space.
    #[error("after the type come one space and the key")]
    Missing,
    /// The key is no base64.
    #[error("the key is no base64")]
    Base64,
    /// The type inside the key is another one.
    #[error("the type inside the key differs from the one before it")]
    InnerType,
    /// A field says that it is longer than what is there.
    #[error("the key is cut off")]
    Truncated,
    /// An Ed25519 key of another length than 32 bytes.
    #[error("an Ed25519 key has 32 bytes")]
    Ed25519Length,
    /// Another curve than that of the type.
    #[error("the curve inside the key differs from that of its type")]
    CurveName,
    /// A compressed point, or one of another curve's length.
    #[error("the point is not an uncompressed one of its curve")]
    PointForm,
    /// The point is not on its curve.
    #[error("the point does not lie on its curve")]
    PointOffCurve,
    /// A coordinate of the point is so small or so large that OpenSSH refuses the key.
    #[error("a coordinate of the point is so small or so large that OpenSSH refuses it")]
    PointAtEdge,
    /// The application of a security key.
    #[error("the application of a security key has 1 to 255 visible ASCII characters")]
    Application,
    /// A negative integer, or one with more bytes than it needs.
    #[error("an integer inside the key is negative or longer than it has to be")]
    IntegerForm,
    /// A modulus that is too short.
    #[error("an RSA key has at least 2048 bits; this one has {bits}")]
    RsaTooSmall {
        /// Its bits.
        bits: u64,
    },
    /// A modulus that is too long.
    #[error("an RSA key has at most 8192 bits; this one has {bits}")]
    RsaTooLarge {
        /// Its bits.
        bits: u64,
    },
    /// An even modulus is no product of two odd primes.
    #[error("the modulus of an RSA key is odd")]
    RsaEvenModulus,
    /// An exponent that is even or small.
    #[error("the exponent of an RSA key is odd and at least 65537")]
    RsaExponent,
    /// An exponent of more than 64 bits, with which OpenSSL verifies nothing where the modulus is large.
    #[error("the exponent of an RSA key has at most 64 bits")]
    RsaExponentTooLarge,
    /// Something follows the last field.
    #[error("something follows the key inside its base64")]
    TrailingBytes,
    /// Base64 has another, shorter spelling for these bytes.
    #[error("the key is not written as it would be written again")]
    NotCanonical,
}
