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

/// One claim a kind of fault: how many of those that were scheduled met somebody; and how long it took
/// until all was well again.
fn survived(history: &History) -> Vec<Claim> {
    let mut kinds: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for kind in &history.scheduled {
        kinds.entry(kind).or_default().1 += 1;
    }
    for fault in &history.faults {
        kinds.entry(&fault.kind).or_default().0 += 1;
    }
    let claim = |(kind, (met, scheduled))| {
        Claim::new(format!("fault: {kind}"), format!("{met} of {scheduled} met somebody"), met > 0)
    };
    let end = &history.end;
    let figure = match end.recovered {
        Some(at) => format!("{:.1} s", at.saturating_sub(end.faults_stopped).as_secs_f64()),
        None => "never".to_owned(),
    };
    let recovery =
        Claim::new("from the last fault until all was well", figure, end.recovered.is_some());
    kinds.into_iter().map(claim).chain([recovery]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::qualify::commands::history::Fault;

    #[test]
    fn a_kind_of_fault_that_met_nobody_fails_however_rare_it_was() {
        let fault = Fault {
            kind: "HTML 503".to_owned(),
            target: "lab-a".to_owned(),
            began: Default::default(),
            ended: Default::default(),
        };
        let scheduled = vec!["HTML 503", "HTML 503", "black hole"];
        let mut history = History { scheduled, faults: vec![fault], ..History::default() };
        history.end.recovered = Some(Default::default());
        let mut told = Vec::new();
        assert!(!write(&mut told, &history, &[], true).unwrap());
        history.scheduled.pop();
        assert!(write(&mut told, &history, &[], true).unwrap());
    }
}
