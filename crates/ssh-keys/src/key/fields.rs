//! What is inside of a key, type by type.

use super::{
    KeyRefusal, KeyType,
    curve::Curve,
    wire::{Reader, write_field, write_integer},
};

/// The fields of a key that keeps every rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fields<'k> {
    Ed25519 { key: &'k [u8] },
    SkEd25519 { key: &'k [u8], application: &'k [u8] },
    Ecdsa { curve: Curve, point: &'k [u8] },
    SkEcdsa { curve: Curve, point: &'k [u8], application: &'k [u8] },
    Rsa { exponent: &'k [u8], modulus: &'k [u8] },
}

/// Bits of an RSA modulus.
const SMALLEST_RSA: u64 = 2048;
const LARGEST_RSA: u64 = 8192;
const LARGEST_EXPONENT: u64 = 64;

impl<'k> Fields<'k> {
    /// Reads a key of which the type before it is known.
    pub(super) fn read(kind: KeyType, key: &'k [u8]) -> Result<Self, KeyRefusal> {
        let mut reader = Reader::new(key);
        if reader.field()? != kind.as_str().as_bytes() {
            return Err(KeyRefusal::InnerType);
        }
        let fields = match kind {
            KeyType::Ed25519 => Self::Ed25519 { key: ed25519(&mut reader)? },
            KeyType::SkEd25519 => Self::SkEd25519 {
                key: ed25519(&mut reader)?,
                application: application(&mut reader)?,
            },
            KeyType::EcdsaP256 => ecdsa(&mut reader, Curve::P256)?,
            KeyType::EcdsaP384 => ecdsa(&mut reader, Curve::P384)?,
            KeyType::EcdsaP521 => ecdsa(&mut reader, Curve::P521)?,
            KeyType::SkEcdsaP256 => {
                let point = point(&mut reader, Curve::P256)?;
                let application = application(&mut reader)?;
                Self::SkEcdsa { curve: Curve::P256, point, application }
            }
            KeyType::Rsa => rsa(&mut reader)?,
        };
        reader.end()?;
        Ok(fields)
    }

    /// Writes the key anew.
    pub(super) fn write(&self, kind: KeyType) -> Vec<u8> {
        let mut key = Vec::new();
        write_field(&mut key, kind.as_str().as_bytes());
        match *self {
            Self::Ed25519 { key: public } => write_field(&mut key, public),
            Self::SkEd25519 { key: public, application } => {
                write_field(&mut key, public);
                write_field(&mut key, application);
            }
            Self::Ecdsa { curve, point } => {
                write_field(&mut key, curve.name().as_bytes());
                write_field(&mut key, point);
            }
            Self::SkEcdsa { curve, point, application } => {
                write_field(&mut key, curve.name().as_bytes());
                write_field(&mut key, point);
                write_field(&mut key, application);
            }
            Self::Rsa { exponent, modulus } => {
                write_integer(&mut key, exponent);
                write_integer(&mut key, modulus);
            }
        }
        key
    }

    /// The bits of an RSA modulus.
    pub(super) fn rsa_bits(&self) -> Option<u64> {
        match self {
            Self::Rsa { modulus, .. } => Some(bits(modulus)),
            _ => None,
        }
    }
}

fn ed25519<'k>(reader: &mut Reader<'k>) -> Result<&'k [u8], KeyRefusal> {
    let key = reader.field()?;
    if key.len() == 32 { Ok(key) } else { Err(KeyRefusal::Ed25519Length) }
}

fn ecdsa<'k>(reader: &mut Reader<'k>, curve: Curve) -> Result<Fields<'k>, KeyRefusal> {
    Ok(Fields::Ecdsa { curve, point: point(reader, curve)? })
}

/// The name of the curve and a point on it: the byte 4 and two coordinates.
fn point<'k>(reader: &mut Reader<'k>, curve: Curve) -> Result<&'k [u8], KeyRefusal> {
    if reader.field()? != curve.name().as_bytes() {
        return Err(KeyRefusal::CurveName);
    }
    let point = reader.field()?;
    let coordinates = match point {
        [4, coordinates @ ..] if coordinates.len() == 2 * curve.width() => coordinates,
        _ => return Err(KeyRefusal::PointForm),
    };
    let (x, y) = coordinates.split_at(curve.width());
    if !curve.holds(x, y) {
        return Err(KeyRefusal::PointOffCurve);
    }
    if curve.is_usual(x) && curve.is_usual(y) { Ok(point) } else { Err(KeyRefusal::PointAtEdge) }
}

fn application<'k>(reader: &mut Reader<'k>) -> Result<&'k [u8], KeyRefusal> {
    let application = reader.field()?;
    let visible = application.iter().all(u8::is_ascii_graphic);
    if (1..=255).contains(&application.len()) && visible {
        return Ok(application);
    }
    Err(KeyRefusal::Application)
}

fn rsa<'k>(reader: &mut Reader<'k>) -> Result<Fields<'k>, KeyRefusal> {
    let (exponent, modulus) = (reader.integer()?, reader.integer()?);
    match bits(modulus) {
        bits @ ..SMALLEST_RSA => return Err(KeyRefusal::RsaTooSmall { bits }),
        SMALLEST_RSA..=LARGEST_RSA => {}
        bits => return Err(KeyRefusal::RsaTooLarge { bits }),
    }
    let odd = |digits: &[u8]| digits.last().is_some_and(|last| last % 2 == 1);
    if !odd(modulus) {
        return Err(KeyRefusal::RsaEvenModulus);
    }
    // 65,537 is 01 00 01.
    let large = exponent.len() > 3 || (exponent.len() == 3 && exponent >= &[1, 0, 1][..]);
    if !(large && odd(exponent)) {
        return Err(KeyRefusal::RsaExponent);
    }
    if bits(exponent) > LARGEST_EXPONENT {
        return Err(KeyRefusal::RsaExponentTooLarge);
    }
    Ok(Fields::Rsa { exponent, modulus })
}

/// The bits of an integer whose first byte is none that could be left out.
fn bits(digits: &[u8]) -> u64 {
    let zeros = digits.first().map_or(0, |first| first.leading_zeros());
    digits.len() as u64 * 8 - u64::from(zeros)
}
