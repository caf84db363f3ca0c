//! What the lane tells in the end.

use std::{collections::BTreeMap, io};

use super::{check::Finding, history::History};
use crate::claim::{self, Claim};

/// How many violations of one rule are told; the first ones say most.
const MOST_TOLD: usize = 20;

/// Writes the faults by their kind, a claim for each rule, and what was violated. Gives whether every
/// claim held.
pub(crate) fn write(
    to: &mut impl io::Write,
    history: &History,
    findings: &[Finding],
    json: bool,
) -> io::Result<bool> {
    let claims: Vec<Claim> =
        survived(history).into_iter().chain(findings.iter().map(Finding::claim)).collect();
    let ok = claim::write(to, &claims, json)?;
    for finding in findings.iter().filter(|finding| !finding.violations.is_empty()) {
        let claim = finding.claim().claim;
        let told = finding.violations.iter().take(MOST_TOLD);
        if json {
            for violation in told {
                let line = Claim::new(claim.clone(), format!("violated: {violation}"), false);
                claim::write(to, &[line], true)?;
            }
            continue;
        }
        writeln!(to, "\n  VIOLATED: {claim}")?;
        for violation in told {
            writeln!(to, "    {violation}")?;
        }
        let more = finding.violations.len().saturating_sub(MOST_TOLD);
        if more > 0 {
            writeln!(to, "    and {more} more")?;
        }
    }
    Ok(ok)
}

/// One claim a kind of fault: how many of it there were.
fn survived(history: &History) -> Vec<Claim> {
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for fault in &history.faults {
        *kinds.entry(&fault.kind).or_default() += 1;
    }
    let times =
        |(kind, count)| Claim::new(format!("fault: {kind}"), format!("{count} times"), true);
    kinds.into_iter().map(times).collect()
}
