//! What a command asks its handler for. The body is `{"do":"…","ms":…,"text":"…"}`; the lane's handler
//! and the linked Runtime do what it says.

use serde::Deserialize;
use test_support::Random;

/// The kind of every command of the lane.
pub(crate) const KIND: &str = "job.run";

/// The body of a command.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Work {
    /// What is to be done.
    #[serde(rename = "do")]
    pub(crate) what: What,
    /// How long it takes, in milliseconds; 0 but for [`What::Slow`].
    pub(crate) ms: u64,
}

/// What a handler does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum What {
    /// Succeeds at once.
    Quick,
    /// Succeeds after a while.
    Slow,
    /// Fails.
    Fail,
    /// Rejects the command.
    Reject,
    /// Succeeds with a private output; the command has a Run.
    Private,
}

impl Work {
    /// Draws one; most are quick.
    pub(super) fn draw(random: &mut Random) -> Self {
        let what = match random.within(0..100) {
            0..80 => What::Quick,
            80..87 => What::Slow,
            87..91 => What::Fail,
            91..94 => What::Reject,
            _ => What::Private,
        };
        let ms = if what == What::Slow { random.within(50..600) } else { 0 };
        Self { what, ms }
    }

    /// The body's text, with a text of a drawn length in it.
    pub(super) fn body(&self, random: &mut Random) -> String {
        let what = match self.what {
            What::Quick => "quick",
            What::Slow => "slow",
            What::Fail => "fail",
            What::Reject => "reject",
            What::Private => "private",
        };
        let letters = if random.within(0..40) == 0 { 20_000 } else { random.within(0..300) };
        let text = "é".repeat(usize::try_from(letters).unwrap_or_default());
        format!(r#"{{"do":"{what}","ms":{},"text":"{text}"}}"#, self.ms)
    }
}
