//! Within how long a removal has to be in force.

use std::time::Duration;

use crate::Invalid;

/// The propagation window: a key that was removed is refused at the Site no later than so long after,
/// also where the Site is cut off. 60 to 86,400 seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window(i32);

impl Window {
    /// Ten minutes.
    pub const DEFAULT: Self = Self(600);

    /// Takes a decimal number of seconds.
    ///
    /// # Errors
    ///
    /// The rule that it broke.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let digits = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
        let seconds = if digits { text.parse().ok() } else { None };
        seconds
            .filter(|seconds| (60..=86_400).contains(seconds))
            .map(Self)
            .ok_or(Invalid("the window is a whole number of seconds from 60 to 86400"))
    }

    /// The window.
    #[must_use]
    pub fn duration(self) -> Duration {
        Duration::from_secs(u64::from(self.0.unsigned_abs()))
    }

    /// By how much the clock of a Site may be behind, and so by how much a lease is shorter than the
    /// window: a minute, or a tenth of the window where that is less.
    #[must_use]
    pub fn skew(self) -> Duration {
        Duration::from_secs(u64::from((self.0 / 10).min(60).unsigned_abs()))
    }

    pub(crate) fn seconds(self) -> i32 {
        self.0
    }
}
