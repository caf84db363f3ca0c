//! Keys that are made byte by byte, so that each rule can be broken alone.

use base64::{Engine, engine::general_purpose::STANDARD};
use num_bigint::BigUint;

/// A key out of its fields, as it is on the wire.
pub(crate) fn blob(fields: &[&[u8]]) -> Vec<u8> {
    let mut key = Vec::new();
    for field in fields {
        key.extend(u32::try_from(field.len()).unwrap().to_be_bytes());
        key.extend(*field);
    }
    key
}

/// The line of a key out of its fields, of which the first is its type.
pub(crate) fn line(fields: &[&[u8]]) -> String {
    let kind = std::str::from_utf8(fields[0]).unwrap();
    written(kind, &blob(fields))
}

pub(crate) fn written(kind: &str, key: &[u8]) -> String {
    format!("{kind} {}", STANDARD.encode(key))
}

/// An integer as it is on the wire.
pub(crate) fn integer(digits: &[u8]) -> Vec<u8> {
    let sign: &[u8] = if digits[0] >= 0x80 { &[0] } else { &[] };
    [sign, digits].concat()
}

/// An odd modulus of so many bits.
pub(crate) fn modulus(bits: u64) -> Vec<u8> {
    let number = (BigUint::from(1_u8) << (bits - 1)) + 1_u8;
    integer(&number.to_bytes_be())
}

pub(crate) const EXPONENT: &[u8] = &[1, 0, 1];

/// A curve of NIST, written down apart from the code.
pub(crate) struct Curve {
    pub(crate) kind: &'static str,
    pub(crate) name: &'static str,
    pub(crate) width: usize,
    prime: &'static str,
    b: &'static str,
    generator: [&'static str; 2],
}

pub(crate) const P256: Curve = Curve {
    kind: "ecdsa-sha2-nistp256",
    name: "nistp256",
    width: 32,
    prime: "ffffffff00000001000000000000000000000000ffffffffffffffffffffffff",
    b: "5ac635d8aa3a93e7b3ebbd55769886bc651d06b0cc53b0f63bce3c3e27d2604b",
    generator: [
        "6b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296",
        "4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5",
    ],
};

pub(crate) const P384: Curve = Curve {
    kind: "ecdsa-sha2-nistp384",
    name: "nistp384",
    width: 48,
    prime: "fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffeffffffff0000000000000000\
            ffffffff",
    b: "b3312fa7e23ee7e4988e056be3f82d19181d9c6efe8141120314088f5013875ac656398d8a2ed19d2a85c8ed\
        d3ec2aef",
    generator: [
        "aa87ca22be8b05378eb1c71ef320ad746e1d3b628ba79b9859f741e082542a385502f25dbf55296c3a545e38\
         72760ab7",
        "3617de4a96262c6f5d9e98bf9292dc29f8f41dbd289a147ce9da3113b5f0b8c00a60b1ce1d7e819d7a431d7c\
         90ea0e5f",
    ],
};

pub(crate) const P521: Curve = Curve {
    kind: "ecdsa-sha2-nistp521",
    name: "nistp521",
    width: 66,
    prime: "1ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff\
            ffffffffffffffffffffffffffffffffffffffffffff",
    b: "51953eb9618e1c9a1f929a21a0b68540eea2da725b99b315f3b8b489918ef109e156193951ec7e937b1652c0\
        bd3bb1bf073573df883d2c34f1ef451fd46b503f00",
    generator: [
        "c6858e06b70404e9cd9e3ecb662395b4429c648139053fb521f828af606b4d3dbaa14b5e77efe75928fe1dc1\
         27a2ffa8de3348b3c1856a429bf97e7e31c2e5bd66",
        "11839296a789a3bc0045c8a5fb42c7d1bd998f54449579b446817afbd17273e662c97ee72995ef42640c550b\
         9013fad0761353c7086a272c24088be94769fd16650",
    ],
};

pub(crate) const CURVES: [&Curve; 3] = [&P256, &P384, &P521];

fn hexadecimal(text: &str) -> BigUint {
    BigUint::parse_bytes(text.as_bytes(), 16).unwrap()
}

impl Curve {
    pub(crate) fn prime(&self) -> BigUint {
        hexadecimal(self.prime)
    }

    /// A number as a coordinate.
    pub(crate) fn coordinate(&self, number: &BigUint) -> Vec<u8> {
        let digits = number.to_bytes_be();
        [vec![0; self.width - digits.len()], digits].concat()
    }

    pub(crate) fn point(&self, x: &BigUint, y: &BigUint) -> Vec<u8> {
        [vec![4], self.coordinate(x), self.coordinate(y)].concat()
    }

    pub(crate) fn generator(&self) -> [BigUint; 2] {
        self.generator.map(hexadecimal)
    }

    /// The two points over the first number from `x` on that has some.
    pub(crate) fn points_from(&self, x: &BigUint) -> [Vec<u8>; 2] {
        let prime = self.prime();
        let mut x = x % &prime;
        loop {
            let right = (&x * &x * &x + &prime * 3_u8 - &x * 3_u8 + hexadecimal(self.b)) % &prime;
            // The root where the prime is 3 modulo 4, as all of these are.
            let y = right.modpow(&((&prime + 1_u8) / 4_u8), &prime);
            if (&y * &y) % &prime == right {
                return [self.point(&x, &y), self.point(&x, &((&prime - &y) % &prime))];
            }
            x = (x + 1_u8) % &prime;
        }
    }

    /// The line of a key with a point.
    pub(crate) fn line(&self, point: &[u8]) -> String {
        line(&[self.kind.as_bytes(), self.name.as_bytes(), point])
    }
}

/// A key of each type that keeps every rule.
pub(crate) fn one_of_each_type() -> Vec<String> {
    let mut lines: Vec<_> = CURVES
        .iter()
        .map(|curve| {
            let [x, y] = curve.generator();
            curve.line(&curve.point(&x, &y))
        })
        .collect();
    let [x, y] = P256.generator();
    lines.extend([
        line(&[b"ssh-ed25519", &[7; 32]]),
        line(&[b"sk-ssh-ed25519@openssh.com", &[7; 32], b"ssh:"]),
        line(&[b"sk-ecdsa-sha2-nistp256@openssh.com", b"nistp256", &P256.point(&x, &y), b"ssh:"]),
        line(&[b"ssh-rsa", EXPONENT, &modulus(2048)]),
    ]);
    lines
}
