//! The issuer's public keys (RFC 7517, RFC 7518), and signatures by them.

use std::collections::{HashMap, HashSet};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256,
    RSA_PSS_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm,
};
use serde_json::value::RawValue;

use super::{
    LoginRefusal,
    algorithm::Algorithm::{self, EdDsa, Es256, Es384, Ps256, Rs256},
    members::Members,
    token::SignedToken,
};

/// The most keys of one issuer; one that rotates has two or three.
const MOST_KEYS: usize = 64;

/// The longest id of a key, in bytes.
const MOST_ID_BYTES: usize = 255;

/// The bits of an RSA key.
const RSA_BITS: std::ops::RangeInclusive<usize> = 2048..=8192;

/// The least exponent of an RSA key: 65537, as everybody has it.
const LEAST_EXPONENT: [u8; 3] = [1, 0, 1];

/// Members of a key that nobody publishes who means to keep it.
const PRIVATE: [&str; 2] = ["d", "k"];

/// The keys that are of use, by their ids.
pub(crate) struct Keys(HashMap<String, Key>);

/// Why an answer gives no keys. Nothing of it is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeysError {
    /// It is no JSON object with a list `keys`, once.
    #[error("it is no set of keys")]
    NotASet,
    /// There are more than 64.
    #[error("it has more than {MOST_KEYS} keys")]
    TooMany,
    /// There is none, or none that could have signed a token.
    #[error("none of its keys can be used")]
    NoneUsable,
}

struct Key {
    /// The algorithms by which it may have signed.
    algorithms: Vec<Algorithm>,
    material: Material,
}

enum Material {
    Rsa(RsaPublicKeyComponents<Vec<u8>>),
    /// As ring takes it: a point of P-256 or P-384, or a key of Ed25519. Whether the point is on its
    /// curve ring looks at with each signature.
    Bytes(Vec<u8>),
}

impl Material {
    fn is_as(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Rsa(ours), Self::Rsa(theirs)) => ours.n == theirs.n && ours.e == theirs.e,
            (Self::Bytes(ours), Self::Bytes(theirs)) => ours == theirs,
            _ => false,
        }
    }
}

impl Keys {
    /// Reads a set of keys. One that is of no use here is passed over: for another purpose, of an
    /// unknown kind, without an id, with an id that another has too, or with its private part.
    pub(crate) fn read(json: &[u8]) -> Result<Self, KeysError> {
        let list = Members::read(json).and_then(|mut set| set.raw("keys"));
        let list = list.and_then(|list| serde_json::from_str::<Vec<&RawValue>>(list.get()).ok());
        let list = list.ok_or(KeysError::NotASet)?;
        if list.len() > MOST_KEYS {
            return Err(KeysError::TooMany);
        }
        let mut keys = HashMap::new();
        let mut repeated = HashSet::new();
        for (id, key) in list.into_iter().filter_map(Key::read) {
            if keys.insert(id.clone(), key).is_some() {
                repeated.insert(id);
            }
        }
        // Which of the two is meant nobody can say.
        keys.retain(|id, _| !repeated.contains(id));
        if keys.is_empty() { Err(KeysError::NoneUsable) } else { Ok(Self(keys)) }
    }

    /// Whether the key that the token names made its signature.
    ///
    /// # Errors
    ///
    /// [`LoginRefusal::UnknownKey`], [`LoginRefusal::OtherAlgorithm`], [`LoginRefusal::Signature`].
    pub(crate) fn verify(&self, token: &SignedToken<'_>) -> Result<(), LoginRefusal> {
        let key = self.0.get(&token.kid).ok_or(LoginRefusal::UnknownKey)?;
        if !key.algorithms.contains(&token.algorithm) {
            return Err(LoginRefusal::OtherAlgorithm);
        }
        let (signed, signature) = (token.signed.as_bytes(), &token.signature[..]);
        let by = |algorithm: &'static dyn VerificationAlgorithm, bytes: &Vec<u8>| {
            UnparsedPublicKey::new(algorithm, bytes).verify(signed, signature)
        };
        let verified = match (&key.material, token.algorithm) {
            (Material::Rsa(key), Rs256) => {
                key.verify(&RSA_PKCS1_2048_8192_SHA256, signed, signature)
            }
            (Material::Rsa(key), Ps256) => key.verify(&RSA_PSS_2048_8192_SHA256, signed, signature),
            (Material::Bytes(bytes), Es256) => by(&ECDSA_P256_SHA256_FIXED, bytes),
            (Material::Bytes(bytes), Es384) => by(&ECDSA_P384_SHA384_FIXED, bytes),
            (Material::Bytes(bytes), EdDsa) => by(&ED25519, bytes),
            _ => return Err(LoginRefusal::OtherAlgorithm),
        };
        verified.map_err(|_| LoginRefusal::Signature)
    }

    /// The ids, in no order.
    pub(crate) fn ids(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Whether both are the same keys by the same ids.
    pub(super) fn are_as(&self, others: &Self) -> bool {
        let is_among = |(id, key): (&String, &Key)| {
            others.0.get(id).is_some_and(|other| key.material.is_as(&other.material))
        };
        self.0.len() == others.0.len() && self.0.iter().all(is_among)
    }
}

impl Key {
    /// A key with its id, if it is of use here.
    fn read(json: &RawValue) -> Option<(String, Self)> {
        let mut key = Members::of(json)?;
        if PRIVATE.iter().any(|name| key.has(name)) {
            return None;
        }
        let id: String = key.take("kid").ok()??;
        let purpose: Option<String> = key.take("use").ok()?;
        let operations: Option<Vec<String>> = key.take("key_ops").ok()?;
        let algorithm: Option<String> = key.take("alg").ok()?;
        let is_for_signatures = purpose.is_none_or(|purpose| purpose == "sig")
            && operations.is_none_or(|all| all.iter().any(|one| one == "verify"));
        if !is_for_signatures || !(1..=MOST_ID_BYTES).contains(&id.len()) {
            return None;
        }
        let (mut algorithms, material) = material(&mut key)?;
        if let Some(named) = algorithm {
            let named = Algorithm::parse(&named)?;
            algorithms.retain(|one| *one == named);
        }
        (!algorithms.is_empty()).then_some((id, Self { algorithms, material }))
    }
}

fn material(key: &mut Members<'_>) -> Option<(Vec<Algorithm>, Material)> {
    let kind: String = key.take("kty").ok()??;
    if kind == "RSA" {
        let (n, e) = (octets(key, "n")?, octets(key, "e")?);
        let good = is_modulus(&n) && is_exponent(&e);
        return good.then(|| (vec![Rs256, Ps256], Material::Rsa(RsaPublicKeyComponents { n, e })));
    }
    let curve: String = key.take("crv").ok()??;
    let (algorithm, bytes) = match (kind.as_str(), curve.as_str()) {
        ("EC", "P-256") => (Es256, point(key, 32)?),
        ("EC", "P-384") => (Es384, point(key, 48)?),
        ("OKP", "Ed25519") => (EdDsa, octets(key, "x").filter(|x| x.len() == 32)?),
        _ => return None,
    };
    Some((vec![algorithm], Material::Bytes(bytes)))
}

/// The uncompressed point whose coordinates have so many bytes each (SEC 1, section 2.3.3).
fn point(key: &mut Members<'_>, bytes: usize) -> Option<Vec<u8>> {
    let [x, y] = [octets(key, "x")?, octets(key, "y")?];
    (x.len() == bytes && y.len() == bytes).then(|| [&[4], &x[..], &y[..]].concat())
}

fn octets(key: &mut Members<'_>, name: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(key.take::<String>(name).ok()??).ok()
}

/// Odd, of a size on the list, and without a zero before it (RFC 7518, section 6.3.1.1).
fn is_modulus(n: &[u8]) -> bool {
    let Some(first) = n.first().filter(|first| **first != 0) else { return false };
    let bits = n.len() * 8 - first.leading_zeros() as usize;
    RSA_BITS.contains(&bits) && n.last().is_some_and(|last| last % 2 == 1)
}

/// Odd, from 65537 to 2^32 - 1, and without a zero before it.
fn is_exponent(e: &[u8]) -> bool {
    let large = e.len() == 4 && e[0] != 0 || e.len() == 3 && *e >= LEAST_EXPONENT[..];
    large && e.last().is_some_and(|last| last % 2 == 1)
}
