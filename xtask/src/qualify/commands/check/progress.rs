//! Progress: producers keep each stream filled until the faults are over, so receipts never stop coming
//! for long.

use std::time::Duration;

use super::{
    findings::{Findings, Rule, moment},
    stream::Stream,
};
use crate::qualify::commands::history::Moment;

/// What a few faults one upon the other may cost, with the back-off of everybody behind them.
const STANDS_STILL: Duration = Duration::from_secs(90);

pub(super) fn check(stream: &Stream, findings: &mut Findings) {
    let mut told: Vec<Moment> = stream.receipts.iter().map(|receipt| receipt.ended).collect();
    told.sort_unstable();
    findings.count(Rule::Progress, told.len());
    // From the start, and up to the end of the faults: what comes after is the recovery's.
    told.push(stream.history.end.faults_stopped);
    let mut last = Moment::ZERO;
    for at in told {
        findings.hold(Rule::Progress, at <= last + STANDS_STILL, || {
            format!("{}: no receipt from {} to {}", stream.name, moment(last), moment(at))
        });
        last = last.max(at);
    }
}
