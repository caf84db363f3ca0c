//! The fields inside of a key, as RFC 4251 writes them.

use super::KeyRefusal;

/// What is still to be read of a key.
pub(super) struct Reader<'k>(&'k [u8]);

impl<'k> Reader<'k> {
    pub(super) fn new(key: &'k [u8]) -> Self {
        Self(key)
    }

    /// The next field: four bytes of length in big endian, then the field.
    pub(super) fn field(&mut self) -> Result<&'k [u8], KeyRefusal> {
        let (length, rest) = self.0.split_first_chunk::<4>().ok_or(KeyRefusal::Truncated)?;
        let length = u32::from_be_bytes(*length) as usize;
        let (field, rest) = rest.split_at_checked(length).ok_or(KeyRefusal::Truncated)?;
        self.0 = rest;
        Ok(field)
    }

    /// The next field as an integer above zero, without the zero byte that says that it is one.
    pub(super) fn integer(&mut self) -> Result<&'k [u8], KeyRefusal> {
        match self.field()? {
            [0, digits @ ..] if digits.first().is_some_and(|first| *first >= 0x80) => Ok(digits),
            digits @ [0x01..=0x7f, ..] => Ok(digits),
            _ => Err(KeyRefusal::IntegerForm),
        }
    }

    /// Nothing is left.
    pub(super) fn end(self) -> Result<(), KeyRefusal> {
        if self.0.is_empty() { Ok(()) } else { Err(KeyRefusal::TrailingBytes) }
    }
}

/// Writes a field.
pub(super) fn write_field(key: &mut Vec<u8>, field: &[u8]) {
    // What is written was read from four bytes of length.
    key.extend(u32::try_from(field.len()).unwrap_or(u32::MAX).to_be_bytes());
    key.extend(field);
}

/// Writes an integer above zero that has no zero bytes in front.
pub(super) fn write_integer(key: &mut Vec<u8>, digits: &[u8]) {
    let negative = digits.first().is_some_and(|first| *first >= 0x80);
    let sign: &[u8] = if negative { &[0] } else { &[] };
    write_field(key, &[sign, digits].concat());
}
