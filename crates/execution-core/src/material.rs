//! What a Run is to do, in words that only its Runtime and the control plane understand.

use std::fmt;

use serde_json::value::RawValue;

use crate::Invalid;

/// A JSON text of at most 1 MiB, kept to the byte without outer white space. Nobody here looks into
/// it.
#[derive(Clone, PartialEq, Eq)]
pub struct Material(String);

impl Material {
    /// The largest text, in bytes.
    pub const MAX_BYTES: usize = 1024 * 1024;

    /// The most arrays and objects within each other. Readers of JSON have such a bound, many this
    /// one.
    pub const MAX_DEPTH: usize = 128;

    /// Takes a text that is JSON.
    ///
    /// # Errors
    ///
    /// The rule that it broke.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let text = text.trim_matches([' ', '\t', '\n', '\r']);
        if text.len() > Self::MAX_BYTES {
            return Err(Invalid("the material is at most 1 MiB"));
        }
        serde_json::from_str::<&RawValue>(text).map_err(|_| Invalid("the material is not JSON"))?;
        if depth(text) > Self::MAX_DEPTH {
            return Err(Invalid("the material is at most 128 arrays and objects deep"));
        }
        Ok(Self(text.to_owned()))
    }

    /// Takes a text that was checked when it was stored.
    pub(crate) fn from_database(text: String) -> Self {
        Self(text)
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Gives the text away.
    #[must_use]
    pub fn into_string(self) -> String {
        self.0
    }
}

impl fmt::Debug for Material {
    /// It can be private, so only its size is told.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Material({} bytes)", self.0.len())
    }
}

/// How many arrays and objects of a JSON text are within each other. Brackets of a text in it don't
/// count.
fn depth(json: &str) -> usize {
    let (mut now, mut deepest) = (0_usize, 0);
    let mut bytes = json.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'[' | b'{' => now += 1,
            b']' | b'}' => now = now.saturating_sub(1),
            b'"' => skip_string(&mut bytes),
            _ => {}
        }
        deepest = deepest.max(now);
    }
    deepest
}

/// Goes behind the quote that ends a string.
fn skip_string(bytes: &mut impl Iterator<Item = u8>) {
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' => drop(bytes.next()),
            b'"' => return,
            _ => {}
        }
    }
}
