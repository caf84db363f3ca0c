//! What a lane says in the end: one line a claim, with the figure that stands behind it.

use std::{fmt, io};

use serde::Serialize;

/// One claim of a lane.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Claim {
    /// What is claimed, as a sentence without a full stop.
    pub(crate) claim: String,
    /// What was counted, with its unit.
    pub(crate) figure: String,
    /// Whether it held.
    pub(crate) ok: bool,
}

impl Claim {
    pub(crate) fn new(claim: impl Into<String>, figure: impl Into<String>, ok: bool) -> Self {
        Self { claim: claim.into(), figure: figure.into(), ok }
    }
}

impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = if self.ok { "ok  " } else { "FAIL" };
        write!(f, "  {verdict}  {:<64} {}", self.claim, self.figure)
    }
}

/// Writes claims, one a line: for people, or as one JSON object each. Gives whether all held.
pub(crate) fn write(to: &mut impl io::Write, claims: &[Claim], json: bool) -> io::Result<bool> {
    for claim in claims {
        if json {
            serde_json::to_writer(&mut *to, claim)?;
            writeln!(to)?;
        } else {
            writeln!(to, "{claim}")?;
        }
    }
    Ok(claims.iter().all(|claim| claim.ok))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_one_object_a_line() {
        let claims =
            [Claim::new("no gap", "7 places", true), Claim::new("no loss", "1 lost", false)];
        let mut text = Vec::new();
        assert!(!write(&mut text, &claims, true).unwrap());
        let text = String::from_utf8(text).unwrap();
        assert_eq!(
            text,
            "{\"claim\":\"no gap\",\"figure\":\"7 places\",\"ok\":true}\n\
             {\"claim\":\"no loss\",\"figure\":\"1 lost\",\"ok\":false}\n"
        );
        assert!(write(&mut Vec::new(), &claims[..1], false).unwrap());
    }
}
